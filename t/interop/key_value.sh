#!/bin/sh
# key_value.sh rxe|siw: the key-value server of examples and its client, by RDMA and by TCP.
# shellcheck source=/dev/null
# time: virtual
. "$top_srcdir/t/guest/lib.sh"
examples=$top_builddir/examples
kind=$1

# says TEXT: the client did.
says() { grep -q -- "$1" "$client_log"; }

# works WAY ADDRESS
works() { "$examples/12-kv-client" "$1" "$2" 20000 >"$client_log"; }

# checks WAY ADDRESS
checks() {
	cell "$kind: all operations are made over $1 at $2, and what is got is right" works "$1" "$2"
	cell "$kind: there were 10000 of them under way" says '^20000 operations, 10000 under way at most$'
	cell "$kind: values of the largest room were got" says 'values to 655[23][0-9] bytes'
}

# fails COMMAND...: with one line that says why.
fails() {
	"$@" >"$client_log" 2>&1 && return 1
	[ "$(wc -l <"$client_log")" -eq 1 ]
}

stops() { kill -INT "$1" && wait "$1"; }

client_log=$(mktemp)
cell "$kind comes up" dev_up "$kind"
cell "the client says how it is called" "$examples/12-kv-client" -h
cell "the server says how it is called" "$examples/11-kv-server" -h
for address in "$EVR_IP4" "[$EVR_IP6]"; do
	"$examples/11-kv-server" "$address:7478" "$address:8081" &
	server=$!
	cell "$kind: the server listens on $address" wait_listener 7478
	checks rdma "$address:7478"
	checks tcp "$address:8081"
	cell "$kind: the server ends when it is asked to" stops $server
	cell "$kind: without a server the client says so" fails "$examples/12-kv-client" rdma "$address:7478"
	cell "$kind: over TCP too" fails "$examples/12-kv-client" tcp "$address:8081"
done
cell "$kind goes away" dev_down
rm -f "$client_log"
done_testing
