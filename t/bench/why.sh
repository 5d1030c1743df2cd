#!/bin/sh
# why.sh rxe|siw: what the rows of the table are made of: of one round or message, what the client's process
# took of the clock and of the processors, in its own code and in the kernel for it, and how often it slept,
# was made to wait for a processor, and called the kernel; then how much of the processors is left idle by
# one loop and by more, and whose the memory of an idle connection is. What a process takes to begin and to
# end is taken off: each is run for few and for ten times as many. Under strace, which counts
# the calls, an end that polls takes more of them: it waits longer.
# needs: two-processors
. "$top_srcdir/t/bench/sides.sh"

kind=$1

# per_one MANY: of two lines of numbers, what each of the second's MANY more took.
per_one() {
	awk -v many="$1" '
		NR == 1 { for (i = 1; i <= NF; i++) first[i] = $i }
		NR == 2 { for (i = 1; i <= NF; i++) printf "%.2f\t", ($i - first[i]) / many }
		END { if (NR < 2) printf "failed" }'
}

# of NAME NUMBER COMMAND...: one line; the command takes the number as its last word.
of() {
	name=$1 n=$2 few=$(($2 / 10))
	shift 2
	took=$(for count in $few "$n"; do
		rm -f "$tmp/spent"
		(under=$spent && "$@" "$count" >/dev/null)
		cut -d ' ' -f 1-5 "$tmp/spent"
	done 2>/dev/null | per_one $((n - few)))
	called=$(for count in $few $((2 * few)); do
		rm -f "$tmp/calls"
		(under=$traced && "$@" "$count" >/dev/null)
		calls
	done 2>/dev/null | per_one "$few")
	printf '%s\t%s%s\n' "$name" "$took" "$called" | tee -a "$EVR_OUT/why"
}

# at_least_100 COUNT: what the scale leaves of it.
at_least_100() {
	set -- "$(scaled "$1")"
	[ "$1" -ge 100 ] && echo "$1" || echo 100
}

perf_ping() { perf mean -t ping -C "$1"; }
perf_polled_ping() { perf mean -t ping -e 1000 -C "$1"; }
ibv_event_ping() { ibv_pingpong "$1" -e; }
perf_send() { perf messages -t send -S "$1" -C "$2"; }
perf_polled_send() { perf messages -t send -S "$1" -e 1000 -C "$2"; }
ib_send() { perftest rate ib_send_bw "$1" "$2"; }
ib_datagrams() { perftest rate ib_send_bw "$1" "$2" -c UD; }
rstream_there() { rstream_us "$1" "$2" $(($3 / 2)) -I 1; }
# a round of sockets is one of one, and a block of a stream is one that is not answered
socket_round() { sockets_us "$1" "$2" 1 64 64 "$3"; }
socket_blocks() { sockets_us "$1" "$2" 1 $((65536 * $3)) 1 1; }
stream_round() { stream_us "$1" 64 64 "$2"; }
stream_blocks() { stream_us "$1" $((65536 * $2)) 1 1; }

rounds() {
	n=$(at_least_100 4000)
	of "ping by events, evrdma-perf" "$n" perf_ping
	of "ping by events, minimal loop" "$n" minimal_ping
	of "ping by events, ibv_rc_pingpong -e" "$n" ibv_event_ping
	of "ping of an rsocket in epoll" "$n" socket_round ours epoll
	of "ping of a socket of TCP in epoll" "$n" socket_round ours tcp
	of "ping of a bufferevent" "$n" stream_round rdma
	of "ping of a bufferevent over TCP" "$n" stream_round tcp
	of "rstream, 64 bytes one way, ours" "$n" rstream_there ours 64
	of "rstream, 64 bytes one way, stock" "$n" rstream_there stock 64
}

polled() {
	n=$(at_least_100 4000)
	of "ping polling, evrdma-perf" "$n" perf_polled_ping
	of "ping polling, ibv_rc_pingpong" "$n" ibv_pingpong
	of "ping of an rsocket in rpoll, ours" "$n" socket_round ours rpoll
	of "ping of an rsocket in rpoll, stock" "$n" socket_round stock rpoll
	of "send of 64 bytes polling, evrdma-perf" "$n" perf_polled_send 64
}

messages() {
	n=$(at_least_100 20000)
	of "send of 64 bytes, evrdma-perf" "$n" perf_send 64
	of "send of 64 bytes, ib_send_bw" "$n" ib_send 64
	of "multicast of 100 bytes, evrdma-perf" "$n" group 1 100
	of "datagram of 100 bytes, ib_send_bw" "$n" ib_datagrams 100
}

blocks() {
	n=$(at_least_100 2000)
	of "block of 64 KiB, evrdma-perf" "$n" perf_send 65536
	of "block of 64 KiB, ib_send_bw" "$n" ib_send 65536
	of "block of 64 KiB, rsocket in epoll" "$n" socket_blocks ours epoll
	of "block of 64 KiB, rsocket in rpoll, stock" "$n" socket_blocks stock rpoll
	of "block of 64 KiB, bufferevent" "$n" stream_blocks rdma
	of "block of 64 KiB, rstream, ours" "$n" rstream_there ours 65536
	of "block of 64 KiB, rstream, stock" "$n" rstream_there stock 65536
}

# Ticks of all processors so far: idle ones, and all.
ticks() { awk '$1 == "cpu" { for (i = 2; i <= 9; i++) all += $i; print $5, all }' /proc/stat; }

# idle_while NAME COMMAND...
idle_while() {
	name=$1
	shift
	printf '%s %s %s\n' "$(ticks)" "$("$@")" "$(ticks)" |
		awk -v name="$name" '{ printf "%s\t%.0f messages/s\t%.0f %% idle\n", name, $3, 100 * ($4 - $1) / ($5 - $2) }' |
		tee -a "$EVR_OUT/why"
}

idle() {
	n=$(scaled 20000)
	for loops in 1 2 4; do
		idle_while "processors beside $loops loops that send and $loops that answer" loops_rate $loops "$n"
	done
}

# resident: kB of the last evrdma-perf that are memory of its own, and that are mapped.
resident() {
	awk '/^RssAnon/ { own = $2 } /^RssFile|^RssShmem/ { mapped += $2 } END { print own, mapped }' \
		"/proc/$(pgrep -n evrdma-perf)/status"
}

# resident_with N: while it sends on one connection, and the others do nothing.
resident_with() {
	(perf mean -t ping -C 1000000 -i $(($1 - 1)) >/dev/null) &
	sleep $((1 + $1 / 100)) # to connect them
	resident
	pkill evrdma-perf
	wait
}

memory() {
	n=$(scaled 1000)
	printf 'memory of an idle connection\t%s\tkB: its own, mapped\n' \
		"$({ resident_with 10; resident_with "$n"; } | per_one $((n - 10)))" | tee -a "$EVR_OUT/why"
}

dev_up "$kind"
printf 'of one\tus\tuser us\tkernel us\tsleeps\twaits\tcalls\n' | tee "$EVR_OUT/why"
for about in ${BENCH_ROWS:-rounds polled messages blocks idle memory}; do
	[ "$about:$(nproc)" = polled:1 ] || $about # two that poll want two processors
done
dev_down
