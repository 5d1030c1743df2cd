#!/bin/sh
# The distribution's tools, unmodified, on our librdmacm.so.1 and on their own: ours on both
# sides, on each side, and stock on both as the control. Argument: rxe or siw.
. "$top_srcdir/t/guest/lib.sh"

kind=${1:-rxe}
ours=$top_builddir/.libs

# on ours|stock COMMAND...
on() {
	side=$1
	shift
	case $side in
	ours) LD_LIBRARY_PATH=$ours timeout -k 1 60 "$@" ;;
	*) timeout -k 1 60 "$@" ;;
	esac
}

# attempt SERVER CLIENT PORT "SERVER COMMAND" "CLIENT COMMAND"
attempt() {
	on "$1" $4 >"$tmp/server" 2>&1 &
	pid=$!
	wait_listener "$3" || pkill -P $pid
	on "$2" $5 >"$tmp/client" 2>&1
	client=$?
	[ $client = 0 ] || pkill -P $pid
	wait $pid
	server=$?
	[ $client = 0 ] && [ $server = 0 ]
}

# pair, with the same arguments
pair() {
	tries=1
	until attempt "$@"; do
		came_too_early "$kind" "$tmp/client" && [ $tries -lt 4 ] || {
			echo "client $client, server $server"
			cat "$tmp/client" "$tmp/server"
			return 1
		}
		tries=$((tries + 1))
	done
}

# mcast SENDER RECEIVER OPTIONS: the receiver's cm_id shows its membership through its state.
mcast() {
	on "$2" mckey -m 239.7.7.7 -b "$EVR_IP4" >"$tmp/server" 2>&1 &
	pid=$!
	wait_until 10 grep -q 'joined dgid' "$tmp/server" || wait_until 1 test -s "$tmp/server"
	on "$1" mckey -m 239.7.7.7 -b "$EVR_IP4" -s $3
	client=$?
	wait $pid
	server=$?
	echo "sender $client, receiver $server"
	cat "$tmp/server"
	[ $client = 0 ] && [ $server = 0 ]
}

# The server of cmtime serves for ever.
timed() {
	on "$1" cmtime -b "$EVR_IP4" >"$tmp/server" 2>&1 &
	pid=$!
	wait_listener 7471 || return 1
	on "$2" cmtime -s "$EVR_IP4" -c "$3"
	client=$?
	kill -INT $pid 2>/dev/null
	pkill -INT -P $pid 2>/dev/null
	wait $pid
	[ $client = 0 ]
}

tmp=$(mktemp -d)
dev_up "$kind"
c() {
	what=$1
	shift
	cell "$kind: server $s, client $c: $what" "$@"
}
uses_ours() { LD_LIBRARY_PATH=$ours ldd "$(command -v ucmatose)" | grep -q " $ours/librdmacm"; }
cell "$kind: a tool finds our library" uses_ours
for s in ours stock; do
	for c in ours stock; do
		c "ucmatose IPv4" pair $s $c 7471 "ucmatose -b $EVR_IP4" "ucmatose -s $EVR_IP4"
		c "ucmatose IPv6" pair $s $c 7471 "ucmatose -b ::0" "ucmatose -s $EVR_IP6"
		c "rping" pair $s $c 7174 "rping -s -a $EVR_IP4 -v -C 10" \
			"rping -c -a $EVR_IP4 -v -V -C 10"
		[ "$kind" = siw ] || c "udaddy" pair $s $c 7174 "udaddy -b $EVR_IP4" \
			"udaddy -s $EVR_IP4"
		[ "$kind" = siw ] || c "mckey" mcast $c $s ""
		[ "$s$c" = oursours ] || continue
		c "ucmatose unbound" pair $s $c 7471 "ucmatose" "ucmatose -s $EVR_IP4"
		c "ucmatose -c 16" pair $s $c 7471 "ucmatose -c 16" "ucmatose -c 16 -s $EVR_IP4"
		c "ucmatose -S 65536" pair $s $c 7471 "ucmatose -S 65536" \
			"ucmatose -S 65536 -s $EVR_IP4"
		c "ucmatose -C 0" pair $s $c 7471 "ucmatose -C 0" "ucmatose -C 0 -s $EVR_IP4"
		c "ucmatose -m" pair $s $c 7471 "ucmatose -m" "ucmatose -m -s $EVR_IP4"
		c "ucmatose -a 14" pair $s $c 7471 "ucmatose -a 14" "ucmatose -a 14 -s $EVR_IP4"
		c "cmtime -c 20" timed $s $c 20
		[ "$kind" = siw ] && continue
		c "ucmatose -t 8" pair $s $c 7471 "ucmatose" "ucmatose -t 8 -s $EVR_IP4"
		c "rping -q" pair $s $c 7174 "rping -q -s -a $EVR_IP4 -C 10" \
			"rping -q -c -a $EVR_IP4 -V -C 10"
		c "mckey -o" mcast $c $s -o
	done
done
dev_down
done_testing
