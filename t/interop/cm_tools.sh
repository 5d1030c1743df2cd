#!/bin/sh
# cm_tools.sh rxe|siw [TOOL[+TOOL]...] [CLIENT SERVER]...: the matrix of pairs of the smaller tools on
# one device: rping, udaddy, cmtime, rdma_client with its server, rdma_xclient with its own.
# time: virtual
. "$top_srcdir/t/interop/ends.sh"
. "$top_srcdir/t/interop/cm_rping.sh"
. "$top_srcdir/t/interop/cm_udaddy.sh"
. "$top_srcdir/t/interop/cm_cmtime.sh"
. "$top_srcdir/t/interop/cm_simple.sh"

kind=$1
shift
tools="rping udaddy cmtime rdma_client rdma_xclient"
case ${1:-@} in
*@*) ;;
*)
	tools=$(echo "$1" | tr + ' ')
	shift
	;;
esac
# The control, each side on its own core, then the tools on the other's core.
[ $# -gt 0 ] || set -- stock@stock stock@stock \
	ours@ours stock@stock stock@stock ours@ours ours@ours ours@ours \
	ours@stock ours@stock stock@ours stock@ours ours@stock stock@ours stock@ours ours@stock
tmp=$(mktemp -d)
port=11000
waits=wait_listener

is_over() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.*Z' "/proc/$1/status"; }

# serve END TOOL ARGUMENT...: a server, as $pid, that listens at $port, which $waits sees.
serve() {
	end=$1 tool=$2
	shift 2
	(end_run "$end" 60 "$tool" -p "$port" "$@") >"$tmp/server" 2>"$tmp/server.err" &
	pid=$!
	"$waits" "$port"
}

# reap: the server's end; leaves server_status. One whose client failed is not waited for.
reap() {
	[ $status -eq 0 ] || wait_until 10 is_over $pid || kill $pid
	{ wait $pid; } 2>/dev/null && server_status=0 || server_status=$?
	echo "client $status, server $server_status"
	tail -n 3 "$tmp/client" "$tmp/client.err" "$tmp/server" "$tmp/server.err" | cut -c 1-120
}

# address NAME: a variant says in its name that it goes over IPv6.
address() { case $1 in *IPv6*) echo "$EVR_IP6" ;; *) echo "$EVR_IP4" ;; esac; }

# variants CLIENT SERVER TOOL: all of the pair's where each end is on its own core, else the first one.
variants() {
	case $1$2 in
	*ours@stock* | *stock@ours*) "${3}_variants" "$1" "$2" | head -n 1 ;;
	*) "${3}_variants" "$1" "$2" ;;
	esac
}

# The columns of a variant after its name go to TOOL_one.
matrix() {
	variants "$1" "$2" "$3" >"$tmp/variants"
	while IFS='|' read -r name a b c d; do
		cell "$kind: $3, $1 client, $2 server, $name" "${3}_one" "$1" "$2" "$name" "$a" "$b" "$c" "$d"
	done <"$tmp/variants"
}

cell "$kind comes up" dev_up "$kind"
for one in $tools; do
	i=0
	for server; do
		i=$((i + 1))
		if [ $((i % 2)) -eq 1 ]; then client=$server; else matrix "$client" "$server" "$one"; fi
	done
done
cell "$kind goes away" dev_down
rm -rf "$tmp"
done_testing
