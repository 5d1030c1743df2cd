#!/bin/sh
# dropin.sh rxe|siw: the distribution's tools, unmodified, on our librdmacm.so.1 and on their own:
# stock on both sides as the control, then ours on each side and on both, which have to end and to
# print the same.
# time: virtual
. "$top_srcdir/t/interop/groups.sh"

kind=$1
sender_group=$(group 0 1) member_group=$(group 0 2)

# NAME|STATUS OF THE CLIENT|SERVER|CLIENT, a cell each for all pairs of cores. Both sides get a port
# of their own with -p, but for those that have it fixed (udaddy) or have none (mckey, whose
# receiver is the server). With ! the server has to be ended.
scenarios() {
	cat <<-END
		ucmatose, IPv4|0|ucmatose -b $EVR_IP4|ucmatose -s $EVR_IP4
		ucmatose, IPv6|0|ucmatose -b $EVR_IP6|ucmatose -s $EVR_IP6
		ucmatose, unbound|0|ucmatose|ucmatose -s $EVR_IP4
		ucmatose -c 16 -S 65536|0|ucmatose -c 16 -S 65536|ucmatose -c 16 -S 65536 -s $EVR_IP4
		ucmatose -m|0|ucmatose -m|ucmatose -m -s $EVR_IP4
		ucmatose -a 14|0|ucmatose -a 14|ucmatose -a 14 -s $EVR_IP4
		rping, IPv4|0|rping -s -a $EVR_IP4 -v -C 10|rping -c -a $EVR_IP4 -v -V -C 10
		rping, IPv6|0|rping -s -a $EVR_IP6 -v -C 10|rping -c -a $EVR_IP6 -v -V -C 10
		rdma_client, IPv4|0|rdma_server -s $EVR_IP4|rdma_client -s $EVR_IP4
		rdma_client, IPv6|0|rdma_server -s $EVR_IP6|rdma_client -s $EVR_IP6
		rdma_client, unbound|0|rdma_server|rdma_client -s $EVR_IP4
		rdma_xclient -c r|0|rdma_xserver -c r|rdma_xclient -c r -s $EVR_IP4
		rdma_xclient -c x, refused|255|!rdma_xserver -c x|rdma_xclient -c x -s $EVR_IP4
		cmtime -c 20, IPv4|0|!cmtime -b $EVR_IP4|cmtime -s $EVR_IP4 -c 20
		cmtime -c 20, IPv6|0|!cmtime -b $EVR_IP6|cmtime -s $EVR_IP6 -c 20
	END
	[ "$kind" = siw ] || cat <<-END
		ucmatose -t 8|0|ucmatose|ucmatose -t 8 -s $EVR_IP4
		rping -q|0|rping -q -s -a $EVR_IP4 -v -C 10|rping -q -c -a $EVR_IP4 -v -V -C 10
		udaddy, IPv4|0|udaddy -b $EVR_IP4|udaddy -s $EVR_IP4
		udaddy, IPv6|0|udaddy -b $EVR_IP6|udaddy -s $EVR_IP6
		mckey|0|mckey -b $EVR_IP4 -m $member_group|mckey -b $EVR_IP4 -m $member_group -s
		mckey -o|0|mckey -b $EVR_IP4 -m $sender_group|mckey -b $EVR_IP4 -m $sender_group -s -o
	END
}

# serve N COMMAND: the server of the N-th scenario, whose turn may come late; leaves pid.
serve() {
	# shellcheck disable=SC2046,SC2086 # words
	(end_run "stock@$server_core" 600 ${2#!} $(port_option $1 "$2")) >"$tmp/$1.server" 2>&1 &
	pid=$!
}

port_option() { case $2 in *udaddy* | *mckey*) ;; *) echo "-p $((11000 + $1))" ;; esac; }

# ready N COMMAND: according to $tmp/listening and the kernel's groups.
ready() {
	case $2 in
	*udaddy*) [ "$(grep -c ':7174 ' "$tmp/listening")" -ge 2 ] ;;
	*mckey*$member_group) has_users 0 2 1 ;;
	*mckey*) has_users 0 1 1 ;;
	*) grep -q ":$((11000 + $1)) " "$tmp/listening" ;;
	esac
}

all_ready() {
	rdma resource show cm_id | grep 'state LISTEN' >"$tmp/listening"
	while IFS='|' read -r n pid name wanted server client; do
		ready "$n" "$server" || return 1
	done <"$tmp/batch"
}

