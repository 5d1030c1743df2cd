#!/bin/sh
# runs.sh rxe|siw [RUNS]: does the window of 64 ever stall? The messages of 64 bytes a second in 20 runs, by
# events and polling, and in as many of ib_send_bw between them, which meet the same weather; in $EVR_OUT/runs:
# the median, the slowest and the fastest, what the slowest is of the median, and each run.
# needs: two-processors
. "$top_srcdir/t/bench/sides.sh"

kind=$1 runs=${2:-20}
n=$(scaled 20000)

# each_run OURS THEIRS: the commands by turns; a number of each to $tmp/ours and $tmp/theirs.
each_run() {
	for _ in $(seq "$runs"); do
		$1 >>"$tmp/ours"
		$2 >>"$tmp/theirs"
	done
}

ours() { perf messages_per_s -t send -S 64 -C "$n" "$@"; }
ours_polling() { ours -e 1000; }
theirs() { perftest rate ib_send_bw 64 "$n" "$@"; }
theirs_by_events() { theirs -e; }

# spread NAME FILE: of the numbers there, which goes.
spread() {
	sort -n "$2" | awk -v name="$1" -v all="$(tr '\n' ' ' <"$2")" '
		{ rate[NR] = $1 }
		END {
			if (!NR)
				exit
			median = (rate[int((NR + 1) / 2)] + rate[int(NR / 2) + 1]) / 2
			printf "%s\t%d\t%.0f\t%.0f\t%.0f\t%.2f\t%s\n", name, NR, median, rate[1],
				rate[NR], rate[1] / median, all
		}'
	rm -f "$2"
}

dev_up "$kind"
{
	printf 'messages/s\truns\tmedian\tslowest\tfastest\tslowest/median\teach\n'
	each_run ours theirs_by_events
	spread "by events, evrdma-perf" "$tmp/ours"
	spread "by events, ib_send_bw -e" "$tmp/theirs"
	each_run ours_polling theirs
	spread "polling, evrdma-perf" "$tmp/ours"
	spread "polling, ib_send_bw" "$tmp/theirs"
} | tee "$EVR_OUT/runs"
dev_down
rm -rf "$tmp"
