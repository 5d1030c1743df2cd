#!/bin/sh
# migrate_rounds.sh rxe|siw: `ucmatose -m`, both sides ours, 200 times. Events that wait when an id
# changes its channel wake nobody there, and whoever relies on that hangs in most runs.
# time: instant
. "$top_srcdir/t/guest/lib.sh"

kind=$1
rounds=200
bin=$top_builddir/examples/tools/.libs/ucmatose
export LD_LIBRARY_PATH="$top_builddir/.libs"
tmp=$(mktemp -d)

somebody_listens() { rdma resource show cm_id | grep -q 'state LISTEN'; }

attempt() {
	timeout 30 "$bin" -m -c 4 -b "$EVR_IP4" >"$tmp/server" 2>&1 &
	sleep 0.02
	wait_until 60 somebody_listens
	timeout 30 "$bin" -m -c 4 -s "$EVR_IP4" >"$tmp/client" 2>&1 && wait $!
}

# Sets now, in hundredths of a second, without a process.
clock() {
	read -r now _ </proc/uptime
	now=$((${now%.*} * 100 + 1${now#*.} - 100))
}

# Each within a second, which is what a round takes that waits for nothing, many times over.
all_rounds() {
	for round in $(seq $rounds); do
		clock
		since=$now
		attempt || { echo "round $round: status $?"; cat "$tmp/client" "$tmp/server"; return 1; }
		clock
		[ $((now - since)) -lt 100 ] || { echo "round $round took $((now - since))0 ms"; return 1; }
	done
}

cell "$kind comes up" dev_up "$kind"
cell "$kind: $rounds rounds of ucmatose -m, each within a second" all_rounds
unset LD_LIBRARY_PATH
cell "$kind goes away" dev_down
done_testing
