#!/bin/sh
# Who may include whom: the table of include.awk, and no header that includes itself in the end.
. "${top_srcdir:-.}/t/lint/lint.sh"
cd "$top_srcdir" || exit 99

sources '*.c' '*.h' >"$scratch/files"

xargs awk -f "$lintdir/include.awk" <"$scratch/files" >"$findings"
verdict "each part includes only what it may"

# One line per edge: the file, and the header of the tree that it includes.
edges() {
	while read -r file; do
		sed -n 's/^[ \t]*#[ \t]*include[ \t]*[<"]\([^>"]*\)[>"].*/\1/p' "$file" |
			while read -r name; do
				for dir in lib include t examples "$(dirname "$file")"; do
					[ ! -f "$dir/$name" ] || echo "$file $dir/$name"
				done
			done
	done
}

# The locks of lib/ev have an order, which lock.c looks after.
grep -n 'pthread_mutex_\|pthread_rwlock_' -r lib/ev --include='*.[ch]' | grep -v '^lib/ev/core/lock\.' >"$findings"
verdict "lib/ev takes no lock but by lock.h"

grep '\.h$' "$scratch/files" | edges >"$scratch/edges"
tsort "$scratch/edges" 2>"$findings" >"$scratch/out/order"
[ -s "$scratch/edges" ] || echo "no edge was found at all" >"$findings"
verdict "no header includes itself in the end"

done_testing
