#!/bin/sh
# device.sh rxe|siw ours|stock: the conformance suite on a device, over our CM or the distribution's.
# time: instant
. "$top_srcdir/t/guest/lib.sh"
export EVR_KIND="$1" EVR_CORE="$2"
libs=$top_builddir/.libs
if [ "$EVR_CORE" = stock ]; then
	libs=$(mktemp -d)
	cp -P "$top_builddir"/.libs/libevrdma.so* "$libs"
fi
LD_LIBRARY_PATH=$libs
export LD_LIBRARY_PATH
dev_up "$EVR_KIND"
device=$top_builddir/t/conform/.libs/device
case $EVR_CORE in
# The distribution's keeps a device open once it was used, so that it cannot be removed.
stock) CK_FORK=yes "$device" && status=0 || status=$? ;;
*)
	EVR_ONE_PROCESS=yes "$device" && status=0 || status=$?
	# What gives up its rights shares no process.
	CK_FORK=yes CK_RUN_CASE=memlock "$device" || status=$?
	;;
esac
unset LD_LIBRARY_PATH
dev_down
exit $status
