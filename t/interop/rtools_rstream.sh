#!/bin/sh
# rtools_rstream.sh rxe|siw [CLIENT SERVER]...: the matrix of rstream pairs on one device.
# time: virtual
. "$top_srcdir/t/interop/rtools.sh"

kind=$1
shift
# The control first. The last is all ours.
[ $# -gt 0 ] || set -- stock@stock stock@stock ours@stock ours@stock \
	ours@stock stock@stock stock@stock ours@stock ours@ours ours@ours
sizes="1 100 1000 65536 1048576 6291456"

matrix() {
	for size in $sizes; do
		case $size in
		1 | 100 | 1000) how="-C 20 -I 3" ;;
		*) how="-C 2 -I 2" ;;
		esac
		for test in a b n s f r; do
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

cell "$kind comes up" dev_up "$kind"
while [ $# -gt 0 ]; do
	matrix "$1" "$2"
	shift 2
done
cell "$kind goes away" dev_down
rm -rf "$tmp"
done_testing
