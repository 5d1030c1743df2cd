#!/bin/sh
# scale.sh rxe [CONNECTIONS...]: thousands of connections on one loop of a device, both ends of each.
# time: instant
. "$top_srcdir/t/guest/lib.sh"
kind=$1
shift
[ $# -gt 0 ] || set -- 500 2000 4000
dev_up "$kind"
"$top_builddir/t/scale/device" "$EVR_IP4" "$@"
status=$?
dev_down
exit $status
