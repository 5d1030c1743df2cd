#!/bin/sh
# perf.sh rxe|siw: evrdma-perf, each test of it, and what it says when something is wrong.
. "$top_srcdir/t/guest/lib.sh"

kind=$1
perf=$top_builddir/examples/tools/.libs/evrdma-perf
export LD_LIBRARY_PATH="$top_builddir/.libs"
tmp=$(mktemp -d)

# client ARGUMENT...
client() { timeout 60 "$perf" -s "$EVR_IP4" "$@" >"$tmp/out" 2>"$tmp/err"; }

# A heading and a row of numbers, the first of which is the size and the second the messages.
has_row() {
	cat "$tmp/out" "$tmp/err"
	[ "$(wc -l <"$tmp/out")" -eq 2 ] && [ ! -s "$tmp/err" ] &&
		grep -Eq "^$1 +$2 +$3( +[0-9.]+)+\$" "$tmp/out"
}

# runs TEST SIZE MESSAGES ARGUMENT...
runs() {
	test=$1 size=$2 messages=$3
	shift 3
	client -t "$test" -S "$size" "$@" && has_row "$test" "$size" "$messages"
}

# json ARGUMENT...: each line, whose test is to be true of the object r.
json() {
	is=$1
	shift
	client -J "$@" || return
	cat "$tmp/out"
	python3 -c "
import json, sys
rs = [json.loads(line) for line in open('$tmp/out')]
sys.exit(0 if rs and all($is for r in rs) else 1)"
}

# fails TEXT COMMAND...: one line on stderr that has it, status 1, no row.
fails() {
	text=$1 status=0
	shift
	"$@" || status=$?
	cat "$tmp/out" "$tmp/err"
	[ $status -eq 1 ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] && grep -qF -e "$text" "$tmp/err" &&
		! grep -q '^[a-z]* .*[0-9]$' "$tmp/out"
}

start_server() {
	"$perf" -b "$EVR_IP4" >"$tmp/server.out" 2>"$tmp/server.err" &
	server=$!
	wait_listener 7474
}

# The server, which was told to end, ends with STATUS.
server_ended() {
	wait $server && status=0 || status=$?
	cat "$tmp/server.out" "$tmp/server.err"
	[ $status -eq "$1" ]
}

# end_server STATUS
end_server() {
	kill $server
	server_ended "$1"
}

tests() {
	for test in ping send write read; do
		for size in 1 32 64 4096 65536 1048576; do
			[ $size -lt 65536 ] && n=60 || n=20
			cell "$kind: $test of $size bytes" runs $test $size $n -C $n
		done
		cell "$kind: $test on three connections" runs $test 3000 900 -C 300 -n 3
		cell "$kind: $test beside idle ones" runs $test 64 400 -C 200 -n 2 -i 5
		cell "$kind: $test, one under way" runs $test 64 100 -C 100 -w 1
		cell "$kind: $test, one in all" runs $test 64 1 -C 1 -n 1
		cell "$kind: $test, polling" runs $test 64 200 -C 200 -e 100
		cell "$kind: $test of all sizes as JSON" json \
			"len(rs) == 21 and r['test'] == '$test' and r['messages'] == 20 and
			r['seconds'] > 0 and r['bytes_per_s'] > 0" -t $test -S all -C 20
	done
	cell "$kind: send of 4 MiB keeps within its memory" json \
		"r['window'] == 16 and r['messages'] == 20" -t send -S 4194304 -C 20
	cell "$kind: the times of a ping go up" json \
		"r['us']['min'] <= r['us']['p50'] <= r['us']['p90'] <= r['us']['p99'] <=
		r['us']['p99.9'] <= r['us']['max']" -C 500
	cell "$kind: connections" json \
		"r['connections'] == 10 and r['connect_s'] > 0 and r['disconnect_s'] > 0 and
		r['us']['max'] <= r['connect_s'] * 1e6" -t connect -n 10
	client -t connect -n 4
	cell "$kind: connections, for people" has_row connect 4 '[0-9.]+'
	cell "$kind: over IPv6" v6
}

