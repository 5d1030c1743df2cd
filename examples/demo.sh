#!/bin/sh
# Shows ucmatose and mckey, server and client, passing data over RDMA: installs what is missing,
# builds in build-demo, and runs them on this machine's RDMA device or, where there is none, on
# soft-RoCE in a throw-away guest. Needs root or sudo for what is to be installed.
#
#	examples/demo.sh
set -eu

say() { printf '\n* %s\n' "$*"; }

# --- where RDMA is -----------------------------------------------------------

# show COMMAND...: says the command, then runs it with each line marked by who says it.
show() {
	who=$1
	shift
	echo "  $ $*"
	tool=$top_builddir/examples/tools/.libs/$1
	shift
	{
		"$tool" "$@" 2>&1 && echo 0 >"$tmp/$who" || echo $? >"$tmp/$who"
	} | sed "s/^/    $who: /"
	[ "$(cat "$tmp/$who")" -eq 0 ]
}

# pass SERVER... -- CLIENT...: both sides, and whether both ended well.
pass() {
	server=""
	status=0
	while [ "$1" != -- ]; do
		server="$server $1"
		shift
	done
	shift
	# shellcheck disable=SC2086 # words
	show server $server &
	pid=$!
	wait_ready
	show client "$@" || status=1
	wait $pid || status=1
	[ $status -eq 0 ] || failed=1
}

listening() { wait_listener 7471; }

# A receiver is ready when the kernel has its group.
has_group() { rdma resource show cm_id | grep -q 'ps UDP'; }
receiving() { wait_until 60 has_group; }

inside() {
	. "$top_srcdir/t/guest/lib.sh"
	failed=0
	tmp=$(mktemp -d)
	LD_LIBRARY_PATH=$top_builddir/.libs
	dev_up rxe
	export LD_LIBRARY_PATH

	say "This is $(uname -sr). Its RDMA device, made of software on a network interface:"
	rdma link | sed 's/^/    /'

	say "ucmatose: the server waits on an address of the device; the client makes two connections
  to it. The server sends 10 messages of 1000 bytes on each, and the client answers with as
  many. Both check every byte, and 'return status 0' says that all of it arrived."
	wait_ready() { listening; }
	pass ucmatose -b "$EVR_IP4" -c 2 -S 1000 -- ucmatose -s "$EVR_IP4" -c 2 -S 1000

	say "The same over IPv6, with every id moved to a second event channel before the disconnect."
	pass ucmatose -b "$EVR_IP6" -m -- ucmatose -s "$EVR_IP6" -m

	say "mckey: a receiver joins a multicast group, and a sender sends it 10 datagrams, three
  seconds after it has joined, so that every receiver is there."
	wait_ready() { receiving; }
	pass mckey -m 239.1.2.3 -b "$EVR_IP4" -- mckey -m 239.1.2.3 -b "$EVR_IP4" -s

	unset LD_LIBRARY_PATH
	dev_down
	rm -rf "$tmp"
	if [ $failed -eq 0 ]; then
		say "All of it passed. The tools are in examples/tools, their pages in man, and README says
  how to write a program of your own."
	else
		say "Something failed: see above."
	fi
	exit $failed
}

# --- on this machine ---------------------------------------------------------

quietly() {
	"$@" >"$build/demo.log" 2>&1 </dev/null || {
		echo "failed: $*; the end of $build/demo.log:" >&2
		tail -n 30 "$build/demo.log" >&2
		exit 1
	}
}

build() {
	[ ! -f "$top/config.status" ] ||
		{ echo "the checkout itself is configured: run make distclean there first" >&2; exit 1; }
	[ -f "$top/configure" ] || quietly autoreconf -fi "$top"
	cd "$build"
	[ -f Makefile ] || quietly "$top/configure" --disable-tests
	quietly make -j"$(nproc)"
}

if [ "${1:-}" = inside ]; then
	inside
elif [ $# -gt 0 ]; then
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
	exit 1
fi

top=$(cd "$(dirname "$0")/.." && pwd)
build=$top/build-demo
mkdir -p "$build"
say "Installing what is missing (nothing, if this is not the first time)"
"$top/t/setup.sh" demo
say "Building in $build (about a minute the first time)"
build
say "Starting the tools where RDMA is: here, or in a guest that takes some seconds to boot, and
  some more, once, to fetch its kernel"
exec env top_srcdir="$top" top_builddir="$build" "$top/t/guest/run" "$top/examples/demo.sh" inside
