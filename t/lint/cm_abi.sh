#!/bin/sh
# Our librdmacm and its headers against the distribution's: symbols and versions; then all that a
# header says to a compiler, which is taken from what the compiler says to a debugger: structs,
# fields, enumerators, macros, prototypes. What differs has to be in one of two lists. Last, a program
# made of all these names compiles with either.
. "${top_srcdir:-.}/t/lint/lint.sh"

listed() { grep -v '^#' "$lintdir/cm_abi.$1" | sort; }
# The first word of a line is its name, or the first two of a struct.
names() { sed -E 's/^(struct [a-z_]+\.[^ ]*|[^ :]+).*/\1/' | sort -u; }

# differ STOCK OURS: the names that one of them has alone are just those in the lists, as far as
# they are of this kind.
differ() {
	comm -23 "$1" "$2" >"$scratch/missing"
	comm -13 "$1" "$2" >"$scratch/more"
	names <"$scratch/missing" | comm -23 - "$scratch/open" | sed 's/$/: not as in the distribution/'
	names <"$scratch/more" | comm -23 - "$scratch/beyond" | sed 's/$/: not in the distribution/'
	names <"$2" | comm -12 - "$scratch/open" | sed 's/$/: is there, and listed as open/'
	[ -s "$1" ] && [ -s "$2" ] || echo "nothing was found to compare"
}

versions() {
	nm -D --defined-only --with-symbol-versions "$1" |
		awk '$2 ~ /[TDBRVW]/ { sub(/@+/, " ", $3); print $3 }' | grep -v '^RDMACM_' | sort
}

# compiler WHOSE ARGUMENT...: with our headers first, or with what it finds by itself.
compiler() {
	case $1 in
	ours) shift && $cc -I"$top_srcdir/include" "$@" ;;
	*) shift && $cc "$@" ;;
	esac
}

headers='infiniband/ib.h rdma/rdma_cma.h rdma/rdma_verbs.h rdma/rsocket.h'
# What ours includes of the system, and the distribution's before 65 does not, is no difference.
includes() { echo '#include <sys/epoll.h>'; for h in $headers; do echo "#include <$h>"; done; }

# own WHOSE: the text of the headers alone, without what they include.
own() {
	includes | compiler "$1" -E -dD -x c - | awk '
		/^# [0-9]+ "/ { own = $3 ~ /\/(rdma\/(rdma_cma|rdma_verbs|rsocket)|infiniband\/ib)\.h"$/; next }
		own'
}

# functions WHOSE: what is declared, or is inline.
functions() {
	own "$1" | grep -oE '\b(r[a-z_]+|ib_addr_[a-z]+) *\(' | tr -d ' (' |
		grep -vx return | sort -u
}

# macros WHOSE: "name expansion".
macros() {
	own "$1" | awk '$1 == "#define" && NF > 2 && $2 !~ /\(/ { print $2 }' | sort -u >"$scratch/names"
	{ includes; sed 's/.*/evr_macro "&" &/' "$scratch/names"; } |
		compiler "$1" -E -P -x c - | sed -n 's/^evr_macro "\([^"]*\)"/\1/p' | sort
}

# layout WHOSE: what the debugger is told; of functions, that of a pointer to each.
layout() {
	{ includes; sed 's/.*/__typeof__(\&&) type_of_&;/' "$scratch/functions.$1"; } |
		compiler "$1" -g -fno-eliminate-unused-debug-types -x c -c -o "$scratch/layout.o" - &&
		readelf --debug-dump=info "$scratch/layout.o" | awk -f "$lintdir/layout.awk" |
		sed 's/^type_of_//' | sort -u
}

