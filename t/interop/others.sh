#!/bin/sh
# others.sh rxe|siw: programs of the distribution that are none of the CM's own tools, unmodified, on
# our librdmacm.so.1: benchmarks, libfabric, uDAPL, librpma and the tests of pyverbs. Stock on
# both sides is the control; ours on each side and on both has to end and to print the same.
# time: real
. "$top_srcdir/t/interop/ends.sh"

kind=$1
tmp=$(mktemp -d)

# NAME|WHEN THE SERVER IS READY|ends, or stays when its client has ended|SERVER|CLIENT, a cell each
# for all pairs of cores.
#
# Left out, because they fail on the distribution's own library too: fi_pingpong over ofi_rxm, whose
# completion queue is larger than rxe's can be; qperf, whose client may connect before its server
# listens; ucx_perftest and Open MPI over UCX, which begin with datagrams of UCX's own that do not
# arrive on rxe. Open MPI is built without a connection manager for verbs here. Left out for what it
# would bring along: fio (Ceph, Gluster).
scenarios() {
	bench="-R -d $EVR_DEV -n 20" steady="env LD_PRELOAD=$top_builddir/t/interop/.libs/steady.so"
	cat <<-END
		ib_send_bw|cm 18515|ends|$steady ib_send_bw $bench -s 1024|$steady ib_send_bw $bench -s 1024 $EVR_IP4
		ib_write_bw, 4 pairs|cm 18515|ends|$steady ib_write_bw $bench -q 4|$steady ib_write_bw $bench -q 4 $EVR_IP4
		fi_pingpong|tcp 47592|ends|fi_pingpong -p verbs -e msg -I 20 -S 64|fi_pingpong -p verbs -e msg -I 20 -S 64 $EVR_IP4
		dtest|says waiting|ends|$dtest -s|$dtest -h $EVR_IP4
	END
	[ "$kind" = siw ] || cat <<-END
		ib_send_bw, datagrams|cm 18515|ends|$steady ib_send_bw $bench -c UD -s 1024|$steady ib_send_bw $bench -c UD -s 1024 $EVR_IP4
		ib_send_bw, only to meet|cm 18515|ends|$steady ib_send_bw -z -d $EVR_DEV -x 1 -n 20|$steady ib_send_bw -z -d $EVR_DEV -x 1 -n 20 $EVR_IP4
		UCX, tags|says listening|stays|env $ucp -c tag -l $EVR_IP4|env $ucp -c tag -a $EVR_IP4
		UCX, stream|says listening|stays|env $ucp -c stream -l $EVR_IP4|env $ucp -c stream -a $EVR_IP4
		UCX, active messages over IPv6|says listening|stays|env $ucp -c am -6 -l $EVR_IP6|env $ucp -c am -6 -a $EVR_IP6
	END
}

# What uDAPL calls the device. Its library's thread says that it has ended, and is unloaded for that,
# before it has: it would end in code that is gone. As a library of the program's own it stays.
dtest="env $tmp/dtest -P evr -b 20"
name_for_dapl() {
	export DAT_OVERRIDE="$tmp/dat.conf"
	echo "evr u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"$EVR_NETDEV 0\" \"\"" >"$DAT_OVERRIDE"
	# shellcheck disable=SC2016 # expanded by the script
	printf '%s\n' '#!/bin/sh' 'LD_PRELOAD="$LD_PRELOAD libdaplofa.so.2" exec dtest "$@"' >"$tmp/dtest"
	chmod +x "$tmp/dtest"
}

# UCX has an example of its connections by address in place of a tool.
ucp=$tmp/ucp_client_server
build_ucp() { gcc -w -O0 -o "$ucp" /usr/share/doc/libucx-dev/examples/ucp_client_server.c -lucp -lucs; }
name_for_ucx() {
	export UCX_NET_DEVICES="$EVR_DEV:1" UCX_TLS=rc_v,ud_v,self UCX_IB_GID_INDEX=1
	export UCX_SOCKADDR_TLS_PRIORITY=rdmacm
}

# serve NAME COMMAND: in the background; leaves pid.
serve() {
	: >"$tmp/server" # what the one before said is not its
	# shellcheck disable=SC2086 # words
	(end_run "stock@$server_core" 600 $2) >"$tmp/server" 2>&1 &
	pid=$!
}

# A port is shown to be listened on some time before the device knows of it.
is_waiting() { grep -q '^State:.*sleeping' "/proc/$pid/status"; }

# ready cm|tcp|says WHAT
ready() {
	case $1 in
	cm) is_listening "$2" && is_waiting ;;
	tcp) ss -ltnH | grep -q ":$2 " ;;
	says) grep -qi "$2" "$tmp/server" ;;
	esac
}

# Which library the process really runs on.
runs_on() {
	case $1 in
	ours) grep -q "$ours_libs/librdmacm" "/proc/$2/maps" ;;
	*) ! grep -q "$ours_libs/librdmacm" "/proc/$2/maps" ;;
	esac
}

# Of what was printed only what is the same each time: no numbers, no units, and not what dtest finds
# in buffers that both sides are writing to.
shape() {
	sed -e '/CPU/d' -e 's/=.*/=/' -e 's/0x[0-9a-f]*/N/g' -e 's/port [0-9a-f]*/port/' \
		-e 's/contains:.*//' -e 's/[0-9a-f]*[0-9][0-9a-f.:]*[kmgKMG]\{0,1\}/N/g' -e 's/[ 	][ 	]*/ /g' -e 's/ $//' "$1"
}

