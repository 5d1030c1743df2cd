#!/bin/sh
# rstream.sh rxe|siw: the stock rstream on our librdmacm and on the distribution's, client and server,
# in every pair. It verifies what it receives. It polls without sleeping, so that time has to pass.
# Its -T a fails on the distribution's library, too.
. "$top_srcdir/t/interop/ends.sh"

kind=$1
tmp=$(mktemp -d)
port=11000

# cell_of CLIENT SERVER ADDRESS OPTION...: one run of the tool on both sides.
cell_of() {
	client=$1 server=$2 to=$3
	shift 3
	port=$((port + 1))
	(end_run "$server" 120 rstream -b "$to" -p $port "$@") >"$tmp/server" 2>&1 &
	pid=$!
	wait_listener $port
	(end_run "$client" 100 rstream -s "$to" -p $port "$@") >"$tmp/client" 2>&1
	status=$?
	[ $status -eq 0 ] || kill $pid 2>/dev/null
	wait $pid
	server_status=$?
	[ $status -eq 0 ] && [ $server_status -eq 0 ] &&
		grep -q '^custom ' "$tmp/client" && grep -q '^custom ' "$tmp/server" && return
	echo "client $status, server $server_status"
	sed 's/^/client: /' "$tmp/client"
	sed 's/^/server: /' "$tmp/server"
	return 1
}

sizes="1 64 65 4096 65536 1048576 6291456"
[ -z "${EVR_BRIEF:-}" ] || sizes="1 65 65536"

sizes() {
	for way in b n; do
		for size in $sizes; do
			count=$((6291456 / size > 50 ? 50 : 6291456 / size))
			cell "$kind: $1 client, $2 server, -T $way -T v -S $size -C $count" \
				cell_of "$1" "$2" "$EVR_IP4" -T $way -T v -S $size -C $count
		done
	done
}

# What is beside the sizes: IPv6, small and large buffers, inline data, the CM's look-up, keepalive,
# several iterations.
others() {
	cell "$kind: $1 client, $2 server, IPv6" \
		cell_of "$1" "$2" "$EVR_IP6" -T b -T v -S 65536 -C 20
	for options in '-B 4096' '-B 1048576' '-i 0' '-i 256' '-T r' '-k 1' '-I 20'; do
		# shellcheck disable=SC2086 # options with their values
		cell "$kind: $1 client, $2 server, $options" \
			cell_of "$1" "$2" "$EVR_IP4" -T v -S 10000 -C 20 $options
	done
}

cell "$kind comes up" dev_up "$kind"
for end in stock@stock stock@ours; do
	cell "$end is on its core" runs_on_its_core $end rstream
done
# The control first.
for pair in stock@stock:stock@stock stock@ours:stock@ours stock@ours:stock@stock stock@stock:stock@ours; do
	sizes "${pair%:*}" "${pair#*:}"
	others "${pair%:*}" "${pair#*:}"
done
cell "$kind goes away" dev_down
done_testing
