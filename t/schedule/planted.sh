#!/bin/sh
# Bugs are planted in the library, one at a time, and each of them is found: by the random schedules, or
# by the test that its patch names. A bug is a patch of a few lines in t/schedule/planted; its first line
# says what is wrong with it, and its second may be
#
#	found by: PROGRAM CASE TEST [VARIABLE=VALUE]...
#
# that is, a program of Check's, of whose case this test fails, with this in the environment.
#
#	EVR_PLANTED=NAME       only the bugs whose file name has this in it
#	EVR_PLANTED_EVERY=N    only each Nth of them
. "${top_srcdir:-.}/t/lint/lint.sh"
cd "$top_srcdir" || exit 99
have patch || { echo "Bail out! patch is not installed"; exit 99; }

# Memory that is freed is overwritten, so that whoever still uses it is found in every run.
export MALLOC_PERTURB_=165

schedules=t/schedule/schedule.t
most=50000 # schedules; none of the bugs takes nearly as many
slowest=0  # how many the last to be found took
flags="$(make_var DEFS) -I$top_builddir $(make_var EVR_INCLUDES) -I$top_srcdir/lib $(make_var EVR_CFLAGS) -w"
flags="$flags $(make_var EVR_SAN_FLAGS)"
flags="$(expand "$flags") $(make_var VERBS_CFLAGS) $(make_var LIBEVENT_CFLAGS) $(make_var CPPFLAGS) $(make_var CFLAGS)"
printed=$scratch/printed
object=$scratch/planted.o
built=$scratch/program
finders=$scratch/finders # who has found something: the file that it was in, program, case, environment

# --- programs ---

# values NAME...: make variables, with what they are made of put in.
values() {
	printf 'include Makefile\nvalues:;@echo%s\n' "$(printf ' $(%s)' "$@")" |
		(cd "$top_builddir" && MAKEFLAGS='' "${MAKE:-make}" -s -f - values)
}

# linker PROGRAM: the command that links that test program as $built, with $object in the place of what is
# made of the same source: what the linker has seen it does not take from an archive.
linker() {
	name=$(echo "$1" | tr ./ __)
	[ -s "$scratch/$name" ] || (
		cd "$top_builddir" || exit
		parts=$(values "${name}_LDFLAGS" "${name}_OBJECTS" "${name}_LDADD" LIBS)
		# shellcheck disable=SC2086
		./libtool --dry-run --tag=CC --mode=link $cc $flags -o "$built" "$object" $parts -lpthread |
			sed -n 's/^libtool: link: //p' | tail -n 1
	) >"$scratch/$name"
	cat "$scratch/$name"
}

# build PROGRAM SOURCE: in haste, as it runs but once.
build() {
	# shellcheck disable=SC2086
	$cc $flags -O0 -g0 -c -o "$object" "$2" && (cd "$top_builddir" && eval "$(linker "$1") -Wl,-S")
}

# run PROGRAM ARGUMENT...: 0 when all is well with every schedule.
run() {
	timeout 300 "$@" >"$printed" 2>&1
}

# run_case CASE [VARIABLE=VALUE]...
run_case() {
	case=$1
	shift
	run env CK_RUN_CASE="$case" CK_TAP_LOG_FILE_NAME=- CK_VERBOSITY=silent "$@" "$built"
}

# --- bugs ---

planted_in() { sed -n 's|^--- a/||p' "$1"; }

# finder PATCH: PROGRAM CASE TEST [VARIABLE=VALUE]..., or nothing: the schedules.
finder() { sed -n '2s/^found by: //p' "$1"; }

# plant PATCH: changes a copy of the file.
plant() {
	mkdir -p "$scratch/tree/$(dirname "$(planted_in "$1")")" &&
		cat "$(planted_in "$1")" >"$scratch/tree/$(planted_in "$1")" &&
		patch -s -p1 -d "$scratch/tree" -i "$top_srcdir/$1" >"$printed" 2>&1
}

