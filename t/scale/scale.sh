#!/bin/sh
# scale.sh rxe|siw [CONNECTIONS...]: thousands of connections on one loop of a device, both ends of each;
# on siw 32, and how many its library has room for, see evrdma(7).
# time: instant
. "$top_srcdir/t/guest/lib.sh"
kind=$1
shift
[ $# -gt 0 ] || case $kind in
siw) set -- limit large 32 limit ;;
*) set -- 500 2000 4000 ;;
esac
dev_up "$kind"
"$top_builddir/t/scale/device" "$EVR_IP4" "$@"
status=$?
dev_down
exit $status
