#!/bin/sh
# What programs read without a call is the same on our library and on the distribution's.
# Argument: rxe or siw.
. "$top_srcdir/t/guest/lib.sh"

tmp=$(mktemp -d)
on_ours() { LD_LIBRARY_PATH=$top_builddir/.libs "$1" "$EVR_IP4" "$2"; }
# The program is linked with our library: a folder that comes first decides.
on_stock() { LD_LIBRARY_PATH=$stock "$1" "$EVR_IP4" "$2"; }
stock=$(dirname "$(ldconfig -p | sed -n 's/.*librdmacm\.so\.1 .*=> //p' | head -n 1)")

same() {
	on_ours "$prog" "$1" >"$tmp/ours" || { cat "$tmp/ours"; return 1; }
	on_stock "$prog" "$1" >"$tmp/stock" || { cat "$tmp/stock"; return 1; }
	diff "$tmp/stock" "$tmp/ours"
}

prog=$top_builddir/t/interop/.libs/fields
[ -x "$prog" ] || prog=$top_builddir/t/interop/fields
dev_up "$1"
cell "$1: connection" same rc
[ "$1" = siw ] || cell "$1: datagrams and a group" same ud
dev_down
done_testing