same_as_control() {
	shape "$tmp/client" >"$tmp/printed"
	if [ "$client_core$server_core" = stockstock ]; then
		cp "$tmp/printed" "$tmp/control.$1"
	else
		diff "$tmp/control.$1" "$tmp/printed" >"$tmp/differs"
	fi
}

# Leaves its status in client.
run_client() {
	# shellcheck disable=SC2086 # words
	(end_run "stock@$client_core" 600 $1) >"$tmp/client" 2>&1 &
	active=$!
	[ -z "${2:-}" ] || end_left $active "$2" &
	{ wait $active; } 2>/dev/null && client=0 || client=$?
	return $client
}

# end_left CLIENT SERVER: ends the client when the server has long left it.
end_left() {
	while [ -e "/proc/$1/exe" ]; do
		busybox sleep 20
		[ -e "/proc/$2/exe" ] || kill "$1" 2>/dev/null || :
	done
}

# They ask for the processor's rate, which user-mode Linux does not tell, before they measure it.
tell_rate() {
	grep -q '^cpu MHz' /proc/cpuinfo && return
	{ cat /proc/cpuinfo && echo 'cpu MHz : 1000.000'; } >"$tmp/cpuinfo"
	mount --bind "$tmp/cpuinfo" /proc/cpuinfo
}

# The status of the server, which has to end by itself soon after its client, or does not end.
await() {
	if [ "$1" = stays ]; then
		kill -0 "$pid" && { kill "$pid" && wait "$pid" || :; } 2>/dev/null
		return
	fi
	(busybox sleep 120; kill "$pid") 2>/dev/null &
	watch=$!
	{ wait "$pid"; } 2>/dev/null && status=0 || status=$?
	kill $watch 2>/dev/null || :
	return $status
}

# Three ways in which programs fail on every librdmacm, so that nothing is said of ours. A client of perftest
# connects as soon as it has agreed with its server to do so, and the server listens only then; one
# that is refused (8 is the CM's "no such service", and on iWARP it is TCP that refuses) uses what it has
# freed, and may end of that before it has said all.
came_too_early() { grep -Eq 'RDMA_CM_EVENT_REJECTED; error: 8|^ERRNO: Connection refused' "$tmp/client"; }

# A server may have left, and its queue pair with it, before the client has its last message, which it
# waits for without end.
left_alone() { [ "$client" = 143 ] && [ "$server" = 0 ]; }

# UCX's example closes its end by force as soon as its only message was given to the device (ucp_ep_close() with
# UCP_EP_CLOSE_MODE_FORCE, without a word from the other side): the peer may see the end before the message.
closed_by_force() {
	[ "$client" = 0 ] && grep -q 'unable to receive UCX message (Connection reset by remote peer)' "$tmp/server"
}

# one N READY END SERVER CLIENT
one() {
	for _ in 1 2 3 4 5; do
		try "$@" && return
		came_too_early || left_alone || closed_by_force || break
	done
	echo "client $client, server $server"
	sed 's/^/client: /' "$tmp/client"
	sed 's/^/server: /' "$tmp/server"
	cat "$tmp/differs"
	dmesg | grep 'segfault at' | tail -n 3
	return 1
}

try() {
	: >"$tmp/differs"
	serve "$1" "$4"
	client=none
	# shellcheck disable=SC2086 # words
	wait_until 60 ready $2 && runs_on $server_core $pid && run_client "$5" $pid || :
	[ $client = 0 ] || kill $pid 2>/dev/null || :
	await "$3" && server=0 || server=$?
	[ $client = 0 ] && [ $server = 0 ] && same_as_control "$1"
}

# pair CLIENT SERVER
pair() {
	client_core=$1 server_core=$2 n=0
	while IFS='|' read -r name ready end server client; do
		n=$((n + 1))
		cell "$kind: client $1, server $2: $name" one $n "$ready" "$end" "$server" "$client"
	done <"$tmp/scenarios"
}

# --- programs that are both sides themselves ----------------------------------

# The tests come with the package, some of them packed.
unpack_pyverbs() {
	mkdir "$tmp/tests"
	for f in /usr/share/doc/rdma-core/tests/*.py*; do
		case $f in */test_rdmacm.py*) ;; */test_*) continue ;; esac
		name=${f##*/}
		gzip -dcf "$f" >"$tmp/tests/${name%.gz}" || return 1
	done
}

# alone CORE NAME COMMAND: prints the same on both cores.
alone() {
	client_core=$1 server_core=$1
	: >"$tmp/differs"
	run_client "$3" && same_as_control "$2" && return
	cat "$tmp/client" "$tmp/differs"
	return 1
}

both_sides() {
	for core in stock ours; do
		cell "$kind: $core: pyverbs" alone $core pyverbs \
			"python3 $top_srcdir/t/interop/others_pyverbs.py $tmp --dev $EVR_DEV"
		cell "$kind: $core: librpma" alone $core rpma "python3 $top_srcdir/t/interop/others_rpma.py"
	done
}

cell "$kind comes up" dev_up "$kind"
cell "perftest is told the processor's rate" tell_rate
name_for_dapl
name_for_ucx
[ "$kind" = siw ] || cell "the example of UCX is built" build_ucp
scenarios >"$tmp/scenarios"
pair stock stock
if [ -z "${EVR_BRIEF:-}" ]; then
	pair ours stock
	pair stock ours
fi
pair ours ours
cell "the tests of pyverbs are there" unpack_pyverbs
both_sides
cell "$kind goes away" dev_down
done_testing
