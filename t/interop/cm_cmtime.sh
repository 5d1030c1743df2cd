# Sourced by cm_tools.sh: cmtime. A variant has the connections.
cmtime_variants() {
	echo '-c 10|10
-c 1 -b over IPv6|1|-b'
}

# cmtime_one CLIENT SERVER NAME CONNECTIONS BIND: the server, which stays, is ended from outside.
cmtime_one() {
	port=$((port + 1))
	to=$(address "$3")
	bind=
	[ -z "$5" ] || bind="-b $to"
	serve "$2" cmtime -b "$to" || return
	# shellcheck disable=SC2086 # an option with its value
	(end_run "$1" 40 cmtime -s "$to" -p $port -c "$4" $bind) >"$tmp/client" 2>"$tmp/client.err" &&
		status=0 || status=$?
	kill $pid
	reap
	[ $status -eq 0 ] && cmtime_server_ended "$2" && cmtime_table "$bind"
}

cmtime_server_ended() {
	case $1:$server_status in
	ours@*:0 | stock@*:143) ;;
	*) false ;;
	esac
}

# Every step has its line.
cmtime_table() {
	for step in 'create id' ${1:+'bind addr'} 'resolve addr' 'resolve route' 'create qp' connect \
		disconnect destroy; do
		grep -Eq "^$step *:? +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+\$" "$tmp/client" || return
	done
}
