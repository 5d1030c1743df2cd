#!/bin/sh
# stall.sh rxe|siw: the conformance suite while the kernel traces the thread of its loop. No system
# call of it may sleep, but for the loop's own wait and what evrdma_threads(7) lists; how long those
# took is printed. With EVR_BRIEF in the environment each device has every other case.
# needs: probes
. "$top_srcdir/t/guest/lib.sh"
. "$top_srcdir/t/interop/probes.sh"

kind=$1
# The tests' own files are in memory: to wait for them is not the library's doing.
[ -z "${EVR_IN_GUEST:-}" ] || export TMPDIR=/dev/shm
page=$top_srcdir/man/evrdma_threads.7
tmp=$(mktemp -d)
# Without those that start threads or processes, or take the device away.
cases='alive base close connect group id limits listener name option peer pool read receive
	scale share shutdown source stats transfer work'

# What closes a descriptor does so on the way out of the call.
endings='close_cm:ucma_close close_verbs:ib_uverbs_close close_object:uverbs_uobject_fd_release
	late:task_work_run'

event_on() { echo 1 >"$tracing/events/$1/enable"; }

probe() {
	probe_new "$1" "$2" "$3" &&
		{ [ -z "$4" ] || echo "$4" >"$tracing/events/evrdma/$1/filter"; } &&
		event_on "evrdma/$1"
}

tracer_up() {
	tracing_up || return 1
	echo 0 >$tracing/tracing_on
	echo 49152 >$tracing/buffer_size_kb
	each_command probe || return 1
	for e in $endings; do
		probe "${e%:*}" "${e#*:}" '' '' || return 1
	done
	echo 'r:evrdma/late_end task_work_run' >>$tracing/kprobe_events &&
		event_on evrdma/late_end && event_on sched/sched_switch && event_on syscalls
}

tracer_down() {
	echo 0 >$tracing/events/enable
	echo >$tracing/set_event_pid
	for p in $(sed -n 's,.*:evrdma/\([a-z_]*\) .*,\1,p' $tracing/kprobe_events); do
		probe_gone "$p"
	done
	echo 1408 >$tracing/buffer_size_kb
	echo 1 >$tracing/tracing_on
}

# suite_runs CASE: its trace is in $tmp/trace.
suite_runs() {
	echo >$tracing/trace
	(
		export EVR_KIND="$kind" EVR_CORE=ours EVR_TRACING=$tracing
		export CK_FORK=no CK_RUN_CASE="$1" CK_TAP_LOG_FILE_NAME="$tmp/tap" LD_BIND_NOW=1
		export LD_LIBRARY_PATH="$top_builddir/.libs"
		# shellcheck disable=SC2016 # $$ is the inner shell's, which the program takes over
		exec sh -c 'echo $$ >"$EVR_TRACING/set_event_pid" && exec "$0"' \
			"$top_builddir/t/conform/.libs/device"
	) || {
		echo "the suite ended with $?"
		echo 0 >$tracing/tracing_on
		grep '^not ok' "$tmp/tap"
		return 1
	}
	cat $tracing/trace >"$tmp/trace"
}

# sleeps: ends with 0 when only what may sleep did.
sleeps() {
	awk -v note="$tmp/sleeps" -f "$top_srcdir/t/interop/commands.awk" \
		-f "$top_srcdir/t/interop/stall.awk" "$page" "$tmp/trace"
}

# What siw refuses because the other side was early it may take the next time: see came_too_early.
never_stalls() { suite_runs "$1" || { [ "$kind" = siw ] && suite_runs "$1"; } && sleeps; }

is_found() {
	suite_runs traced || return 1
	! sleeps >"$tmp/found" && grep -q 'clock_nanosleep.*NOT LISTED' "$tmp/found"
}

all_sleeps() {
	printf '%-28s %7s %10s\n' "sleeps on $kind" times "longest us"
	awk -F '\t' '
		{ times[$1] += $2; if ($3 > longest[$1]) longest[$1] = $3 }
		END { for (k in times) printf "%-28s %7d %10d\n", k, times[k], longest[k] }
	' "$tmp/sleeps" | sort
}

cell "$kind comes up" dev_up "$kind"
cell "the kernel traces the loop's thread" tracer_up
cell "a callback that sleeps is found" is_found
rm -f "$tmp/sleeps"
n=0
case $kind in rxe) odd=0 ;; *) odd=1 ;; esac
for case in $cases; do
	n=$((n + 1))
	[ -z "${EVR_BRIEF:-}" ] || [ $((n % 2)) = $odd ] || continue
	cell "$kind: nothing sleeps: $case" never_stalls "$case"
done
note "$(all_sleeps)"
cell "the tracer goes away" tracer_down
cell "$kind goes away" dev_down
done_testing
