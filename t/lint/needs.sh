#!/bin/sh
# What the libraries and tools that are installed need of a librdmacm: the distribution's is to do.
. "${top_srcdir:-.}/t/lint/lint.sh"

newest='RDMACM_1.3'

# needed FILE: the versions that it needs of librdmacm.so.1.
needed() {
	readelf -VW "$1" | awk '
		/ File: / { ours = / File: librdmacm\.so\.1 / }
		ours && / Name: / { for (i = 1; i < NF; i++) if ($i == "Name:") print $(i + 1) }'
}

# check FILE: every version up to the newest, and for a program that it is one at all.
check() {
	[ -f "$1" ] || { echo "$1: is not there"; return; }
	needed "$1" | while read -r version; do
		printf '%s\n%s\n' "$version" "$newest" | sort -VC || echo "$1: needs $version"
	done
}

library=$top_builddir/.libs/libevrdma.so
check "$library" >"$findings"
needed "$library" | grep -q . || echo "$library: needs no librdmacm, as it seems" >>"$findings"
verdict "libevrdma needs nothing of librdmacm above $newest"

tools=$(make_var EVR_TOOLS)
for tool in $tools; do
	check "$top_builddir/$(dirname "$tool")/.libs/$(basename "$tool")"
done >"$findings"
[ -n "$tools" ] || echo "no tools were found" >>"$findings"
verdict "the tools need nothing of librdmacm above $newest"

done_testing
