#!/bin/sh
# The tests: installs what is missing, builds, and runs them on this machine and on a real kernel.
# Ends with one line, `N passed, N failed, N skipped`, and with 0 only when nothing failed, nothing was
# skipped, and there were at least as many cells as t/cells records.
#
#	t/check.sh               the short one: normal and with sanitizers, and a guest with rxe and siw
#	t/check.sh all           every test, the gate: of what is drawn, or alike, as much as finds a mistake
#	t/check.sh STAGE...      some of: guest-short guest sanitizers libevent threads normal valgrind system
#	                         dist packages guest-sanitizers
#	t/check.sh deep [STAGE]...  all, or some, at full length: more schedules, devices, sizes and rounds
#
# The first run installs Debian packages and builds a kernel for the guests, a few minutes beside the
# builds; `all` fetches the source of libevent for its tests, too. Build trees and logs stay in build-check/,
# and that source, the guests' kernels and what ccache keeps in the user's cache, so that a second run is quick.
set -eu
cd "$(dirname "$0")/.."
top=$PWD
work=$top/build-check
short='guest-short sanitizers-short normal-short'
# What does one thing after the other goes beside others, what keeps every processor busy is last.
all='guest-sanitizers sanitizers guest dist libevent threads packages valgrind system normal'
deep='' brief_guest=yes
case ${1:-short} in
short) which=short stages=$short ;;
all) which=all stages=$all ;;
deep)
	[ $# -gt 1 ] && which='' || which=deep
	shift
	deep=deep brief_guest='' stages=${*:-$all}
	;;
*) which='' stages=$* ;;
esac
passed=0 failed=0 skipped=0 built='' guest_pid='' kernels_pid='' beside_pid=''
jobs=$(($(nproc) * 2)) # for tests, which wait as well as work
unset MAKEFLAGS MFLAGS MAKELEVEL top_srcdir top_builddir

# What was compiled once, by a check of any checkout, is taken from the user's cache.
PATH=/usr/lib/ccache:$PATH
CCACHE_DIR=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/evrdma/ccache CCACHE_BASEDIR=$top CCACHE_NOHASHDIR=yes
export PATH CCACHE_DIR CCACHE_BASEDIR CCACHE_NOHASHDIR

# Debian's is dash: configure and libtool, and so a build, take a quarter less of the processors.
export CONFIG_SHELL=/bin/sh

say() { echo "check: $*"; }

# count PASSED FAILED SKIPPED
count() {
	passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# failures TREE <LOG: what failed or was skipped, with the last that it said; now, and once more at
# the end.
failures() {
	awk -v tree="$1" '
		function told() { for (i = n > 12 ? n - 11 : 1; i <= n; i++) print said[i]; n = 0 }
		hit && /^#/ { said[++n] = $0; next }
		{ told(); hit = /^(FAIL|ERROR|XPASS|SKIP): |^not ok|^ok.* # SKIP/ }
		hit { print tree ": " $0 }
		END { told() }' | tee -a "$work/log/failures"
}

# Seconds of processor time of all that has ended, in $worked. They are the same on a busy machine.
work_so_far() {
	times >"$work/log/times" # no pipe: a subshell has times of its own
	worked=$(awk 'NR == 2 { gsub(/[ms]/, " "); print int($1 * 60 + $2 + $3 * 60 + $4) }' "$work/log/times")
}

begin_step() {
	work_so_far
	since=$(date +%s) worked_before=$worked
}

# What it took, in $took.
end_step() {
	work_so_far
	took="$(($(date +%s) - since)) s, processors $((worked - worked_before)) s"
}

# log_of NAME: where a step's output goes.
log_of() { echo "$work/log/$(echo "$1" | tr -d : | tr ' /' '__').log"; }

# judge NAME LOG STATUS TOOK: one cell.
judge() {
	name=$1 log=$2 status=$3 took=$4
	if [ "$status" -eq 0 ]; then
		count 1 0 0
		say "ok - $name ($took)"
	else
		count 0 1 0
		echo "$name" >>"$work/log/failures"
		say "not ok - $name ($took), the end of $log:"
		grep -v '^PASS: ' "$log" | tail -n 60
		return 1
	fi
}

# step NAME COMMAND...: one cell; the output goes to a log, shown when it fails.
step() {
	name=$1 log=$(log_of "$1")
	shift
	begin_step
	"$@" >"$log" 2>&1 </dev/null && status=0 || status=$?
	end_step
	judge "$name" "$log" "$status" "$took"
}

# grouped COMMAND...: as a process group, by which finish can end all of it, if what is beside is that.
grouped() {
	# shellcheck disable=SC2016 # expanded by the shell that is started
	setsid --wait sh -c 'echo $$ >"$0" && exec "$@"' "$work/log/beside" "$@"
}

# beside NAME COMMAND...: the same, beside the stages that follow, as far as end_beside. Of the command,
# what begins others is to be grouped.
beside() {
	beside_name=$1 beside_since=$(date +%s)
	shift
	rm -f "$work/log/beside"
	"$@" >"$(log_of "$beside_name")" 2>&1 </dev/null &
	beside_pid=$!
}

end_beside() {
	[ -n "$beside_pid" ] || return 0
	wait "$beside_pid" && status=0 || status=$?
	beside_pid=
	judge "$beside_name" "$(log_of "$beside_name")" "$status" \
		"ended within $(($(date +%s) - beside_since)) s" || :
}

# --- stages ------------------------------------------------------------------

# configure TREE [OPTION]...: again only when configure or the options changed.
configure() {
	tree=$work/$1
	shift
	mkdir -p "$tree"
	if [ "$(cat "$tree/.options" 2>/dev/null)" != "$*" ] || [ ! -f "$tree/Makefile" ]; then
		(cd "$tree" && "$top/configure" "$@" && echo "$*" >.options)
	fi
}

in_tree() {
	tree=$work/$1
	shift
	(cd "$tree" && "$@")
}

# build TREE [OPTION]...: once in a run.
build() {
	case " $built " in *" $1 "*) return 0 ;; esac
	step "$1: configure" configure "$@" --enable-werror || return 1
	step "$1: build" in_tree "$1" make -j"$(nproc)" || return 1
	built="$built $1"
}

# build_tests TREE [OPTION]...: that and all tests; others build what they need.
build_tests() {
	case " $built " in *" $1-tests "*) return 0 ;; esac
	build "$@" || return 1
	step "$1: build its tests" in_tree "$1" make -j"$(nproc)" check TESTS= || return 1
	built="$built $1-tests"
}

