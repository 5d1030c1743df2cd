#!/bin/sh
# endure.sh rxe|siw [SECONDS [SEED]]: connects, transfers and disconnects at random on a device.
. "$top_srcdir/t/guest/lib.sh"
# siw's library makes no more than some 55 queue pairs in a process.
case $1 in siw) clients=20 ;; *) clients=64 ;; esac
dev_up "$1"
"$top_builddir/t/scale/endure_device" "$EVR_IP4" $clients "${2:-10}" "${3:-1}"
status=$?
dev_down
exit $status
