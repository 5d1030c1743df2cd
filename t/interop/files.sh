#!/bin/sh
# Runs the program of the same name on a device. Argument: rxe or siw.
# time: instant
. "$top_srcdir/t/guest/lib.sh"

dev_up "$1" || exit 1
"$top_builddir/t/interop/files" "$EVR_IP4"
status=$?
dev_down
exit $status
