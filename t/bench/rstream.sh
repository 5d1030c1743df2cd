#!/bin/sh
# rstream.sh rxe|siw [ROUNDS]: the stock rstream on ours and on the distribution's librdmacm, by turns: microseconds
# of a transfer. -T b blocks; -T n does not, and asks again and again.
. "$top_srcdir/t/bench/sides.sh"

kind=$1 rounds=${2:-9}

# transfers WAY SIZE COUNT
transfers() {
	row "rstream -T $1 of $2 bytes" us lower -
	side ours rstream_us ours "$2" "$3" -T "$1"
	side "stock librdmacm" rstream_us stock "$2" "$3" -T "$1"
}

dev_up "$kind"
begin_samples
for round in $(seq "$rounds"); do
	for way in b n; do
		transfers $way 64 "$(scaled 2000)"
		transfers $way 65536 "$(scaled 100)"
		transfers $way 1048576 "$(scaled 10)"
	done
	end_row
done
awk -f "$top_srcdir/t/bench/table.awk" "$EVR_OUT/samples"
dev_down
rm -rf "$tmp"
