#!/bin/sh
# timeouts.sh rxe|siw [beside]: what the kernel and the library give up, and when, on two devices with a
# wire between them; or what connections have of it that are on the wire too, and on a third device.
# needs: virtual-time
# time: instant
. "$top_srcdir/t/schedule/wire.sh"
wired_up "$1"
# Requests that wait until it is known where the peer is: by default 60 or so, the others are lost.
for dev in "$EVR_NETDEV_A" "$EVR_NETDEV_B"; do
	echo 4194304 >"/proc/sys/net/ipv4/neigh/$dev/unres_qlen_bytes"
	# And where it is stays known, unless a test loses the carrier: the kernel would ask again seconds
	# after a peer asked, and keep the queue pairs whose frames wait for the answer.
	echo 36000000 >"/proc/sys/net/ipv4/neigh/$dev/base_reachable_time_ms"
	echo 36000 >"/proc/sys/net/ipv4/neigh/$dev/delay_first_probe_time"
done
# Requests that a listener has room for, before its program reads them.
echo 4096 >/proc/sys/net/rdma_ucm/max_backlog
if [ $# -gt 1 ]; then
	dev_up "$1" "${1}2"
	ip route replace 239.0.0.0/8 dev evr_a
	# What libc keeps of freed memory would count as in use.
	export GLIBC_TUNABLES=glibc.malloc.tcache_count=0
fi
export LD_LIBRARY_PATH="$top_builddir/.libs"
shift
exec "$top_builddir/t/conform/.libs/timeouts" "$@"
