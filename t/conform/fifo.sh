#!/bin/sh
# fifo.sh rxe: a server that the scheduler puts first, on a processor of its own.
# needs: own-processor
. "$top_srcdir/t/guest/lib.sh"
dev_up "$1"
connections=4000
[ -z "${EVR_BRIEF:-}" ] || connections=1000
"$top_builddir/t/conform/fifo" "$EVR_IP4" $connections
status=$?
dev_down
exit $status
