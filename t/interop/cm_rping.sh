# Sourced by cm_tools.sh: rping. A variant has its pings, then the options of both sides, of the client
# and of the server.
rping_variants() {
	echo '-C 10|10|-v|-V|
-C 3 -S 65535|3|-v -S 65535|-V|
-C 100 -S 23|100|-v -S 23|-V|
-C 4 -P|4|-v|-V|-P
-C 4 over IPv6|4|-v|-V|'
	# The kernel takes an iWARP queue pair through its states, so that there is no -q.
	[ "$kind" = siw ] || echo '-C 5 -q on both|5|-v -q|-V|
-C 5 -q of the client|5|-v|-V -q|
-C 5 -q of the server|5|-v|-V|-q
-C 4 -q -P|4|-v -q|-V|-P'
}

# rping_one CLIENT SERVER NAME PINGS BOTH ITS-OWN SERVERS-OWN
rping_one() {
	port=$((port + 1))
	to=$(address "$3")
	size=$(echo "$5" | sed -n 's/.*-S \([0-9]*\).*/\1/p')
	# shellcheck disable=SC2086 # options are words
	serve "$2" rping -s -a "$to" $5 $7 || return
	# shellcheck disable=SC2086
	(end_run "$1" 40 rping -c -a "$to" -p $port -C "$4" $5 $6) >"$tmp/client" 2>"$tmp/client.err" &&
		status=0 || status=$?
	case $7 in *-P*) kill $pid ;; esac
	reap
	rping_client_ended "$1" $status && rping_server_ended "$2" $server_status "$7" &&
		rping_printed "$tmp/client" 'ping data: ' "$4" "${size:-64}" &&
		rping_server_printed "$2" "$7" "$4" "${size:-64}"
}

# The stock client, whose threads race at its end, may end with another status when all is through.
rping_client_ended() {
	case $1:$2 in
	*:0) ;;
	stock@*:*) ! grep -q mismatch "$tmp/client.err" ;;
	*) false ;;
	esac
}

# A persistent one is ended from outside: the stock one by the signal, ours in order. The threads of the
# stock one race at its end as the client's do.
rping_server_ended() {
	case $1:$3:$2 in
	*:0) ;;
	stock@*:255) ;;
	stock@*-P*:143) ;;
	*) false ;;
	esac
}

# Every ping was printed, whole: with its number, and as long as it should be.
rping_printed() {
	awk -v lines="$3" -v size="$4" -v head="$2" 'index($0, head) == 1 {
		text = substr($0, length(head) + 1)
		if (index(text, "rdma-ping-" n + 0 ": ") != 1 || length(text) != size - 1)
			bad = 1
		n++
	}
	END { exit bad || n != lines }' "$1"
}

# The stock server loses what it has printed when a signal ends it.
rping_server_printed() {
	case $1:$2 in
	stock@*-P*) return 0 ;;
	esac
	rping_printed "$tmp/server" 'server ping data: ' "$3" "$4"
}
