#!/bin/sh
# tool_errors.sh rxe|siw: what our tools say when something is wrong: one line on stderr that says
# what failed and what to do, and a status that is not 0.
# time: virtual
. "$top_srcdir/t/guest/lib.sh"

kind=$1
bin=$top_builddir/examples/tools/.libs
where=$bin
export LD_LIBRARY_PATH="$top_builddir/.libs"
tmp=$(mktemp -d)
out=$tmp/stdout
err=$tmp/stderr

# run TOOL ARGUMENT...: leaves the status and the time it took.
run() {
	tool=$1
	shift
	since=$(date +%s)
	timeout 60 $as "$where/$tool" "$@" >"$out" 2>"$err"
	status=$?
	took_s=$(($(date +%s) - since))
}

show() {
	echo "status $status after $took_s s"
	cat "$out" "$err"
}

# What libibverbs itself writes about a low limit is not ours.
one_line() { [ "$(grep -cv '^libibverbs: \|^    This will' "$err")" -eq 1 ]; }

said() { one_line && grep -qF -e "$1" "$err"; }

# fails TEXT TOOL ARGUMENT...
fails() {
	text=$1
	shift
	run "$@"
	show
	[ "$status" -eq 1 ] && said "$text" && ! grep -q usage "$out" "$err"
}

# says NAME TEXT TOOL ARGUMENT...: one cell.
says() {
	name=$1
	shift
	cell "$kind: $name" fails "$@"
}

# start NAME TOOL ARGUMENT...: in the background, as $pid; its output goes to $tmp/NAME.*.
start() {
	name=$1 tool=$2
	shift 2
	"$bin/$tool" "$@" >"$tmp/$name.out" 2>"$tmp/$name.err" &
	pid=$!
}

# start_stopping NAME LINE TOOL ARGUMENT...: the same for one that stops as it says that line. It is
# traced to its end, where a search for leaks, a trace of its own, would fail.
start_stopping() {
	name=$1 line=$2 tool=$3
	shift 3
	: >"$tmp/$name.out"
	strace -D -qq -o /dev/null -E ASAN_OPTIONS=detect_leaks=0 -e trace=write -P "$tmp/$name.out" \
		-e inject=write:signal=SIGSTOP:when="$line" \
		"$bin/$tool" "$@" >"$tmp/$name.out" 2>"$tmp/$name.err" &
	pid=$!
}

# It stands still at its very start as well.
has_stopped() { [ "$(wc -l <"$tmp/$1.out")" -ge 3 ] && grep -q '^State:.*[Tt]' "/proc/$2/status"; }

has_said() { grep -qF -e "$2" "$tmp/$1.out" "$tmp/$1.err"; }
is_gone() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.*Z' "/proc/$1/status"; }

