#!/bin/sh
# echo_stream.sh rxe|siw: rstream, ours and the stock one, is a client of a bufferevent over RDMA.
# time: virtual
. "$top_srcdir/t/interop/ends.sh"

kind=$1 port=7471
tmp=$(mktemp -d)

# comes_back END SIZE ARGUMENT...: each byte is checked.
comes_back() {
	end=$1 size=$2
	shift 2
	(end_run "$end" 60 rstream -s "$EVR_IP4" -p $port -T v -S "$size" "$@") >"$tmp/client" 2>&1 && return 0
	sed 's/^/# /' "$tmp/client"
	return 1
}

cell "$kind comes up" dev_up "$kind"
LD_LIBRARY_PATH=$ours_libs "$top_builddir/t/interop/echo_stream" "$EVR_IP4:$port" &
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
cell "$kind: the server is still there" kill $server
cell "$kind goes away" dev_down
rm -rf "$tmp"
done_testing
