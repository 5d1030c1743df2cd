# Destroy everywhere: each object is ended in each callback, in each state.
if !SYSTEM_RDMACM
check_LTLIBRARIES += libevr_destroy.la
libevr_destroy_la_SOURCES = \
	t/destroy/fixture.c t/destroy/fixture.h t/unit/must.h \
	t/destroy/action.c \
	t/destroy/bufferevents.c \
	t/destroy/callbacks.c \
	t/destroy/objects.c \
	t/destroy/objects_dgram.c \
	t/destroy/main.c t/destroy/main.h \
	t/destroy/scenarios.c \
	t/destroy/scenarios_dgram.c \
	t/destroy/states_conn.c \
	t/destroy/states_id.c \
	t/destroy/states_more.c
libevr_destroy_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t $(CHECK_CFLAGS)

EVR_DESTROY_TESTS = t/destroy/roce.t t/destroy/iwarp.t
check_PROGRAMS += $(EVR_DESTROY_TESTS)
EVR_LONG_TESTS += $(EVR_DESTROY_TESTS)
EVR_DESTROY_LIBS = libevr_destroy.la $(EVR_CONFORM_FAKE_LIBS)
t_destroy_roce_t_SOURCES = t/destroy/roce.c
t_destroy_roce_t_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t
t_destroy_roce_t_LDADD = $(EVR_DESTROY_LIBS)
t_destroy_iwarp_t_SOURCES = t/destroy/iwarp.c
t_destroy_iwarp_t_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t
t_destroy_iwarp_t_LDADD = $(EVR_DESTROY_LIBS)

# All of it once more under valgrind, which sees what no sanitizer does: a value nobody has set.
# And what only it can count.
EVR_VALGRIND = valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite
check-valgrind:
	$(MAKE) $(AM_MAKEFLAGS) $(EVR_DESTROY_TESTS)
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(EVR_DESTROY_TESTS)' T_LOG_COMPILER='$(EVR_VALGRIND)'
	$(MAKE) $(AM_MAKEFLAGS) t/scale/fake.t
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS=t/scale/instructions.sh
endif
