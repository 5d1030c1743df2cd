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
	[ $status -eq 0 ] || kill $pid 2>/dev/null
	{ wait $pid; } 2>/dev/null && server_status=0 || server_status=$?
}

# tables COUNT SIDE...: the table has a line for each run, after the header. The stock tools divide by
# the time, which may be none where time is virtual.
tables() {
	count=$1
	shift
	for side; do
		[ "$(grep -Ec '^[a-z0-9._]+ +[0-9.]+[kmg]? .*s +([0-9.]+|inf) +[0-9.]+$' "$tmp/$side")" -eq "$count" ] ||
			return 1
	done
}

# The stock client with -T a ends with 16, which is POLLHUP, when its server, having sent all, has ended
# the connection before the client looks; ours gives it the time.
passed() {
	case $client:$server:$test:$status in
	stock*:stock*:a:16) tables 1 server ;;
	*:0) tables 1 client server ;;
	*) false ;;
	esac
}

# pair NAME CLIENT SERVER TOOL ADDRESS ARGUMENT...: one cell.
pair() {
	name=$1
	shift
	run "$@"
	if [ $server_status -eq 0 ] && passed; then
		ok "$name"
	else
		not_ok "$name (client $status, server $server_status)"
		note "$(sed 's/^/client: /' "$tmp/client"; sed 's/^/server: /' "$tmp/server")"
	fi
}
