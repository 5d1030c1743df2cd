# Sourced by run and run2, which have chosen the guest: from its job to its verdict.

# What in a kernel's log fails a run.
kernel_trouble='WARNING: |BUG: |Oops|general protection fault|Kernel panic|blocked for more than'
kernel_trouble="$kernel_trouble|detected stalls|refcount_t: |UBSAN: |Call Trace:"

. "$guestdir/${EVR_GUEST_ENGINE:?}.sh"

# write_job FOLDER COMMAND...: what the guest runs, with our environment as far as it matters there.
write_job() {
	job=$1/job
	shift
	env | sed -n 's/^\(EVR_[A-Z0-9_]*\|BENCH_[A-Z]*\|CK_[A-Z_]*\|[A-Z]*SAN_OPTIONS\)=.*/\1/p' >"$job.names"
	echo top_srcdir top_builddir PATH | tr ' ' '\n' >>"$job.names"
	while read -r v; do
		eval "printf 'export %s=%s\n' $v \"\$(quote \"\$$v\")\""
	done <"$job.names" >"$job"
	rm "$job.names"
	printf 'exec /bin/sh %s' "$(quote "$guestdir/inside")" >>"$job"
	for a; do printf ' %s' "$(quote "$a")"; done >>"$job"
	echo >>"$job"
}

log_tail() {
	say "the last lines of the kernel's log (all of it in $1):"
	sed '1,/Run .init as init/d' "$1/dmesg" 2>/dev/null | tail -n 40 >&2
	[ -s "$1/dmesg" ] || tail -n 40 "$1/console" >&2
}

# verdict DIR: the script's status, or 125 when the guest broke. A program that crashed (a trap) is for
# the script to see.
verdict() {
	bad=$(cat "$1/console" "$1/dmesg" 2>/dev/null | grep -v "\] traps: " |
		grep -E -m 1 "$kernel_trouble" || :)
	status=$(cat "$1/status" 2>/dev/null || :)
	if [ -z "$status" ]; then
		say "the guest ended without a status"
		status=125
	elif [ -n "$bad" ]; then
		say "the kernel complained: $bad"
		status=125
	elif [ "$status" -eq 124 ]; then
		say "the script ran out of time"
	fi
	[ "$status" -eq 0 ] || log_tail "$1"
	return "$status"
}