# Which library the process really runs on.
runs_on() {
	case $1 in
	ours) grep -q "$ours_libs/librdmacm" "/proc/$2/maps" ;;
	*) ! grep -q "$ours_libs/librdmacm" "/proc/$2/maps" ;;
	esac
}

# await PID: the status of a server, which has to end by itself soon after its client.
await() {
	(busybox sleep 40; where "$1"; kill "$1") >"$tmp/late" 2>&1 &
	watch=$!
	{ wait "$1"; } 2>/dev/null && server_status=0 || server_status=$?
	kill $watch 2>/dev/null || :
}

# What a process that does not end waits for.
where() {
	echo "the server is still there, in $(cat "/proc/$1/wchan")"
	rdma resource show cm_id | grep " pid $1 "
	rdma resource show qp | grep " pid $1 "
}

# attempt N PID WANTED SERVER CLIENT: leaves the statuses.
attempt() {
	runs_on $server_core $2 || { echo "the server is not on its core" >"$tmp/$1.server"; return 1; }
	# shellcheck disable=SC2046,SC2086 # words
	(end_run "stock@$client_core" 60 $5 $(port_option $1 "$4")) >"$tmp/$1.client" 2>&1 &&
		client_status=0 || client_status=$?
	case $client_status:$4 in 0:[!!]*) ;; *) kill "$2" 2>/dev/null || : ;; esac
	await "$2"
	case $4 in !*) server_status=0 ;; esac
	as_wanted "$1.client" $client_status "$3" && as_wanted "$1.server" $server_status 0
}

# as_wanted FILE STATUS WANTED: or as two threads of rping may make it end, until rdma-core 59: one closes
# the channel that the other reads, or is told of the disconnect before its last completion. What it
# printed is compared all the same.
as_wanted() {
	[ "$2" = "$3" ] || { [ "$2" = 255 ] && grep -qE "$of_the_end" "$tmp/$1"; }
}

# What a tool prints, without what is different every time: the times of cmtime, and what two
# threads of rping say about the end.
printed() {
	sed -e 's/^\([a-z ]*:\)  *[0-9. ]*$/\1/' -e '/^wait for /d' -e '/DISCONNECT EVENT/d' \
		-e '/^cq completion failed/d' "$1" | sed -E "/$of_the_end/d"
}

same_as_control() {
	cmp -s "$tmp/control.$1" "$tmp/$1" && return
	printed "$tmp/control.$1" >"$tmp/expected"
	printed "$tmp/$1" | diff "$tmp/expected" -
}

# What a server that is ended printed is lost in part.
compare() {
	[ "$client_core$server_core" != stockstock ] || { keep_control "$1"; return 0; }
	same_as_control "$1.client" && case $2 in !*) ;; *) same_as_control "$1.server" ;; esac
}

keep_control() {
	cp "$tmp/$1.client" "$tmp/control.$1.client"
	cp "$tmp/$1.server" "$tmp/control.$1.server"
}

# one N PID NAME WANTED SERVER CLIENT
one() {
	tries=1
	until attempt "$1" "$2" "$4" "$5" "$6"; do
		came_too_early "$kind" "$tmp/$1.client" && [ $tries -lt 4 ] || {
			echo "client $client_status, server $server_status"
			cat "$tmp/$1.client" "$tmp/$1.server" "$tmp/late"
			return 1
		}
		tries=$((tries + 1))
		serve "$1" "$5"
		set -- "$1" $pid "$3" "$4" "$5" "$6"
		wait_listener $((11000 + $1))
	done
	compare "$1" "$5"
}

# pair CLIENT SERVER: all servers come to listen, then the clients run one after the other.
pair() {
	client_core=$1 server_core=$2 n=0
	: >"$tmp/batch"
	while IFS='|' read -r name wanted server client; do
		n=$((n + 1))
		serve $n "$server"
		echo "$n|$pid|$name|$wanted|$server|$client" >>"$tmp/batch"
	done <"$tmp/scenarios"
	wait_until 60 all_ready || note "not every server came to listen"
	while IFS='|' read -r n pid name wanted server client; do
		cell "$kind: client $1, server $2: $name" \
			one "$n" "$pid" "$name" "$wanted" "$server" "$client"
	done <"$tmp/batch"
}

of_the_end='^(rdma_get_cm_event: Bad file descriptor|rping (server|client) failed: -1)$'
cell "$kind comes up" dev_up "$kind"
scenarios >"$tmp/scenarios"
pair stock stock
pair ours stock
pair stock ours
pair ours ours
cell "$kind goes away" dev_down
done_testing
