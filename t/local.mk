include t/lint/local.mk
if TESTS_ENABLED
if !SYSTEM_RDMACM
include t/fake/local.mk
include t/unit/local.mk
include t/fuzz/local.mk
include t/examples/local.mk
endif
include t/conform/local.mk
include t/schedule/local.mk
include t/destroy/local.mk
endif
include t/bench/local.mk
include t/guest/local.mk
include t/interop/local.mk
.PHONY: check-threads check-valgrind
