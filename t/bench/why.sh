#!/bin/sh
# why.sh rxe|siw: what the rows of the table are made of: of one round or message, what the client's process
# took of the clock and of the processors, in its own code and in the kernel for it, and how often it slept,
# was made to wait for a processor, and called the kernel; then how much of the processors is left idle by
# one loop and by more, and whose the memory of an idle connection is. What a process takes to begin and to
# end is taken off: each is run for few and for ten times as many. Where strace counts the calls (sides.sh), an
# end that polls takes more of them: it waits longer.
# needs: two-processors
. "$top_srcdir/t/bench/sides.sh"

kind=$1

# per_one MANY: of two lines of numbers, what each of the second's MANY more took.
per_one() {
	awk -v many="$1" '
		NR == 1 { for (i = 1; i <= NF; i++) first[i] = $i }
		NR == 2 { for (i = 1; i <= NF; i++) printf "%s%.2f", (i > 1 ? "\t" : ""), ($i - first[i]) / many }
		END { if (NR < 2) printf "failed" }'
}

# of NAME NUMBER COMMAND...: one line; the command takes the number as its last word.
of() {
	name=$1 n=$2 few=$(($2 / 10))
	shift 2
	took=$(for count in $few "$n"; do
		(spent_by 1-5 "$@" "$count")
	done 2>/dev/null | per_one $((n - few)))
	called=$(for count in $few $((2 * few)); do
		(calls_of "$@" "$count")
	done 2>/dev/null | per_one "$few")
	printf '%s\t%s\t%s\n' "$name" "$took" "$called" | tee -a "$EVR_OUT/why"
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
	n=$(scaled 4000 100)
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
	n=$(scaled 4000 100)
	of "ping polling, evrdma-perf" "$n" perf_polled_ping
	of "ping polling, ibv_rc_pingpong" "$n" ibv_pingpong
	of "ping of an rsocket in rpoll, ours" "$n" socket_round ours rpoll
	of "ping of an rsocket in rpoll, stock" "$n" socket_round stock rpoll
	of "send of 64 bytes polling, evrdma-perf" "$n" perf_polled_send 64
}

messages() {
	n=$(scaled 20000 100)
	of "send of 64 bytes, evrdma-perf" "$n" perf_send 64
	of "send of 64 bytes, ib_send_bw" "$n" ib_send 64
	of "multicast of 100 bytes, evrdma-perf" "$n" group 1 100
	of "datagram of 100 bytes, ib_send_bw" "$n" ib_datagrams 100
}

blocks() {
	n=$(scaled 2000 100)
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

# ticks_of COMMAND...: idle ones and all while it runs, and what it prints, if it does.
ticks_of() {
	before=$(ticks)
	found=$("$@")
	[ -z "$found" ] || echo "$before $(ticks) $found" | awk '{ print $3 - $1, $4 - $2, $5 }'
}

# idle_with LOOPS: of the processors, what is left idle by so many on either side. What the programs take to
# begin and to end is taken off, as with the others.
idle_with() {
	n=$(scaled 100000)
	{ ticks_of loops_rate "$1" $((n / 10)); ticks_of loops_rate "$1" "$n"; } | awk -v loops="$1" '
		NR == 1 { idle = $1; all = $2 }
		NR == 2 && $2 > all { share = sprintf("%.0f messages/s\t%.0f %% idle", $3, 100 * ($1 - idle) / ($2 - all)) }
		END { printf "processors beside %d loops that send and %d that answer\t%s\n", loops, loops,
			share == "" ? "failed" : share }' | tee -a "$EVR_OUT/why"
}

idle() {
	for loops in 1 2 4; do
		idle_with $loops
	done
}

# are_connected PID MANY
are_connected() { [ "$(rdma resource show qp | grep " pid $1 " | grep -c ' state RTS ')" -ge "$2" ]; }

# resident_with N: kB of a client that sends on one connection while the others do nothing: memory of its own, and
# what is mapped.
resident_with() {
	printf '#!/bin/sh\necho $$ >%s\nexec "$@"\n' "$tmp/pid" >"$tmp/named"
	rm -f "$tmp/pid"
	(under="sh $tmp/named" && perf mean -t ping -C 1000000000 -i $(($1 - 1)) >/dev/null) &
	wait_until 20 test -s "$tmp/pid" && wait_until 60 are_connected "$(cat "$tmp/pid")" "$1" && sleep 1 && # all of them have said that they are ready
		awk '/^RssAnon/ { own = $2 } /^RssFile|^RssShmem/ { mapped += $2 } END { print own, mapped }' \
			"/proc/$(cat "$tmp/pid")/status"
	kill "$(cat "$tmp/pid")"
	wait
}

memory() {
	n=$(scaled 1000 100)
	found=$({ resident_with 10; resident_with "$n"; } | per_one $((n - 10)))
	printf 'memory of an idle connection\t%s\tkB: its own, mapped\n' "$found" | tee -a "$EVR_OUT/why"
}

dev_up "$kind"
printf 'of one\tus\tuser us\tkernel us\tsleeps\twaits\tcalls\n' | tee "$EVR_OUT/why"
for about in ${BENCH_ROWS:-rounds polled messages blocks idle memory}; do
	[ "$about:$(nproc)" = polled:1 ] || $about # two that poll want two processors
done
dev_down
rm -rf "$tmp"
