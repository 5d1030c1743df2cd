# Sockets' behaviour, on rsockets and on TCP side by side.
if !SYSTEM_RDMACM
check_PROGRAMS += t/rs/device
EVR_RS_DESCRIPTOR = \
	t/rs/bases.c t/rs/bases.h \
	t/rs/bytes.c t/rs/bytes.h \
	t/rs/calls.c t/rs/calls.h \
	t/rs/descriptor.c t/rs/descriptor.h \
	t/rs/edges.c t/rs/edges.h \
	t/rs/goodbyes.c t/rs/goodbyes.h \
	t/rs/limits.c t/rs/limits.h \
	t/rs/options.c t/rs/options.h \
	t/rs/pair.c t/rs/pair.h \
	t/rs/seen.c t/rs/seen.h \
	t/rs/selects.c t/rs/selects.h \
	t/rs/state.c t/rs/state.h \
	t/rs/states.c t/rs/states.h \
	t/rs/uring.c t/rs/uring.h
t_rs_device_SOURCES = t/rs/device.c t/unit/one_process.c t/unit/one_process.h $(EVR_RS_DESCRIPTOR)
t_rs_device_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t
t_rs_device_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_rs_device_LDADD = librdmacm.la $(VERBS_LIBS) $(CHECK_LIBS) $(LIBEVENT_LIBS)
check_PROGRAMS += t/rs/fake.t
TESTS += t/rs/fake.t
t_rs_fake_t_SOURCES = t/rs/fake.c $(EVR_RS_DESCRIPTOR)
t_rs_fake_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_rs_fake_t_LDADD = libevr_rs.la $(EVR_UNIT_CM_LIBS) $(LIBEVENT_LIBS)
check_PROGRAMS += t/rs/dgrams_device
t_rs_dgrams_device_SOURCES = t/rs/dgrams_device.c t/rs/dgrams.c t/rs/dgrams.h
t_rs_dgrams_device_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t
t_rs_dgrams_device_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_rs_dgrams_device_LDADD = librdmacm.la $(VERBS_LIBS) $(CHECK_LIBS)
GUEST_TESTS += t/rs/descriptor.sh:rxe t/rs/descriptor.sh:siw

# What a hostile peer may leave behind is counted.
EVR_RS_OBJECTS_DEVICE = t/rs/hostile_objects_device.c t/rs/hostile_objects.h \
	t/schedule/resources.c t/schedule/resources.h
EVR_RS_OBJECTS_FAKE = t/rs/hostile_objects_fake.c t/rs/hostile_objects.h

# A peer that breaks the protocol, to rsockets and to bufferevents.
EVR_RS_HOSTILE = \
	t/rs/hostile.c t/rs/hostile.h \
	t/rs/hostile_greetings.c \
	t/rs/hostile_silence.c \
	t/rs/hostile_suite.c t/rs/hostile_suite.h \
	t/rs/hostile_words.c
EVR_RS_HOSTILE_DEVICE = t/rs/hostile_device.c $(EVR_RS_HOSTILE) $(EVR_RS_OBJECTS_DEVICE)
EVR_RS_HOSTILE_FAKE = t/rs/hostile_fake.c $(EVR_RS_HOSTILE) $(EVR_RS_OBJECTS_FAKE)
check_PROGRAMS += t/rs/hostile t/rs/hostile_bev t/rs/hostile_fake.t t/rs/hostile_bev_fake.t
TESTS += t/rs/hostile_fake.t t/rs/hostile_bev_fake.t
check_PROGRAMS += t/rs/hostile_first_fake.t
TESTS += t/rs/hostile_first_fake.t
t_rs_hostile_first_fake_t_SOURCES = t/rs/hostile_first_fake.c t/rs/hostile.c t/rs/hostile.h
t_rs_hostile_first_fake_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS) -D_GNU_SOURCE
t_rs_hostile_first_fake_t_LDADD = libevr_ev.la $(EVR_UNIT_CM_LIBS) $(LIBEVENT_LIBS)
t_rs_hostile_SOURCES = $(EVR_RS_HOSTILE_DEVICE) t/rs/hostile_rsockets.c
t_rs_hostile_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t $(NL_CFLAGS)
t_rs_hostile_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_rs_hostile_LDADD = librdmacm.la libevr_proto.la $(VERBS_LIBS) $(CHECK_LIBS) $(NL_LIBS)
t_rs_hostile_bev_SOURCES = $(EVR_RS_HOSTILE_DEVICE) t/rs/hostile_bufferevents.c
t_rs_hostile_bev_CPPFLAGS = $(t_rs_hostile_CPPFLAGS)
t_rs_hostile_bev_CFLAGS = $(t_rs_hostile_CFLAGS)
t_rs_hostile_bev_LDADD = libevrdma.la $(t_rs_hostile_LDADD) $(LIBEVENT_LIBS)
t_rs_hostile_fake_t_SOURCES = $(EVR_RS_HOSTILE_FAKE) t/rs/hostile_rsockets.c
t_rs_hostile_fake_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_rs_hostile_fake_t_LDADD = libevr_rs.la $(EVR_UNIT_CM_LIBS)
t_rs_hostile_bev_fake_t_SOURCES = $(EVR_RS_HOSTILE_FAKE) t/rs/hostile_bufferevents.c
t_rs_hostile_bev_fake_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_rs_hostile_bev_fake_t_LDADD = libevr_ev.la $(EVR_UNIT_CM_LIBS) $(LIBEVENT_LIBS)
GUEST_TESTS += t/rs/hostile.sh:rxe:hostile_bev t/rs/hostile.sh:siw:hostile_bev
GUEST_TESTS += t/rs/hostile.sh:rxe t/rs/hostile.sh:siw
GUEST_TESTS += t/rs/dgrams.sh:rxe t/rs/dgrams.sh:siw

