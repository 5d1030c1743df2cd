#!/bin/sh
# ucmatose.sh rxe|siw [CLIENT SERVER]...: the matrix of ucmatose pairs on one device.
# time: virtual
. "$top_srcdir/t/interop/ends.sh"

kind=$1
shift
# The control, each side on its own core, then the tools on the other's core.
[ $# -gt 0 ] || set -- stock@stock stock@stock \
	ours@ours stock@stock stock@stock ours@ours ours@ours ours@ours \
	ours@stock ours@stock stock@ours stock@ours ours@stock stock@ours stock@ours ours@stock
tmp=$(mktemp -d)
port=10000

# What the kernel does not have, for any tool: an unbound server listens on 0.0.0.0, where no IPv6
# peer comes in, and siw refuses an IPv4 peer of a listener on ::0. Such a client has to say so.
outcome() {
	case $kind:$1:$2 in
	*:IPv6:nowhere | siw:IPv4:any6) echo refused ;;
	*) echo passed ;;
	esac
}

# server PORT ADDRESS END CONNS SIZE BOUND: leaves pid.
server() {
	case $6 in address) bind="-b $2" ;; any6) bind="-b ::0" ;; *) bind= ;; esac
	# shellcheck disable=SC2086 # an option with its value
	(end_run "$3" 90 ucmatose $bind -p "$1" -c "$4" -S "$5") >"$tmp/$1.server" 2>&1 &
	pid=$!
}

# add CLIENT SERVER FAMILY CONNS SIZE BOUND: one more cell of the batch; its server starts.
add() {
	port=$((port + 1))
	case $3 in IPv4) to=$EVR_IP4 ;; *) to=$EVR_IP6 ;; esac
	server $port $to "$2" "$4" "$5" "$6"
	ports="$ports $port"
	echo "$port $pid $to $*" >>"$tmp/batch"
}

all_listen() {
	rdma resource show cm_id >"$tmp/listening"
	for p in $ports; do
		grep -q "state LISTEN.*:$p " "$tmp/listening" || return 1
	done
}

# client PORT PID ADDRESS CLIENT SERVER FAMILY CONNS SIZE BOUND: runs it and says how it went.
client() {
	name="$kind: $4 client, $5 server, $6, -c $7 -S $8, bound $9: $outcome"
	attempt "$@"
	tries=1
	while [ $result -ne 0 ] && [ $tries -lt 4 ] && speaks_at_once "$5" &&
		came_too_early "$kind" "$tmp/$1.client"; do
		note "$name: the server's data came before the client had its reply; again"
		server "$1" "$3" "$5" "$7" "$8" "$9"
		wait_listener "$1"
		attempt "$1" "$pid" "$3" "$4" "$5" "$6" "$7" "$8"
		tries=$((tries + 1))
	done
	if [ $result -eq 0 ]; then
		ok "$name"
	else
		not_ok "$name (client $status, server $server_status)"
		note "$(sed 's/^/client: /' "$tmp/$1.client"; sed 's/^/server: /' "$tmp/$1.server")"
	fi
}

# Our tool as the server gives the client time, so that for it there is no excuse.
speaks_at_once() {
	case $1 in stock*) ;; *) return 1 ;; esac
}

attempt() {
	[ "$8" -eq 0 ] && last_words='return status 0' || last_words='data transfers complete'
	(end_run "$4" 60 ucmatose -s "$3" -p "$1" -c "$7" -S "$8") >"$tmp/$1.client" 2>&1 && status=0 ||
		status=$?
	verdict_$outcome "$1" "$2" && result=0 || result=$?
}

# Both ended with 0, and say that their transfers, if there were any, are complete.
verdict_passed() {
	[ $status -eq 0 ] || kill "$2" 2>/dev/null
	{ wait "$2"; } 2>/dev/null && server_status=0 || server_status=$?
	[ $status -eq 0 ] && [ $server_status -eq 0 ] &&
		says "$last_words" "$tmp/$1.client" && says "$last_words" "$tmp/$1.server"
}

# The client failed by itself, with a line that says why; the server was there still.
verdict_refused() {
	kill "$2" 2>/dev/null && server_status=waiting || server_status=gone
	{ wait "$2"; } 2>/dev/null
	[ $status -ne 0 ] && [ $status -ne 143 ] && [ $server_status = waiting ] &&
		says 'REJECTED|refused' "$tmp/$1.client"
}

# says TEXT[|TEXT] FILE, without a process.
says() {
	while read -r line; do
		case $line in *"${1%|*}"* | *"${1#*|}"*) return 0 ;; esac
	done <"$2"
	return 1
}

# All servers of a batch listen, then the clients come one after the other.
run_batch() {
	wait_until 60 all_listen || note "not every server came to listen"
	while read -r args; do
		# shellcheck disable=SC2086 # words
		client $args
	done <"$tmp/batch"
	rm -f "$tmp"/*
}

batch() {
	ports=
	outcome=$(outcome $3 $4)
	for conns in 1 16; do
		for size in 0 1 65536; do
			add "$1" "$2" $3 $conns $size $4
		done
	done
	run_batch
}

# Where a server is bound is decided by the tool's own core alone: the crossed pairs have one way.
matrix() {
	case "$1 $2" in
	*ours@stock* | *stock@ours*) bounds=address ;;
	*) bounds='address any6 nowhere' ;;
	esac
	for bound in $bounds; do
		for family in IPv4 IPv6; do
			batch "$1" "$2" $family $bound
		done
	done
}

cell "$kind comes up" dev_up "$kind"
while [ $# -gt 0 ]; do
	matrix "$1" "$2"
	shift 2
done
cell "$kind goes away" dev_down
done_testing
