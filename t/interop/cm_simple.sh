# Sourced by cm_tools.sh: rdma_client and rdma_server, rdma_xclient and rdma_xserver.
rdma_client_variants() {
	echo 'IPv4
IPv6'
}

rdma_xclient_variants() {
	echo 'IPv4
-c r|-c r'
}

# The stock rdma_xserver listens on every IPv4 address, and cannot be told otherwise.
simple_bind() { [ "$1" = rdma_xserver ] || echo "-s $to"; }

# simple_one CLIENT SERVER NAME CLIENTS-TOOL SERVERS-TOOL OPTIONS
simple_one() {
	port=$((port + 1))
	to=$(address "$3")
	# shellcheck disable=SC2046,SC2086 # options are words
	serve "$2" "$5" $(simple_bind "$5") $6 || return
	# shellcheck disable=SC2086
	(end_run "$1" 40 "$4" -s "$to" -p $port $6) >"$tmp/client" 2>"$tmp/client.err" &&
		status=0 || status=$?
	reap
	[ $status -eq 0 ] && [ $server_status -eq 0 ] &&
		grep -q "$4: end 0" "$tmp/client" && grep -q "$5: end 0" "$tmp/server"
}

rdma_client_one() { simple_one "$1" "$2" "$3" rdma_client rdma_server "$4"; }
rdma_xclient_one() { simple_one "$1" "$2" "$3" rdma_xclient rdma_xserver "$4"; }
