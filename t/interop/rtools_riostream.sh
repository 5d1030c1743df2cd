#!/bin/sh
# rtools_riostream.sh rxe|siw [CLIENT SERVER]...: the matrix of riostream pairs on one device.
# Both wait for what is written without sleeping, so that time has to pass.
. "$top_srcdir/t/interop/rtools.sh"

kind=$1
shift
# The control first. The last is all ours.
[ $# -gt 0 ] || set -- stock@stock stock@stock ours@stock ours@stock \
	ours@stock stock@stock stock@stock ours@stock ours@ours ours@ours

# Of 3000 many: there is no room for one now and then.
sizes="1 100 1000 3000 65536 1048576 6291456"
[ -z "${EVR_BRIEF:-}" ] || sizes="100 3000 1048576"

matrix() {
	for size in $sizes; do
		count=3 tests="a b n"
		[ "$size" != 3000 ] || count=400 tests=n
		for test in $tests; do
			pair "$kind: $1 client, $2 server, riostream -T $test -T v -S $size" \
				"$1" "$2" riostream "$EVR_IP4" -T v -T "$test" -S "$size" -C $count -I 4
		done
	done
	test=n
	pair "$kind: $1 client, $2 server, riostream over IPv6" \
		"$1" "$2" riostream "$EVR_IP6" -T v -S 1000 -C 5
	pair "$kind: $1 client, $2 server, riostream without -T v" \
		"$1" "$2" riostream "$EVR_IP4" -S 1000 -C 5 -I 300
}

# Its other options, the control first.
options() {
	for ends in stock@stock:stock@stock ours@ours:ours@ours ours@ours:stock@stock stock@stock:ours@ours; do
		for option in '-B 4096' '-B 1048576' '-i 0' '-i 256' '-f ip'; do
			# shellcheck disable=SC2086 # an option with its value
			pair "$kind: ${ends%:*} client, ${ends#*:} server, riostream $option" "${ends%:*}" \
				"${ends#*:}" riostream "$EVR_IP4" -T v -S 10000 -C 5 -I 3 $option
		done
		pair "$kind: ${ends%:*} client, ${ends#*:} server, riostream -f ipv6" "${ends%:*}" \
			"${ends#*:}" riostream "$EVR_IP6" -T v -S 10000 -C 5 -f ipv6
	done
}

# --- what is ours alone ------------------------------------------------------------

own() {
	cell "$kind: riostream, another -S is told" differ riostream "-S 100 -C 5" "-S 200 -C 5" \
		"the client runs with -S 200 -C 5 -I 1"
	cell "$kind: riostream, another -C is told" differ riostream "-C 5" "-C 6" "-C 6"
	cell "$kind: riostream, another -I is told" differ riostream "-I 5 -T b" "-I 6 -T b" "-I 6"
	cell "$kind: riostream, a series against one run is told" differ riostream "" "-S 100" "-S 100"
	cell "$kind: riostream, -T v on the server alone is told" \
		differ riostream "-C 5 -T a -T v" "-C 5 -T a" "-T v"
	cell "$kind: riostream, -T v on the client alone is told" \
		differ riostream "-C 5" "-C 5 -T v" "-T v"
	cell "$kind: riostream, a smaller -S is told with -T v, too" \
		differ riostream "-C 5 -S 80 -T v" "-C 5 -S 64 -T v" "the client runs with -S 64"
	cell "$kind: riostream, a larger -S is told with -T v, too" \
		differ riostream "-C 5 -S 64 -T v" "-C 5 -S 80 -T v" "the client runs with -S 80"
	cell "$kind: riostream, a server that stands still is told" still riostream
}

cell "$kind comes up" dev_up "$kind"
while [ $# -gt 0 ]; do
	matrix "$1" "$2"
	shift 2
done
test=n
options
own
cell "$kind goes away" dev_down
rm -rf "$tmp"
done_testing
