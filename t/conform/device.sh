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
"$device"
status=$?
# With a sanitizer all share a process, but for what gives up its rights.
! ldd "$device" | grep -q libasan || CK_FORK=yes CK_RUN_CASE=memlock "$device" || status=$?
unset LD_LIBRARY_PATH
dev_down
exit $status
