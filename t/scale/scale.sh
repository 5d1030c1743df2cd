#!/bin/sh
# scale.sh rxe|siw [CONNECTIONS...]: thousands of connections on one loop of a device, both ends of each;
# on siw 32, and how many its library has room for, see evrdma(7).
# time: instant
. "$top_srcdir/t/guest/lib.sh"
kind=$1
shift
[ $# -gt 0 ] || case $kind in
siw) set -- limit large 32 limit ;;
*) set -- 500 2000 4000 ;;
esac

# calls CONNECTIONS: of the kernel in the whole life of a program that has so many, in hundredths of
# a connection.
calls() {
	strace -f -c -U calls,name -o "$tmp/calls" "$top_builddir/t/scale/device" "$EVR_IP4" "$1" >&2
	awk -v num="$1" '$2 == "total" { print int($1 * 100 / num) }' "$tmp/calls"
}

some=500 most=4000
[ -z "${EVR_BRIEF:-}" ] || some=200 most=1600

# Of many connections each takes no more calls than of few, a fifth for what is rounded up.
calls_are_flat() {
	few=$(calls $some) many=$(calls $most)
	echo "hundredths of a call of the kernel for each: $few of $some, $many of $most"
	[ "$few" -gt 0 ] && [ "$many" -gt 0 ] && [ $((many * 5)) -le $((few * 6)) ]
}

# crowd ARGUMENT...: each of the program's cells by name, and its numbers.
crowd() {
	"$top_builddir/t/scale/device" "$EVR_IP4" "$@" >"$tmp/cells"
	status=$?
	while read -r line; do
		case $line in
		ok*) ok "${line#ok - }" ;;
		not*) not_ok "${line#not ok - }" ;;
		'#'*) echo "$line" ;;
		esac
	done <"$tmp/cells"
	cell "$kind: the program came to its end" [ $status -eq 0 ]
}

dev_up "$kind"
tmp=$(mktemp -d)
crowd "$@"
[ "$kind" = siw ] || cell "$kind: calls of the kernel of each are flat" calls_are_flat
dev_down
rm -rf "$tmp"
done_testing
