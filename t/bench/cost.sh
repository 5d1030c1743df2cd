#!/bin/sh
# cost.sh rxe|siw [ROUNDS]: what the calls cost that a base runs under its budget.
. "$top_srcdir/t/guest/lib.sh"
dev_up "$1"
LD_LIBRARY_PATH=$top_builddir/.libs "$top_builddir/t/bench/.libs/cost" "$EVR_IP4" "${2:-100}"
dev_down
