#!/bin/sh
# table.sh rxe|siw ROUNDS: the samples of the table, in $EVR_OUT/samples: row, unit, what is better,
# the goal, whose, number or nothing; and in $EVR_OUT/commands what each of them runs. The sides of a row take
# turns. BENCH_ROWS has some of what the rows are about, see the last lines.
# needs: two-processors
. "$top_srcdir/t/bench/sides.sh"

kind=$1 rounds=${2:-3}

connection_rows() {
	n=$(scaled 1000)
	row "connection, as cmtime makes it" us lower 0.9
	side ours cmtime_sum stock@ours "$n"
	side "cmtime" cmtime_sum stock@stock "$n"
	row "connection, as the library makes it" us lower 0.6
	side ours perf_connect "$n"
	side "cmtime" cmtime_sum stock@stock "$n"
}

ping_rows() {
	n=$(scaled 5000)
	row "ping of 64 bytes, by events" us lower 1.05
	side ours perf_us "$n"
	side "minimal loop" minimal_ping "$n"
	row "ping of 64 bytes, by events, beside no loop" us lower -
	side ours perf_us "$n"
	side "ibv_rc_pingpong -e" ibv_pingpong "$n" -e
	row "ping of 64 bytes on 10 of 500 connections" messages/s higher 0.9
	side ours perf messages_per_s -t ping -C "$((n / 10))" -n 10 -i 490
	side "ours, 10 connections" perf messages_per_s -t ping -C "$((n / 10))" -n 10
}

send_rows() {
	n=$(scaled 20000)
	row "send of 64 bytes, window of 64, by events" messages/s higher 1.0
	side ours perf messages_per_s -t send -S 64 -C "$n"
	side "ib_send_bw -e" perftest rate ib_send_bw 64 "$n" -e
	side "ib_send_bw -e -l 32" perftest rate ib_send_bw 64 "$((n / 32 * 32))" -e -l 32
	row "send of 64 bytes, beside a stream" messages/s higher 2.0
	side ours perf messages_per_s -t send -S 64 -C "$n"
	side "rstream" rstream_rate stock 64 "$n"
	for size in 65536 1048576; do
		n=$(scaled $((200000000 / size)))
		row "send of $size bytes, by events" MB/s higher 1.0
		side ours perf_mb -t send -S $size -C "$n"
		side "ib_send_bw, polling" perftest mb ib_send_bw $size "$n"
		side "ib_send_bw -e" perftest mb ib_send_bw $size "$n" -e
		row "send of $size bytes, beside a stream" MB/s higher 1.5
		side ours perf_mb -t send -S $size -C "$n"
		side "rstream" rstream_mb stock $size "$n"
	done
}

polling_rows() {
	n=$(scaled 20000)
	row "ping of 64 bytes, polling" us lower 1.05
	side ours perf_us "$n" -e 1000
	side "ibv_rc_pingpong" ibv_pingpong "$n"
	row "send of 64 bytes, window of 64, polling" messages/s higher 1.0
	side ours perf messages_per_s -t send -S 64 -C "$n" -e 1000
	side "ib_send_bw" perftest rate ib_send_bw 64 "$n"
	side "ib_send_bw -l 32" perftest rate ib_send_bw 64 "$((n / 32 * 32))" -l 32
}

rdma_rows() {
	for op in write read; do
		n=$(scaled 3000)
		row "RDMA $op of 65536 bytes, by events" MB/s higher 1.0
		side ours perf_mb -t $op -S 65536 -C "$n"
		side "ib_${op}_bw, polling" perftest mb ib_${op}_bw 65536 "$n"
	done
}

stream_rows() {
	for size in 64 65536 1048576; do
		n=$(scaled $((size < 4096 ? 2000 : 50000000 / size)))
		[ $size -lt 65536 ] && wanted=0.91 || wanted=0.77
		row "rstream of $size bytes" us lower $wanted
		side ours rstream_us ours $size "$n"
		side "stock librdmacm" rstream_us stock $size "$n"
	done
}

group_rows() {
	n=$(scaled 20000)
	for size in 100 1000; do
		row "multicast of $size bytes, sent" messages/s higher 1.0
		side ours group_sent 1 $size "$n"
		side "ib_send_bw -c UD, unicast" perftest rate ib_send_bw $size "$n" -c UD
		row "multicast of $size bytes, of those sent got" % higher 1.0
		side ours group_got 1 "$n"
		side "ib_send_bw -c UD, unicast" datagrams_got $size "$n"
		row "multicast of $size bytes to 4, sent" messages/s higher -
		side ours group_sent 4 $size "$n"
		side "ours to 1" group_sent 1 $size "$n"
		row "multicast of $size bytes to 4, of those sent got by each" % higher -
		side ours group_got 4 "$n"
		side "ours to 1" group_got 1 "$n"
	done
}