v6() {
	"$perf" -b "$EVR_IP6" -p 7475 & six=$!
	wait_listener 7475
	timeout 60 "$perf" -s "$EVR_IP6" -p 7475 -t send -C 50 >"$tmp/out" 2>"$tmp/err" &&
		has_row send 64 50 && kill $six && wait $six
}

# The server killed in the middle of a run that would never end.
killed_in_the_middle() {
	(sleep 1; kill -KILL $server) &
	client -t "$1" -C 1000000000
}

ended_in_the_middle() {
	(sleep 1; kill $server) &
	client -t ping -C 1000000000
}

# 16 MiB each would be 800 MiB.
idle_beside_large() {
	prlimit --data=268435456 timeout 60 "$perf" -s "$EVR_IP4" -S 16777216 -C 3 -i 50 \
		>"$tmp/out" 2>"$tmp/err" && has_row ping 16777216 3
}

stopped_in_the_middle() {
	(sleep 1; kill -STOP $server) &
	client -t ping -C 1000000000 -T 3
}

# Its program answers none of them.
stopped_with_many() {
	client -t connect -n 32767 -T 2 & pid=$!
	wait_until 20 has_made 300 || return
	kill -STOP $server
	wait $pid
}

# Ids of both ends, with those that are being made.
has_made() { [ "$(rdma resource show cm_id | grep -c ' state CONNECT ')" -ge "$1" ]; }

interrupted_in_the_middle() {
	"$perf" -s "$EVR_IP4" -C 1000000000 >"$tmp/out" 2>"$tmp/err" & pid=$!
	sleep 1
	kill -INT $pid
	wait $pid
}

# A client of another kind is refused, and the server goes on.
stranger() {
	LD_LIBRARY_PATH=$top_builddir/.libs timeout 20 "$top_builddir/examples/tools/.libs/ucmatose" \
		-s "$EVR_IP4" -p 7474 >/dev/null 2>&1 && return 1
	client -C 10 && has_row ping 64 10
}

# What cannot be printed is a failure.
full_output() { timeout 60 "$perf" -s "$EVR_IP4" -C 1 >/dev/full 2>"$tmp/err"; }

# More buffers than a server gives to all; others are served beside. Who is refused has not taken any
# memory for them yet.
too_much() {
	prlimit --data=67108864 timeout 60 "$perf" -s "$EVR_IP4" -t send -S 67108864 -w 1 -n 17 -C 1 \
		>"$tmp/out" 2>"$tmp/err"
}
others_are_served() { client -C 10 && has_row ping 64 10; }

# One of twenty connections: each is told, the first at once and the others by their number.
killed_crowd() {
	"$perf" -s "$EVR_IP4" -t send -n 20 -C 1000000000 >/dev/null 2>&1 & pid=$!
	sleep 2
	kill -KILL $pid
	wait $pid
	others_are_served
}

# server_says_of TEXT N: that of so many connections, and not in a line for each.
server_says_of() {
	server_says "$1" || return
	grep -F "$1" "$tmp/server.err" | awk -v n="$2" '
		/so it is with/ { sub(/.*so it is with /, ""); told += $1; next }
		{ told++ }
		END { exit !(told == n && NR < n) }'
}

# Whom it refused, and why.
server_says() { cat "$tmp/server.err"; grep -Eq "^evrdma-perf: client $EVR_IP4 port [0-9]+: $1" "$tmp/server.err"; }

# It says where it listens to who sits before it.
on_a_terminal() {
	script -qec "timeout -s INT 3 $perf -b $EVR_IP4 -p 7481" "$tmp/typed" >/dev/null </dev/null
	cat "$tmp/typed"
	grep -q "^evrdma-perf: listening on $EVR_IP4 port 7481; end it with Control-C" "$tmp/typed"
}

