#!/bin/sh
# What needs no RDMA of the tools for rsockets: {our, the stock} rstream and udpong over TCP and UDP, on
# this machine, and what they say when the other side has other options, or is gone.
#
#	EVR_SERIES=no    without the series, which are long, and of the sizes two
. "$top_srcdir/t/guest/lib.sh"

ours=$top_builddir/examples/tools
stock=/usr/bin
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
port=$((20000 + $$ % 10000))

# start TOOL ARGUMENT...: a server in the background, on the next port; leaves pid.
start() {
	tool=$1
	shift
	port=$((port + 1))
	timeout 600 "$tool" -b 127.0.0.1 -p $port "$@" >"$tmp/server" 2>"$tmp/server.err" &
	pid=$!
	wait_until 120 is_there
}
is_there() { ss -ltun | grep -q "127.0.0.1:$port "; }
is_connected() { ss -tn | grep -q "^ESTAB.* 127.0.0.1:$port *$"; }

# client TOOL ARGUMENT...: leaves status.
client() {
	tool=$1
	shift
	timeout 600 "$tool" -s 127.0.0.1 -p $port "$@" >"$tmp/client" 2>"$tmp/client.err" && status=0 ||
		status=$?
}

ended() { { wait $pid; } 2>/dev/null && server_status=0 || server_status=$?; }
stop() { kill $pid && ended; }

show() {
	echo "client $status, server $server_status"
	tail -n 5 "$tmp/client" "$tmp/client.err" "$tmp/server" "$tmp/server.err"
	return 1
}

# lines FILE COUNT: of the table.
lines() { [ "$(grep -Ec 's +[0-9.]+ +[0-9.]+$' "$1")" -eq "$2" ]; }

# --- rstream -----------------------------------------------------------------------

# streams CLIENT SERVER LINES ARGUMENT...
streams() {
	from=$1 to=$2 runs=$3
	shift 3
	start "$to/rstream" -T s "$@"
	client "$from/rstream" -T s "$@"
	[ $status -eq 0 ] || kill $pid
	ended
	[ $status -eq 0 ] && [ $server_status -eq 0 ] && lines "$tmp/client" "$runs" &&
		lines "$tmp/server" "$runs" || show
}

sizes='1 1000 65536 6291456'
[ "${EVR_SERIES:-yes}" != no ] || sizes='1 65536'

matrix() {
	for test in a b n f s; do
		for size in $sizes; do
			cell "$1 client, $2 server, rstream -T $test -S $size" \
				streams "$3" "$4" 1 -T v -T $test -S $size -C 5 -I 3
		done
	done
	cell "$1 client, $2 server, udpong" pongs "$3" "$4"
	cell "$1 client, $2 server, udpong -T e" pongs "$3" "$4" -T e
	cell "$1 client, $2 server, udpong -T a" pongs "$3" "$4" -T a
	cell "$1 client, $2 server, udpong -T b" pongs "$3" "$4" -T b
}

# pongs CLIENT SERVER ARGUMENT...
pongs() {
	from=$1 to=$2
	shift 2
	start "$to/udpong" -T s
	client "$from/udpong" -T s -C 20 -S 100 "$@"
	stop
	[ $status -eq 0 ] && lines "$tmp/client" 1 || show
}

pong_series() {
	start "$ours/udpong" -T s
	client "$ours/udpong" -T s
	stop
	[ $status -eq 0 ] && lines "$tmp/client" 18 || show
}

# differ SERVER_OPTIONS CLIENT_OPTIONS TEXT: both fail, and one of them says so.
differ() {
	# shellcheck disable=SC2086 # words
	{
		start "$ours/rstream" -T s $1
		client "$ours/rstream" -T s $2
	}
	ended
	[ $status -eq 1 ] && [ $server_status -eq 1 ] &&
		grep -qe "$3" "$tmp/client.err" "$tmp/server.err" || show
}

killed() {
	start "$ours/rstream" -T s -I 100000000
	client "$ours/rstream" -T s -I 100000000 &
	running=$!
	wait_until 120 is_connected
	kill -9 "$(pgrep -P $pid)" || return
	wait $running
	ended
	grep -qe 'the other side ended\|reset by peer\|Broken pipe' "$tmp/client.err" || show
}

no_server() {
	server_status=none
	: >"$tmp/server"
	port=$((port + 1))
	client "$ours/rstream" -T s
	[ $status -eq 1 ] && [ "$(wc -l <"$tmp/client.err")" -eq 1 ] &&
		grep -q 'whether the server is running' "$tmp/client.err" || show
}

silent() {
	server_status=none
	: >"$tmp/server"
	port=$((port + 1))
	client "$ours/udpong" -T s -w 1
	[ $status -eq 1 ] && [ "$(wc -l <"$tmp/client.err")" -eq 1 ] &&
		grep -q 'no answer for 1 seconds' "$tmp/client.err" || show
}

if [ -x $stock/rstream ]; then
	matrix stock stock $stock $stock
	matrix our stock "$ours" $stock
	matrix stock our $stock "$ours"
fi
matrix our our "$ours" "$ours"

series() {
	cell "a series has its eight runs" streams "$ours" "$ours" 8
	cell "a series that is verified, with a process for each connection" \
		streams "$ours" "$ours" 8 -T v -T f
	[ ! -x $stock/rstream ] ||
		cell "a series with the stock client, verified" streams $stock "$ours" 8 -T v
	cell "udpong has a series of its own" pong_series
}
[ "${EVR_SERIES:-yes}" = no ] || series

cell "another -S is told" differ "-S 100 -C 5" "-S 200 -C 5" "the client runs with -S 200 -C 5 -I 1"
cell "another -C is told" differ "-C 5" "-C 6" "-C 6"
cell "another -I is told" differ "-I 5 -T b" "-I 6 -T b" "-I 6"
cell "a series against one run is told" differ "" "-S 100" "-S 100"
cell "all sizes against some are told" differ "-S all" "" "-S 4096"
cell "-T v on the server alone is told" differ "-C 5 -T v" "-C 5" "-T v"
cell "-T v on the client alone is told" differ "-C 5" "-C 5 -T v" "-T v"
cell "a smaller -S ends with -T v, too" differ "-C 5 -S 80 -T v -w 1" "-C 5 -S 64 -T v -w 1" \
	"nothing moved for 1 seconds"
cell "and with calls that wait" differ "-C 5 -S 80 -T v -w 1 -T b" "-C 5 -S 64 -T v -w 1 -T b" \
	"nothing moved for 1 seconds"
cell "a larger -S ends with -T v, too" differ "-C 5 -S 64 -T v" "-C 5 -S 80 -T v" \
	"the client sends more"
cell "a server that is killed is told" killed
cell "a server that is not there is told" no_server
cell "udpong without a server ends" silent
done_testing
