#!/bin/sh
# Whether the random schedules call every function of the event layer, in whatever state its object is.
. "${top_srcdir:-.}/t/lint/lint.sh"

# Those without an object: what they do depends on their arguments alone, so no schedule changes it.
cat >"$scratch/pure" <<'EOF'
evrdma_version
evrdma_version_number
EOF

uncalled "$top_builddir"/t/schedule/schedule_t-*.o >"$scratch/uncalled"
comm -23 "$scratch/uncalled" "$scratch/pure" |
	sed 's/$/ is in no action of t\/schedule/' >>"$findings"
verdict "every function of the event layer is in the random schedules"

comm -13 "$scratch/uncalled" "$scratch/pure" |
	sed 's/$/ is listed as called by nobody, and is called or is not there/' >>"$findings"
verdict "what they need not call they do not"

done_testing
