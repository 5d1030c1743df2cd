#!/bin/sh
# The suites that run on the fake, on each of its devices, and at the end which did what on which.
#
#	EVR_PROFILES="NAME..."    only these
#	EVR_PROFILE_SUITES="..."  only these, of conform, destroy, sweep, schedule and streams
#	EVR_PROFILE_SCHEDULES=N   so many schedules on each
. "${top_srcdir:-.}/t/lint/lint.sh"
cd "$top_builddir" || exit 99

profiles=${EVR_PROFILES:-rxe siw mlx5 bnxt_re irdma-iwarp cxgb4 ib odd}
suites=${EVR_PROFILE_SUITES:-conform destroy sweep schedule streams}
schedules=1500
[ -z "$(make_var EVR_SAN_FLAGS)" ] || schedules=600
schedules=${EVR_PROFILE_SCHEDULES:-$schedules}
# One in so many runs is enough where another device makes them all.
EVR_DESTROY_EVERY=${EVR_DESTROY_EVERY:-11}
CK_TAP_LOG_FILE_NAME=- CK_VERBOSITY=silent
EVR_RS_SCHEDULES=${EVR_RS_SCHEDULES:-40}
export EVR_DESTROY_EVERY EVR_RS_SCHEDULES CK_TAP_LOG_FILE_NAME CK_VERBOSITY

# suites_of PROFILE: InfiniBand is the device that comes and goes beside the one that destroy is run on.
suites_of() {
	for s in $suites; do
		[ "$1 $s" = 'ib destroy' ] || echo "$s"
	done
}

has_streams() { case " $suites " in *' streams '*) ;; *) false ;; esac; }

# run PROFILE SUITE: leaves what it prints, and how it ended.
run() {
	case $2 in
	conform) set -- "$@" t/conform/fake_roce.t ;;
	destroy) set -- "$@" t/destroy/roce.t ;;
	sweep) set -- "$@" t/conform/sweep.t ;;
	schedule) set -- "$@" t/schedule/schedule.t --count "$schedules" ;;
	streams) set -- "$@" sh -c 't/rs/fake.t && t/unit/rs_fault.t && t/rs/random_fake.t' ;;
	esac
	profile=$1 suite=$2
	shift 2
	EVR_FAKE_PROFILE=$profile "$@" >"$scratch/$profile.$suite" 2>&1
	echo $? >"$scratch/$profile.$suite.status"
}

# passed OUTPUT SUITE: the tests that passed, or the schedules.
passed() {
	case $2 in
	schedule) sed -n 's/^ok 1 - \([0-9]*\) schedules.*/\1/p; s/^not ok 1 .*/0/p' "$1" ;;
	*) grep -c '^ok ' "$1" ;;
	esac
}

# judge PROFILE SUITE: the end of what it printed is a finding, unless it ended well.
judge() {
	output=$scratch/$1.$2
	status=$(cat "$output.status")
	[ "$status" = 0 ] ||
		{ grep -v '^ok \|^# [^s]' "$output" | tail -n 12; echo "ends with status $status"; } >>"$findings"
	passed "$output" "$2"
}

# Streams wait more than they work, so those of all devices run at once, beside the others.
! has_streams || for profile in $profiles; do
	run "$profile" streams &
done
for profile in $profiles; do
	workers=
	for suite in $(suites_of "$profile"); do
		[ "$suite" != streams ] || continue
		run "$profile" "$suite" &
		workers="$workers $!"
	done
	# shellcheck disable=SC2086 # process numbers
	wait $workers
done
wait
for profile in $profiles; do
	for suite in $(suites_of "$profile"); do
		state=$(judge "$profile" "$suite")
		[ ! -s "$findings" ] || state=FAILED
		verdict "$profile: $suite, $state"
		echo "$profile $suite $state" >>"$scratch/matrix"
	done
done

# The matrix.
awk '
	function state(suite) { return (rows[i] " " suite) in at ? at[rows[i] " " suite] : "-" }
	{ at[$1 " " $2] = $3 }
	!($1 in seen) { seen[$1] = 1; rows[++n] = $1 }
	END {
		printf "# %-12s %9s %9s %9s %9s %9s\n", "", "conform", "destroy", "sweep", "schedule", "streams"
		for (i = 1; i <= n; i++)
			printf "# %-12s %9s %9s %9s %9s %9s\n", rows[i], state("conform"), state("destroy"),
				state("sweep"), state("schedule"), state("streams")
	}' "$scratch/matrix"
done_testing
