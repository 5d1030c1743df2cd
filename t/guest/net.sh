#!/bin/sh
# The network of two guests tests itself: rxe over it, the stock tools from one to the other.
. "$top_srcdir/t/guest/lib.sh"

cell "rxe comes up on eth0" dev_up_eth0
case $EVR_ROLE in
a)
	timeout 30 ucmatose -b "$EVR_IP4" >/dev/null 2>&1 &
	pid=$!
	cell "a listener is seen" wait_listener 7471
	cell "the other guest comes to the barrier" barrier listening
	cell "the server ends well" wait $pid
	;;
b)
	cell "the other guest comes to the barrier" barrier listening
	cell "stock ucmatose passes data between the guests" timeout 20 ucmatose -s "$EVR_PEER_IP4"
	;;
esac
done_testing
