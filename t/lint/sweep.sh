#!/bin/sh
# Whether the fault sweep of the event layer has every function of it in some scenario.
. "${top_srcdir:-.}/t/lint/lint.sh"

nm -D --defined-only "$top_builddir/.libs/libevrdma.so" |
	awk '{ sub(/@.*/, "", $3); if ($3 ~ /^evrdma_/) print $3 }' | sort -u >"$scratch/exported"
nm -u "$top_builddir"/t/conform/sweep_t-sweep*.o 2>/dev/null |
	awk '$2 ~ /^evrdma_/ { print $2 }' | sort -u >"$scratch/swept"
[ -s "$scratch/exported" ] || echo "nothing was found to compare" >>"$findings"
comm -23 "$scratch/exported" "$scratch/swept" | sed 's/$/ is in no scenario of t\/conform/' >>"$findings"
verdict "every function of the event layer is in the fault sweep"

done_testing
