#!/bin/sh
# echo_stream.sh rxe|siw: rstream, ours and the stock one, is a client of a bufferevent over RDMA; so are 200
# rsockets at once, and one whose bufferevent is freed in its read callback.
# time: virtual
. "$top_srcdir/t/interop/ends.sh"

kind=$1 port=7471 most=16000000
tmp=$(mktemp -d)

# comes_back END SIZE ARGUMENT...: each byte is checked.
comes_back() {
	end=$1 size=$2
	shift 2
	(end_run "$end" 60 rstream -s "$EVR_IP4" -p $port -T v -S "$size" "$@") >"$tmp/client" 2>&1 && return 0
	sed 's/^/# /' "$tmp/client"
	return 1
}

# by ours|stock PROGRAM ARGUMENT...: clients that know rsockets only, on that librdmacm.
by() {
	libs=$ours_libs program=$2
	[ "$1" = ours ] || libs=
	shift 2
	LD_LIBRARY_PATH=$libs timeout 300 "$top_builddir/t/interop/.libs/$program" "$EVR_IP4" $port "$@"
}

nothing_is_left() { wait_until 60 has_no_connection; }
has_no_connection() {
	case $(resources $server) in 'qp 0 '*) ;; *) return 1 ;; esac
}

prlimit --pid $$ --nofile=4096
cell "$kind comes up" dev_up "$kind"
LD_LIBRARY_PATH=$ours_libs "$top_builddir/t/interop/echo_stream" "$EVR_IP4:$port" $most &
server=$!
cell "$kind: the echo server listens" wait_listener $port
for end in stock@stock ours@ours; do
	for test in b n; do
		for size in 1 64 1000 65536 1048576; do
			cell "$kind: $end rstream -T $test: $size bytes come back" \
				comes_back $end $size -T $test -C 5 -I 3
		done
	done
done
for whose in ours stock; do
	how=together first=10000
	[ $whose = ours ] || how=in-turn first=11000
	cell "$kind: to 200 rsockets of $whose at once" by $whose http_rsockets 200 $first $how echo
	cell "$kind: one of $whose whose bufferevent is freed in its read callback is told" \
		by $whose http_rsocket cut $((20 << 20))
done
cell "$kind: nothing of them is left" nothing_is_left
cell "$kind: the server is still there" kill $server
cell "$kind goes away" dev_down
rm -rf "$tmp"
done_testing
