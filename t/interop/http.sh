#!/bin/sh
# http.sh rxe|siw [CONNECTIONS]: libevent's HTTP over bufferevents over RDMA: many connections at once, large
# bodies, ends within one; and clients that know rsockets only, ours and the stock ones. Every byte is compared.
# time: virtual
. "$top_srcdir/t/guest/lib.sh"

kind=$1 port=7478 idle=''
tmp=$(mktemp -d)
programs=$top_builddir/t/interop
big=$((100 << 20))
many=${2:-200}

client() { timeout 300 "$programs/http_client" "$EVR_IP4:$port" "$@"; }

# rsocket_client ours|stock ARGUMENT...
rsocket_client() {
	libs=$top_builddir/.libs
	[ "$1" = ours ] || libs=
	shift
	LD_LIBRARY_PATH=$libs timeout 300 "$programs/.libs/http_rsocket" "$EVR_IP4" $port "$@"
}

# fetch ours|stock FILE ARGUMENT...: curl, with its connection carried by that librdmacm's module.
fetch() {
	case $1 in
	ours) libs=$top_builddir/.libs module=$libs/librspreload.so ;;
	stock) libs='' module=$(ls /usr/lib*/rsocket/librspreload.so /usr/lib/*/rsocket/librspreload.so 2>/dev/null) ;;
	esac
	to=$2
	shift 2
	(
		export LD_LIBRARY_PATH="$libs" LD_PRELOAD="$module" RS_TCP_AFTER_MS=100000
		exec timeout 300 curl -sSf -o "$to" "$@"
	)
}

# comes_back WHOSE: what curl posts.
comes_back() {
	rm -f "$tmp/got"
	fetch "$1" "$tmp/got" -H Expect: --data-binary "@$tmp/body" "http://$EVR_IP4:$port/" &&
		cmp "$tmp/body" "$tmp/got"
}

# is_fetched WHOSE: the same by GET.
is_fetched() {
	rm -f "$tmp/got"
	fetch "$1" "$tmp/got" "http://$EVR_IP4:$port/bytes/700000" && cmp "$tmp/body" "$tmp/got"
}

# Queue pairs of the server.
has_no_connection() { [ "$(rdma resource show qp | grep -c " pid $server ")" -eq 0 ]; }

# nothing_is_left: nor has it more descriptors than the first connection has left.
nothing_is_left() {
	wait_until 60 has_no_connection && sleep 2 || return 1
	now=$(find "/proc/$server/fd" | wc -l)
	[ "$now" -le "${idle:=$now}" ] || { ls -l "/proc/$server/fd"; return 1; }
}

prlimit --pid $$ --nofile=4096
cell "$kind comes up" dev_up "$kind"
"$programs/http_server" "$EVR_IP4:$port" &
server=$!
cell "$kind: the server listens" wait_listener $port
cell "$kind: one connection serves many requests" client many 1
cell "$kind: nothing of it is left" nothing_is_left
cell "$kind: $many connections at once get and post bodies of 1 B to 1 MiB" client many $many
cell "$kind: a client that leaves within a body takes nobody with it" client leave 20
cell "$kind: a server that leaves within a body is told" client broken 3000000
cell "$kind: 100 MiB are got" client get $big
cell "$kind: a reader that stops reading stops the sender, and may go on" client hold $big
[ "$kind" = siw ] || cell "$kind: 100 MiB are posted, and come back" client post $big
for whose in ours stock; do
	cell "$kind: an rsocket of $whose gets bodies" \
		rsocket_client $whose get 1 2 1000 65536 1048576 3000001
	cell "$kind: an rsocket of $whose posts bodies" \
		rsocket_client $whose post 1 2 1000 65536 1048576 3000001
	cell "$kind: rsockets of $whose leave within a body" rsocket_client $whose leave 3000001 3000001
done
fetch ours "$tmp/body" "http://$EVR_IP4:$port/bytes/700000"
for whose in ours stock; do
	cell "$kind: curl under the librspreload.so of $whose gets a body" is_fetched $whose
	cell "$kind: curl under the librspreload.so of $whose posts it" comes_back $whose
done
cell "$kind: nothing of all of them is left" nothing_is_left
cell "$kind: the server ends when it is asked to" kill -INT $server
cell "$kind: it ends well" wait $server
cell "$kind goes away" dev_down
rm -rf "$tmp"
done_testing