# Which is on a terminal that the results do not go to: at its end nothing of it is left.
progress_goes() {
	script -qec "timeout 60 $perf -s $EVR_IP4 -C 50000 >/dev/null" "$tmp/typed" >/dev/null </dev/null
	sed -n '2,$p' "$tmp/typed" | tr '\r' '\n' | grep -v '^Script\|^$' >"$tmp/shown"
	cat "$tmp/shown"
	grep -q ' %' "$tmp/shown" && ! tail -n 1 "$tmp/shown" | grep -q '[^ ]'
}

# Its standard error and output have no reader when it has something to say.
nobody_reads() {
	("$perf" -b "$EVR_IP4" 2>&1 & echo $! >"$tmp/pid") | :
	wait_listener 7474 && stranger && kill "$(cat "$tmp/pid")"
}

says() { cat "$tmp/server.err"; grep -q "^evrdma-perf: $1" "$tmp/server.err"; }

device_goes_and_comes() {
	rdma link delete "$EVR_DEV"
	wait_until 20 says "the device was removed.*; it listens again when that is back" || return
	rdma link add "$EVR_DEV" type "$kind" netdev "$EVR_NETDEV" && wait_until 20 says "listening again"
}

all_of_many() { client -t "$1" -n 100 -i 200 -C 20 -w 32 && has_row "$1" 64 2000; }

not_a_group() { timeout 20 "$perf" -t group -s "$EVR_IP4" >"$tmp/out" 2>"$tmp/err"; }
not_a_server() { timeout 20 "$perf" -s "$1" -T 5 >"$tmp/out" 2>"$tmp/err"; }
two_families() { timeout 20 "$perf" -s "$EVR_IP4" -b "$1" -C 1 >"$tmp/out" 2>"$tmp/err"; }
receiver_with() { timeout 20 "$perf" -m 239.1.1.1 -t ping >"$tmp/out" 2>"$tmp/err"; }

both_families() {
	"$perf" -b :: -p 7476 & six=$!
	wait_listener 7476
	for addr in "$EVR_IP4" "$EVR_IP6"; do
		timeout 60 "$perf" -s "$addr" -p 7476 -C 5 >"$tmp/out" 2>"$tmp/err" &&
			has_row ping 64 5 || return
	done
	kill $six && wait $six
}

# Of one message no rate is known.
group_of_one() {
	"$perf" -m 239.1.1.2 -b "$EVR_IP4" -J >"$tmp/one" & one=$!
	sleep 2 # it is a member
	timeout 60 "$perf" -t group -s 239.1.1.2 -b "$EVR_IP4" -C 1 >"$tmp/out" 2>"$tmp/err" &&
		wait $one && cat "$tmp/one" && grep -q '"messages":1,.*"messages_per_s":0' "$tmp/one"
}

# Of two senders the first one's run is received, and of another port none.
group_of_two() {
	"$perf" -m 239.1.1.3 -b "$EVR_IP4" -J >"$tmp/one" & one=$!
	sleep 2 # it is a member
	"$perf" -t group -s 239.1.1.3 -b "$EVR_IP4" -p 7480 -C 500 >/dev/null
	"$perf" -t group -s 239.1.1.3 -b "$EVR_IP4" -w 1 -C 3000 >/dev/null & first=$!
	sleep 0.2
	timeout 60 "$perf" -t group -s 239.1.1.3 -b "$EVR_IP4" -S 100 -w 1 -C 200 >/dev/null
	wait $first && wait $one && cat "$tmp/one" && python3 -c "
import json, sys
r = json.loads(open('$tmp/one').read())
sys.exit(0 if r['messages'] + r['lost'] == 3000 and r['bytes'] == 64 else 1)"
}

group() {
	"$perf" -m 239.1.1.1 -b "$EVR_IP4" >"$tmp/one" & one=$!
	"$perf" -m 239.1.1.1 -b "$EVR_IP4" -J >"$tmp/two" & two=$!
	sleep 2 # both are members
	timeout 60 "$perf" -t group -s 239.1.1.1 -b "$EVR_IP4" -S 1000 -C 2000 -w 16 \
		>"$tmp/out" 2>"$tmp/err" && has_row group 1000 '2000 +-' && wait $one && wait $two &&
		cat "$tmp/one" "$tmp/two" && python3 -c "
import json, sys
r = json.loads(open('$tmp/two').read())
sys.exit(0 if r['messages'] + r['lost'] == 2000 and r['messages'] > 0 else 1)"
}

