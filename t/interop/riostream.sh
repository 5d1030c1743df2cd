#!/bin/sh
# riostream.sh rxe|siw: the stock riostream, which writes into mappings, and rcopy on our librdmacm and
# on the distribution's, client and server, in every pair.
. "$top_srcdir/t/interop/ends.sh"

kind=$1
tmp=$(mktemp -d)
port=12000

# both CLIENT SERVER: ends with 0 when both did; what they said otherwise.
both() {
	wait $pid
	server_status=$?
	[ $status -eq 0 ] && [ $server_status -eq 0 ] && return
	echo "client $status, server $server_status"
	sed 's/^/client: /' "$tmp/client"
	sed 's/^/server: /' "$tmp/server"
	return 1
}

# write_to CLIENT SERVER OPTION...
write_to() {
	client=$1 server=$2
	shift 2
	port=$((port + 1))
	(end_run "$server" 120 riostream -b "$EVR_IP4" -p $port "$@") >"$tmp/server" 2>&1 &
	pid=$!
	wait_listener $port
	(end_run "$client" 100 riostream -s "$EVR_IP4" -p $port "$@") >"$tmp/client" 2>&1
	status=$?
	[ $status -eq 0 ] || kill $pid 2>/dev/null
	both
}

# copy CLIENT SERVER BYTES: the file arrives as it was. The server serves for ever.
copy() {
	port=$((port + 1))
	head -c "$3" /dev/urandom >"$tmp/from"
	rm -f "$tmp/to"
	(end_run "$2" 100 rcopy -p $port) >"$tmp/server" 2>&1 &
	pid=$!
	wait_listener $port
	(end_run "$1" 60 rcopy "$tmp/from" "$EVR_IP4:$tmp/to" -p $port) >"$tmp/client" 2>&1
	status=$?
	kill $pid
	wait $pid 2>/dev/null
	[ $status -eq 0 ] && cmp "$tmp/from" "$tmp/to" && return
	cat "$tmp/client" "$tmp/server"
	return 1
}

cell "$kind comes up" dev_up "$kind"
for end in stock@stock stock@ours; do
	cell "$end is on its core" runs_on_its_core $end riostream
done
for pair in stock@stock:stock@stock stock@ours:stock@ours stock@ours:stock@stock stock@stock:stock@ours; do
	client=${pair%:*} server=${pair#*:}
	for size in 1 64 4096 65536 1048576; do
		cell "$kind: $client client, $server server, riostream -S $size" \
			write_to "$client" "$server" -T v -S $size -C 20
	done
	for size in 1 100000 5000000; do
		cell "$kind: $client client, $server server, rcopy of $size bytes" \
			copy "$client" "$server" $size
	done
done
cell "$kind goes away" dev_down
done_testing
