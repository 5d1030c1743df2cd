#!/bin/sh
# Every function of the CM has its rows in the table of errors, and every row a function.
. "${top_srcdir:-.}/t/lint/lint.sh"
cd "$top_srcdir" || exit 99

# What the library exports and what its headers do themselves. The shorthands of the verbs do nothing
# but pass a verb's error on, which is rdma_seterrno()'s.
{
	sed -n 's/^[ 	]*\(rdma_[a-z_]*\);.*/\1/p' lib/cm/librdmacm.map
	sed -n 's/^static inline .*[ *]\(rdma_[a-z_]*\)(.*/\1/p' include/rdma/rdma_cma.h
	echo rdma_seterrno
} | sort -u >"$scratch/functions"
cat t/errors/*.def t/unit/cm_errors.def |
	sed -n 's/^CASE([A-Z]*, [A-Z_]*, \([a-z_]*\),.*/\1/p' | sort -u >"$scratch/rows"

comm -23 "$scratch/functions" "$scratch/rows" | sed 's/$/: has no row/' >"$findings"
comm -13 "$scratch/functions" "$scratch/rows" | sed 's/$/: is no function of the CM/' >>"$findings"
[ -s "$scratch/functions" ] || echo "no function was found" >>"$findings"
verdict "every function of the CM is in the table of errors"

# A row has one place, or nobody knows which of two holds.
cat t/errors/*.def t/unit/cm_errors.def | tr -d '\n' | sed 's/CASE(/\n&/g' |
	sed -n 's/^CASE(\([A-Z]*\), \([A-Z_]*, [a-z_]*,[ 	]*"[^"]*"\).*/\2 \1/p' | sort |
	awk '{ where = $NF; $NF = "" }
		$0 == last && (where == had || where == "ALL" || had == "ALL") { print $0 where }
		{ last = $0; had = where }' >"$findings"
verdict "no row is there twice"

done_testing
