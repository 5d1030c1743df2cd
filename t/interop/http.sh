#!/bin/sh
# http.sh rxe|siw [CONNECTIONS]: libevent's HTTP over bufferevents over RDMA: many connections at once,
# large bodies, ends at each step on either side; its clients are such bufferevents, and rsockets, ours and
# the stock ones. Every byte is compared.
# time: virtual
. "$top_srcdir/t/guest/lib.sh"

kind=$1 own=7478 other=7479 idle='' descriptors=''
port=$own
tmp=$(mktemp -d)
programs=$top_builddir/t/interop
big=$((100 << 20))
many=${2:-200}

client() { timeout 300 "$programs/http_client" "$EVR_IP4:$port" "$@"; }

# by ours|stock PROGRAM ARGUMENT...: clients that know rsockets only, on that librdmacm.
by() {
	libs=$top_builddir/.libs program=$2
	[ "$1" = ours ] || libs=
	shift 2
	LD_LIBRARY_PATH=$libs timeout 300 "$programs/.libs/$program" "$EVR_IP4" $port "$@"
}

# to_killed COMMAND...: its last argument is the PID of a server of its own.
to_killed() {
	port=$other
	"$programs/http_server" "$EVR_IP4:$port" &
	victim=$!
	wait_listener $port && "$@" $victim && status=0 || status=1
	kill -9 $victim 2>/dev/null
	wait $victim
	port=$own
	return $status
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

# has_no_connection: nor completion queues that only a crowd needs, nor other objects than the first many
# have left, who had memory in common.
has_no_connection() {
	now=$(resources $server)
	case $now in 'qp 0 cq 1 '*) [ "$now" = "${idle:=$now}" ] ;; *) return 1 ;; esac
}

# nothing_is_left: nor has it more descriptors.
nothing_is_left() {
	wait_until 60 has_no_connection && sleep 2 || { echo "$(resources $server), not $idle"; return 1; }
	now=$(find "/proc/$server/fd" | wc -l)
	[ "$now" -le "${descriptors:=$now}" ] || { ls -l "/proc/$server/fd"; return 1; }
}

prlimit --pid $$ --nofile=4096
cell "$kind comes up" dev_up "$kind"
"$programs/http_server" "$EVR_IP4:$port" &
server=$!
cell "$kind: the server listens" wait_listener $port
cell "$kind: one connection serves many requests" client many 1
cell "$kind: $many connections at once get and post bodies of 1 B to 1 MiB" client many $many
cell "$kind: of their connections nothing is left" nothing_is_left
cell "$kind: 100 MiB are got" client get $big
cell "$kind: 100 MiB are posted, and come back" client post $big
cell "$kind: an answer comes in chunks" client chunked 3000001
cell "$kind: an answer comes without its body" client head 3000001
cell "$kind: an answer is the last" client close 3000001
cell "$kind: a reader that stops reading stops the sender, and may go on" client hold $big
cell "$kind: clients leave within an answer, behind a request and within it; others go on" client leave 40
cell "$kind: so they do when their process ends" client vanish 40
cell "$kind: a server that leaves within an answer is told" client broken 3000000
cell "$kind: a server that leaves within a request is told" client refused 3000000
cell "$kind: a server that is killed is told" to_killed client killed
cell "$kind: nothing of them is left" nothing_is_left
for whose in ours stock; do
	how=together first=10000
	[ $whose = ours ] || how=in-turn first=11000
	cell "$kind: $many rsockets of $whose at once get and post bodies of 1 B to 1 MiB" \
		by $whose http_rsockets $many $first $how
	cell "$kind: an rsocket of $whose gets bodies" \
		by $whose http_rsocket get 1 2 1000 65536 1048576 3000001 $big
	cell "$kind: an rsocket of $whose posts bodies" \
		by $whose http_rsocket post 1 2 1000 65536 1048576 3000001 $big
	cell "$kind: an rsocket of $whose asks ahead" by $whose http_rsocket pipeline 1 1000 200000
	cell "$kind: an rsocket of $whose sends and takes chunks" by $whose http_rsocket chunked 1 1000 3000001
	cell "$kind: an rsocket of $whose gets a head alone" by $whose http_rsocket head 1 3000001
	cell "$kind: an rsocket of $whose waits to be asked for a body" by $whose http_rsocket continue 1 3000001
	cell "$kind: an rsocket of $whose stops reading, and goes on" by $whose http_rsocket slow 20000000
	cell "$kind: rsockets of $whose leave within an answer, behind a request and within it; another goes on" \
		by $whose http_rsocket leave 1000 3000001
	cell "$kind: so they do when their process ends" by $whose http_rsocket vanish 3000001
	cell "$kind: rsockets of $whose are left behind an answer, and within one" \
		by $whose http_rsocket closed 1000 3000001
	cell "$kind: rsockets of $whose are left within a request" by $whose http_rsocket refused 1000 3000001
	# The stock one waits for completions alone, and hears of no disconnect meanwhile.
	[ $whose = stock ] ||
		cell "$kind: rsockets of ours learn that their server was killed" to_killed by ours http_rsocket killed
	cell "$kind: nothing of them is left" nothing_is_left
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
