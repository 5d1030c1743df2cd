#!/bin/sh
# The numbered examples, as a reader would run them: what the README shows works.
# shellcheck source=/dev/null
# time: virtual
. "$top_srcdir/t/guest/lib.sh"
examples=$top_builddir/examples

# answer ADDRESS: what the client printed came from the server.
answer() { [ "$("$examples/01-connect" "$1")" = hello ]; }

# refused ADDRESS: the client says so in one line, and fails.
refused() {
	"$examples/01-connect" "$1" >"$client_log" 2>&1 && return 1
	[ "$(wc -l <"$client_log")" -eq 1 ] && grep -q refused "$client_log"
}

# stops PID: it is interrupted, and ends well.
stops() { kill -INT "$1" && wait "$1"; }

# writes KIND: what a client writes into the server's memory is read there.
writes() {
	"$examples/03-rdma-write" "$EVR_IP4:7472" >"$server_log" &
	server=$!
	cell "$1: the server listens whose memory is written" wait_listener 7472
	cell "$1: a client writes there" timeout 20 "$examples/03-rdma-write" "$EVR_IP4:7472" 'from afar'
	cell "$1: the server reads it" wait_until 60 grep -qx 'from afar' "$server_log"
	kill $server
	wait $server
}

# threads KIND: connections go to the threads in turn.
threads() {
	"$examples/06-many-threads" "$EVR_IP4:7473" 2 >"$server_log" &
	server=$!
	cell "$1: the server with threads listens" wait_listener 7473
	cell "$1: one thread answers" answer "$EVR_IP4:7473"
	cell "$1: the other one answers" answer "$EVR_IP4:7473"
	cell "$1: the server with threads ends when it is asked to" stops $server
	cell "$1: each thread had its connection" grep -qx 'thread 1 served 1' "$server_log"
}

# registered: the length of each piece that the server has registered. The kernel knows it by the thread
# that made it.
registered() {
	for task in /proc/"$server"/task/*; do
		rdma resource show mr | grep " pid ${task##*/} "
	done | sed 's/.* mrlen \([0-9]*\) .*/\1/'
}

is_registered_once() { [ "$(registered)" = $((16 << 20)) ]; }

# read_from PAGE: somebody has.
read_from() { grep -q "^page $1, by key" "$reads.$1"; }

# with_one_key: all were told the same.
with_one_key() { [ "$(cat "$reads".* | sed 's/.* key //' | sort -u | wc -l)" -eq 1 ]; }

# all_stop PID...
all_stop() {
	for reader; do
		stops "$reader" || return 1
	done
}

# shares KIND THREADS: they have one piece of memory.
shares() {
	"$examples/08-shared-memory" "$EVR_IP4:7475" "$2" 16 &
	server=$! readers=
	cell "$1: the server listens whose threads share memory" wait_listener 7475
	for number in $(seq "$2"); do
		"$examples/08-shared-memory" "$EVR_IP4:7475" $number >"$reads.$number" &
		readers="$readers $!"
		cell "$1: client $number reads there" wait_until 60 read_from $number
	done
	cell "$1: it is registered once for $2 threads" is_registered_once
	cell "$1: they have one key" with_one_key
	# shellcheck disable=SC2086
	cell "$1: the clients end when they are asked to" all_stop $readers
	cell "$1: the server whose threads share ends when it is asked to" stops $server
	rm -f "$reads".*
}

has_answers() { [ "$(grep -cx hello "$server_log")" -ge "$1" ]; }

# reconnects KIND: a client outlives its server.
reconnects() {
	"$examples/07-reconnect" "$EVR_IP4:7476" 10 >"$server_log" 2>"$client_log" &
	client=$!
	cell "$1: a client that connects again says that nobody is there" \
		wait_until 60 grep -q refused "$client_log"
	"$examples/02-echo-server" "$EVR_IP4:7476" &
	server=$!
	cell "$1: it is answered when somebody is" wait_until 60 has_answers 1
	cell "$1: its server ends when it is asked to" stops $server
	cell "$1: it says that the server has left" wait_until 60 grep -qx 'the server has left' "$client_log"
	"$examples/02-echo-server" "$EVR_IP4:7476" &
	server=$!
	cell "$1: it is answered by the next one, and ends well" wait $client
	cell "$1: it had as many answers as it asked for" has_answers 10
	cell "$1: the next server ends when it is asked to" stops $server
}

# says_how WAY ADDRESS NAME: the answer came that way.
says_how() { [ "$("$examples/10-http-client" "$1" "$2")" = "this came over $3" ]; }

is_sent_back() { [ "$("$examples/10-http-client" "$1" "$2" 'word for word')" = 'word for word' ]; }

# fetches KIND: one server, by RDMA and by TCP.
fetches() {
	for address in "$EVR_IP4" "[$EVR_IP6]"; do
		"$examples/09-http-server" "$address:7477" "$address:8080" >"$server_log" &
		server=$!
		cell "$1: the HTTP server listens on $address" wait_listener 7477
		cell "$1: it answers over RDMA" says_how rdma "$address:7477" RDMA
		cell "$1: it answers over TCP" says_how tcp "$address:8080" TCP
		cell "$1: what is posted over RDMA comes back" is_sent_back rdma "$address:7477"
		cell "$1: what is posted over TCP comes back" is_sent_back tcp "$address:8080"
		cell "$1: the HTTP server ends when it is asked to" stops $server
	done
}

in_capitals() { [ "$("$examples/05-datagram-client" "$1" 'hello, all')" = 'HELLO, ALL' ]; }

# datagrams KIND
datagrams() {
	for address in "$EVR_IP4" "[$EVR_IP6]"; do
		"$examples/04-datagram-service" "$address:7474" >"$server_log" &
		server=$!
		cell "$1: the datagram service is there on $address" wait_listener 7474
		cell "$1: it answers from $address" in_capitals "$address:7474"
		cell "$1: it ends when it is asked to" stops $server
	done
}

client_log=$(mktemp) server_log=$(mktemp) reads=$(mktemp)
cell "the script of evrdma_guide(7) runs its programs on rxe and on siw" sh "$top_builddir/t/interop/guide/try.sh"
for kind in rxe siw; do
	cell "$kind comes up" dev_up $kind
	for address in "$EVR_IP4" "[$EVR_IP6]"; do
		"$examples/02-echo-server" "$address:7471" &
		server=$!
		cell "$kind: the echo server listens on $address" wait_listener 7471
		cell "$kind: a message comes back from $address" timeout 20 "$examples/01-connect" "$address:7471"
		cell "$kind: the same message comes back again" answer "$address:7471"
		cell "$kind: the server ends when it is asked to" stops $server
		cell "$kind: without a server the client says so" refused "$address:7471"
	done
	writes $kind
	threads $kind
	reconnects $kind
	case $kind in
	rxe) shares rxe 4 ;;
	siw) shares siw 3 ;;
	esac
	fetches $kind
	[ $kind = siw ] || datagrams $kind
	cell "$kind goes away" dev_down
done
rm -f "$client_log" "$server_log" "$reads"
done_testing
