#!/bin/sh
# bufferevent_faults.sh rxe|siw: what breaks beneath bufferevents over RDMA, on two devices with a wire
# between them.
# needs: virtual-time
# time: instant
. "$top_srcdir/t/schedule/wire.sh"
wired_up "$1"
export LD_LIBRARY_PATH="$top_builddir/.libs" CK_TAP_LOG_FILE_NAME=- CK_VERBOSITY=silent
# What libc keeps of freed memory would count as in use.
export GLIBC_TUNABLES=glibc.malloc.tcache_count=0
exec "$top_builddir/t/interop/.libs/bufferevent_faults"