# program: takes the address of every field and function, and the value of every enumerator and
# macro that a program for the distribution's library can name, but for what is open.
program() {
	includes
	echo '#include <rdma/rdma_cma_abi.h>'
	own stock | sed -nE 's/^struct ([a-z_]+) \{.*/struct \1/p' | sort -u >"$scratch/structs"
	echo 'const void *use(void *at, int n); const void *use(void *at, int n) { switch (n) {'
	sed -nE 's/^((struct [a-z_]+)\.[^ ]+) .*/\2 \1/p' "$scratch/stock.layout" |
		awk 'NR == FNR { wanted[$0]; next }
			("struct " $2) in wanted {
				print "case " ++n ": return &((struct " $2 " *)at)->" \
					substr($4, length($2) + 2) ";"
			}' "$scratch/structs" -
	comm -23 "$scratch/functions.stock" "$scratch/open" |
		awk '{ print "case " 1000 + NR ": *(__typeof__(&" $0 ") *)at = " $0 "; break;" }'
	grep -E '^[A-Z_]+ [0-9]' "$scratch/stock.macros" | names | comm -23 - "$scratch/open" |
		awk '{ print "case " 2000 + NR ": *(unsigned long long *)at = " $0 "; break;" }'
	sed -nE 's/^((RDMA|RAI)_[A-Z_]+) is .*/\1/p' "$scratch/stock.layout" | comm -23 - "$scratch/open" |
		awk '{ print "case " 3000 + NR ": *(int *)at = " $0 "; break;" }'
	echo '} return at; }'
}

stock=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p | sed -n 's/.*librdmacm\.so\.1 .*=> //p' | head -n 1)
if ! own_rdmacm; then
	skip "the ABI of librdmacm" "this build has none of its own"
	done_testing
	exit
elif [ ! -e "$stock" ]; then
	skip "the ABI of librdmacm" "the distribution's librdmacm is not installed"
	done_testing
	exit
fi

listed open >"$scratch/open"
listed beyond >"$scratch/beyond"
versions "$top_builddir/.libs/librdmacm.so" >"$scratch/ours.symbols"
versions "$stock" >"$scratch/stock.symbols"
differ "$scratch/stock.symbols" "$scratch/ours.symbols" >"$findings"
verdict "every symbol of the distribution's is there at its version, but for those listed as open"

readelf -d "$top_builddir/.libs/librdmacm.so" | grep -q 'SONAME.*\[librdmacm\.so\.1\]' ||
	echo "not librdmacm.so.1" >"$findings"
verdict "the library has the distribution's name"

# The distribution's headers are where the compiler looks by itself.
if ! echo '#include <rdma/rdma_cma.h>' | $cc -E - >/dev/null 2>&1; then
	skip "the headers" "the distribution's are not installed"
	done_testing
	exit
fi
for whose in stock ours; do
	functions $whose >"$scratch/functions.$whose"
	macros $whose >"$scratch/$whose.macros"
	layout $whose >"$scratch/$whose.layout" 2>>"$findings"
done
differ "$scratch/stock.layout" "$scratch/ours.layout" >>"$findings"
verdict "structs, fields, enumerators and prototypes are the distribution's"

differ "$scratch/stock.macros" "$scratch/ours.macros" >>"$findings"
verdict "macros are the distribution's"

# An entry that nothing stands behind any more would hide something one day.
cat "$scratch"/stock.symbols "$scratch"/stock.layout "$scratch"/stock.macros | names |
	comm -13 - "$scratch/open" | sed 's/$/: open, and the distribution has none/' >"$findings"
cat "$scratch"/ours.symbols "$scratch"/ours.layout "$scratch"/ours.macros | names |
	comm -13 - "$scratch/beyond" | sed 's/$/: listed as ours, and is not there/' >>"$findings"
verdict "the lists name nothing that there is not"

program >"$scratch/program.c"
[ "$(grep -c case "$scratch/program.c")" -gt 150 ] || echo "the program is too small" >"$findings"
for whose in stock ours; do
	compiler $whose -Wall -Wextra -Werror -c -o "$scratch/program.o" "$scratch/program.c" 2>>"$findings"
done
verdict "a program that uses every name compiles with either, without a warning"

done_testing
