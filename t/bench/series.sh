#!/bin/sh
# series.sh rxe|siw: what the plots show, in $EVR_OUT/*.data, gnuplot's columns: over the size of a
# message half a round trip and the bytes a second, over the number of connections what one costs, in
# time and in memory; ours, and the stock tools'. A run that failed is a "?".
# needs: two-processors
. "$top_srcdir/t/bench/sides.sh"

sizes="1 16 64 256 1024 4096 16384 65536 262144 1048576"

ping_us() { perf_us "$@" | awk '{ printf "%.2f\n", $1 / 2 }'; }

# perftest_us SIZE COUNT [OPTION]...: half a round trip, its average.
perftest_us() {
	perftest_knows_time || return 0
	next_port
	size=$1 count=$2
	shift 2
	set -- ib_send_lat -R -d "$EVR_DEV" -F -p $port -s "$size" -n "$count" "$@"
	after wait_listener "$@" -- "$@" "$EVR_IP4" | awk -v size="$size" '$1 == size && NF >= 6 && $6 > 0 { print $6 }'
}

# Two that poll want two processors.
polling() { [ "$(nproc)" -eq 1 ] || "$@"; }

# begin_line FILE X, value COMMAND..., end_line: a line of a file.
begin_line() {
	data=$EVR_OUT/$1.data
	printf '%s' "$2" >>"$data"
}
value() {
	found=$("$@")
	printf ' %s' "${found:-?}" >>"$data"
}
end_line() { echo >>"$data"; }

over_sizes() {
	for size in $sizes; do
		n=$(scaled $((size < 65536 ? 1000 : 100)))
		begin_line latency "$size"
		value ping_us "$n" -S "$size"
		value perftest_us "$size" "$n" -e
		value polling ping_us "$n" -S "$size" -e 1000
		value polling perftest_us "$size" "$n"
		end_line
		n=$(scaled $((size < 65536 ? 3000 : 100000000 / size)))
		begin_line bandwidth "$size"
		value perf_mb -t send -S "$size" -C "$n"
		value perftest mb ib_send_bw "$size" "$n"
		value rstream_mb stock "$size" "$n"
		end_line
		echo "size $size of $sizes"
	done
}

over_connections() {
	for n in 1 10 100 300 $(scaled 1000); do
		begin_line connections "$n"
		value perf_connect "$n"
		value cmtime_sum stock@stock "$n"
		end_line
		echo "connections: $n"
	done
}

# Of one more or less nothing can be told.
memory() {
	for n in 100 300 $(scaled 1000) $(scaled 4000); do
		begin_line memory "$n"
		value per_connection perf_peak "$n"
		value per_connection cmtime_peak "$n"
		end_line
		echo "memory of connections: $n"
	done
}

dev_up "$1"
rm -f "$EVR_OUT"/*.data
over_sizes
over_connections
memory
dev_down
rm -rf "$tmp"
