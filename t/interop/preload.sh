#!/bin/sh
# preload.sh rxe|siw: programs that nobody wrote for RDMA, under our librspreload.so on both sides. Each moves its
# bytes, which are compared, and the device has counted them: a fall back to TCP fails. On siw it fails by itself,
# for a listener there takes no TCP.
. "$top_srcdir/t/guest/lib.sh"

kind=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
port=6000

# preloaded COMMAND...: for a subshell.
preloaded() {
	export LD_LIBRARY_PATH="$top_builddir/.libs" LD_PRELOAD="${module:-$top_builddir/.libs/librspreload.so}"
	export RS_TCP_AFTER_MS=100000 # however slow the machine is
	exec "$@"
}

# serve PROGRAM ARGUMENT...: in the background, listening on $port; leaves pid.
serve() {
	(preloaded "$@") >"$tmp/server" 2>&1 </dev/null &
	pid=$!
	wait_listener $port 60
}
stop() { { kill $pid && wait $pid; } 2>/dev/null || :; }
ended() { wait $pid; }
client() { (preloaded timeout 120 "$@"); }
stock_client() { LD_PRELOAD=$(ls /usr/lib*/rsocket/librspreload.so /usr/lib/*/rsocket/librspreload.so 2>/dev/null) timeout 120 "$@"; }

# --- who carried the bytes -----------------------------------------------------------

# The payload of a packet is 4096 bytes at most, and 1024 on this link.
packets() { rdma statistic show link "$EVR_DEV/1" | tr ' ' '\n' | sed -n '/^rcvd_pkts$/{n;p;}'; }
tcp_opens() { awk '/^Tcp:/ && $6 ~ /[0-9]/ { print $6 }' /proc/net/snmp; }
tcp_segments() { awk '/^Tcp:/ && $11 ~ /[0-9]/ { print $11 }' /proc/net/snmp; }

# by_rdma BYTES COMMAND...: it ends well, RDMA has carried so much, and nobody has connected by TCP.
by_rdma() {
	bytes=$1 packets=$(packets) opens=$(tcp_opens)
	shift
	"$@" || { echo "status $?"; tail -n 20 "$tmp/server"; return 1; }
	[ "$kind" != siw ] || return 0
	packets=$(($(packets) - packets)) opens=$(($(tcp_opens) - opens))
	[ $((packets * 1024)) -ge "$bytes" ] && [ $opens -eq 0 ] && return
	echo "$packets packets for $bytes bytes, $opens connections of TCP"
	return 1
}

# --- the queue pairs of both sides ---------------------------------------------------

# The threads of a process and of those that it began: of a queue pair the kernel knows the thread that
# made it.
threads() {
	ls "/proc/$1/task"
	for child in $(pgrep -P "$1"); do threads "$child"; done
}

# qps PID: "LQPN RQPN SQ_PSN" of each queue pair of the process. siw has no more to say of one than that
# it is there.
qps() {
	rdma resource show qp | awk -v threads="$(threads "$1" | tr '\n' ' ')" -v kind="$kind" '
		BEGIN { n = split(threads, t); for (i = 1; i <= n; i++) ours[t[i]] = 1 }
		/ type RC / {
			for (i = 1; i < NF; i++)
				value[$i] = $(i + 1)
			if (value["pid"] in ours && (kind == "siw" || value["state"] == "RTS"))
				print value["lqpn"], value["rqpn"], value["sq-psn"]
		}'
}

# pairs_up COUNT: each side has so many queue pairs, and those of the client are connected to the server's.
pairs_up() {
	qps $pid >"$tmp/qps_server" && qps $client_pid >"$tmp/qps_client"
	awk -v count="$1" -v kind="$kind" 'NR == FNR { peer[$1] = $2; servers++; next }
		{ clients++ }
		peer[$2] == $1 { found++ }
		END { exit servers < count || clients < count || kind != "siw" && found < count }' \
		"$tmp/qps_server" "$tmp/qps_client"
}

# sent_by BEFORE NOW: how many packets the queue pairs of a side have sent in between, as rxe numbers
# them in 24 bits.
sent_by() {
	awk 'NR == FNR { before[$1] = $3; next }
		$1 in before { sum += ($3 - before[$1] + 16777216) % 16777216 }
		END { print sum + 0 }' "$1" "$2"
}

# held COUNT CLIENT_BYTES SERVER_BYTES COMMAND...: a client with a FIFO for its input, that this shell has
# open. feed, of the caller, has it move its bytes, and is_fed says when they have: in between, the packets of
# its queue pairs and of the server's have grown by what that takes, and they are there all the time.
held() {
	count=$1 client_bytes=$2 server_bytes=$3
	shift 3
	rm -f "$tmp/fifo" && mkfifo "$tmp/fifo"
	(preloaded timeout 120 "$@") <"$tmp/fifo" >"$tmp/got" 2>"$tmp/said" &
	client_pid=$!
	exec 9<>"$tmp/fifo"
	is_carried || { kill $client_pid; tail -v -n 20 "$tmp/said" "$tmp"/qps_*; }
	exec 9>&-
	{ wait $client_pid; } 2>/dev/null
}

is_carried() {
	wait_until 60 pairs_up $count || return
	cp "$tmp/qps_server" "$tmp/before_server" && cp "$tmp/qps_client" "$tmp/before_client"
	feed && wait_until 60 is_fed && pairs_up $count || return
	has_sent client $client_bytes && has_sent server $server_bytes
}

has_sent() {
	[ "$kind" != siw ] || return 0
	sent=$(sent_by "$tmp/before_$1" "$tmp/qps_$1")
	[ $((sent * 1024)) -ge "$2" ] || { echo "$sent packets of the $1 for $2 bytes"; return 1; }
}

# --- programs ------------------------------------------------------------------------

big=$tmp/big
head -c 5000000 /dev/urandom >"$big"

nc_sends() {
	serve nc -l "$1" $port || return 1
	client nc -N "$1" $port <"$big" || return 1
	ended && cmp "$big" "$tmp/server"
}

# The module by another of its names, which is a link as `make install` has it.
nc_by_name() {
	module=$tmp/$1
	ln -sf "$top_builddir/.libs/librspreload.so" "$module"
	nc_sends "$EVR_IP4" && status=0 || status=1
	! grep -q 'cannot be preloaded' "$tmp/server" || status=1
	module=
	return $status
}

# What by_rdma is to tell: the same without the module.
nc_by_tcp() {
	! by_rdma 5000000 nc_without && cmp "$big" "$tmp/server"
}
nc_without() {
	nc -l "$EVR_IP4" $port >"$tmp/server" 2>&1 </dev/null &
	pid=$!
	wait_until 60 is_tcp && nc -N "$EVR_IP4" $port <"$big" && ended
}
is_tcp() { ss -ltn | grep -q ":$port "; }

# By accept4 and sendfile.
python_sends_files() {
	serve /usr/bin/python3 -c '
import socket, sys
s = socket.create_server((sys.argv[1], int(sys.argv[2])))
c = s.accept()[0]
c.sendfile(open(sys.argv[3], "rb"))
c.close()' "$EVR_IP4" $port "$big" || return 1
	client nc -d "$EVR_IP4" $port >"$tmp/got" && cmp "$big" "$tmp/got" && ended
}

# Both ways at once, through one connection.
socat_echoes() {
	serve socat TCP-LISTEN:$port,bind="$1",reuseaddr EXEC:cat || return 1
	client socat -t 30 - TCP:"$2":$port <"$big" >"$tmp/got" || return 1
	ended && cmp "$big" "$tmp/got"
}

socat_sends() {
	serve socat -u TCP6-LISTEN:$port,bind="[$EVR_IP6]" - || return 1
	client socat -u - TCP6:"[$EVR_IP6]":$port <"$big" || return 1
	ended && cmp "$big" "$tmp/server"
}

# The stock module, of rdma-core 44, takes a connect of socat's. Nothing tried passes with it on both
# sides, so there is nothing to mix further:
#   nc                calls accept4, which it leaves to the kernel, and of which the number is no socket
#   python3           asks for SOCK_CLOEXEC with the type, which no rule of it matches: TCP
#   iperf3            getsockopt that rsockets do not have ends it
#   openssl s_server  the same, of SO_TYPE
#   redis, memcached  epoll, which refuses the number: it is /dev/null's
#   socat             connects, and as a server reads nothing of what comes
#   busybox           is linked statically
stock_socat_sends() {
	serve socat -u TCP-LISTEN:$port,bind="$EVR_IP4" - || return 1
	stock_client socat -u - TCP:"$EVR_IP4":$port <"$big" || return 1
	ended && cmp "$big" "$tmp/server"
}

# It brings nothing of librdmacm's along.
stock_module_on_ours() (
	export LD_LIBRARY_PATH="$top_builddir/.libs"
	stock_socat_sends
)

# A child of the server's for each connection, which executes a program with it.
socat_forks() {
	serve env RDMAV_FORK_SAFE=1 socat TCP-LISTEN:$port,bind="$EVR_IP4",fork EXEC:cat,nofork || return 1
	for _ in 1 2 3; do
		client socat -t 30 - TCP:"$EVR_IP4":$port <"$big" >"$tmp/got" && cmp "$big" "$tmp/got" || return 1
	done
}

# Children that accept, while their parent does nothing.
children_accept() {
	serve env RDMAV_FORK_SAFE=1 /usr/bin/python3 -c '
import os, socket, sys
s = socket.create_server((sys.argv[1], int(sys.argv[2])))
for i in range(2):
    if not os.fork():
        while True:
            c, peer = s.accept()
            assert peer[0] == sys.argv[1]
            while data := c.recv(65536):
                c.sendall(data)
            c.close()
os.wait()' "$EVR_IP4" $port || return 1
	for _ in 1 2 3 4; do
		client socat -t 30 - TCP:"$EVR_IP4":$port <"$big" >"$tmp/got" && cmp "$big" "$tmp/got" || return 1
	done
}

http_gets() {
	mkdir -p "$tmp/www" && cp "$big" "$tmp/www/big" || return 1
	serve /usr/bin/python3 -m http.server --directory "$tmp/www" --bind "$1" $port || return 1
	for _ in 1 2 3; do
		client curl -sS -o "$tmp/got" "http://$2:$port/big" && cmp "$big" "$tmp/got" || return 1
	done
}

iperf() {
	serve iperf3 -s -1 -B "$EVR_IP4" -p $port || return 1
	client iperf3 -c "$EVR_IP4" -p $port "$@" >"$tmp/got" || { cat "$tmp/got"; return 1; }
	ended
}

redis() {
	ln -sf "$(command -v redis-check-rdb)" "$tmp/redis-server"
	serve "$tmp/redis-server" --port $port --bind "$EVR_IP4" --save '' --protected-mode no || return 1
	client redis-benchmark -h "$EVR_IP4" -p $port -q "$@" >"$tmp/got" &&
		client redis-cli -h "$EVR_IP4" -p $port -x set big <"$big" &&
		client redis-cli -h "$EVR_IP4" -p $port get big >"$tmp/got" &&
		head -c 5000000 "$tmp/got" | cmp "$big" - && stop
}

memcached_is_capable() {
	serve memcached -u root -l "$EVR_IP4" -p $port -U 0 -t 2 || return 1
	client memccapable -h "$EVR_IP4" -p $port && stop
}

memcached_takes_load() {
	serve memcached -u root -l "$EVR_IP4" -p $port -U 0 -t 2 || return 1
	client memcslap --servers="$EVR_IP4:$port" --concurrency=8 --execute-number=200 --test=set &&
		client memcslap --servers="$EVR_IP4:$port" --concurrency=8 --execute-number=200 \
			--test=get && stop
}

# --- programs that know UDP ----------------------------------------------------------

is_bound() { grep -q "^ *[0-9]*: [0-9A-F]*:$(printf %04X "$1") " /proc/net/udp /proc/net/udp6; }

# Datagrams are taken where a rule says so, here for both sides.
serve_dgrams() {
	echo '* * dgram udp' >"$tmp/rules"
	export RS_PRELOAD_CONFIG="$tmp/rules"
	(preloaded "$@") >"$tmp/server" 2>&1 </dev/null &
	pid=$!
	wait_until 60 is_bound $port
}

# Messages of 1000 bytes, each sent when the one before has come back.
ask_and_hear() {
	client /usr/bin/python3 -c '
import os, socket, sys
name, port, num = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
info = socket.getaddrinfo(name, port, type=socket.SOCK_DGRAM)[0]
s = socket.socket(*info[:3])
for i in range(num):
    sent = os.urandom(1000)
    s.sendto(sent, info[4])
    got, peer = s.recvfrom(2000)
    assert got == sent and peer[:2] == (name, port), peer' "$@"
	status=$?
	unset RS_PRELOAD_CONFIG
	return $status
}

socat_echoes_dgrams() {
	serve_dgrams socat UDP-LISTEN:$port,bind="$EVR_IP4" PIPE || return 1
	ask_and_hear "$EVR_IP4" $port 500
}

python_echoes_dgrams() {
	serve_dgrams /usr/bin/python3 -c '
import selectors, socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setblocking(False)
s.bind((sys.argv[1], int(sys.argv[2])))
all = selectors.DefaultSelector()
all.register(s, selectors.EVENT_READ)
while True:
    all.select()
    s.sendto(*s.recvfrom(2000))' "$EVR_IP6" $port || return 1
	ask_and_hear "$EVR_IP6" $port 500
}

# --- programs whose queue pairs are looked at ------------------------------------------

feed_big() { timeout 60 cat "$big" >&9; }
holds() { [ -e "$1" ] && [ "$(stat -c %s "$1")" -ge "$2" ]; }

nc_is_seen() {
	feed() { feed_big; }
	is_fed() { holds "$tmp/server" 5000000; }
	serve nc -l "$EVR_IP4" $port || return
	held 1 5000000 0 nc -N "$EVR_IP4" $port && ended && cmp "$big" "$tmp/server"
}

# What is sent comes back by the same connection.
socat_is_seen() {
	feed() { feed_big; }
	is_fed() { holds "$tmp/got" 5000000; }
	serve socat TCP-LISTEN:$port,bind="$EVR_IP4",reuseaddr EXEC:cat || return
	held 1 5000000 5000000 socat -t 30 - TCP:"$EVR_IP4":$port && ended && cmp "$big" "$tmp/got"
}

# Its control and its data. The server keeps what came of the client's input, of which the last block is not
# sent before it ends.
iperf_is_seen() {
	feed() { feed_big; }
	is_fed() { holds "$tmp/iperf" 4700000; }
	rm -f "$tmp/iperf"
	serve iperf3 -s -1 -B "$EVR_IP4" -p $port -F "$tmp/iperf" || return
	held 2 4700000 0 iperf3 -c "$EVR_IP4" -p $port -t 100 -F /proc/self/fd/0 && ended
}

# curl writes into the FIFO, and so it waits, and the server with it, until that is read.
http_is_seen() {
	feed() { timeout 60 head -c 4800000 <&9 >"$tmp/body"; }
	is_fed() { :; }
	mkdir -p "$tmp/www" && cp "$big" "$tmp/www/big" || return
	serve /usr/bin/python3 -m http.server --directory "$tmp/www" --bind "$EVR_IP4" $port || return
	held 1 0 4000000 curl -sS -o "$tmp/fifo" "http://$EVR_IP4:$port/big" || :
	head -c 4800000 "$big" | cmp - "$tmp/body"
}

# Forty values, of 100000 letters each.
redis_is_seen() {
	feed() { for i in $(seq 40); do echo "set key$i $value" >&9; done; }
	is_fed() { [ "$(grep -c '^OK' "$tmp/got")" -eq 40 ]; }
	value=$(head -c 50000 "$big" | od -An -v -tx1 | tr -d ' \n')
	ln -sf "$(command -v redis-check-rdb)" "$tmp/redis-server"
	serve "$tmp/redis-server" --port $port --bind "$EVR_IP4" --save '' --protected-mode no || return
	held 1 4000000 0 redis-cli -h "$EVR_IP4" -p $port
}

# Five values there, and back.
memcached_is_seen() {
	feed() {
		for i in 1 2 3 4 5; do
			printf 'set big 0 0 500000\r\n' && head -c 500000 "$big" && printf '\r\nget big\r\n'
		done >&9
	}
	is_fed() { [ "$(grep -ac '^END' "$tmp/got")" -eq 5 ]; }
	serve memcached -u root -l "$EVR_IP4" -p $port -U 0 -t 2 || return
	held 1 2500000 2500000 nc -N "$EVR_IP4" $port
}

# program NAME BYTES COMMAND...: one cell; what is left of it ends.
program() {
	name=$1
	shift
	port=$((port + 1))
	cell "$kind: $name" by_rdma "$@"
	stop
}

# seen NAME BYTES COMMAND...: the same, of a client that is held.
seen() { program "the queue pairs of $1" "$2" "$3"; }

cell "$kind comes up" dev_up "$kind"
port=$((port + 1))
[ "$kind" = siw ] || cell "$kind: nc without the module is no nc by RDMA" nc_by_tcp
program "nc sends a file" 5000000 nc_sends "$EVR_IP4"
for name in librspreload.so.1 librspreload.so.1.0.0; do
	program "nc sends a file, preloaded by the name of $name" 5000000 nc_by_name $name
done
program "Python sends a file by sendfile" 5000000 python_sends_files
program "nc sends a file over IPv6" 5000000 nc_sends "$EVR_IP6"
program "socat sends a file over IPv6" 5000000 socat_sends
program "socat under the stock module sends a file to ours" 5000000 stock_socat_sends
# The stock module ends its process without rclose(), behind a nonblocking rshutdown() that does not wait.
program "socat under the stock module on our librdmacm sends a file to ours" 5000000 stock_module_on_ours
program "a server with a child for each connection" 30000000 socat_forks
program "a server whose children accept" 40000000 children_accept
program "socat, echoed by a child through pipes" 10000000 socat_echoes "$EVR_IP4" "$EVR_IP4"
program "curl from Python's http.server" 15000000 http_gets "$EVR_IP4" "$EVR_IP4"
program "curl from Python's http.server, over IPv6" 15000000 http_gets "$EVR_IP6" "[$EVR_IP6]"
# siw at :: refuses a connection that comes over IPv4.
[ "$kind" = siw ] || program "curl over IPv4 from Python's http.server on ::" 15000000 http_gets :: "$EVR_IP4"
program "iperf3" 1000000 iperf -n 8M
program "iperf3, the other way" 1000000 iperf -n 8M -R
program "iperf3, four streams both ways" 1000000 iperf -n 8M -P 4 --bidir
program "redis-benchmark, 50 connections" 5000000 redis -n 1000 -t ping,set,get,lrange_100
program "redis-benchmark, pipelined" 5000000 redis -n 2000 -c 10 -P 16 -t set,get
program "memcached and its protocols" 10000 memcached_is_capable
program "memcached under load" 100000 memcached_takes_load
# siw has no datagrams. The first of them go by UDP.
[ "$kind" = siw ] || program "Python's datagrams, echoed by socat" 900000 socat_echoes_dgrams
[ "$kind" = siw ] || program "Python's datagrams, over IPv6 and by epoll" 900000 python_echoes_dgrams
seen "nc and nc" 5000000 nc_is_seen
seen "socat and socat" 10000000 socat_is_seen
seen "iperf3 and iperf3" 4700000 iperf_is_seen
seen "redis-cli and redis" 4000000 redis_is_seen
seen "nc and memcached" 5000000 memcached_is_seen
seen "curl and Python's http.server" 5000000 http_is_seen
cell "$kind goes away" dev_down
done_testing
