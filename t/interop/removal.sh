#!/bin/sh
# Runs the program of the same name on a device that it removes. Argument: rxe or siw.
# time: instant
. "$top_srcdir/t/guest/lib.sh"

dev_up "$1" || exit 1
"$top_builddir/t/interop/removal" "rdma link delete $EVR_DEV" \
	"rdma link add $EVR_DEV type $1 netdev $EVR_NETDEV" "$EVR_IP4"
status=$?
dev_down
exit $status
