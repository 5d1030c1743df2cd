#!/bin/sh
# The harness tests itself, and the kernel under it: both devices come up, carry a stock tool, and go away.
# Its client speaks first, as iWARP wants it: see came_too_early for one whose server does.
# time: virtual
. "$top_srcdir/t/guest/lib.sh"

gone() { ! dev_is_made || [ ! -e "/sys/class/infiniband/$1" ]; }

for kind in rxe siw; do
	cell "$kind comes up" dev_up $kind
	rping -s -a "$EVR_IP4" -C 100 >/dev/null 2>&1 &
	pid=$!
	cell "$kind: a listener is seen" wait_listener 7174
	cell "$kind: its resources are counted" sh -c \
		". '$top_srcdir/t/guest/lib.sh'; resources $pid | grep -q 'cm_id [1-9]'"
	cell "$kind: the stock rping passes data" timeout 20 rping -c -a "$EVR_IP4" -C 100
	cell "$kind: the server ends well" wait $pid
	cell "$kind goes away" dev_down
	cell "$kind is gone" gone $EVR_DEV
done
[ "$(uname -m)" != x86_64 ] || cell "floating-point registers are everybody's own" "$top_builddir/t/guest/registers"
done_testing
