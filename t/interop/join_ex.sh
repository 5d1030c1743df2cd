#!/bin/sh
# join_ex.sh rxe|siw ours|stock: rdma_join_multicast_ex() on a device, of our librdmacm or of the
# distribution's.
# time: instant
. "$top_srcdir/t/guest/lib.sh"
export EVR_KIND="$1" EVR_CORE="$2"

prog=$top_builddir/t/interop/.libs/join_ex
[ -x "$prog" ] || prog=$top_builddir/t/interop/join_ex
# The program is linked with our library: a folder that comes first decides.
libs=$top_builddir/.libs
[ "$EVR_CORE" = ours ] ||
	libs=$(dirname "$(ldconfig -p | sed -n 's/.*librdmacm\.so\.1 .*=> //p' | head -n 1)")
if ! LD_LIBRARY_PATH=$libs ldd "$prog" | grep -q "librdmacm\.so\.1 => $libs/"; then
	echo "Bail out! $prog does not run on the $EVR_CORE librdmacm"
	exit 1
fi

dev_up "$EVR_KIND" || exit 1
LD_LIBRARY_PATH=$libs "$prog"
status=$?
dev_down
exit $status
