# Sourced by the tests of the tools for rsockets: a pair of them, each an end as ends.sh has it.
. "$top_srcdir/t/interop/ends.sh"

tmp=$(mktemp -d)
port=20000

# TCP's own connections come from other ports than those of RDMA. The kernel's CM does not know which
# ports TCP has, and where RDMA runs over TCP (siw), a connection from a port that waits in TIME_WAIT
# fails with EADDRINUSE.
from_ports() {
	case " $* " in
	*" -T s "* | *" -T f "*) range='10000 19999' ;;
	*) range='32768 60999' ;;
	esac
	echo "$range" >/proc/sys/net/ipv4/ip_local_port_range
}

# A listener of TCP is seen elsewhere than one of RDMA.
listens() {
	case " $2 " in
	*" -T s "* | *" -T f "*) ss -ltn | grep -q ":$1 " ;;
	*) is_listening "$1" ;;
	esac
}

# run CLIENT SERVER TOOL ADDRESS ARGUMENT...: both with the arguments; leaves status, server_status.
run() {
	client=$1 server=$2 tool=$3 to=$4
	shift 4
	port=$((port + 1))
	from_ports "$@"
	(end_run "$server" 100 "$tool" -b "$to" -p $port "$@") >"$tmp/server" 2>&1 &
	pid=$!
	wait_until 60 listens $port "$*" || note "the server came not to listen"
	(end_run "$client" 90 "$tool" -s "$to" -p $port "$@") >"$tmp/client" 2>&1 && status=0 ||
		status=$?
	is_over || kill $pid 2>/dev/null
	{ wait $pid; } 2>/dev/null && server_status=0 || server_status=$?
}

# Whether the server, when the client has ended, does so as well.
is_over() {
	case $client:$status in
	*:0 | stock*:16) ;;
	*) return 1 ;;
	esac
}

# tables COUNT SIDE...: the table has a line for each run, after the header. The stock tools divide by
# the time, which may be none where time is virtual.
tables() {
	count=$1
	shift
	for side; do
		[ "$(grep -Ec '^[a-z0-9._]+ +[0-9.]+[kmg]? .*s *([0-9.]+|inf) +[0-9.]+$' "$tmp/$side")" -eq "$count" ] ||
			return 1
	done
}

# There is one run, or as many as $lines says. The stock client with -T a ends with 16, which is POLLHUP,
# when its server, having sent all, has ended the connection before the client looks; ours gives it the
# time.
passed() {
	case $client:$server:$test:$status in
	stock*:stock*:a:16) tables "${lines:-1}" server ;;
	*:0) tables "${lines:-1}" client server ;;
	*) false ;;
	esac
}

# pair NAME CLIENT SERVER TOOL ADDRESS ARGUMENT...: one cell.
pair() { verdict passed "$@"; }

# verdict COMMAND NAME CLIENT SERVER TOOL ADDRESS ARGUMENT...: one cell, of which the command judges.
verdict() {
	judge=$1 name=$2
	shift 2
	run "$@"
	if [ $server_status -eq 0 ] && $judge; then
		ok "$name"
	else
		not_ok "$name (client $status, server $server_status)"
		note "$(sed 's/^/client: /' "$tmp/client"; sed 's/^/server: /' "$tmp/server")"
	fi
}

show() {
	echo "client $status, server $server_status"
	tail -n 5 "$tmp/client" "$tmp/server"
	return 1
}

# apart TOOL SERVER_OPTIONS CLIENT_OPTIONS: our two ends, each with its own, and both left to end by
# themselves; as run does.
apart() {
	port=$((port + 1))
	from_ports
	# shellcheck disable=SC2086 # words
	(end_run ours@ours 100 "$1" -b "$EVR_IP4" -p $port $2) >"$tmp/server" 2>&1 &
	pid=$!
	wait_until 60 listens $port ""
	# shellcheck disable=SC2086 # words
	(end_run ours@ours 90 "$1" -s "$EVR_IP4" -p $port $3) >"$tmp/client" 2>&1 && status=0 || status=$?
	{ wait $pid; } 2>/dev/null && server_status=0 || server_status=$?
}

# differ TOOL SERVER_OPTIONS CLIENT_OPTIONS TEXT: both fail, and one of them says so.
differ() {
	apart "$1" "$2" "$3"
	[ $status -eq 1 ] && [ $server_status -eq 1 ] &&
		grep -qe "$4" "$tmp/client" "$tmp/server" || show
}

# still TOOL: the server is there, and does nothing.
still() {
	port=$((port + 1))
	from_ports
	(end_run ours@ours 0 "$1" -b "$EVR_IP4" -p $port -C 5) >"$tmp/server" 2>&1 &
	pid=$!
	wait_until 60 listens $port "" && kill -STOP $pid
	(end_run ours@ours 90 "$1" -s "$EVR_IP4" -p $port -C 5 -w 1) >"$tmp/client" 2>&1 && status=0 ||
		status=$?
	kill -9 $pid
	{ wait $pid; } 2>/dev/null && server_status=0 || server_status=$?
	[ $status -eq 1 ] && grep -q "nothing moved for 1 seconds" "$tmp/client" || show
}

# --- as the control does ---------------------------------------------------------------

# What a side printed, but for the times.
words() { awk '{ print $1, $2, $3, $4, $5 }' "$tmp/$1"; }

# One that passes, for the others to be like it.
is_control() {
	passed && words client >"$tmp/control_client" && words server >"$tmp/control_server" &&
		control=$status
}

# A client that is in time for all that was sent prints the table as well.
as_control() {
	passed && words client >"$tmp/said_client" && words server >"$tmp/said_server" || return
	like=client
	[ $status -eq "$control" ] || like=server
	cmp "$tmp/said_server" "$tmp/control_server" && cmp "$tmp/said_client" "$tmp/control_$like"
}
