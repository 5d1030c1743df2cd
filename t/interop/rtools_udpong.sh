#!/bin/sh
# rtools_udpong.sh rxe|siw [CLIENT SERVER]...: the matrix of udpong pairs on one device.
# What is not sent back may be lost; what is sent back comes, since it is asked for again.
. "$top_srcdir/t/interop/rtools.sh"

kind=$1
shift
[ $# -gt 0 ] || set -- stock@stock stock@stock ours@stock ours@stock \
	ours@stock stock@stock stock@stock ours@stock ours@ours ours@ours

# Without it the stock library does not come to work on RoCE, not with itself either.
helped() {
	case $1 in *@stock) export LD_PRELOAD="$top_builddir/t/interop/.libs/global_ah.so" ;; esac
	end_run "$@"
}

is_bound() { ss -lun | grep -q ":$1 "; }

# How many packets the device has sent.
packets() { cat "/sys/class/infiniband/$EVR_DEV/ports/1/hw_counters/sent_pkts"; }

# pong CLIENT SERVER ADDRESS ARGUMENT...: leaves what the client printed, and how many packets went.
pong() {
	client=$1 server=$2 to=$3
	shift 3
	port=$((port + 1))
	(helped "$server" 0 udpong -b "$to" -p $port) >"$tmp/server" 2>&1 &
	pid=$!
	wait_until 60 is_bound $port || return
	before=$(packets)
	(helped "$client" 60 udpong -s "$to" -p $port "$@") >"$tmp/client" 2>&1 && status=0 || status=$?
	sent=$(($(packets) - before))
	kill $pid
	{ wait $pid; } 2>/dev/null
	cat "$tmp/client" "$tmp/server"
	echo "client $status, $sent packets"
	return $status
}

# came LEAST: so many were counted, once per way.
came() {
	awk -v least="$1" '/s +[0-9.]+ +[0-9.]+$/ { lines++; if ($3 + 0 >= least) good++ }
		END { exit lines != 1 || good != 1 }' "$tmp/client"
}

echoes() { pong "$@" -C 40 -T e && came 80; }
# As many as there is room for at the other side, whoever sends them how fast.
one_way() { pong "$@" -C 40 && came 30; }

# The first ones go by UDP, until the kernel has found the way to the other side. It does so beside them,
# and on a busy machine a run may be over before: then the next one tells.
by_queue_pairs() {
	for again in $(seq 20); do
		pong "$@" -C 200 -T e && came 400 || return
		[ "$sent" -lt 200 ] || return 0
	done
	return 1
}

matrix() {
	for size in 16 1000; do
		for test in a b n; do
			cell "$kind: $1 client, $2 server, udpong -T $test -T e -S $size" \
				echoes "$1" "$2" "$EVR_IP4" -T $test -S $size
			cell "$kind: $1 client, $2 server, udpong -T $test -S $size" \
				one_way "$1" "$2" "$EVR_IP4" -T $test -S $size
		done
	done
	cell "$kind: $1 client, $2 server, udpong -T e over IPv6" \
		echoes "$1" "$2" "$EVR_IP6" -S 1000
	[ "$kind" = siw ] || cell "$kind: $1 client, $2 server, udpong goes by the queue pairs" \
		by_queue_pairs "$1" "$2" "$EVR_IP4" -S 16
}

cell "$kind comes up" dev_up "$kind"
while [ $# -gt 0 ]; do
	matrix "$1" "$2"
	shift 2
done
cell "$kind goes away" dev_down
rm -rf "$tmp"
done_testing