# Every cell of `make check`, from the .trs files of automake's driver; the failed ones by name.
count_trs() {
	find "$work/$1" -path '*/evrdma-[0-9]*' -prune -o -name '*.trs' -exec cat {} + >"$work/log/$1.trs"
	failures "$1" <"$log"
	# shellcheck disable=SC2046 # three numbers
	count $(awk '
		/^:test-result: (PASS|XFAIL)/ { p++ }
		/^:test-result: (FAIL|ERROR|XPASS)/ { f++ }
		/^:test-result: SKIP/ { s++ }
		END { print p + 0, f + 0, s + 0 }' "$work/log/$1.trs")
}

# make_check TREE [TARGET [WRAPPER]]
make_check() {
	before=$((passed + failed + skipped))
	find "$work/$1" -name '*.trs' -exec rm -f {} +
	# shellcheck disable=SC2086 # no wrapper is no word
	step "$1: make ${2:-check}" in_tree "$1" ${3:-} make -j"$jobs" "${2:-check}" || :
	count_trs "$1"
	say "$1: $((passed + failed + skipped - before)) cells"
}

# ThreadSanitizer wants its memory where the kernel's address randomization may not leave it.
without_aslr() {
	if setarch "$(uname -m)" -R true 2>/dev/null; then
		setarch "$(uname -m)" -R "$@"
	else
		"$@"
	fi
}

# Where another stage, or the long check, runs all of it.
brief() {
	EVR_DESTROY_EVERY=${EVR_DESTROY_EVERY:-7} EVR_SCHEDULES=${EVR_SCHEDULES:-5000} EVR_PROFILES=odd \
		EVR_PLANTED_EVERY=${EVR_PLANTED_EVERY:-4} EVR_SERIES=no "$@"
}

# And the least of what another build of the same check runs as well.
briefest() {
	EVR_PROFILE_SUITES=conform EVR_DEVICES=one EVR_SWEEP_EVERY=4 EVR_DESTROY_EVERY=15 \
		EVR_SCHEDULES=1500 EVR_RS_SCHEDULES=20 brief "$@"
}

# part_of STAGE COMMAND...: with as much of what is drawn, or alike, as each build has in the long check.
part_of() {
	part=$deep$1
	shift
	case $part in
	normal)
		EVR_PROFILES='siw odd' EVR_DESTROY_EVERY=5 EVR_SCHEDULES=20000 \
			EVR_PLANTED_EVERY=2 EVR_SERIES=no "$@"
		;;
	sanitizers)
		EVR_PROFILES='mlx5 irdma-iwarp' EVR_PROFILE_SUITES=conform EVR_DESTROY_EVERY=9 \
			EVR_SWEEP_EVERY=3 EVR_SERIES=no "$@"
		;;
	deepsanitizers) EVR_PROFILES='mlx5 odd' EVR_SERIES=no "$@" ;;
	valgrind) EVR_DESTROY_EVERY=31 "$@" ;;
	deepdist | deepsystem) brief "$@" ;;
	dist | system) briefest "$@" ;;
	*) "$@" ;;
	esac
}

# The distribution's kernel for QEMU, and its source as user-mode Linux where that can be had.
guest_kernels='t/guest/fetch qemu && { t/guest/fetch uml || echo "check: no user-mode Linux: QEMU alone"; }'

