#!/bin/sh
# short.sh rxe|siw: the table, the series and a run with few messages: that each side still runs and says a number,
# and that a table and a page come of them; and that of a side that fails there is none. No number is judged.
. "$top_srcdir/t/bench/sides.sh"

kind=$1 out=$tmp
mkdir "$out/why"
export BENCH_SCALE=1

measured() { (EVR_OUT=$out/$1 && export EVR_OUT && mkdir "$EVR_OUT" && "$top_srcdir/t/bench/$1.sh" "$kind" 1); }

has_number() { awk -F '\t' -v row="$1" -v side="$2" '$1 == row && $5 == side { n = $6 } END { exit !(n > 0) }' "$out/table/samples"; }

each_side() {
	while IFS="$(printf '\t')" read -r row _ _ _ side _; do
		cell "$kind: $row, $side" has_number "$row" "$side"
	done <"$out/table/samples"
}

# Six numbers for each name; of perftest's there may be none, as in the table.
has_parts() {
	cat "$out/why/why"
	[ "$(awk -F '\t' 'NF == 7' "$out/why/why" | wc -l)" -ge 7 ] &&
		! awk -F '\t' 'NR > 1 && $1 !~ /ib_send_bw/ && !/memory/' "$out/why/why" |
		grep -Ev "$(printf '^[^\t]*(\t-?[0-9.]+){6}$')" &&
		grep -E "$(printf '^memory[^\t]*\t[0-9.]+\t[0-9.]+\tkB')" "$out/why/why"
}

has_runs() {
	measured runs &&
		[ "$(awk -F '\t' '/evrdma-perf/ && $2 == "1 of 1" && $4 > 0' "$out/runs/runs" | wc -l)" -eq 2 ]
}

has_rows() {
	awk -f "$top_srcdir/t/bench/table.awk" "$out/table/samples" >"$out/table.tsv" &&
		[ "$(wc -l <"$out/table.tsv")" -eq $(($(cut -f 1 "$out/table/samples" | sort -u | wc -l) + 1)) ]
}

# numbers NAME COLUMNS FIELDS [FIELDS]: that many columns, and numbers in those; the others where perftest has
# its clock and there are processors to poll on.
numbers() {
	data=$out/series/$1.data fields=$3
	! perftest_knows_time || [ "$(nproc)" -eq 1 ] || fields=$3${4:+,$4}
	cat "$data"
	[ "$(awk -v columns="$2" 'NF == columns' "$data" | wc -l)" -eq "$(wc -l <"$data")" ] &&
		! cut -d ' ' -f "$fields" "$data" | grep -Ev '^[0-9.e+-]+( [0-9.e+-]+)*$'
}

has_series() {
	measured series && numbers latency 5 1,2 3,4,5 && numbers bandwidth 4 1,2,4 3 &&
		numbers connections 3 1-3 && numbers memory 3 1-3
}

# Each side says what it ran, and no path of this machine.
has_commands() {
	cat "$out/table/commands"
	[ "$(wc -l <"$out/table/commands")" -gt 20 ] && ! grep -F "$top_builddir" "$out/table/commands" &&
		[ "$(cut -f 1,2 "$out/table/commands" | sort | uniq -d | wc -l)" -eq 0 ]
}

# Each row has its own, though it is run when the next begins.
has_goals() {
	awk -F '\t' '{ print $1, $4 }' "$out/table/samples" >"$out/goals"
	grep -qx 'rstream of 64 bytes 0.91' "$out/goals" && grep -qx 'rstream of 65536 bytes 0.77' "$out/goals" &&
		[ "$(sort -u "$out/goals" | wc -l)" -eq "$(cut -f 1 "$out/table/samples" | sort -u | wc -l)" ]
}

has_page() {
	"$top_srcdir/t/bench/page" "$out" "$kind" 1 >"$out/index.html" &&
		[ "$(grep -c '^<svg' "$out/index.html")" -eq 4 ] &&
		tail -n 1 "$out/index.html" | grep -q '</html>'
}

# says_nothing COMMAND...
says_nothing() {
	found=$("$@")
	echo "it said '$found'"
	[ -z "$found" ]
}

says_number() { "$@" | grep -E '^[1-9][0-9]*$'; }

client() { after true true -- sh -c 'echo 1'; }
without_server() { after false true -- echo 1; }
failing_client() { after true true -- sh -c 'echo 1; exit 1'; }
only_few() { [ "$1" -gt 20 ] || echo 1; }
failing_sides() {
	cell "$kind: no number where no server came" says_nothing without_server
	cell "$kind: no number of a client that fails" says_nothing failing_client
	cell "$kind: calls of a client that does not" says_number calls_of client
	cell "$kind: and memory" says_number spent_by 6 client
	cell "$kind: no calls of a client that fails" says_nothing calls_of failing_client
	cell "$kind: no memory of a client that fails" says_nothing spent_by 6 failing_client
	cell "$kind: no difference where one of two fails" says_nothing per_message only_few 100
}

dev_up "$kind"
failing_sides
dev_down
cell "$kind: the table's rows are measured" measured table
each_side
cell "$kind: what rows are made of is measured" env BENCH_ROWS="blocks memory" EVR_OUT="$out/why" \
	"$top_srcdir/t/bench/why.sh" "$kind"
cell "$kind: each of them is made of something" has_parts
cell "$kind: the series are measured, and have their numbers" has_series
cell "$kind: runs are measured" has_runs
cell "$kind: a table comes of them" has_rows
cell "$kind: each row has its goal" has_goals
cell "$kind: what the rows are of is told" has_commands
cell "$kind: a page comes of them" has_page
rm -rf "$tmp"
done_testing