# ended PID STATUS SECONDS
ended() {
	wait_until "$3" is_gone "$1" || {
		echo "process $1 is still there"
		kill -9 "$1"
		return 1
	}
	wait "$1"
	status=$?
	[ $status -eq "$2" ] || {
		echo "status $status, not $2"
		tail -n 5 "$tmp"/*.out "$tmp"/*.err
		return 1
	}
}

told() {
	cat "$tmp/$1.out" "$tmp/$1.err"
	[ "$(wc -l <"$tmp/$1.err")" -eq 1 ] && has_said "$1" "$2"
}

# --- addresses and names -------------------------------------------------------

addresses() {
	says "a server that is not there" "a server is running there" ucmatose -s "$EVR_IP4" -p 7999
	says "an unknown host" "nosuch.invalid: looking up the name" \
		ucmatose -s nosuch.invalid -T 2
	says "an unknown host to bind to" "/etc/resolv.conf" ucmatose -b nosuch.invalid -T 2
	says "an unknown group" "looking up the name" mckey -m nosuch.invalid -T 2
	says "no route" "an RDMA device has or leads to" ucmatose -s 203.0.113.1 -T 3
	says "an address of another machine to listen on" "no address of this machine" \
		ucmatose -b 203.0.113.1
	says "an address of another machine to connect from" "give -b an address" \
		ucmatose -s "$EVR_IP4" -b 203.0.113.1
	says "a name where -f wants an address" "the format that -f names" \
		ucmatose -f ip -s localhost
	says "an IPv4 address where -f wants IPv6" "the format that -f names" \
		ucmatose -f ipv6 -s "$EVR_IP4"
}

port_in_use() {
	start holder ucmatose -b "$EVR_IP4" -p 7998
	wait_listener 7998
	says "a port in use" "choose one with -p" ucmatose -b "$EVR_IP4" -p 7998
	says "a port in use on another address" "choose one with -p" ucmatose -p 7998
	kill $pid
	cell "$kind: a server that is ended says what is missing" ended $pid 1 20
	cell "$kind: that server says so in one line" told holder "interrupted: 0 of 1 connections made"
}

# --- a peer that never answers ---------------------------------------------------

# A netdev that swallows everything, with a device on it.
silence_up() {
	ip link add evrsilent type dummy && ip addr add 198.51.100.1/24 dev evrsilent &&
		ip link set evrsilent up && rdma link add silent0 type "$kind" netdev evrsilent &&
		wait_until 60 is_active silent0
}

silence_down() {
	rdma link delete silent0
	ip link delete evrsilent
}

within() {
	low=$1 high=$2
	shift 2
	fails "$@" && [ "$took_s" -ge "$low" ] && [ "$took_s" -le "$high" ]
}

# siw connects its TCP socket before it answers, whatever the deadline is: there TCP has to give up.
silent_peer() {
	cell "$kind: a device whose peers never answer" silence_up
	case $kind in
	siw)
		syn_retries=$(cat /proc/sys/net/ipv4/tcp_syn_retries)
		echo 1 >/proc/sys/net/ipv4/tcp_syn_retries
		cell "$kind: a silent peer, when TCP gives up" within 1 20 "Connection timed out" \
			ucmatose -s 198.51.100.2 -T 2
		echo "$syn_retries" >/proc/sys/net/ipv4/tcp_syn_retries
		;;
	*)
		cell "$kind: a silent peer, after -T 2" within 1 6 "wait longer (-T)" \
			ucmatose -s 198.51.100.2 -T 2
		cell "$kind: a silent peer, after 10 seconds" within 9 20 "Connection timed out" \
			ucmatose -s 198.51.100.2 -c 4
		;;
	esac
	silence_down
}

# --- a peer that goes away -------------------------------------------------------

# A transfer that cannot end, since one side stops in the middle, which is when it says its third
# line. A slow machine may take its time to connect them. Sets server and client.
stalled() {
	transfer="-p $1 -C 2000 -S 16384 -T 300"
	starter_server='start server' starter_client='start client'
	eval "starter_$2='start_stopping $2 3'"
	# shellcheck disable=SC2086 # words
	{
		$starter_server ucmatose -b "$EVR_IP4" $transfer
		server=$pid
		wait_listener "$1"
		$starter_client ucmatose -s "$EVR_IP4" $transfer
		client=$pid
	}
	eval "wait_until 300 has_stopped $2 \$$2"
}

killed_server() {
	stalled 7001 server
	cell "$kind: a client waits for a server that stands still" kill -0 "$client"
	kill -9 "$server"
	wait "$server" 2>/dev/null
	cell "$kind: a client whose server is killed in mid-transfer fails" ended "$client" 1 20
	cell "$kind: that client says so in one line" told client "of 2000 messages"
}

killed_client() {
	stalled 7002 client
	kill -9 "$client"
	wait "$client" 2>/dev/null
	cell "$kind: a server whose client is killed in mid-transfer fails" ended "$server" 1 20
	cell "$kind: the server of a killed client says so in one line" told server "client: "
}

# The server has its only client, which stands still, when another one comes.
one_too_many() {
	stalled 7003 client
	says "a client too many is refused" "a server is running there" \
		ucmatose -s "$EVR_IP4" -p 7003 -C 2000 -S 16384
	cell "$kind: the server says that it fails the request" \
		has_said server "cmatose: failing connection request"
	kill -CONT "$client"
	cell "$kind: the first client is served all the same" ended "$client" 0 40
	cell "$kind: and the server ends well" ended "$server" 0 20
}

other_options() {
	start server ucmatose -b "$EVR_IP4" -p 7004 -c 2 -C 20 -S 200
	wait_listener 7004
	says "a client with other options" "the server runs with -c 2 -C 20 -S 200" \
		ucmatose -s "$EVR_IP4" -p 7004
	cell "$kind: the server waits for another" kill -0 $pid
	kill -INT $pid
	cell "$kind: and ends when it is interrupted" ended $pid 1 20
}

# --- limits and permissions ------------------------------------------------------

# Of a copy, for the checkout may be in a folder that is its owner's alone.
public=$tmp/public
make_public() {
	mkdir "$public"
	cp -L "$top_builddir"/.libs/lib*.so.? "$bin/ucmatose" "$public"
	[ ! -e "$bin/rstream" ] || cp -L "$bin/rstream" "$public"
	chmod -R a+rX "$tmp"
}

# as_nobody [COMMAND...]: from now on without the rights that a limit does not hold for.
as_nobody() {
	[ -d "$public" ] || make_public
	where=$public
	as="$* env LD_LIBRARY_PATH=$public setpriv --reuid 65534 --regid 65534 --clear-groups"
}

as_root() {
	where=$bin
	as=
}

few_files() {
	as="prlimit --nofile=$1:$1"
	fails "ulimit -n" ucmatose -s "$EVR_IP4"
}

limits() {
	as_nobody prlimit --memlock=65536:65536
	says "too little locked memory" "ulimit -l" ucmatose -b "$EVR_IP4" -s "$EVR_IP4" -p 7999
	as_nobody prlimit --memlock=0:0
	says "no locked memory at all" "ulimit -l" ucmatose -s "$EVR_IP4" -p 7999
	as_root
	# From what the loop itself needs to what the last descriptor is for.
	for files in 5 6 7 8 9 10; do cell "$kind: at most $files open files" few_files $files; done
	as_root
	says "more messages at once than there may be" "make -C smaller" \
		ucmatose -s "$EVR_IP4" -p 7999 -C 65536 -S 1
}

permissions() {
	as_nobody
	says "a port for root only" "choose another with -p" ucmatose -b "$EVR_IP4" -p 80
	chmod 600 /dev/infiniband/uverbs*
	says "no permission on the device, for a client" "no permission" ucmatose -s "$EVR_IP4"
	says "no permission on the device, for a server" "no permission" ucmatose -b "$EVR_IP4"
	chmod 666 /dev/infiniband/uverbs*
	chmod 600 /dev/infiniband/rdma_cm
	says "no permission on the CM's device" "no permission" ucmatose -s "$EVR_IP4"
	[ ! -e "$top_builddir/.libs/librdmacm.so.1" ] ||
		says "no permission on the CM's device, for a stream" "no permission" rstream
	chmod 666 /dev/infiniband/rdma_cm
	as_root
}

# --- the smaller tools -----------------------------------------------------------

smaller() {
	says "rping, nobody there" "a server is running there" rping -c -a "$EVR_IP4" -p 7999 -C 1
	says "cmtime, nobody there" "a server is running there" cmtime -s "$EVR_IP4" -p 7999 -c 2
	says "cmtime -S, nobody there" "a server is running there" cmtime -S -s "$EVR_IP4" -p 7999 -c 2
	says "cmtime -B, no such interface" "no such interface" cmtime -s "$EVR_IP4" -B nosuch
	says "rdma_client, nobody there" "a server is running there" rdma_client -s "$EVR_IP4" -p 7999
	says "rping, an address of another machine" "no address of this machine" rping -s -a 203.0.113.1
	says "rdma_xclient -c x" "no device here has XRC" rdma_xclient -s "$EVR_IP4" -c x
	says "rdma_xserver -c x" "no device here has XRC" rdma_xserver -s "$EVR_IP4" -c x
	smaller_rping
	case $kind in
	siw)
		says "cmtime -m, a client" "-m needs an InfiniBand or RoCE" cmtime -m 0 -s "$EVR_IP4" -n 2
		says "cmtime -m, a server" "-m needs an InfiniBand or RoCE" cmtime -m 0 -b "$EVR_IP4"
		says "udaddy" "an iWARP device has no datagrams" udaddy -s "$EVR_IP4"
		;;
	*) smaller_udaddy ;;
	esac
}

other_sizes() {
	start pinged rping -s -a "$EVR_IP4" -p 7010 -S 64
	wait_listener 7010
	fails "see what the other side says" rping -c -a "$EVR_IP4" -p 7010 -C 1 -S 100 &&
		ended $pid 1 20 && told pinged "100 bytes of ping 0 into 64; give both sides the same -S"
}

# A client that is there already stands still, so that a second one comes meanwhile.
one_ping_too_many() {
	start pinged rping -s -a "$EVR_IP4" -p 7011
	server=$pid
	wait_listener 7011
	start pinging rping -c -a "$EVR_IP4" -p 7011
	wait_until 60 has_cm_id 7011 || return
	fails "a server is running there" rping -c -a "$EVR_IP4" -p 7011 -C 1 || return
	kill -INT $pid
	ended $pid 0 20 && ended $server 0 20
}

has_cm_id() { rdma resource show cm_id | grep -q "state CONNECT.*:$1 "; }

persistent_ping() {
	start pinged rping -s -P -a "$EVR_IP4" -p 7012
	server=$pid
	wait_listener 7012
	fails "see what the other side says" rping -c -a "$EVR_IP4" -p 7012 -C 1 -S 100 || return
	run rping -c -a "$EVR_IP4" -p 7012 -C 1 -V
	kill -TERM $server
	[ "$status" -eq 0 ] && ended $server 1 20 && has_said pinged "give both sides the same -S"
}

smaller_rping() {
	cell "$kind: rping, another -S" other_sizes
	cell "$kind: rping, a client too many, and pings without end that are interrupted" \
		one_ping_too_many
	cell "$kind: rping -P goes on behind a client that failed, and ends with 1" persistent_ping
	case $kind in
	siw) says "rping -q" "-q needs an InfiniBand or RoCE device" \
		rping -c -q -a "$EVR_IP4" -p 7999 ;;
	esac
}

smaller_udaddy() {
	says "udaddy, nobody there" "a server is running there" udaddy -s "$EVR_IP4"
	says "udaddy, a datagram larger than the MTU" "larger than the MTU" \
		udaddy -s "$EVR_IP4" -S 5000
	says "udaddy -P ipoib" "only InfiniBand has" udaddy -P ipoib
	cell "$kind: udaddy, other options" other_udaddy
	cell "$kind: udaddy, a client that sends too little" silent_udaddy
}

other_udaddy() {
	start server udaddy -b "$EVR_IP4" -c 2 -C 20
	wait_listener 7174
	fails "the server runs with -c 2 -C 20 -S 100" udaddy -s "$EVR_IP4" || return
	kill -INT $pid
	ended $pid 1 20 && told server "0 of 2 endpoints found"
}

# The stock client, on its own library, says nothing of its options.
silent_udaddy() {
	start server udaddy -b "$EVR_IP4" -C 20 -T 2
	wait_listener 7174
	env -u LD_LIBRARY_PATH timeout 200 udaddy -s "$EVR_IP4" -C 10 >/dev/null 2>&1 &
	stock=$!
	ended $pid 1 120 && told server "10 of 20 messages received"
	result=$?
	kill $stock
	wait $stock
	return $result
}

# --- the tools on rsockets ---------------------------------------------------------

leads_to='an RDMA device has or leads to'

rsockets() {
	for ip in 127.0.0.1 ::1; do
		for tool in rstream 'rstream -T b' 'rstream -T r' riostream; do
			# shellcheck disable=SC2086 # words
			says "$tool -s $ip, which is on no device" "$leads_to" $tool -s $ip -p 7999
		done
		says "rcopy to $ip, which is on no device" "$leads_to" rcopy "$0" "[$ip]:x" -p 7999
	done
	says "rstream, nobody there" "server is running there" rstream -s "$EVR_IP4" -p 7999
	says "rcopy, nobody there" "server is running there" rcopy "$0" "$EVR_IP4" -p 7999
	says "udpong, nobody there" "whether a server runs there" udpong -s "$EVR_IP4" -p 7999 -w 2
	says "rstream, no route" "$leads_to" rstream -s 203.0.113.1
	says "rcopy, no route" "$leads_to" rcopy "$0" 203.0.113.1
	says "udpong, no route" "$leads_to" udpong -s 203.0.113.1
	for tool in rstream riostream udpong; do
		says "$tool, an address of another machine" "give -b an address" $tool -b 203.0.113.1
		says "$tool, an address of another machine to connect from" "give -b an address" \
			$tool -s "$EVR_IP4" -b 203.0.113.1
	done
	says "rstream over TCP, no route" "Network is unreachable" rstream -T s -s 203.0.113.1
	cell "$kind: a device is no matter of TCP" said_nothing_of RDMA
	says "udpong, an unknown host" "or a name that this machine knows" udpong -s nosuch.invalid
	cell "$kind: udpong, which has no -f, does not tell of it" said_nothing_of -f
	cell "$kind: udpong, a message that is too large" too_long
	rsocket_port
	cell "$kind: riostream says that the server is none" no_mapping riostream rstream
	cell "$kind: riostream says that the client is none" no_mapping rstream riostream
}

too_long() {
	start receiving udpong
	wait_until 60 has_udp 7174 && fails "make -S smaller" udpong -s "$EVR_IP4" -S 2048 &&
		result=0 || result=1
	kill $pid
	{ wait $pid; } 2>/dev/null
	return $result
}
has_udp() { ss -lnu | grep -q ":$1 "; }

said_nothing_of() { ! grep -qe "$1" "$err"; }

rsocket_port() {
	start holder rstream -p 7020
	holder=$pid
	wait_listener 7020
	for tool in rstream rcopy; do
		says "$tool, a port in use" "choose another port with -p" $tool -p 7020
	done
	kill "$holder"
	wait "$holder" 2>/dev/null
}

# no_mapping CLIENT SERVER: the one that is riostream says it.
no_mapping() {
	start mapping "$2" -p 7021 -C 5
	wait_listener 7021
	run "$1" -s "$EVR_IP4" -p 7021 -C 5
	show
	ended $pid 1 40 && [ "$status" -eq 1 ] || return
	[ "$1" = riostream ] || err=$tmp/mapping.err
	said "whether it is riostream" && result=0 || result=1
	err=$tmp/stderr
	return $result
}

# --- what only InfiniBand has ----------------------------------------------------

infiniband_only() {
	says "-f gid for a client" "(AF_IB) need an InfiniBand device" ucmatose -f gid -s fe80::1
	says "-f gid for a server" "(AF_IB) need an InfiniBand device" ucmatose -f gid
	says "mckey -p 0x0002" "only InfiniBand has the IPoIB port space" \
		mckey -m 239.0.0.1 -b "$EVR_IP4" -p 0x0002
	says "mckey -p 0x0002, unbound" "only InfiniBand has the IPoIB port space" \
		mckey -m 239.0.0.1 -p 0x0002
	case $kind in
	siw) iwarp ;;
	*) roce ;;
	esac
}

roce() {
	says "mckey -m 0.0.0.0" "only InfiniBand assigns groups" mckey -m 0.0.0.0 -b "$EVR_IP4"
	says "mckey -M 0" "only InfiniBand assigns groups" mckey -M 0 -b "$EVR_IP4"
	says "mckey -M" "only InfiniBand joins a group by its GID" mckey -M ff12::1 -b "$EVR_IP4"
	says "an IPv6 group" "joins no IPv6 groups" mckey -m ff12::1 -b "$EVR_IP6"
	says "mckey -l" "cannot block the loop-back" mckey -m 239.0.0.1 -b "$EVR_IP4" -l
	says "an address that is no group" "the address of a multicast group" \
		mckey -m "$EVR_IP4" -b "$EVR_IP4"
	says "a message larger than the MTU" "larger than the MTU" \
		mckey -m 239.0.0.1 -b "$EVR_IP4" -S 5000
	start receiver mckey -m 239.0.0.1 -b "$EVR_IP4"
	wait_until 60 has_said receiver "receiving data transfers"
	kill -INT $pid
	cell "$kind: a receiver that is interrupted" ended $pid 1 20
	cell "$kind: says what is missing" told receiver "0 of 10 messages received"
}

iwarp() {
	says "-P ib for a client" "the port space of -P ib" ucmatose -P ib -s "$EVR_IP4"
	says "-P ib for a server" "the port space of -P ib" ucmatose -P ib
	says "mckey" "an iWARP device has no datagrams" mckey -m 239.0.0.1 -b "$EVR_IP4"
}

as=
dev_up "$kind"
addresses
port_in_use
silent_peer
killed_server
killed_client
one_too_many
other_options
limits
# These change the machine's own files.
[ -z "${EVR_IN_GUEST:-}" ] || permissions
infiniband_only
smaller
[ ! -e "$top_builddir/.libs/librdmacm.so.1" ] || rsockets
dev_down
rm -rf "$tmp"
done_testing
