#!/bin/sh
# fifo.sh rxe [CONNECTIONS]: a server that the scheduler puts first, on a processor of its own.
# needs: own-processor
. "$top_srcdir/t/guest/lib.sh"
dev_up "$1"
"$top_builddir/t/conform/fifo" "$EVR_IP4" "${2:-4000}"
status=$?
dev_down
exit $status
