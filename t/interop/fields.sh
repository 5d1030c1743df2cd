#!/bin/sh
# What programs read without a call is the same on our library and on the distribution's.
# Argument: rxe or siw.
# time: instant
. "$top_srcdir/t/guest/lib.sh"

kind=$1
port=7800
tmp=$(mktemp -d)
stock=$(dirname "$(ldconfig -p | sed -n 's/.*librdmacm\.so\.1 .*=> //p' | head -n 1)")

# siw has no datagrams, and its kernel side wants to know the queue pair before it connects.
scenarios='connection bound chosen rejection refusal shared_queue migration synchronous endpoints'
[ "$kind" = siw ] || scenarios="$scenarios external datagrams datagram_refusal"

# on ours|stock ADDRESS SCENARIO...: the program is linked with our library, but a folder that comes
# first decides.
on() {
	case $1 in ours) libs=$top_builddir/.libs ;; *) libs=$stock ;; esac
	core=$1
	shift
	ip=$1
	shift
	LD_LIBRARY_PATH=$libs "$prog" "$ip" "$port" "$@" >"$tmp/$core"
	# TCP keeps a pair of ports for a while; rxe's flow labels come of them, and are compared.
	[ "$kind" = rxe ] || port=$((port + 200))
	tail -n 3 "$tmp/$core"
	grep -q '^@end$' "$tmp/$core"
}

# What a scenario printed.
part() { awk -v name="@$2" '/^@/ { on = $0 == name } on' "$tmp/$1"; }

same() {
	part stock "$1" >"$tmp/expected"
	part ours "$1" >"$tmp/got"
	[ -s "$tmp/expected" ] && diff "$tmp/expected" "$tmp/got"
}

# run ADDRESS NAME SCENARIO...
run() {
	ip=$1 name=$2
	shift 2
	cell "$kind: $name: all scenarios end on the stock library" on stock "$ip" "$@"
	cell "$kind: $name: all scenarios end on ours" on ours "$ip" "$@"
	for s; do
		cell "$kind: $name: $s: the same fields" same "$s"
	done
}

prog=$top_builddir/t/interop/.libs/fields
[ -x "$prog" ] || prog=$top_builddir/t/interop/fields
cell "$kind comes up" dev_up "$kind"
# shellcheck disable=SC2086 # words
run "$EVR_IP6" IPv6 $scenarios
# IPv6 groups are not to be had.
[ "$kind" = siw ] || scenarios="$scenarios groups"
# shellcheck disable=SC2086 # words
run "$EVR_IP4" IPv4 $scenarios
cell "$kind goes away" dev_down
done_testing