# Strangers who send datagrams.
EVR_RS_HOSTILE_DGRAMS = \
	t/rs/hostile_dgram.c t/rs/hostile_dgram.h \
	t/rs/hostile_dgrams.c t/rs/hostile_dgrams.h \
	t/rs/hostile_dgrams_floods.c \
	t/rs/hostile_dgrams_words.c
check_PROGRAMS += t/rs/hostile_dgrams t/rs/hostile_dgrams_fake.t
TESTS += t/rs/hostile_dgrams_fake.t
t_rs_hostile_dgrams_SOURCES = t/rs/hostile_dgrams_device.c $(EVR_RS_HOSTILE_DGRAMS) \
	$(EVR_RS_OBJECTS_DEVICE)
t_rs_hostile_dgrams_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t $(NL_CFLAGS)
t_rs_hostile_dgrams_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_rs_hostile_dgrams_LDADD = librdmacm.la libevr_proto.la $(VERBS_LIBS) $(CHECK_LIBS) $(NL_LIBS)
t_rs_hostile_dgrams_fake_t_SOURCES = t/rs/hostile_dgrams_fake.c $(EVR_RS_HOSTILE_DGRAMS) \
	$(EVR_RS_OBJECTS_FAKE)
t_rs_hostile_dgrams_fake_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_rs_hostile_dgrams_fake_t_LDADD = libevr_rs.la $(EVR_UNIT_CM_LIBS)
GUEST_TESTS += t/rs/hostile.sh:rxe:hostile_dgrams

# Random schedules of several threads on several streams, and on datagrams. EVR_RS_SCHEDULES in the
# environment says how many, and EVR_RS_SEED from which on. Where a call takes a lock somebody comes between.
check_PROGRAMS += t/rs/random_fake.t
TESTS += t/rs/random_fake.t
t_rs_random_fake_t_SOURCES = \
	t/rs/random_fake.c \
	t/rs/random.c t/rs/random.h \
	t/rs/random_between.c \
	t/rs/random_connect.c \
	t/rs/random_dgrams.c \
	t/rs/random_meddle.c \
	t/rs/random_model.c \
	t/rs/random_places.c \
	t/rs/random_user.c
EVR_RS_RANDOM_WRAP = \
	-Wl,--wrap=pthread_mutex_lock -Wl,--wrap=pthread_mutex_trylock \
	-Wl,--wrap=pthread_mutex_unlock -Wl,--wrap=close -Wl,--wrap=poll \
	-Wl,--wrap=__poll_chk -Wl,--wrap=evr_rs_polling_time_us
t_rs_random_fake_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS) -DEVR_RS_SCHEDULE_COUNT=300
t_rs_random_fake_t_LDFLAGS = $(AM_LDFLAGS) $(EVR_RS_RANDOM_WRAP)
t_rs_random_fake_t_LDADD = libevr_rs.la $(EVR_UNIT_CM_LIBS)

# What breaks beneath a stream.
check_PROGRAMS += t/rs/breaks
t_rs_breaks_SOURCES = t/rs/breaks.c \
	t/rs/calls.c t/rs/calls.h \
	t/rs/unanswered.c t/rs/unanswered.h \
	t/schedule/resources.c t/schedule/resources.h \
	t/schedule/random.h t/schedule/wire.c t/schedule/wire.h
t_rs_breaks_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t $(NL_CFLAGS)
t_rs_breaks_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_rs_breaks_LDADD = libevr_clock.la librdmacm.la $(VERBS_LIBS) $(LIBEVENT_LIBS) $(CHECK_LIBS) \
	$(NL_LIBS)
GUEST_TESTS += t/rs/breaks.sh:rxe t/rs/breaks.sh:siw
endif
EXTRA_DIST += t/rs/breaks.sh t/rs/descriptor.sh t/rs/dgrams.sh t/rs/hostile.sh
