#!/bin/sh
# short.sh rxe|siw: the table, the series and a run with few messages: that each side still runs and says a number,
# and that a table and a page come of them. No number is judged.
. "$top_srcdir/t/bench/sides.sh"

kind=$1 out=$tmp
mkdir "$out/why"
export BENCH_SCALE=1

measured() { (EVR_OUT=$out/$1 && export EVR_OUT && mkdir "$EVR_OUT" && "$top_srcdir/t/bench/$1.sh" "$kind" 1); }

has_number() { awk -F '\t' -v row="$1" -v side="$2" '$1 == row && $5 == side { n = $6 } END { exit !(n > 0) }' "$out/table/samples"; }

# Of perftest where it has no clock; ibv_rc_pingpong is not of it.
knows_no_time() { case $1 in ib_*) ! perftest_knows_time ;; *) false ;; esac; }

each_side() {
	while IFS="$(printf '\t')" read -r row _ _ _ side _; do
		knows_no_time "$side" || cell "$kind: $row, $side" has_number "$row" "$side"
	done <"$out/table/samples"
}

# Of perftest's none may be there, as in the table.
has_parts() {
	! grep -v 'ib_send_bw' "$out/why/why" | grep failed &&
		[ "$(grep -c "$(printf '\t')" "$out/why/why")" -eq 9 ]
}

has_runs() {
	measured runs &&
		[ "$(awk -F '\t' '/evrdma-perf/ && $2 == 1 && $4 > 0' "$out/runs/runs" | wc -l)" -eq 2 ]
}

has_rows() {
	awk -f "$top_srcdir/t/bench/table.awk" "$out/table/samples" >"$out/table.tsv" &&
		[ "$(wc -l <"$out/table.tsv")" -eq $(($(cut -f 1 "$out/table/samples" | sort -u | wc -l) + 1)) ]
}

has_page() {
	"$top_srcdir/t/bench/page" "$out" "$kind" 1 >"$out/index.html" &&
		[ "$(grep -c '^<svg' "$out/index.html")" -eq "$(find "$out/series" -name '*.data' | wc -l)" ] &&
		tail -n 1 "$out/index.html" | grep -q '</html>'
}

cell "$kind: the table's rows are measured" measured table
each_side
cell "$kind: what rows are made of is measured" env BENCH_ROWS="blocks memory" EVR_OUT="$out/why" \
	"$top_srcdir/t/bench/why.sh" "$kind"
cell "$kind: each of them is made of something" has_parts
cell "$kind: the series are measured" measured series
cell "$kind: runs are measured" has_runs
cell "$kind: a table comes of them" has_rows
cell "$kind: a page comes of them" has_page
rm -rf "$tmp"
done_testing
