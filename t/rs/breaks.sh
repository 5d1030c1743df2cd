#!/bin/sh
# breaks.sh rxe|siw: what breaks beneath a stream of rsockets, on two devices with a wire between them, and
# what others have of it, on a third.
# needs: virtual-time
# time: virtual
. "$top_srcdir/t/schedule/wire.sh"
wired_up "$1"
dev_up "$1" "${1}2"
export LD_LIBRARY_PATH="$top_builddir/.libs" CK_TAP_LOG_FILE_NAME=- CK_VERBOSITY=silent
exec "$top_builddir/t/rs/.libs/breaks"
