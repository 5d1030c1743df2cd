#!/bin/sh
# Whether t/destroy knows of everything that can be called back, and of everything that can be ended.
. "${top_srcdir:-.}/t/lint/lint.sh"
cd "$top_srcdir" || exit 99

# unknown FILE: the words of standard input that do not occur in the file.
unknown() {
	while read -r word; do
		grep -qw "$word" "$1" || echo "$word is not in $1"
	done
}

sed -n 's/^typedef .*(\*\(evrdma_[a-z_]*\))(.*/\1/p' include/evrdma/*.h | sort -u >"$scratch/types"
[ -s "$scratch/types" ] || echo "no callback was found" >>"$findings"
unknown t/destroy/callbacks.c <"$scratch/types" >>"$findings"
verdict "something is ended in every kind of callback"

sed -nE 's/^[a-z]+ \**(evrdma_([a-z]+_(close|free|unref|shutdown)|request_reject))\(.*/\1/p' \
	include/evrdma/*.h | sort -u >"$scratch/ends"
grep -qx evrdma_base_close "$scratch/ends" || echo "evrdma_base_close was not found" >>"$findings"
unknown t/destroy/action.c <"$scratch/ends" >>"$findings"
verdict "everything that can be ended is"

sed -nE 's/^[a-z].* \*?(evrdma_[a-z]+_new(_[a-z]+)*)\(.*/\1/p' include/evrdma/*.h |
	sort -u >"$scratch/makers"
grep -qx evrdma_base_new "$scratch/makers" || echo "evrdma_base_new was not found" >>"$findings"
cat t/destroy/*.c >"$scratch/all"
unknown "$scratch/all" <"$scratch/makers" |
	sed 's/ is not in .*/ makes nothing in t\/destroy/' >>"$findings"
verdict "everything that can be made is there to be ended"

# What cannot be ended by a call of its own is no object.
sed -E 's/_new(_[a-z]+)*$//' "$scratch/makers" | sort -u |
	while read -r object; do
		grep -qE "^${object}_(close|free|unref)$" "$scratch/ends" || echo "$object has no end"
	done >>"$findings"
verdict "everything that is made can be ended"

done_testing
