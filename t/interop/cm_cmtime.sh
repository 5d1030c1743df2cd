# Sourced by cm_tools.sh: cmtime. A variant has the connections, -b or -B if the client binds too, and
# more options of the client and of the server. On one device the numbers of -q are to be nobody else's:
# rxe's own are below these.
cmtime_variants() {
	echo '-c 10|10
-c 1 -b over IPv6|1|-b'
	case $kind:$1:$2 in rxe:ours@ours:*) echo '-m at the client|10||-m 100 -q 0xf00000' ;; esac
	case $kind:$1:$2 in rxe:*:ours@ours) echo '-m at the server|10|||-m 100 -q 0xf80000' ;; esac
	case $1:$2 in ours@ours:ours@ours) cmtime_own_variants ;; esac
}

cmtime_own_variants() {
	echo '20 connections, but 24 open files at first|20
-n 3 at both|10||-n 3|-n 3
-n 3 with fewer connections|2||-n 3
-B at both|3|-B
-B at the client, over IPv6|3|-B
-S at both|10||-S|-S
-S -n 3 -b at both, over IPv6|10|-b|-S -n 3|-S -n 3'
	[ "$kind" = siw ] || echo '-m -n 2 at both|10||-m 100 -q 0xf00000 -n 2|-m 100 -q 0xf80000 -n 2'
}

# cmtime_binds BIND NAME: leaves what each side is bound with. A server of -B takes IPv4.
cmtime_binds() {
	listen="-b $to"
	bind=
	case $1:$2 in
	-b:*) bind="-b $to" ;;
	-B:*IPv6*) bind="-B $EVR_NETDEV" ;;
	-B:*) bind="-B $EVR_NETDEV" listen=$bind ;;
	esac
}

tcp_listens() { cat /proc/net/tcp /proc/net/tcp6 | grep -q ":$(printf %04X "$1") [0-9A-F:]* 0A "; }
wait_tcp() { wait_until 60 tcp_listens "$1"; }

# few_at_first NAME FILES: of such a variant. A client has the limit of this shell.
few_at_first() {
	case $1 in *'open files'*) prlimit --pid $$ --nofile="$2:" ;; esac
}

# cmtime_one CLIENT SERVER NAME CONNECTIONS BIND CLIENT-OPTIONS SERVER-OPTIONS: the server, which stays,
# is ended from outside.
cmtime_one() {
	port=$((port + 1))
	to=$(address "$3")
	cmtime_binds "$5" "$3"
	case $7 in -S*) waits=wait_tcp ;; esac
	# shellcheck disable=SC2086 # options with their values
	serve "$2" cmtime $listen $7 && listens=0 || listens=$?
	waits=wait_listener
	[ "$listens" -eq 0 ] || return
	few_at_first "$3" 24
	# shellcheck disable=SC2086
	(end_run "$1" 40 cmtime -s "$to" -p $port -c "$4" $bind $6) >"$tmp/client" 2>"$tmp/client.err" &&
		status=0 || status=$?
	few_at_first "$3" 1024
	kill $pid
	reap
	[ $status -eq 0 ] && cmtime_server_ended "$2" && cmtime_table "$bind" "$6"
}

cmtime_server_ended() {
	case $1:$server_status in
	ours@*:0 | stock@*:143) ;;
	*) false ;;
	esac
}

# cmtime_table BIND CLIENT-OPTIONS: every step has its line; over TCP there are fewer.
cmtime_table() {
	lookups='resolve addr|resolve route|create qp|'
	case $2 in -S*) lookups= ;; esac
	steps=$(sed -nE 's/^([a-z ]*[a-z]) *:? +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$/\1/p' "$tmp/client" | tr '\n' '|')
	echo "$steps"
	[ "$steps" = "create id|${1:+bind addr|}${lookups}connect|disconnect|destroy|" ]
}
