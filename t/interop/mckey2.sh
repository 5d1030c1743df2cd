#!/bin/sh
# mckey between two guests: the senders are in a, receivers in b and, for full members, one in a.
# A send-only sender leaves no trace in a: no membership in the kernel's list at any time, and no
# packet received while all of them run.
. "$top_srcdir/t/interop/groups.sh"

pairs=${*:-stock@stock:stock@stock ours@ours:stock@stock stock@stock:ours@ours ours@ours:ours@ours \
	ours@stock:stock@ours stock@ours:ours@stock}

received() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts; }

# receivers SET NAMES: for each pair its receivers, one per name.
receivers() {
	i=0
	for p in $pairs; do
		i=$((i + 1))
		for r in $2; do
			mckey_run "$1.$i.$r" "${p#*:}" -b "$EVR_IP4" -m "$(group "$1" $i)" &
		done
	done
}

all_joined() {
	i=0
	for p in $pairs; do
		i=$((i + 1))
		has_users "$1" $i "$2" || return 1
	done
}

# senders SET [OPTION]
senders() {
	i=0 pids=
	for p in $pairs; do
		i=$((i + 1))
		# shellcheck disable=SC2086 # the option may be none
		mckey_run "$1.$i.sender" "${p%:*}" -s -b "$EVR_IP4" -m "$(group "$1" $i)" $2 &
		pids="$pids $!"
	done
	# shellcheck disable=SC2086 # words
	wait $pids
}

# Looks at the kernel's list of memberships as long as the senders run.
watch_memberships() {
	while [ ! -e "$tmp/watched" ]; do
		grep '4DEF' /proc/net/igmp >>"$tmp/seen" || :
		sleep 0.1
	done
}

verdicts() {
	i=0
	for p in $pairs; do
		i=$((i + 1))
		for r in $2; do
			cell "$3, ${p%:*} sender, ${p#*:} receivers: $r" run_well "$1.$i.$r"
		done
	done
}

cell "rxe comes up on eth0" dev_up_eth0
case $EVR_ROLE in
a)
	receivers 1 receiver3
	cell "members: the receiver beside each sender has joined" wait_until 60 all_joined 1 1
	barrier joined
	senders 1
	wait
	verdicts 1 "sender receiver3" "members"

	barrier joined-2
	before=$(received)
	watch_memberships &
	senders 2 -o
	: >"$tmp/watched"
	wait
	verdicts 2 sender "send-only"
	cell "send-only: no membership was in the kernel's list" test ! -s "$tmp/seen"
	cell "send-only: the sender's device received nothing" test "$(received)" = "$before"
	;;
b)
	receivers 1 "receiver1 receiver2"
	cell "members: the receivers have joined" wait_until 60 all_joined 1 2
	barrier joined
	wait
	verdicts 1 "receiver1 receiver2" "members"

	receivers 2 "receiver1 receiver2 receiver3"
	cell "send-only: the receivers have joined" wait_until 60 all_joined 2 3
	barrier joined-2
	wait
	verdicts 2 "receiver1 receiver2 receiver3" "send-only"
	;;
esac
done_testing
