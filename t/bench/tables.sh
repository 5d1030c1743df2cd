#!/bin/sh
# What table.awk makes of samples: medians, the best of the others, and no run that failed is lost.
. "${top_srcdir:-.}/t/lint/lint.sh"

# sample ROW BETTER GOAL WHOSE NUMBER...: as table.sh has them; "" is a run that failed.
sample() {
	row=$1 better=$2 goal=$3 whose=$4
	shift 4
	for number; do
		printf '%s\tus\t%s\t%s\t%s\t%s\n' "$row" "$better" "$goal" "$whose" "$number"
	done >>"$scratch/samples"
}

# gives WHAT LINE: of the samples since the last.
gives() {
	awk -f "$top_srcdir/t/bench/table.awk" "$scratch/samples" | sed 1d | tr '\t' '|' >"$scratch/table"
	echo "$2" | diff - "$scratch/table" >>"$findings"
	verdict "$1"
	rm "$scratch/samples"
}

sample r lower 1.0 ours 3 1 2
sample r lower 1.0 a 4 6 5
sample r lower 1.0 b 8 7 9
gives "the least is the best" 'r|us|2|5|a|0.40|at most 1.0|none|1 to 3; 4 to 6'

sample r higher 1.0 ours 100 20 3
sample r higher 1.0 a 4 6 5
sample r higher 1.0 b 8 7 9
gives "or the most" 'r|us|20|8|b|2.50|at least 1.0|none|3 to 100; 7 to 9'

sample r lower - ours 1 2 4 100
sample r lower - a 8 2
gives "of an even number the mean of the two in the middle" 'r|us|3|5|a|0.60|reported|none|1 to 100; 2 to 8'

sample r lower =0.1 ours 3 '' 1
sample r lower =0.1 a '' ''
sample r lower =0.1 b 8 ''
gives "each run that failed is told, also of a side that always did" \
	'r|us|2|8|b|0.25|ours at most 0.1|ours 1 of 3, a 2 of 2, b 1 of 2|1 to 3; 8 to 8'

sample r lower 1.0 ours '' ''
sample r lower 1.0 a 1
gives "ours that failed have no ratio" 'r|us|-|1|a|-|at most 1.0|ours 2 of 2|-; 1 to 1'

sample r lower 1.0 ours 1
sample r lower 1.0 a ''
gives "nor have the others" 'r|us|1|-|-|-|at most 1.0|a 1 of 1|1 to 1; -'

sample r higher 1.0 ours 100
sample r higher 1.0 a 0
gives "there is no ratio to nothing" 'r|us|100|0|a|-|at least 1.0|none|100 to 100; 0 to 0'

sample r lower 1.0 ours nan -1 usec 2
sample r lower 1.0 a 1e3 2.5e-1
gives "what is no number is none" 'r|us|2|500.125|a|0.00|at most 1.0|ours 3 of 4|2 to 2; 0.25 to 1000'

sample one lower - ours 1
sample two lower - ours 2
sample one lower - a 1
sample two lower - a 2
gives "rows come as they began" 'one|us|1|1|a|1.00|reported|none|1 to 1; 1 to 1
two|us|2|2|a|1.00|reported|none|2 to 2; 2 to 2'
done_testing