dev_up "$kind"
start_server
tests
[ "$kind" = siw ] || cell "$kind: a group of two receivers" group
[ "$kind" = siw ] || cell "$kind: a group of one message" group_of_one
[ "$kind" = siw ] || cell "$kind: a group of two senders, and of another port" group_of_two
for test in ping send write; do
	cell "$kind: $test on a hundred connections, and twice as many idle" all_of_many $test
done
# siw refuses an IPv4 peer of a listener on ::.
[ "$kind" = siw ] || cell "$kind: a server of both families" both_families
cell "$kind: no group" fails "not the address of a group" not_a_group
cell "$kind: no server" fails "the address of a group; give -t group" not_a_server 239.1.1.1
cell "$kind: no server of IPv6" fails "the address of a group; give -t group" not_a_server ff05::1
cell "$kind: an address that is empty" fails "an address is empty" not_a_server ""
cell "$kind: addresses of two families" fails "give two of IPv4 or two of IPv6" two_families "$EVR_IP6"
cell "$kind: a receiver is told nothing" fails "leave them out" receiver_with
: >"$tmp/out"
cell "$kind: what is printed gets lost" fails "not all that was to be printed" full_output
cell "$kind: the server ends well" end_server 0
cell "$kind: and has said nothing" [ ! -s "$tmp/server.err" ]
start_server
cell "$kind: interrupted" fails "interrupted after" interrupted_in_the_middle
cell "$kind: the server goes on" others_are_served
cell "$kind: the server of a run without an end says so by its status" end_server 1
cell "$kind: and whose it was" server_says "it was gone before its run was over"
start_server
cell "$kind: many clients' connections killed at once" killed_crowd
cell "$kind: the server says so by its status" end_server 1
cell "$kind: and in few lines" server_says_of "it was gone before its run was over" 20
start_server
cell "$kind: more than the server gives" fails "the server has no room for that much" too_much
cell "$kind: and others are served" others_are_served
cell "$kind: the server that gave no more says so by its status" end_server 1
cell "$kind: and to whom" server_says "a connection of 384 MiB is more than others left of the 1024 MiB for all"
start_server
cell "$kind: a stranger is refused, and others are served" stranger
cell "$kind: the server that refused says so by its status" end_server 1
cell "$kind: and whom" server_says "it is no evrdma-perf, or of another version"
cell "$kind: a server on a terminal" on_a_terminal
cell "$kind: a server whose output nobody reads" nobody_reads
start_server
cell "$kind: what shows how far it is goes" progress_goes
cell "$kind: the device of a server goes and comes" device_goes_and_comes
cell "$kind: others are served then" others_are_served
cell "$kind: the server whose device went says so by its status" end_server 1
start_server
cell "$kind: the server ended in the middle" fails "$EVR_IP4" ended_in_the_middle
cell "$kind: it says so by its status" server_ended 1
start_server
cell "$kind: the largest ping" runs ping 67108864 3 -C 3
cell "$kind: idle ones beside a large ping take no more" idle_beside_large
cell "$kind: the server ends well after them" end_server 0
for test in ping send write read; do
	start_server
	cell "$kind: the server killed in the middle of $test" fails "$EVR_IP4" \
		killed_in_the_middle $test
	wait $server
done
start_server
cell "$kind: the server stopped in the middle" fails "nothing came for 3 s" stopped_in_the_middle
kill -CONT $server
kill $server
wait $server
start_server
cell "$kind: the server stopped while many connections are made" fails "$EVR_IP4" stopped_with_many
kill -CONT $server
kill $server
wait $server
cell "$kind: nobody listens" fails "see whether a server is running there" client -C 1
dev_down
rm -rf "$tmp"
done_testing
