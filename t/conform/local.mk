# The conformance suite: the same cases on the fake and on every kind of device.
check_LTLIBRARIES += libevr_conform.la
libevr_conform_la_SOURCES = \
	t/conform/suite.c t/conform/suite.h \
	t/unit/one_process.c t/unit/one_process.h \
	t/conform/fixture.c t/conform/fixture.h \
	t/conform/alive.c \
	t/conform/apart.c t/conform/apart.h \
	t/conform/base.c \
	t/conform/bufferevent.c t/conform/bufferevent.h \
	t/conform/bufferevent_accept.c \
	t/conform/bufferevent_end.c \
	t/conform/bufferevent_threads.c \
	t/conform/close.c \
	t/conform/connect.c \
	t/conform/group.c \
	t/conform/handover.c \
	t/conform/id.c \
	t/conform/limits.c \
	t/conform/listener.c \
	t/conform/member.c t/conform/member.h \
	t/conform/memory.c \
	t/conform/name.c \
	t/conform/option.c \
	t/conform/process.c \
	t/conform/peer.c \
	t/conform/pool.c \
	t/conform/receive.c \
	t/conform/read.c \
	t/conform/removal.c \
	t/conform/scale.c \
	t/conform/share.c \
	t/conform/shortage.c \
	t/conform/shutdown.c \
	t/conform/source.c \
	t/conform/stats.c \
	t/conform/stream.c t/conform/stream.h \
	t/conform/transfer.c \
	t/conform/work.c
libevr_conform_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t $(CHECK_CFLAGS)
EVR_CONFORM_LIBS = \
	libevr_util.la $(VERBS_LIBS) $(LIBEVENT_LIBS) -levent_pthreads $(CHECK_LIBS)

# What stands upon bufferevents.
libevr_conform_la_SOURCES += t/conform/bufferevent_http.c t/conform/bufferevent_regress.c
libevr_conform_la_LIBADD =
if WITH_TLS
libevr_conform_la_SOURCES += t/conform/bufferevent_tls.c t/conform/bufferevent_tls.h
libevr_conform_la_CPPFLAGS += -DEVR_WITH_TLS $(TLS_CFLAGS)
libevr_conform_la_LIBADD += $(TLS_LIBS)
endif
if WITH_ZLIB
libevr_conform_la_SOURCES += t/conform/bufferevent_zlib.c
libevr_conform_la_CPPFLAGS += -DEVR_WITH_ZLIB $(ZLIB_CFLAGS)
libevr_conform_la_LIBADD += $(ZLIB_LIBS)
endif

check_PROGRAMS += t/conform/device
t_conform_device_SOURCES = \
	t/conform/device.c t/conform/memlock.c t/conform/memlock.h \
	t/conform/objects.c t/conform/objects.h t/conform/traced.c t/conform/traced.h
t_conform_device_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t $(NL_CFLAGS)
t_conform_device_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_conform_device_LDADD = libevr_conform.la libevrdma.la $(RDMACM_LIBS) $(EVR_CONFORM_LIBS) $(NL_LIBS)

# The fake has a kernel's CM and verbs, so it needs our librdmacm on top.
if !SYSTEM_RDMACM
check_PROGRAMS += t/conform/fake_roce.t t/conform/fake_iwarp.t
TESTS += t/conform/fake_roce.t t/conform/fake_iwarp.t
check_LTLIBRARIES += libevr_conform_fake.la
libevr_conform_fake_la_SOURCES = \
	t/conform/fake_async.c \
	t/conform/fake_attempt.c \
	t/conform/fake_budget.c \
	t/conform/fake_calls.c \
	t/conform/fake_channel.c \
	t/conform/fake_cost.c \
	t/conform/fake_device.c \
	t/conform/fake_group.c \
	t/conform/fake_id.c \
	t/conform/fake_infiniband.c \
	t/conform/fake_keepalive.c \
	t/conform/fake_linger.c \
	t/conform/fake_machine.c \
	t/conform/fake_missing.c \
	t/conform/fake_posted.c \
	t/conform/fake_reply.c \
	t/conform/fake_report.c \
	t/conform/fake_shared.c \
	t/conform/fake_silence.c \
	t/conform/fake_stale.c \
	t/conform/fake_steps.c \
	t/conform/fake_stream.c \
	t/conform/fake_turns.c
libevr_conform_fake_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t $(CHECK_CFLAGS)
EVR_CONFORM_FAKE_LIBS = libevr_conform_fake.la libevr_conform.la libevr_clock.la \
	libevr_ev.la libevr_cm.la libevr_fake.la $(LIBEVENT_LIBS) -levent_pthreads $(CHECK_LIBS)
