#!/bin/sh
# guide.sh rxe|siw: the server and the client of evrdma_guide(7), whatever clients do. Time is real: clients that
# are never idle leave none to be skipped.
# shellcheck source=/dev/null
. "$top_srcdir/t/guest/lib.sh"
guide=$top_builddir/t/interop/guide

# asks STATUS [MESSAGES [BYTES]]: a client of it, which ends with that.
asks() {
	expected=$1
	shift
	timeout 100 "$guide/client" "$EVR_IP4:7479" "$@" >"$client_log" 2>&1
	status=$?
	cat "$client_log"
	[ $status -eq "$expected" ]
}

# has_said N TEXT: the server, so often.
has_said() { [ "$(grep -c -- "$2" "$server_log")" -ge "$1" ]; }

# is_served: somebody, who has sent a thousand messages at least: SIGUSR1 has the server tell.
is_served() {
	kill -USR1 $server
	grep -q '^connection.* messages_received [0-9][0-9][0-9][0-9]' "$server_log"
}

# begins: a client that never ends by itself is in the middle of it.
begins() {
	: >"$server_log"
	"$guide/client" "$EVR_IP4:7479" 1000000000 >"$client_log" 2>&1 &
	client=$!
	wait_until 60 is_served
}

# leaves SIGNAL: the client that is in the middle is sent that, and the server is done with it.
leaves() {
	kill -"$1" $client
	wait_until 100 has_said 1 ': closed$'
}

# crowds N: so many clients come, and go on for ever.
crowds() {
	: >"$server_log"
	: >"$crowd_log"
	crowd=
	for number in $(seq "$1"); do
		"$guide/client" "$EVR_IP4:7479" 1000000000 >>"$crowd_log" 2>&1 &
		crowd="$crowd $!"
		wait_until 60 has_said "$number" ': connected$' || return
	done
}

# stay: all of them are there; or what was said of who is not.
stay() {
	for number in $crowd; do
		kill -0 "$number" && continue
		cat "$crowd_log" "$server_log"
		return 1
	done
}

# goes_on WHAT: after that the next client is served, and has back all that it sent.
goes_on() { cell "the next client is served after $1" asks 0 1000; }

# Whatever clients do.
survives() {
	cell "a client is killed in the middle" begins
	cell "the server is done with who was killed" leaves KILL
	goes_on 'one was killed'
	cell "another client is stopped in the middle" begins
	cell "who says nothing is let go" leaves STOP
	cell "... as too late" has_said 1 'timed out'
	kill -KILL $client
	goes_on 'one was stopped'
	cell "a message that is too long ends its client" asks 1 1 5000
	goes_on 'a long message'
	cell "so does an empty one" asks 1 1 0
	cell "... by the server" has_said 1 'an empty message'
	goes_on 'an empty message'
}

# The ninth client is one too many.
limits() {
	cell "eight clients come" crowds 8
	cell "another one is refused" asks 1 1
	cell "... and told so" grep -q refused "$client_log"
	cell "the server tells of it" has_said 1 'a client was refused'
	cell "the eight have stayed" stay
	# shellcheck disable=SC2086
	kill -KILL $crowd
	cell "the eight are gone" wait_until 100 has_said 8 ': closed$'
	cell "there is room again" wait_until 60 asks 0 1
}

# comes_back: the device goes with a client in the middle, and is there again.
comes_back() {
	timeout 60 rdma link delete "$EVR_DEV" && has_said 1 'No such device' || return
	rdma link add "$EVR_DEV" type rxe netdev "$EVR_NETDEV"
	wait_until 60 has_said 1 'listening again'
}

# is_ended: in order, also with a client in the middle.
is_ended() { kill -TERM $server && wait $server && has_said 1 ': closed$' && ! has_said 1 'timed out'; }

client_log=$(mktemp) crowd_log=$(mktemp) server_log=$(mktemp)
cell "$1 comes up" dev_up "$1"
"$guide/server" "$EVR_IP4:7479" >>"$server_log" 2>&1 &
server=$!
cell "the server listens" wait_listener 7479
goes_on 'it began'
survives
limits
# A siw device does not go under its listeners: evrdma(7), What the kernel does not do.
if [ "$1" = rxe ]; then
	cell "a client is there as its device goes" begins
	cell "the server listens again when it is back" comes_back
	goes_on 'the device came back'
fi
cell "a client is in the middle" begins
cell "SIGTERM ends the server in order" is_ended
cell "the client ends too" wait_until 60 grep -q 'of 1000000000 messages came back' "$client_log"
cell "without a server a client says so" asks 1 1
cell "$1 goes away" dev_down
rm -f "$client_log" "$crowd_log" "$server_log"
done_testing
