# Several run at once, and those that take long begin first.
EVR_LONG_TESTS =
TESTS += $(EVR_LONG_TESTS)

include t/lint/local.mk
if TESTS_ENABLED
if !SYSTEM_RDMACM
include t/fake/local.mk
include t/unit/local.mk
include t/fuzz/local.mk
include t/examples/local.mk
endif
include t/rs/local.mk
include t/preload/local.mk
include t/conform/local.mk
include t/schedule/local.mk
include t/destroy/local.mk
endif
include t/bench/local.mk
include t/guest/local.mk
include t/interop/local.mk
include t/dist/local.mk

# A tarball that is whole: programs that run for long and read no file of the tree are built only.
SLOW_TESTS = \
	t/conform/fake_roce.t t/conform/fake_iwarp.t t/conform/sweep.t \
	t/destroy/roce.t t/destroy/iwarp.t \
	t/schedule/schedule.t t/schedule/fair.t t/schedule/stall.t \
	t/schedule/planted.sh t/fake/profiles.sh
check-dist:
	$(MAKE) $(AM_MAKEFLAGS) distcheck TESTS='$(filter-out $(SLOW_TESTS),$(TESTS))'
.PHONY: check-dist check-threads check-valgrind
