#!/bin/sh
# rtools_rstream.sh rxe|siw [CLIENT SERVER]...: the matrix of rstream pairs on one device.
# time: virtual
. "$top_srcdir/t/interop/rtools.sh"

kind=$1
shift
# The control first. The last is all ours.
[ $# -gt 0 ] || set -- stock@stock stock@stock ours@stock ours@stock \
	ours@stock stock@stock stock@stock ours@stock ours@ours ours@ours
# Of 3000 many, where nobody sleeps in a call: the window is full now and then, at any place of a message,
# and before its first byte.
sizes="1 100 1000 3000 65536 1048576 6291456"
[ -z "${EVR_BRIEF:-}" ] || sizes="1 3000 65536"

# The distribution's library posts as many receives as it gives credits, 384, and fills all of them with data: on
# rxe the message that comes on top waits for 655 ms; on siw it ends the connection of a peer that got no processor
# for a while.
[ "$kind" = siw ] && many=400 || many=200

# overruns CLIENT SERVER: such a pair.
overruns() {
	case $kind:$1:$2 in
	siw:*@stock:*@stock) return 0 ;;
	*) return 1 ;;
	esac
}

matrix() {
	for size in $sizes; do
		[ "$size" = 3000 ] && overruns "$1" "$2" && continue
		tests="a b n s f r"
		case $size in
		1 | 100 | 1000) how="-C 20 -I 3" ;;
		3000) how="-C $many -I 3" tests="n r" ;;
		*) how="-C 2 -I 2" ;;
		esac
		for test in $tests; do
			# shellcheck disable=SC2086 # words
			pair "$kind: $1 client, $2 server, rstream -T $test -T v -S $size" \
				"$1" "$2" rstream "$EVR_IP4" -T v -T $test -S $size $how
		done
	done
	test=n
	pair "$kind: $1 client, $2 server, rstream over IPv6" \
		"$1" "$2" rstream "$EVR_IP6" -T v -S 1000 -C 5
	pair "$kind: $1 client, $2 server, rstream without -T v" \
		"$1" "$2" rstream "$EVR_IP4" -S 1000 -C 5 -I 5
}

# --- the stock tool on our library, waiting ---------------------------------------------

# Each pair of the stock tool that has ours beneath it on a side, and ours with it; the control first.
waiting_ends="stock@stock:stock@stock stock@ours:stock@stock stock@stock:stock@ours \
	stock@ours:stock@ours stock@ours:ours@ours ours@ours:stock@ours"

waiting() {
	test=a
	for size in 100 65536; do
		as=is_control
		for ends in $waiting_ends; do
			verdict $as "$kind: ${ends%:*} client, ${ends#*:} server, rstream -T a -S $size as the control" \
				"${ends%:*}" "${ends#*:}" rstream "$EVR_IP4" -T v -T a -S $size -C 3 -I 3
			as=as_control
		done
	done
}

# --- a series --------------------------------------------------------------------------

# All its runs, of which the first message each way goes; the control first.
series_ends="stock@stock:stock@stock ours@ours:ours@ours ours@ours:stock@stock stock@stock:ours@ours"

series_of() {
	lines=$1
	shift
	as=is_control
	for ends in $series_ends; do
		verdict $as "$kind: ${ends%:*} client, ${ends#*:} server, rstream ${*:-without -S} as the control" \
			"${ends%:*}" "${ends#*:}" rstream "$EVR_IP4" "$@"
		as=as_control
	done
}

series() {
	test=n
	export LD_PRELOAD="${sanitizer:+$sanitizer }$top_builddir/t/interop/.libs/few.so"
	series_of 8
	series_of 66 -S all
	unset LD_PRELOAD lines
}

# --- what is ours alone ------------------------------------------------------------

own() {
	cell "$kind: rstream, another -S is told" differ rstream "-S 100 -C 5" "-S 200 -C 5" \
		"the client runs with -S 200 -C 5 -I 1"
	cell "$kind: rstream, another -C is told" differ rstream "-C 5" "-C 6" "-C 6"
	cell "$kind: rstream, another -I is told" differ rstream "-I 5 -T b" "-I 6 -T b" "-I 6"
	cell "$kind: rstream, a series against one run is told" differ rstream "" "-S 100" "-S 100"
	cell "$kind: rstream, -T v on the server alone is told" \
		differ rstream "-C 5 -T a -T v" "-C 5 -T a" "-T v"
	cell "$kind: rstream, -T v on the client alone is told" differ rstream "-C 5" "-C 5 -T v" "-T v"
	cell "$kind: rstream, a smaller -S ends with -T v, too" differ rstream \
		"-C 5 -S 80 -T v -w 1" "-C 5 -S 64 -T v -w 1" "nothing moved for 1 seconds"
	cell "$kind: rstream, a larger -S ends with -T v, too" \
		differ rstream "-C 5 -S 64 -T v" "-C 5 -S 80 -T v" "the client sends more"
	cell "$kind: rstream, a server that stands still is told" still rstream
}

cell "$kind comes up" dev_up "$kind"
while [ $# -gt 0 ]; do
	matrix "$1" "$2"
	shift 2
done
waiting
[ "$kind" = siw ] || series
own
cell "$kind goes away" dev_down
rm -rf "$tmp"
done_testing
