#!/bin/sh
# Bugs are planted in lib/ev, one at a time, and the random schedules find each of them. A bug is a patch of a few
# lines in t/schedule/planted; its first line says what is wrong with it.
#
#	EVR_PLANTED=NAME    only the bugs whose file name has this in it
. "${top_srcdir:-.}/t/lint/lint.sh"
cd "$top_srcdir" || exit 99
have patch || { echo "Bail out! patch is not installed"; exit 99; }

# Memory that is freed is overwritten, so that whoever still uses it is found in every run.
export MALLOC_PERTURB_=165

most=50000 # schedules; none of the bugs takes nearly as many
slowest=0  # how many the last to be found took
flags="$(make_var DEFS) -I$top_builddir $(make_var EVR_INCLUDES) -I$top_srcdir/lib $(make_var EVR_CFLAGS) -w"
flags="$flags $(make_var EVR_SAN_FLAGS)"
flags="$(expand "$flags") $(make_var VERBS_CFLAGS) $(make_var LIBEVENT_CFLAGS) $(make_var CPPFLAGS) $(make_var CFLAGS)"
libs="libevr_ev.la libevr_cm.la libevr_fake.la $(make_var LIBEVENT_LIBS) -lpthread"
printed=$scratch/printed

# build SOURCE PROGRAM: the program of the schedules, with this file in the place of the one that it
# was made from: what the linker has seen it does not take from an archive.
build() {
	# shellcheck disable=SC2086
	$cc $flags -c -o "$2.o" "$1" && (
		cd "$top_builddir" &&
			./libtool --silent --tag=CC --mode=link $cc $flags -o "$2" \
				"$2.o" t/schedule/schedule_t-*.o $libs
	)
}

planted_in() { sed -n 's|^--- a/||p' "$1"; }

# plant PATCH FOLDER: changes a copy of the file. Prints the file's name.
plant() {
	file=$(planted_in "$1")
	mkdir -p "$2/$(dirname "$file")" && cp "$file" "$2/$file" && chmod u+w "$2/$file" || return
	patch -s -p1 -d "$2" -i "$top_srcdir/$1" >"$printed" 2>&1 || return
	echo "$file"
}

# run PROGRAM ARGUMENT...: 0 when all is well with every schedule.
run() {
	timeout 300 "$@" >"$printed" 2>&1
}

# find_bug PROGRAM: leaves the seed in $seed, and what was found in $said; says what is wrong with that.
find_bug() {
	if run "$1" --count $most; then
		echo "$most schedules find nothing: t/schedule has to look closer"
		return
	fi
	seed=$(sed -n 's/^# seed \([0-9]*\);.*/\1/p' "$printed")
	said=$(sed -n 's/^not ok 1 - //p; s/^SUMMARY: //p; /^fake: /p' "$printed" | head -n 1)
	if [ -z "$seed" ]; then
		echo "it fails, and does not say where:"
		tail -n 20 "$printed"
	elif run "$1" --seed "$seed"; then
		echo "$said, but not when seed $seed is run alone"
	fi
}

anew() {
	echo "$2; plant the bug in $(planted_in "$1") anew, and store its diff -u as $1:"
	head -n 20 "$printed"
}

# try PATCH: what is wrong with it, or with the schedules.
try() {
	if ! source=$(plant "$1" "$scratch/tree"); then
		anew "$1" "it does not apply any more"
	elif ! build "$scratch/tree/$source" "$scratch/schedule" >"$printed" 2>&1; then
		anew "$1" "it does not compile any more"
	else
		find_bug "$scratch/schedule"
	fi
}

# All begin with seed 1, so that the seed is the number of schedules as well.
for bug in t/schedule/planted/*"${EVR_PLANTED:-}"*.patch; do
	seed=0
	said=
	try "$bug" >"$findings"
	verdict "$(basename "$bug" .patch): $(head -n 1 "$bug")"
	[ -z "$said" ] || echo "# after $seed schedules, by --seed $seed: $said"
	[ "${seed:-0}" -le "$slowest" ] || slowest=$seed
	rm -rf "$scratch/tree"
done

# The same program, made in the same way, of the file as it is.
if ! build lib/ev/queue/qp_send.c "$scratch/sound" >"$findings" 2>&1; then
	echo "the program cannot be built" >>"$findings"
elif ! run "$scratch/sound" --count "$slowest"; then
	cat "$printed" >>"$findings"
fi
verdict "without a bug nothing is found in $slowest schedules"

done_testing
