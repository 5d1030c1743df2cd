#!/bin/sh
# hostile.sh rxe|siw [hostile_bev|hostile_dgrams]: what a peer can say wrongly to rsockets, to bufferevents, and
# what strangers can to datagram rsockets, each by name.
# time: virtual
. "$top_srcdir/t/guest/lib.sh"

tmp=$(mktemp -d)
cell "$1 comes up" dev_up "$1"
CK_TAP_LOG_FILE_NAME=$tmp/tap CK_VERBOSITY=silent CK_DEFAULT_TIMEOUT=60 \
	"$top_builddir/t/rs/${2:-hostile}" "$EVR_IP4"
while read -r line; do
	case $line in
	ok*) ok "${line##*hostile*.c:}" ;;
	not*) not_ok "${line#*hostile*.c:}" ;;
	esac
done <"$tmp/tap"
cell "$1 goes away" dev_down
rm -rf "$tmp"
done_testing
