#!/bin/sh
# Whether the fault sweep of the event layer has every function of it in some scenario.
. "${top_srcdir:-.}/t/lint/lint.sh"

uncalled "$top_builddir"/t/conform/sweep_t-sweep*.o |
	sed 's/$/ is in no scenario of t\/conform/' >>"$findings"
verdict "every function of the event layer is in the fault sweep"

done_testing
