#!/bin/sh
# What the library itself takes for one round trip, one message, one write and one connection, in
# instructions, against the budget of the file beside. They are the same in every run and on every
# machine, but not by every compiler: built otherwise than the budget says it is told and not judged.
#
#	EVR_INSTRUCTIONS=N    the N costliest functions of each, too
. "${top_srcdir:-.}/t/lint/lint.sh"
budget=$top_srcdir/t/bench/budget
program=$top_builddir/t/bench/instructions
slack_percent=3

# built: how, as far as it makes other instructions.
built() {
	flags=$(expand "$(make_var CFLAGS) $(make_var CPPFLAGS) $(make_var EVR_SAN_FLAGS)")
	compiler=$($cc --version | sed -n '1s/^[a-z0-9_-]*cc[-0-9.]* //p')
	# shellcheck disable=SC2086 # flags have no blanks in them
	echo "${compiler:-$($cc --version | sed q)} for $($cc -dumpmachine):" $flags
}

# budget_of WHAT: the rest of its line.
budget_of() { sed -n "s/^$1 //p" "$budget"; }

# profile MODE NUM: of a run of so many.
profile() {
	LD_LIBRARY_PATH=$top_builddir/.libs valgrind -q --tool=callgrind \
		--callgrind-out-file="$scratch/$1.$2" "$program" "$1" "$2" >"$scratch/said" 2>&1
}

# count MODE FEW MANY: leaves what one more takes, and what of it in which function.
count() {
	profile "$1" "$2" && profile "$1" "$3" &&
		awk -v more=$(($3 - $2)) -f "$top_srcdir/t/bench/instructions.awk" \
			"$scratch/$1.$2" "$scratch/$1.$3" >"$scratch/$1"
}

# judge MODE TAKES BUDGET: one that is far too large would hide what comes on top.
judge() {
	if [ "$2" -gt "$3" ]; then
		echo "$1 takes $2 instructions, over its budget of $3"
		sed 12q "$scratch/$1"
	elif [ $(($2 * 100)) -lt $(($3 * (100 - slack_percent))) ]; then
		echo "$1 takes $2 instructions: lower its budget of $3 in t/bench/budget to that"
	fi >>"$findings"
}

# costliest MODE: for people.
costliest() {
	[ -z "$EVR_INSTRUCTIONS" ] || grep -v ' total$' "$scratch/$1" | sed "${EVR_INSTRUCTIONS}q" | note
}

# is_counted TAKES: or cannot be: valgrind runs no program with sanitizers.
is_counted() { [ "${1:-0}" -gt 0 ] || [ -n "$(make_var EVR_SAN_FLAGS)" ]; }

# can_count: whether there is anything to count with.
can_count() { have valgrind || [ -n "$(make_var EVR_SAN_FLAGS)" ]; }

# cell MODE FEW MANY
cell() {
	if ! can_count; then
		skip "$1" "there is no valgrind"
		return
	fi
	allowed=$(budget_of "$1") takes=
	! count "$@" || takes=$(sed -n 's/ total$//p' "$scratch/$1")
	costliest "$1"
	if [ "$built" != "$(budget_of built)" ] && is_counted "$takes"; then
		verdict "$1 ${takes:-uncounted} instructions, reported only, built with $built"
		return
	fi
	if [ "${takes:-0}" -gt 0 ] && [ "${allowed:-0}" -gt 0 ]; then
		judge "$1" "$takes" "$allowed"
	else
		{ echo "no count, or no budget" && sed 12q "$scratch/said"; } >>"$findings"
	fi
	verdict "$1 ${takes:-0} of ${allowed:-0} instructions"
}

built=$(built)
cell ping 1024 3072
cell send 1024 3072
cell write 1024 3072
cell connect 64 192
done_testing
