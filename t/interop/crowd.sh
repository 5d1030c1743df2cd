#!/bin/sh
# crowd.sh rxe|siw: as many connections on one loop as the device has room for, with an end in a
# process each: all established, data passed, all closed.
# time: virtual
. "$top_srcdir/t/interop/ends.sh"

case $1 in rxe) conns=500 ;; *) conns=32 ;; esac

crowd() {
	(end_run ours@ours 100 ucmatose -b "$1" -c $conns -C 4 -T 60) &
	server=$!
	wait_listener 7471
	(end_run ours@ours 100 ucmatose -s "$1" -c $conns -C 4 -T 60) && status=0 || status=$?
	wait $server && [ $status -eq 0 ]
}

nothing_is_left() { [ -z "$(rdma resource show qp | grep "comm.*ucmatose")" ]; }

cell "$1 comes up" dev_up "$1"
cell "$1: $conns connections over IPv4 pass data and close" crowd "$EVR_IP4"
cell "$1: $conns connections over IPv6 pass data and close" crowd "$EVR_IP6"
cell "$1: no QP of theirs is left" nothing_is_left
cell "$1 goes away" dev_down
done_testing
