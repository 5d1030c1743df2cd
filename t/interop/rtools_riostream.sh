#!/bin/sh
# rtools_riostream.sh rxe|siw [CLIENT SERVER]...: the matrix of riostream pairs on one device.
# Both wait for what is written without sleeping, so that time has to pass.
. "$top_srcdir/t/interop/rtools.sh"

kind=$1
shift
# The control first. The last is all ours.
[ $# -gt 0 ] || set -- stock@stock stock@stock ours@stock ours@stock \
	ours@stock stock@stock stock@stock ours@stock ours@ours ours@ours

matrix() {
	for size in 1 100 1000 65536 1048576 6291456; do
		for test in a b n; do
			pair "$kind: $1 client, $2 server, riostream -T $test -T v -S $size" \
				"$1" "$2" riostream "$EVR_IP4" -T v -T $test -S $size -C 3 -I 4
		done
	done
	test=n
	pair "$kind: $1 client, $2 server, riostream over IPv6" \
		"$1" "$2" riostream "$EVR_IP6" -T v -S 1000 -C 5
	pair "$kind: $1 client, $2 server, riostream without -T v" \
		"$1" "$2" riostream "$EVR_IP4" -S 1000 -C 5 -I 300
}

cell "$kind comes up" dev_up "$kind"
while [ $# -gt 0 ]; do
	matrix "$1" "$2"
	shift 2
done
cell "$kind goes away" dev_down
rm -rf "$tmp"
done_testing