call_rows() {
	n=$(scaled 20000)
	row "kernel calls of a sender for a message of 64 bytes, window of 64" calls lower =0.1
	side ours per_message perf_calls "$n"
	side "ib_send_bw -l 32" per_message perftest_calls "$(($(scaled 20000 320) / 320 * 320))" -l 32
	side "ib_send_bw -e" per_message perftest_calls "$n" -e
	side "rstream" per_message stream_calls "$n"
}

# What rstream's transfers are held against goes there and back, so that it has two of them.
rstream_ping() { rstream_us stock 64 1 -I "$1" | awk '$1 > 0 { printf "%.2f\n", 2 * $1 }'; }

socket_ping() { sockets_us "$1" "$2" "$3" 64 64 "$4"; }
# socket_mb CORE WAY SOCKETS BLOCKS: MB/s of so many blocks of 64 KiB on each, the last answered.
socket_mb() { sockets_us "$1" "$2" "$3" $((65536 * $4)) 1 1 | mb_of $((65536 * $4)); }

# The stock library of rdma-core 44 hangs with the fifth that it accepts: its thread goes on with a
# table that has moved (linux-rdma/rdma-core, pull request 1484).
socket_rows() {
	for k in 1 100; do
		socket_row $k "TCP in epoll" "ours tcp" -
	done
	for k in 1 4; do
		socket_row $k "stock rsockets in rpoll" "stock rpoll" 1.0
	done
}

# socket_row SOCKETS WHOSE "CORE WAY" GOAL
socket_row() {
	pings=$(scaled $((5000 / $1))) blocks=$(scaled $((2000 / $1)))
	row "rsocket in epoll, 64 bytes there and back on $1, beside $2" us lower "$4"
	side ours socket_ping ours epoll "$1" "$pings"
	# shellcheck disable=SC2086 # a core and a way
	side "$2" socket_ping $3 "$1" "$pings"
	row "rsocket in epoll, 65536 bytes one way on $1, beside $2" MB/s higher "$4"
	side ours socket_mb ours epoll "$1" "$blocks"
	# shellcheck disable=SC2086 # a core and a way
	side "$2" socket_mb $3 "$1" "$blocks"
}

# bev_mb rdma|tcp BLOCKS
bev_mb() { stream_us "$1" $((65536 * $2)) 1 1 | mb_of $((65536 * $2)); }

bufferevent_rows() {
	n=$(scaled 5000) blocks=$(scaled 2000)
	row "bufferevent, 64 bytes there and back, beside TCP" us lower -
	side ours stream_us rdma 64 64 "$n"
	side "bufferevent over TCP" stream_us tcp 64 64 "$n"
	row "bufferevent, 64 bytes there and back" us lower 1.0
	side ours stream_us rdma 64 64 "$n"
	side "rstream" rstream_ping "$n"
	row "bufferevent, 65536 bytes one way, beside TCP" MB/s higher -
	side ours bev_mb rdma "$blocks"
	side "bufferevent over TCP" bev_mb tcp "$blocks"
	row "bufferevent, 65536 bytes one way" MB/s higher 1.0
	side ours bev_mb rdma "$blocks"
	side "rstream" rstream_mb stock 65536 "$blocks"
	row "evhttp, one request at a time" requests/s higher -
	side ours http_rate rdma "$n"
	side "evhttp over TCP" http_rate tcp "$n"
}

# A loop of the client and one of the server take a processor each.
loop_rows() {
	n=$(scaled 20000)
	for loops in 2 4; do
		[ "$(nproc)" -ge $((2 * loops)) ] && wanted=1.7 || wanted=-
		row "messages of 64 bytes on $loops loops" messages/s higher $wanted
		side ours loops_rate $loops "$n"
		side "one loop" loops_rate 1 "$n"
	done
}

idle_rows() {
	for n in 100 1000 4000; do
		n=$(scaled $n)
		row "memory of an idle connection, of $n" kB lower 1.0
		side ours per_connection perf_peak "$n"
		side "cmtime" per_connection cmtime_peak "$n"
		row "connection made and ended, of $n" us lower -
		side ours perf_connect "$n"
		side "cmtime" cmtime_sum stock@stock "$n"
	done
}

# Of what machine the numbers are.
machine() {
	uname -srm
	sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1
	echo "processors: $(nproc); idle=poll: $(grep -c idle=poll /proc/cmdline)"
	dpkg-query -W -f '${Package} ${Version}\n' librdmacm1 perftest ibverbs-utils libevent-2.1-7 2>/dev/null || :
}

# Two that poll want two processors, and siw has no multicast.
is_possible() {
	case $1:$kind:$(nproc) in
	polling:*:1 | group:siw:*) false ;;
	esac
}

dev_up "$kind"
machine >"$EVR_OUT/machine"
begin_samples
for round in $(seq "$rounds"); do
	echo "round $round of $rounds"
	for about in ${BENCH_ROWS:-connection ping send call polling rdma stream socket bufferevent loop idle group}; do
		! is_possible "$about" || "${about}_rows"
		end_row
	done
done
dev_down
rm -rf "$tmp"
