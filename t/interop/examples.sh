#!/bin/sh
# The numbered examples, as a reader would run them: what the README shows works.
# shellcheck source=/dev/null
. "$top_srcdir/t/guest/lib.sh"
examples=$top_builddir/examples

# answer ADDRESS: what the client printed came from the server.
answer() { [ "$("$examples/01-connect" "$1")" = hello ]; }

# refused ADDRESS: the client says so in one line, and fails.
refused() {
	"$examples/01-connect" "$1" >"$client_log" 2>&1 && return 1
	[ "$(wc -l <"$client_log")" -eq 1 ] && grep -q refused "$client_log"
}

client_log=$(mktemp)
for kind in rxe siw; do
	cell "$kind comes up" dev_up $kind
	for address in "$EVR_IP4" "[$EVR_IP6]"; do
		"$examples/02-echo-server" "$address:7471" &
		server=$!
		cell "$kind: the echo server listens on $address" wait_listener 7471
		cell "$kind: a message comes back from $address" timeout 20 "$examples/01-connect" "$address:7471"
		cell "$kind: the same message comes back again" answer "$address:7471"
		kill -INT $server
		cell "$kind: the server ends when it is asked to" wait $server
		cell "$kind: without a server the client says so" refused "$address:7471"
	done
	cell "$kind goes away" dev_down
done
rm -f "$client_log"
done_testing
