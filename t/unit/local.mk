# One check program per tested file. None of them links libibverbs: the fake is in its place.
EVR_UNIT_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t $(CHECK_CFLAGS)

# What they share; a program takes of it what it uses.
check_LTLIBRARIES += libevr_test.la
libevr_test_la_SOURCES = \
	t/unit/cm_crew.c t/unit/cm_crew.h \
	t/unit/cm_subject.c t/unit/cm_subject.h \
	t/unit/cm_unit.c t/unit/cm_unit.h \
	t/unit/ep_unit.c t/unit/ep_unit.h \
	t/unit/ev_loop.c t/unit/ev_loop.h \
	t/unit/fake_main.c t/unit/fake_main.h \
	t/unit/fake_raw.c t/unit/fake_raw.h t/unit/fake_raw_verbs.c \
	t/unit/rs_dgram_unit.c t/unit/rs_dgram_unit.h \
	t/unit/rs_flood.c t/unit/rs_flood.h \
	t/unit/rs_unit.c t/unit/rs_unit.h \
	t/unit/tools_unit.c t/unit/tools_unit.h \
	t/unit/unit.c t/unit/unit.h
libevr_test_la_CPPFLAGS = $(EVR_UNIT_CPPFLAGS) -I$(top_srcdir)
# A clock in the place of the library's.
check_LTLIBRARIES += libevr_clock.la
libevr_clock_la_SOURCES = t/schedule/clock.c t/schedule/clock.h
libevr_clock_la_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)

EVR_UNIT_TESTS =
check_PROGRAMS += $(EVR_UNIT_TESTS)
TESTS += $(EVR_UNIT_TESTS)

# --- the fake itself, through the kernel's ABI and plain verbs ---
EVR_UNIT_TESTS += \
	t/unit/example_kv.t \
	t/unit/fake_cm.t \
	t/unit/fake_control.t \
	t/unit/fake_devices.t \
	t/unit/fake_dgram.t \
	t/unit/fake_event.t \
	t/unit/fake_profile.t \
	t/unit/fake_query.t \
	t/unit/fake_service.t \
	t/unit/fake_srq.t \
	t/unit/fake_verbs.t
EVR_FAKE_LIBS = libevr_test.la libevr_fake.la libevr_kern.la libevr_util.la $(CHECK_LIBS)
t_unit_example_kv_t_SOURCES = t/unit/example_kv.c
t_unit_example_kv_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS) -I$(top_srcdir)
t_unit_example_kv_t_LDADD = libevr_test.la $(CHECK_LIBS)
EVR_UNIT_TESTS += t/unit/perf_complaints.t
t_unit_perf_complaints_t_SOURCES = t/unit/perf_complaints.c
t_unit_perf_complaints_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS) -I$(top_srcdir)/examples/tools
t_unit_perf_complaints_t_LDADD = libevr_test.la $(EVR_TOOL_LIBS) $(CHECK_LIBS)
EVR_UNIT_TESTS += t/unit/perf_hist.t
t_unit_perf_hist_t_SOURCES = t/unit/perf_hist.c
t_unit_perf_hist_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS) -I$(top_srcdir)/examples/tools
t_unit_perf_hist_t_LDADD = libevr_test.la libevr_tools.la $(CHECK_LIBS)
EVR_UNIT_TESTS += t/unit/perf_watch.t
t_unit_perf_watch_t_SOURCES = t/unit/perf_watch.c
t_unit_perf_watch_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS) -I$(top_srcdir)/examples/tools
t_unit_perf_watch_t_LDADD = libevr_test.la $(EVR_TOOL_LIBS) $(CHECK_LIBS)
t_unit_fake_cm_t_SOURCES = t/unit/fake_cm.c
t_unit_fake_cm_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_fake_cm_t_LDADD = $(EVR_FAKE_LIBS)
t_unit_fake_control_t_SOURCES = t/unit/fake_control.c
t_unit_fake_control_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_fake_control_t_LDADD = $(EVR_FAKE_LIBS)
t_unit_fake_devices_t_SOURCES = t/unit/fake_devices.c
t_unit_fake_devices_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_fake_devices_t_LDADD = $(EVR_FAKE_LIBS)
t_unit_fake_dgram_t_SOURCES = t/unit/fake_dgram.c
t_unit_fake_dgram_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_fake_dgram_t_LDADD = $(EVR_FAKE_LIBS)
t_unit_fake_event_t_SOURCES = t/unit/fake_event.c
t_unit_fake_event_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_fake_event_t_LDADD = $(EVR_FAKE_LIBS)
t_unit_fake_profile_t_SOURCES = t/unit/fake_profile.c
t_unit_fake_profile_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_fake_profile_t_LDADD = $(EVR_FAKE_LIBS)
t_unit_fake_query_t_SOURCES = t/unit/fake_query.c
t_unit_fake_query_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_fake_query_t_LDADD = $(EVR_FAKE_LIBS)
t_unit_fake_service_t_SOURCES = t/unit/fake_service.c
t_unit_fake_service_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_fake_service_t_LDADD = $(EVR_FAKE_LIBS)
t_unit_fake_srq_t_SOURCES = t/unit/fake_srq.c
t_unit_fake_srq_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_fake_srq_t_LDADD = $(EVR_FAKE_LIBS)
t_unit_fake_verbs_t_SOURCES = t/unit/fake_verbs.c
t_unit_fake_verbs_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_fake_verbs_t_LDADD = $(EVR_FAKE_LIBS)

