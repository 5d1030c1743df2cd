#!/bin/sh
# What is left of a channel after its process gave its privileges up, and how to go on; on our library
# and on the distribution's. Argument: rxe or siw.
# time: instant
. "$top_srcdir/t/guest/lib.sh"

tmp=$(mktemp -d)
stock=$(dirname "$(ldconfig -p | sed -n 's/.*librdmacm\.so\.1 .*=> //p' | head -n 1)")
prog=$top_builddir/t/interop/.libs/privileges
[ -x "$prog" ] || prog=$top_builddir/t/interop/privileges

# on NAME FOLDER
on() { LD_LIBRARY_PATH=$2 timeout 60 "$prog" "$EVR_IP4" >"$tmp/$1"; }

denied='Permission denied'
cat >"$tmp/expected" <<END
open: ok
create: ok
bind: ok
create synchronous: ok
child: resolve: $denied
child: open: ok
child: ok
setgroups: ok
setgid: ok
setuid: ok
create: $denied
resolve: $denied
resolve synchronously: $denied
read: $denied
destroy: $denied
destroy synchronous: $denied
open again: ok
migrate: ok
migrate synchronous: ok
migrate back: ok
resolve: ok
read: ok
acknowledge: ok
resolve synchronously: ok
destroy: ok
destroy synchronous: ok
END

goes_on() {
	on "$1" "$2"
	status=$?
	diff "$tmp/expected" "$tmp/$1" && [ $status -eq 0 ]
}

# Without a way to the device there is none back.
is_stopped() {
	on "$1" "$2"
	diff "$tmp/expected" "$tmp/$1" | grep -qx "> open again: $denied"
}

dev_up "$1" || exit 1
chmod 0600 /dev/infiniband/rdma_cm
chmod 0666 /dev/infiniband/uverbs*
cell "$1: without permission for the device no channel opens again" is_stopped ours "$top_builddir/.libs"
chmod 0666 /dev/infiniband/rdma_cm
cell "$1: a new channel takes over what the old one refuses" goes_on ours "$top_builddir/.libs"
cell "$1: as on the distribution's librdmacm" goes_on stock "$stock"
dev_down
done_testing
