#!/bin/sh
# ucmatose.sh rxe|siw [CLIENT SERVER]...: the matrix of ucmatose pairs on one device. The control,
# stock tools on the stock library at both ends, comes first.
. "$top_srcdir/t/interop/ends.sh"

kind=$1
shift
[ $# -gt 0 ] || set -- stock@stock stock@stock
tmp=$(mktemp -d)
port=10000

# pair CLIENT SERVER FAMILY CONNS SIZE BOUND: adds a cell to the batch and starts its server.
pair() {
	n=$((n + 1))
	port=$((port + 1))
	case $3 in IPv4) to=$EVR_IP4 ;; *) to=$EVR_IP6 ;; esac
	case $6 in address) bind="-b $to" ;; any6) bind="-b ::0" ;; *) bind= ;; esac
	# shellcheck disable=SC2046,SC2086 # words
	(
		env $(end_env $2) timeout 60 $(end_tool $2 ucmatose) $bind -p $port -c $4 -S $5 >"$tmp/$n.server" 2>&1
		echo "exit $?" >>"$tmp/$n.server"
	) &
	echo "$n $port $to $*" >>"$tmp/batch"
}

all_listen() {
	listening=$(rdma resource show cm_id | sed -n 's/.*:\([0-9]*\) dst.*/\1/p;s/.*src-addr [^ ]*:\([0-9]*\) .*/\1/p')
	for p in $(awk '{ print $2 }' "$tmp/batch"); do
		case "
$listening
" in *"
$p
"*) ;; *) return 1 ;; esac
	done
}

client() {
	# shellcheck disable=SC2046 # words
	env $(end_env $4) timeout 30 $(end_tool $4 ucmatose) -s $3 -p $2 -c $7 -S $8 >"$tmp/$1.client" 2>&1
	echo "exit $?" >>"$tmp/$1.client"
}

good() {
	grep -q '^exit 0$' "$tmp/$1.client" && grep -q '^exit 0$' "$tmp/$1.server" &&
		grep -q '^return status 0$' "$tmp/$1.client" && grep -q '^return status 0$' "$tmp/$1.server"
}

show() {
	sed 's/^/client: /' "$tmp/$1.client"
	sed 's/^/server: /' "$tmp/$1.server"
}

# Servers of a batch first, then its clients one after the other, then all verdicts.
run_batch() {
	[ -s "$tmp/batch" ] || return 0
	wait_until 20 all_listen || note "not every server came to listen"
	while read -r args; do client $args; done <"$tmp/batch"
	wait
	while read -r i p to c s f k z b; do
		name="$kind: $c client, $s server, $f, -c $k -S $z, bound $b"
		if good "$i"; then
			ok "$name"
		else
			not_ok "$name"
			note "$(show "$i")"
		fi
	done <"$tmp/batch"
	: >"$tmp/batch"
}

matrix() {
	for bound in address any6 nowhere; do
		for family in IPv4 IPv6; do
			n=0
			for conns in 1 16; do
				for size in 0 1 65536; do
					pair "$1" "$2" $family $conns $size $bound
				done
			done
			run_batch
		done
	done
}

cell "$kind comes up" dev_up "$kind"
while [ $# -gt 0 ]; do
	matrix "$1" "$2"
	shift 2
done
cell "$kind goes away" dev_down
done_testing
