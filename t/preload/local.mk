# The preload module: its rules, its calls on the fake, and programs under it.
if !SYSTEM_RDMACM
check_PROGRAMS += t/preload/rules.t t/preload/calls.t \
	t/preload/connect.t t/preload/dgrams.t t/preload/fork.t t/preload/numbers.t \
	t/preload/sizes.t t/preload/waits.t
EVR_PRELOAD_TESTS = t/preload/calls.t t/preload/connect.t t/preload/dgrams.t t/preload/fork.t \
	t/preload/numbers.t t/preload/sizes.t t/preload/waits.t
TESTS += t/preload/rules.t $(EVR_PRELOAD_TESTS)
EVR_TSAN_TESTS += $(EVR_PRELOAD_TESTS)
t_preload_rules_t_SOURCES = t/preload/rules.c $(EVR_UNIT)
t_preload_rules_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_preload_rules_t_LDADD = libevr_preload.la libevr_rs.la $(EVR_UNIT_CM_LIBS)
# As objects: what a program takes from a library comes after what the sanitizers have of that name,
# and so it would call theirs.
EVR_PRELOAD_LIBS = $(libevr_preload_la_OBJECTS) libevr_rs.la $(EVR_UNIT_CM_LIBS)
PLACES = t/preload/places.c t/preload/places.h
WAYS = t/preload/ways.c t/preload/ways.h
t_preload_calls_t_SOURCES = t/preload/calls.c $(PLACES) $(WAYS)
t_preload_calls_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_preload_calls_t_LDADD = $(EVR_PRELOAD_LIBS)
t_preload_connect_t_SOURCES = t/preload/connect.c $(PLACES)
t_preload_connect_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_preload_connect_t_LDADD = $(EVR_PRELOAD_LIBS)
t_preload_dgrams_t_SOURCES = t/preload/dgrams.c $(PLACES) $(WAYS)
t_preload_dgrams_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_preload_dgrams_t_LDADD = $(EVR_PRELOAD_LIBS)
t_preload_fork_t_SOURCES = t/preload/fork.c $(PLACES)
t_preload_fork_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_preload_fork_t_LDADD = $(EVR_PRELOAD_LIBS)
t_preload_numbers_t_SOURCES = t/preload/numbers.c $(PLACES)
t_preload_numbers_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_preload_numbers_t_LDADD = $(EVR_PRELOAD_LIBS)
t_preload_sizes_t_SOURCES = t/preload/sizes.c $(PLACES)
t_preload_sizes_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_preload_sizes_t_LDADD = $(EVR_PRELOAD_LIBS)
t_preload_waits_t_SOURCES = t/preload/waits.c $(PLACES)
t_preload_waits_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_preload_waits_t_LDADD = $(EVR_PRELOAD_LIBS)
endif
