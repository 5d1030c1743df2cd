#!/bin/sh
# rstream.sh rxe|siw [ROUNDS]: the stock rstream on the distribution's librdmacm and on ours, by turns:
# microseconds of a transfer, and how many times as long ours takes.
. "$top_srcdir/t/interop/ends.sh"

kind=$1 rounds=${2:-9} port=11000
tmp=$(mktemp -d)

# transfer CORE WAY SIZE COUNT: the microseconds of one, as rstream says.
transfer() {
	core=$1 port=$((port + 1))
	shift
	set -- rstream -p $port -T "$1" -S "$2" -C "$3"
	(end_run "stock@$core" 60 "$@" -b "$EVR_IP4") >/dev/null 2>&1 &
	server=$!
	wait_listener $port
	(end_run "stock@$core" 60 "$@" -s "$EVR_IP4") 2>&1 | awk '$1 == "custom" { print $NF }'
	wait $server
}

# measure WAY SIZE COUNT
measure() {
	round=0
	while [ $round -lt "$rounds" ]; do
		for core in stock ours; do
			echo "$1 $2 $core $(transfer $core "$@")" >>"$tmp/all"
		done
		round=$((round + 1))
	done
}

# The fields: WAY SIZE CORE MICROSECONDS, sorted.
summary='
{ key = $1 " " $2 " " $3; list[key, ++num[key]] = $4; if (!(($1, $2) in seen)) { seen[$1, $2]; row[++rows] = $1 " " $2 } }
function median(key) { return list[key, int((num[key] + 1) / 2)] }
function spread(key) { return list[key, 1] " to " list[key, num[key]] }
END {
	printf "%-4s %8s %10s %10s %6s   %s\n", "-T", "bytes", "stock us", "ours us", "ratio",
		"stock, ours: shortest to longest"
	for (r = 1; r <= rows; r++) {
		split(row[r], at)
		stock = row[r] " stock"
		ours = row[r] " ours"
		printf "%-4s %8d %10.2f %10.2f %6.2f   %s, %s\n", at[1], at[2], median(stock),
			median(ours), median(stock) ? median(ours) / median(stock) : 0,
			spread(stock), spread(ours)
	}
}'

dev_up "$kind"
for way in b n; do
	measure $way 64 2000
	measure $way 65536 100
	measure $way 1048576 10
done
sort -k1,1 -k2,2n -k3,3 -k4,4n "$tmp/all" | awk "$summary"
dev_down
rm -rf "$tmp"
