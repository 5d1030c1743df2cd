#!/bin/sh
# device.sh rxe|siw [FROM:COUNT | --seed SEED [--trace]]: random schedules on the real kernel, on two
# devices with a wire between them.
# needs: virtual-time
# time: instant
. "$top_srcdir/t/schedule/wire.sh"

kind=$1
shift
case ${1:-} in
[0-9]*) set -- --from "$1" --count "${2:-100}" ;;
esac
export EVR_PROGRAM="t/guest/run $0 $kind"

# A device that is taken away waits for a process that stands still; whether our loop is held up the
# schedules see for themselves.
echo 0 >/proc/sys/kernel/hung_task_timeout_secs
# siw makes its TCP connection inside the call: one more try, after a second, then two more are waited.
echo 1 >/proc/sys/net/ipv4/tcp_syn_retries
wired_up "$kind"
export LD_LIBRARY_PATH="$top_builddir/.libs"
exec "$top_builddir/t/schedule/.libs/device" "$@"