# by_schedules: leaves the seed in $seed, and what was found in $said; says what is wrong with that.
by_schedules() {
	if run "$built" --count $most; then
		echo "$most schedules find nothing: t/schedule has to look closer"
		return
	fi
	seed=$(sed -n 's/^# seed \([0-9]*\);.*/\1/p' "$printed")
	said=$(sed -n 's/^not ok 1 - //p; s/^SUMMARY: //p; /^fake: /p' "$printed" | head -n 1)
	if [ -z "$seed" ]; then
		echo "it fails, and does not say where:"
		tail -n 20 "$printed"
	elif run "$built" --seed "$seed"; then
		echo "$said, but not when seed $seed is run alone"
	fi
	said="after $seed schedules, by --seed $seed: $said"
}

# by_test CASE TEST [VARIABLE=VALUE]...
by_test() {
	case=$1 test=$2
	shift 2
	run_case "$case" "$@"
	said=$(sed -n "s/^not ok [0-9]* - .*:\($test: .*\)/\1/p" "$printed" | head -n 1)
	[ -z "$said" ] || return
	echo "$test has to look closer:"
	grep -v '^ok' "$printed" | tail -n 20
}

anew() {
	echo "$2; plant the bug in $(planted_in "$1") anew, and store its diff -u as $1:"
	head -n 20 "$printed"
}

# try PATCH [PROGRAM CASE TEST [VARIABLE=VALUE]...]: what is wrong with it, or with who has to find it.
try() {
	bug=$1 program=${2:-$schedules}
	[ $# = 1 ] || shift
	shift
	if ! plant "$bug"; then
		anew "$bug" "it does not apply any more"
	elif ! build "$program" "$scratch/tree/$(planted_in "$bug")" >"$printed" 2>&1; then
		anew "$bug" "it does not compile any more"
	elif [ $# = 0 ]; then
		by_schedules
	else
		by_test "$@"
	fi
}

for bug in t/schedule/planted/*.patch; do
	plant "$bug" || anew "$bug" "it does not apply any more"
done >"$findings"
verdict "each of them applies, whether it is tried this time or not"

# All schedules begin with seed 1, so that the seed is the number of schedules as well.
every=${EVR_PLANTED_EVERY:-1}
for bug in $(printf '%s\n' t/schedule/planted/*"${EVR_PLANTED:-}"*.patch | sed -n "1~${every}p"); do
	seed=0
	said=
	# shellcheck disable=SC2046
	try "$bug" $(finder "$bug") >"$findings"
	verdict "$(basename "$bug" .patch): $(head -n 1 "$bug")"
	[ -z "$said" ] || echo "# $said"
	[ "${seed:-0}" -le "$slowest" ] || slowest=$seed
	echo "$(planted_in "$bug") $(finder "$bug")" >>"$finders"
done

# --- the same programs, made in the same way, of the files as they are ---

if ! build $schedules lib/ev/queue/qp_send.c >"$printed" 2>&1 || ! run "$built" --count "$slowest"; then
	cat "$printed" >"$findings"
fi
verdict "without a bug nothing is found in $slowest schedules"

# sound SOURCE PROGRAM [CASE [VARIABLE=VALUE]...]: of those in a row that have the same program, one is built.
sound() {
	[ "$2" = "$program" ] || build "$2" "$1" >"$printed" 2>&1 || return
	program=$2
	shift 2
	run_case "$@"
}

program=
awk 'NF > 1 { key = $2 " " $3; for (i = 5; i <= NF; i++) key = key " " $i; if (!seen[key]++) print $1, key }' \
	"$finders" | sort -k2 >"$scratch/cases"
while read -r case; do
	# shellcheck disable=SC2086
	sound $case </dev/null || { echo "$case:" && grep -v '^ok' "$printed"; } >>"$findings"
done <"$scratch/cases"
verdict "nor by the tests that have found one"

done_testing
