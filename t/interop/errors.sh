#!/bin/sh
# errors.sh rxe|siw: the contract of errors on a device. Each row of the table on our library and on
# the distribution's, in this order; a cell for each function, of which every row has to be kept by
# ours.
# time: instant
. "$top_srcdir/t/guest/lib.sh"

stock=$(dirname "$(ldconfig -p | sed -n 's/.*librdmacm\.so\.1 .*=> //p' | head -n 1)")
tmp=$(mktemp -d)
tab=$(printf '\t')

# ask PROGRAM FOLDER KIND: the programs are linked with our library, but a folder that comes first
# decides.
ask() {
	prog=$top_builddir/t/interop/.libs/$1
	[ -x "$prog" ] || prog=$top_builddir/t/interop/$1
	LD_LIBRARY_PATH=$2 "$prog" "$EVR_IP4" "$3"
}
on_ours() { ask errors "$top_builddir/.libs" "$1" >"$tmp/ours"; }
on_stock() { ask errors_1_3 "$stock" "$1" >"$tmp/stock"; }

# kept FUNCTION: every row of it answered as expected on ours.
kept() { awk -F"$tab" -v f="$1" '$1 == f { n++; if ($3 != $4) bad = 1 } END { exit bad || !n }' "$tmp/ours"; }

show() {
	awk -F"$tab" -v f="$1" '$1 == f {
		print "# " $1 ", " $2 ": " $3 " / " ($7 == "" ? "not there" : $7) ($3 == $4 ? "" : ", expected " $4)
	}' "$tmp/both"
}

dev_up "$1"
cell "$1: every row was asked, ours" on_ours "$1"
cell "$1: every row was asked, stock" on_stock "$1"
paste "$tmp/ours" "$tmp/stock" >"$tmp/both"
dev_down
for f in $(cut -f1 "$tmp/ours" | sort -u); do
	cell "$1: $f" kept "$f"
	show "$f"
done
rm -r "$tmp"
done_testing