t_conform_fake_roce_t_SOURCES = t/conform/fake.c t/conform/fake.h
t_conform_fake_roce_t_CPPFLAGS = \
	$(AM_CPPFLAGS) -I$(top_srcdir)/t $(CHECK_CFLAGS) -DEVR_FAKE_KIND=FAKE_ROCE
t_conform_fake_roce_t_LDADD = $(EVR_CONFORM_FAKE_LIBS)
t_conform_fake_iwarp_t_SOURCES = t/conform/fake.c t/conform/fake.h
t_conform_fake_iwarp_t_CPPFLAGS = \
	$(AM_CPPFLAGS) -I$(top_srcdir)/t $(CHECK_CFLAGS) -DEVR_FAKE_KIND=FAKE_IWARP
t_conform_fake_iwarp_t_LDADD = $(EVR_CONFORM_FAKE_LIBS)

# The fault sweep, on a clock of its own.
check_PROGRAMS += t/conform/sweep.t
EVR_LONG_TESTS += t/conform/sweep.t
t_conform_sweep_t_SOURCES = \
	t/conform/sweep.c t/conform/sweep.h t/unit/must.h \
	t/conform/sweep_alive.c \
	t/conform/sweep_base.c \
	t/conform/sweep_bufferevent.c \
	t/conform/sweep_conn.c \
	t/conform/sweep_connect.c \
	t/conform/sweep_device.c \
	t/conform/sweep_dgram.c \
	t/conform/sweep_id.c \
	t/conform/sweep_pair.c \
	t/conform/sweep_work.c \
	$(EVR_FAKE_HEAP)
t_conform_sweep_t_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t $(CHECK_CFLAGS)
t_conform_sweep_t_LDFLAGS = $(AM_LDFLAGS) $(EVR_FAKE_HEAP_WRAP) -Wl,--wrap=event_add
t_conform_sweep_t_LDADD = $(EVR_CONFORM_FAKE_LIBS)
endif

# libevent's own tests of bufferevents, of its HTTP and its TLS, from its source, which is fetched first.
check-libevent: all
	$(MAKE) $(AM_MAKEFLAGS) check TESTS=t/conform/libevent_tests.sh
EXTRA_DIST += t/conform/libevent_http.c t/conform/libevent_http.h t/conform/libevent_rest.c \
	t/conform/libevent_shim.c t/conform/libevent_shim.h t/conform/libevent_ssl.c t/conform/libevent_ssl.h \
	t/conform/libevent_source.sh t/conform/libevent_tests.not t/conform/libevent_tests.sh

EXTRA_DIST += t/conform/device.sh
GUEST_TESTS += \
	t/conform/device.sh:rxe:ours t/conform/device.sh:siw:ours \
	t/conform/device.sh:rxe:stock t/conform/device.sh:siw:stock

# When the kernel and the library give up, on two devices with a wire between them.
if !SYSTEM_RDMACM
check_PROGRAMS += t/conform/timeouts
t_conform_timeouts_SOURCES = \
	t/conform/timeouts.c t/conform/timeouts.h \
	t/conform/beside.c t/conform/beside.h \
	t/conform/beside_faults.c \
	t/conform/hostile.c t/conform/hostile.h \
	t/conform/objects.c t/conform/objects.h \
	t/conform/strangers.c t/conform/strangers.h \
	t/conform/timeouts_close.c \
	t/conform/timeouts_connect.c \
	t/conform/timeouts_forged.c \
	t/conform/timeouts_hostile.c \
	t/conform/timeouts_groups.c \
	t/conform/timeouts_link.c \
	t/conform/timeouts_stale.c \
	t/conform/timeouts_traffic.c \
	t/schedule/random.h \
	t/schedule/resources.c t/schedule/resources.h \
	t/schedule/wire.c t/schedule/wire.h
t_conform_timeouts_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t $(NL_CFLAGS)
t_conform_timeouts_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_conform_timeouts_LDADD = libevr_conform.la libevr_clock.la libevrdma.la $(RDMACM_LIBS) \
	$(EVR_CONFORM_LIBS) $(NL_LIBS)
EXTRA_DIST += t/conform/timeouts.sh
GUEST_TESTS += t/conform/timeouts.sh:rxe t/conform/timeouts.sh:siw \
	t/conform/timeouts.sh:rxe:beside t/conform/timeouts.sh:siw:beside

# A server that the scheduler puts first.
check_PROGRAMS += t/conform/fifo
t_conform_fifo_SOURCES = \
	t/conform/fifo.c \
	t/conform/hostile.c t/conform/hostile.h
t_conform_fifo_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t
t_conform_fifo_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_conform_fifo_LDADD = libevr_conform.la libevrdma.la $(RDMACM_LIBS) $(EVR_CONFORM_LIBS)
EXTRA_DIST += t/conform/fifo.sh
GUEST_TESTS += t/conform/fifo.sh:rxe
endif
