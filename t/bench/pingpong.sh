#!/bin/sh
# pingpong.sh rxe|siw [ROUNDS]: 64 bytes there and back, by each way to wait, on our librdmacm and on
# the distribution's, by turns: what the client says. The last rounds are by strace, which counts.
. "$top_srcdir/t/interop/ends.sh"

rounds=${2:-5} port=12000
pingpong=$top_builddir/t/bench/.libs/pingpong

# pair CORE WAY MESSAGES [TRACER...]
pair() {
	core=$1 way=$2 messages=$3 port=$((port + 1))
	shift 3
	case $way in loop) client=poll ;; *) client=$way ;; esac
	(end_env "stock@$core" && exec busybox timeout 60 "$pingpong" -l "$EVR_IP4" $port "$way" 64) &
	server=$!
	wait_listener $port
	(end_env "stock@$core" && exec busybox timeout 60 "$@" "$pingpong" \
		"$EVR_IP4" $port "$client" 64 "$messages")
	wait $server
}

# each ROUND [TRACER...]
each() {
	round=$1
	shift
	for at in stock:block ours:block stock:rpoll ours:rpoll ours:poll ours:loop; do
		echo "$round ${at%:*} ${at#*:} $(pair "${at%:*}" "${at#*:}" 1000 "$@")"
	done
}

dev_up "$1"
for round in $(seq "$rounds"); do
	each "$round"
done
each counted strace -f -c -U name,calls -o /dev/stdout
dev_down