# guest TREE TARGET [OPTION]...: begins it. Guests wait more than they work, so the stages after it go
# on beside them, as far as the next of its kind.
guest() {
	next_tree=$1 next_target=$2
	shift 2
	build_tests "$next_tree" "$@" || return
	end_guest
	guest_tree=$next_tree guest_target=$next_target
	rm -rf "$work/$guest_tree/t/guest/log"
	guest_log=$work/log/$guest_tree-$guest_target.log guest_since=$(date +%s)
	: >"$guest_log" # which may be read before the shell has begun
	# shellcheck disable=SC2016 # expanded by the shell that is started
	setsid sh -c "$guest_kernels"' && exec make -C "$1" "$2" EVR_BRIEF="$3"' sh "$work/$guest_tree" \
		"$guest_target" "$brief_guest" \
		>"$guest_log" 2>&1 </dev/null &
	guest_pid=$!
}

# The cells come by name from the harness itself; each suite leaves its count.
end_guest() {
	[ -n "$guest_pid" ] || return 0
	before=$failed status=0
	tail -n +1 -f --pid="$guest_pid" "$guest_log"
	work_so_far
	worked_before=$worked
	wait "$guest_pid" || status=$?
	work_so_far
	guest_pid=
	for f in "$work/$guest_tree"/t/guest/log/*/count; do
		# shellcheck disable=SC2046 # three numbers
		[ ! -f "$f" ] || count $(tr -cd '0-9 ' <"$f")
	done
	failures "$guest_tree" <"$guest_log"
	[ $status -eq 0 ] || [ "$failed" -gt "$before" ] || count 0 1 0
	say "$guest_tree: make $guest_target ended $(($(date +%s) - guest_since)) s after its begin, processors $((worked - worked_before)) s, status $status"
}

stage() {
	case $1 in
	sanitizers) build_tests sanitizers --enable-sanitizers && part_of "$1" make_check sanitizers ;;
	libevent) build_tests sanitizers --enable-sanitizers && make_check sanitizers check-libevent ;;
	sanitizers-short) build_tests sanitizers --enable-sanitizers && briefest make_check sanitizers ;;
	threads) build threads --enable-sanitizers=thread && make_check threads check-threads without_aslr ;;
	normal) build_tests normal && part_of "$1" make_check normal ;;
	normal-short) build_tests normal && EVR_PLANTED_EVERY=10 EVR_DESTROY_EVERY=10 brief make_check normal ;;
	valgrind) build normal && part_of "$1" make_check normal check-valgrind brief ;;
	system) build_tests system --with-system-librdmacm && part_of "$1" make_check system ;;
	dist)
		build normal || return 0
		beside "normal: make check-dist" part_of "$1" in_tree normal grouped make -j"$jobs" check-dist
		;;
	packages) # of the tarball, which that stage makes as well
		end_beside
		build normal && make_check normal check-packages
		;;
	guest-short) guest normal check-guest-short ;;
	guest) guest normal check-guest ;;
	guest-sanitizers) guest sanitizers check-guest-brief --enable-sanitizers ;;
	*) say "no such stage: $1 (there are: $all $short)"; exit 2 ;;
	esac || :
}

# --- the run -----------------------------------------------------------------

# Fewer cells than there were is a test that silently went away.
check_cells() {
	total=$((passed + failed + skipped))
	recorded=$(sed -n "s/^$which //p" t/cells)
	if [ "$total" -ge "$recorded" ]; then
		say "ok - $total cells, $recorded recorded"
	else
		count 0 1 0
		say "not ok - $total cells, but t/cells records $recorded"
	fi
}

finish() {
	trap - EXIT
	[ "$1" -eq 0 ] || count 0 1 0
	for group in $guest_pid $kernels_pid ${beside_pid:+$(cat "$work/log/beside" 2>/dev/null)}; do
		kill -- "-$group" 2>/dev/null || :
	done
	[ -z "$beside_pid" ] || kill "$beside_pid" 2>/dev/null || :
	[ ! -s "$work/log/failures" ] || { say "what failed or was skipped:"; cat "$work/log/failures"; }
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$passed" -gt 0 ] && [ "$failed" -eq 0 ] && [ "$skipped" -eq 0 ]
	exit $?
}

trap 'finish $?' EXIT
trap 'exit 130' INT TERM HUP
mkdir -p "$work/log"
: >"$work/log/failures"
begin=$(date +%s)
step "set-up" t/setup.sh
step "autoreconf" t/bootstrap.sh
setsid sh -c "$guest_kernels" >"$work/log/kernels.log" 2>&1 </dev/null &
kernels_pid=$! # beside the builds; who needs it waits for it
case " $stages " in # the same of this
*" libevent "*) t/conform/libevent_source.sh >"$work/log/libevent.log" 2>&1 </dev/null & ;;
esac
for s in $stages; do stage "$s"; done
end_beside
end_guest
[ -z "$which" ] || check_cells
say "$(($(date +%s) - begin)) s in all"
