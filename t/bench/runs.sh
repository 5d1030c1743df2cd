#!/bin/sh
# runs.sh rxe|siw [RUNS]: does the window of 64 ever stall? The messages of 64 bytes a second in 20 runs, by
# events and polling, and in as many of ib_send_bw between them, which meet the same weather; in $EVR_OUT/runs:
# how many ended with a number, the median of those, the slowest and the fastest, what the slowest is of the
# median (0 where a run stalled and so has no number), and each run. They begin in turns: whose turn is first
# changes.
# needs: two-processors
. "$top_srcdir/t/bench/sides.sh"

kind=$1 runs=${2:-20}
n=$(scaled 20000)

# run_of NAME: a number, or nothing, as a line of $tmp/NAME.
run_of() {
	case $1 in theirs*) perftest_knows_time || return 0 ;; esac
	printf '%s\n' "$($1)" >>"$tmp/$1"
}

# each_run OURS THEIRS: the commands by turns.
each_run() {
	for round in $(seq "$runs"); do
		[ $((round % 2)) -eq 0 ] || run_of "$1"
		run_of "$2"
		[ $((round % 2)) -eq 1 ] || run_of "$1"
	done
}

ours() { perf messages_per_s -t send -S 64 -C "$n" "$@"; }
ours_polling() { ours -e 1000; }
theirs() { perftest rate ib_send_bw 64 "$n" "$@"; }
theirs_by_events() { theirs -e; }

# spread NAME COMMAND: of its runs.
spread() {
	[ -f "$tmp/$2" ] || return 0
	grep . "$tmp/$2" | sort -n | awk -v name="$1" -v all="$(sed 's/^$/failed/' "$tmp/$2" | tr '\n' ' ')" \
		-v runs="$(wc -l <"$tmp/$2")" '
		{ rate[NR] = $1 }
		END {
			low = int((NR + 1) / 2)
			high = int(NR / 2) + 1
			median = NR ? (rate[low] + rate[high]) / 2 : 0
			least = NR && NR == runs ? rate[1] / median : 0
			printf "%s\t%d of %d\t%.0f\t%.0f\t%.0f\t%.2f\t%s\n", name, NR, runs, median, rate[1],
				rate[NR], least, all
		}'
}

dev_up "$kind"
{
	printf 'messages/s\truns\tmedian\tslowest\tfastest\tslowest/median\teach\n'
	each_run ours theirs_by_events
	spread "by events, evrdma-perf" ours
	spread "by events, ib_send_bw -e" theirs_by_events
	each_run ours_polling theirs
	spread "polling, evrdma-perf" ours_polling
	spread "polling, ib_send_bw" theirs
} | tee "$EVR_OUT/runs"
dev_down
rm -rf "$tmp"
