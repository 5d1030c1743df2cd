#!/bin/sh
# dgrams.sh rxe|siw: what the calls of a datagram rsocket return, beside what those of UDP do.
. "$top_srcdir/t/guest/lib.sh"

# suite WHICH ADDRESS: each of its tests by name.
suite() {
	CK_TAP_LOG_FILE_NAME=$tmp/tap CK_VERBOSITY=silent "$top_builddir/t/rs/dgrams_device" "$1" "$2"
	while read -r line; do
		case $line in
		ok*) ok "$1: ${line##*:$1:}" ;;
		not*) not_ok "$1: ${line#*:$1:}" ;;
		esac
	done <"$tmp/tap"
}

tmp=$(mktemp -d)
cell "$1 comes up" dev_up "$1"
suite udp "$EVR_IP4"
suite rs "$EVR_IP4"
cell "$1 goes away" dev_down
done_testing
