#!/bin/sh
# multicast.sh: the example of a publisher and a subscriber that counts losses. Only rxe has groups, and
# of those of IPv4.
# shellcheck source=/dev/null
# time: virtual
. "$top_srcdir/t/guest/lib.sh"
multicast=$top_builddir/examples/13-multicast

stops() { kill -INT "$1" && wait "$1"; }
says() { grep -qx "$1" "$heard"; }

fails() {
	"$@" >"$heard" 2>&1 && return 1
	[ "$(wc -l <"$heard")" -eq 1 ]
}

heard=$(mktemp)
cell "rxe comes up" dev_up rxe
cell "it says how it is called" "$multicast" -h
"$multicast" "$EVR_IP4" 239.1.2.3 >"$heard" &
subscriber=$!
cell "a subscriber joins" wait_until 60 says joined
cell "ten are published" "$multicast" "$EVR_IP4" 239.1.2.3 10
cell "all ten are heard" wait_until 60 says '10 heard'
cell "after five that nobody sent ten more are" "$multicast" "$EVR_IP4" 239.1.2.3 10 15
cell "they are heard, too" wait_until 60 says '20 heard'
cell "where the five are missing is told" says '5 lost before 15'
cell "the subscriber ends when it is asked to" stops $subscriber
cell "it has counted them" says '20 heard, 5 lost'
cell "what is no group is refused" fails "$multicast" "$EVR_IP4" 192.0.2.7
cell "rxe goes away" dev_down
rm -f "$heard"
done_testing