# --- the library on it, from one end to the other ---
EVR_UNIT_TESTS += t/unit/fake_rdma.t
t_unit_fake_rdma_t_SOURCES = t/unit/fake_rdma.c
t_unit_fake_rdma_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_fake_rdma_t_LDADD = libevr_test.la libevr_cm.la libevr_fake.la $(CHECK_LIBS)

# --- the event layer on both ---
EVR_UNIT_TESTS += t/unit/fake_ev.t
t_unit_fake_ev_t_SOURCES = t/unit/fake_ev.c
t_unit_fake_ev_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_fake_ev_t_LDADD = libevr_test.la libevr_clock.la libevr_ev.la libevr_cm.la \
	libevr_fake.la $(LIBEVENT_LIBS) $(CHECK_LIBS)

EVR_UNIT_TESTS += t/unit/ev_ah.t
t_unit_ev_ah_t_SOURCES = t/unit/ev_ah.c
t_unit_ev_ah_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_ev_ah_t_LDADD = libevr_test.la libevr_clock.la libevr_ev.la libevr_fake.la \
	libevr_cm.la $(LIBEVENT_LIBS) $(CHECK_LIBS)

EVR_EV_LIBS = libevr_test.la libevr_ev.la libevr_cm.la libevr_fake.la $(LIBEVENT_LIBS) $(CHECK_LIBS)
EVR_UNIT_TESTS += t/unit/ev_id.t t/unit/ev_listener.t t/unit/util_idmap.t t/unit/util_options.t
t_unit_util_idmap_t_SOURCES = t/unit/util_idmap.c
t_unit_util_idmap_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_util_idmap_t_LDADD = libevr_test.la libevr_util.la $(CHECK_LIBS)
t_unit_util_options_t_SOURCES = t/unit/util_options.c
t_unit_util_options_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_util_options_t_LDADD = libevr_test.la libevr_util.la $(CHECK_LIBS)
t_unit_ev_id_t_SOURCES = t/unit/ev_id.c
t_unit_ev_id_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_ev_id_t_LDADD = $(EVR_EV_LIBS)
t_unit_ev_listener_t_SOURCES = t/unit/ev_listener.c
t_unit_ev_listener_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_ev_listener_t_LDADD = $(EVR_EV_LIBS)

include t/unit/cm.mk
include t/unit/proto.mk
include t/unit/rs.mk
include t/unit/threads.mk
include t/unit/tools.mk
