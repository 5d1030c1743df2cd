#!/bin/sh
# Two libraries of one name: libevrdma is linked with our librdmacm.so.1, another library with the
# distribution's. The first that is loaded serves the whole process, and libevrdma works on either.
. "${top_srcdir:-.}/t/lint/lint.sh"

ours=$(cd "$top_builddir/.libs" && pwd -P)
stock=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p | sed -n 's/.*librdmacm\.so\.1 .*=> //p' | head -n 1)
flags="$(make_var CFLAGS) $(make_var EVR_SAN_FLAGS)"
event_libs=$(make_var LIBEVENT_LIBS)
here=$top_srcdir/t/interop

if [ ! -e "$stock" ] || ! echo '#include <rdma/rdma_cma.h>' | $cc -E - >/dev/null 2>&1; then
	skip "two libraries of one name" "the distribution's librdmacm is not installed"
	done_testing
	exit
fi

# The second library is built as on a machine that has never seen evrdma.
second() {
	$cc $flags -shared -fPIC -o "$scratch/libsecond.so" "$here/second_lib.c" \
		-Wl,--no-as-needed "$stock"
}

# program NAME LIBRARY...: needs the libraries in this order, and is loaded in it.
program() {
	name=$1
	shift
	$cc $flags $public_flags -o "$scratch/$name" "$here/second.c" -Wl,--no-as-needed \
		-L"$ours" -L"$scratch" -Wl,--enable-new-dtags,-rpath,"$ours:$scratch" -Wl,-rpath-link,"$ours" \
		-Wl,--allow-shlib-undefined "$@" $event_libs -ldl
}

# run NAME [VARIABLE=VALUE]...: its output, and to whom each of its calls was bound.
run() {
	name=$1
	shift
	rm -f "$scratch"/bound.*
	env LD_BIND_NOW=1 LD_DEBUG=bindings LD_DEBUG_OUTPUT="$scratch/bound" \
		"$@" "$scratch/$name" >"$scratch/said" 2>"$findings" || echo "$name ended with $?" >>"$findings"
	cat "$scratch"/bound.* | sed -nE \
		's/.*binding file ([^ ]*) .* to ([^ ]*) .*symbol `rdma_[a-z_]+.*/\1 \2/p' | sort -u >"$scratch/bound"
}

# expect LIBRARY: the one that is there, and that all call.
expect() {
	want=$(readlink -f "$1")
	awk '$1 == "mapped" { print $2 }' "$scratch/said" >"$scratch/mapped"
	[ "$(wc -l <"$scratch/mapped")" -eq 1 ] || echo "more or less than one is mapped"
	awk '$1 == "mapped" || (NF == 2) { print $2 }' "$scratch/said" | while read -r found; do
		[ "$(readlink -f "$found")" = "$want" ] || echo "$found is there, not $want"
	done
	for caller in libevrdma libsecond; do
		grep -q "/${caller}[^/]* " "$scratch/bound" || echo "$caller calls nothing, as it seems"
	done
	while read -r caller found; do
		[ "$(readlink -f "$found")" = "$want" ] || echo "$caller calls $found"
	done <"$scratch/bound"
	sed -nE 's/.* opens //p' "$scratch/said" | sort -u >"$scratch/opens"
	[ "$(wc -l <"$scratch/opens")" -eq 1 ] || echo "the two do not agree on what there is"
}

# loads NAME LIBRARY PROGRAM [VARIABLE=VALUE]...
loads() {
	what=$1 library=$2
	shift 2
	run "$@"
	expect "$library" >>"$findings"
	[ ! -s "$findings" ] || cat "$scratch/said" "$scratch/bound" >>"$findings"
	verdict "$what"
}

second 2>"$findings" &&
	program evrdma_first -levrdma -lsecond 2>>"$findings" &&
	program second_first -lsecond -levrdma 2>>"$findings"
verdict "a program with both libraries builds"

loads "libevrdma first: its own librdmacm serves both" "$ours/librdmacm.so.1" evrdma_first
loads "the other first: the distribution's serves both" "$stock" second_first
loads "the other first, with LD_LIBRARY_PATH: ours serves both" "$ours/librdmacm.so.1" \
	second_first LD_LIBRARY_PATH="$ours"
loads "libevrdma first, with LD_LIBRARY_PATH: the distribution's serves both" "$stock" \
	evrdma_first LD_LIBRARY_PATH="$(dirname "$stock")"

done_testing
