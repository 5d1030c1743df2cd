#!/bin/sh
# timeouts.sh rxe|siw: what the kernel and the library give up, and when, on two devices with a wire
# between them.
# needs: virtual-time
# time: instant
. "$top_srcdir/t/schedule/wire.sh"
wired_up "$1"
export LD_LIBRARY_PATH="$top_builddir/.libs"
exec "$top_builddir/t/conform/.libs/timeouts"
