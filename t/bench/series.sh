#!/bin/sh
# series.sh rxe|siw: what the plots show, in $EVR_OUT/*.data, gnuplot's columns: over the size of a
# message half a round trip and the bytes a second, over the number of connections what one costs, in
# time and in memory; ours, and the stock tools'.
# needs: two-processors
. "$top_srcdir/t/bench/sides.sh"

sizes="1 16 64 256 1024 4096 16384 65536 262144 1048576"

ping_us() { perf mean -t ping "$@" | awk '{ printf "%.2f\n", $1 / 2 }'; }
send_mb() { perf bytes_per_s -t send "$@" | awk '{ printf "%.2f\n", $1 / 1e6 }'; }
stream_mb() { rstream_us "$@" | awk -v size="$2" '{ if ($1) printf "%.2f\n", size / $1 }'; }

# perftest_us SIZE COUNT: half a round trip, its average.
perftest_us() {
	perftest_knows_time || return 0
	next_port
	size=$1
	set -- ib_send_lat -R -d "$EVR_DEV" -F -p $port -s "$size" -n "$2"
	after wait_listener "$@" -- "$@" "$EVR_IP4" | awk -v size="$size" '$1 == size && NF >= 6 && $6 > 0 { print $6 }'
}

over_sizes() {
	for size in $sizes; do
		n=$(scaled $((size < 65536 ? 1000 : 100)))
		echo "$size $(ping_us -S "$size" -C "$n") $(perftest_us "$size" "$n")" >>"$EVR_OUT/latency.data"
		n=$(scaled $((size < 65536 ? 3000 : 100000000 / size)))
		echo "$size $(send_mb -S "$size" -C "$n") $(perftest mb ib_send_bw "$size" "$n")" \
			"$(stream_mb stock "$size" "$n")" >>"$EVR_OUT/bandwidth.data"
		echo "size $size of $sizes"
	done
}

over_connections() {
	for n in 1 10 100 300 $(scaled 1000); do
		echo "$n $(perf_connect "$n") $(cmtime_sum stock@stock "$n")" >>"$EVR_OUT/connections.data"
		echo "connections: $n"
	done
}

# Of one more or less nothing can be told.
memory() {
	for n in 100 300 $(scaled 1000) $(scaled 4000); do
		echo "$n $(per_connection perf_peak "$n") $(per_connection cmtime_peak "$n")" >>"$EVR_OUT/memory.data"
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
