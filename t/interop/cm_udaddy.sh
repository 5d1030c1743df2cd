# Sourced by cm_tools.sh: udaddy. A variant has the options of both sides. Its port is fixed.
udaddy_variants() {
	# iWARP has no datagrams.
	[ "$kind" = siw ] || echo '-C 10|
-c 4 -C 20 -S 1|-c 4 -C 20 -S 1
-C 100 -S 1000|-C 100 -S 1000
-c 2 over IPv6|-c 2'
}

# udaddy_one CLIENT SERVER NAME BOTH
udaddy_one() {
	to=$(address "$3")
	# shellcheck disable=SC2086 # options are words
	(end_run "$2" 60 udaddy -b "$to" $4) >"$tmp/server" 2>"$tmp/server.err" &
	pid=$!
	wait_listener 7174
	# shellcheck disable=SC2086
	(end_run "$1" 40 udaddy -s "$to" $4) >"$tmp/client" 2>"$tmp/client.err" &&
		status=0 || status=$?
	reap
	[ $status -eq 0 ] && [ $server_status -eq 0 ] &&
		grep -q '^data transfers complete' "$tmp/client" &&
		grep -q '^data transfers complete' "$tmp/server"
}
