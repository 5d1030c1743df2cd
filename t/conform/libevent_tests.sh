#!/bin/sh
# libevent's own tests of bufferevents, of its HTTP and of its TLS, from the distribution's source of it, on
# bufferevents over RDMA on the fake. libevent_shim.c, libevent_http.c and libevent_ssl.c put these in their
# place; those of libevent_tests.not do not run, and are no tests here.
. "${top_srcdir:-.}/t/lint/lint.sh"

here=$top_srcdir/t/conform
flags="-std=gnu11 -D_GNU_SOURCE $(make_var CFLAGS) -w"
sanitizers=$(make_var EVR_SAN_FLAGS)
libs="libevr_clock.la libevr_ev.la libevr_cm.la libevr_fake.la $(make_var LIBEVENT_LIBS) -levent -levent_pthreads
	$(make_var TLS_LIBS) $(make_var ZLIB_LIBS) -lpthread"

leave() {
	skip "libevent's tests of bufferevents" "$1"
	done_testing
	exit
}

# compile SOURCE FLAG...: with the headers of the tests, and what configure would have found out. Sanitizers look
# at what is ours.
compile() {
	object=$scratch/out/$(basename "$1" .c).o
	objects="$objects $object"
	source=$1
	shift
	# shellcheck disable=SC2086
	$cc $flags "$@" -DHAVE_CONFIG_H -I"$scratch" -I"$libevent" -I"$libevent/test" -I"$top_srcdir/t" \
		$public_flags -c -o "$object" "$source"
}

build() {
	: >"$scratch/evconfig-private.h"
	for name in tinytest regress_testutils; do
		compile "$libevent/test/$name.c" || return
	done
	for name in regress_bufferevent regress_main $zlib; do
		compile "$libevent/test/$name.c" -include conform/libevent_shim.h ${zlib:+-DEVENT__HAVE_LIBZ} || return
	done
	compile "$libevent/test/regress_http.c" -include conform/libevent_http.h || return
	compile "$libevent/test/regress_ssl.c" -include conform/libevent_ssl.h || return
	compile "$here/libevent_rest.c" || return
	for name in shim http ssl; do
		# shellcheck disable=SC2086
		compile "$here/libevent_$name.c" $sanitizers || return
	done
	# shellcheck disable=SC2086
	(cd "$top_builddir" &&
		./libtool --silent --tag=CC --mode=link $cc $flags $sanitizers -o "$scratch/out/regress" $objects $libs)
}

# why_not TEST: what the list says, if it has it.
why_not() { sed -n "s|^$1  *||p" "$here/libevent_tests.not"; }

said() { grep -q "$1" "$scratch/said"; }

# run TEST: one that makes no connection over RDMA is none that was run.
run() {
	LSAN_OPTIONS=suppressions=$scratch/leaks \
		timeout 60 "$scratch/out/regress" --no-fork "+$1" >"$scratch/said" 2>&1 && ended=0 || ended=$?
	if [ "$ended" -eq 0 ] && said '(1 skipped)'; then
		skip "$1" "it skips itself, as without IPv6"
		return
	fi
	if [ "$ended" -ne 0 ] || ! said '^1 tests ok' || ! said '[1-9][0-9]* were over RDMA$'; then
		{ echo "it ended with $ended"; head -n 20 "$scratch/said"; } >>"$findings"
	fi
	verdict "$1"
}

own_rdmacm || leave "the fake takes our librdmacm"
[ -n "$(make_var TLS_LIBS)" ] || leave "there is no OpenSSL"
libevent=$("$here/libevent_source.sh" 2>"$scratch/said") || leave "$(tail -n 1 "$scratch/said")"
zlib=regress_zlib
[ -n "$(make_var ZLIB_LIBS)" ] || zlib=
echo 'leak:libcrypto' >"$scratch/leaks" # the keys and certificates of the tests
objects=
build >"$findings" 2>&1
verdict "they are built"

[ ! -x "$scratch/out/regress" ] ||
	"$scratch/out/regress" --list-tests | sed -n 's|^ *\([a-z]*/[a-z_0-9]*\).*|\1|p' >"$scratch/tests"
while read -r test; do
	reason=$(why_not "$test")
	if [ -n "$reason" ]; then
		echo "$test is left out: it $reason" | note
	else
		run "$test"
	fi
done <"$scratch/tests"
[ "$(wc -l <"$scratch/tests")" -ge 100 ] || echo "there are fewer than that" >>"$findings"
sed -n 's/^\([^# ]*\) .*/\1/p' "$here/libevent_tests.not" | grep -vxFf "$scratch/tests" >>"$findings"
verdict "all are there, and all that are left out"
done_testing
