#!/bin/sh
# descriptor.sh rxe|siw: what the number of an rsocket shows, beside what one of TCP does.
# time: virtual
. "$top_srcdir/t/guest/lib.sh"

case $1 in rxe) many=250 ;; *) many=12 ;; esac

# suite WHICH ADDRESS MANY: each of its tests by name.
suite() {
	EVR_ONE_PROCESS=yes CK_TAP_LOG_FILE_NAME=$tmp/tap CK_VERBOSITY=silent \
		"$top_builddir/t/rs/device" "$1" "$2" "$3" && status=0 || status=$?
	[ $status -le 1 ] || not_ok "$1 at $2: ended with $status"
	while read -r line; do
		case $line in
		ok*) ok "$1 at $2: ${line##*:"$1":}" ;;
		not*) not_ok "$1 at $2: ${line#*:"$1":}" ;;
		esac
	done <"$tmp/tap"
}

# 250 pairs are 500 sockets in one epoll. An rsocket takes four descriptors.
prlimit --pid $$ --nofile=8192 2>/dev/null || :
tmp=$(mktemp -d)
cell "$1 comes up" dev_up "$1"
suite tcp "$EVR_IP4" $many
suite rs "$EVR_IP4" $many
suite tcp ::1 10
[ -z "$EVR_IP6" ] || suite rs "$EVR_IP6" 10
cell "$1 goes away" dev_down
done_testing
