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
include t/scale/local.mk
include t/schedule/local.mk
include t/destroy/local.mk
endif
include t/bench/local.mk
include t/guest/local.mk
include t/interop/local.mk
include t/dist/local.mk

# A tarball that is whole: all is built, and what reads files of the tree is run. That is no program but
# what goes through the fuzzers' corpora; and two scripts take long.
EVR_LONG_TO_RUN = t/schedule/planted.sh t/fake/profiles.sh
EVR_DIST_TESTS = $(filter-out $(EVR_LONG_TO_RUN),$(filter %.sh t/fuzz/%,$(TESTS)))
check-dist:
	$(MAKE) $(AM_MAKEFLAGS) distcheck TESTS='$(EVR_DIST_TESTS)'
.PHONY: check-dist check-libevent check-threads check-valgrind endurance
