#!/bin/sh
# The harness tests itself: both devices come up, carry the stock tools, and go away.
# time: virtual
. "$top_srcdir/t/guest/lib.sh"

gone() { ! dev_is_made || [ ! -e "/sys/class/infiniband/$1" ]; }

for kind in rxe siw; do
	cell "$kind comes up" dev_up $kind
	ucmatose -c 1 -b "$EVR_IP4" >/dev/null 2>&1 &
	pid=$!
	cell "$kind: a listener is seen" wait_listener 7471
	cell "$kind: its resources are counted" sh -c \
		". '$top_srcdir/t/guest/lib.sh'; resources $pid | grep -q 'cm_id [1-9]'"
	cell "$kind: stock ucmatose passes data" timeout 20 ucmatose -s "$EVR_IP4"
	cell "$kind: the server ends well" wait $pid
	cell "$kind goes away" dev_down
	cell "$kind is gone" gone $EVR_DEV
done
done_testing
