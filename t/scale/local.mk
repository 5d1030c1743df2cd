# Thousands of connections on one loop.
if !SYSTEM_RDMACM
check_PROGRAMS += t/scale/fake.t
EVR_LONG_TESTS += t/scale/fake.t
EXTRA_DIST += t/scale/instructions.sh
t_scale_fake_t_SOURCES = t/scale/fake.c t/scale/crowd.c t/scale/crowd.h $(EVR_FAKE_HEAP)
t_scale_fake_t_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t $(CHECK_CFLAGS)
t_scale_fake_t_LDFLAGS = $(AM_LDFLAGS) $(EVR_FAKE_HEAP_WRAP)
t_scale_fake_t_LDADD = $(EVR_CONFORM_FAKE_LIBS)

check_PROGRAMS += t/scale/device
t_scale_device_SOURCES = t/scale/device.c t/scale/crowd.c t/scale/crowd.h \
	t/scale/allocations.c t/scale/allocations.h
t_scale_device_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t
t_scale_device_LDADD = libevrdma.la libevr_util.la $(LIBEVENT_LIBS)
GUEST_TESTS += t/scale/scale.sh:rxe t/scale/scale.sh:siw
EXTRA_DIST += t/scale/scale.sh

# The same loop for as long as is asked, on the fake and on a device.
EVR_ENDURE = t/scale/endure.c t/scale/endure.h
check_PROGRAMS += t/scale/endure_fake.t t/scale/endure_device
EVR_LONG_TESTS += t/scale/endure_fake.t
t_scale_endure_fake_t_SOURCES = t/scale/endure_fake.c $(EVR_ENDURE)
t_scale_endure_fake_t_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t
t_scale_endure_fake_t_LDADD = libevr_ev.la libevr_cm.la libevr_fake.la $(LIBEVENT_LIBS)
t_scale_endure_device_SOURCES = t/scale/endure_device.c $(EVR_ENDURE) \
	t/schedule/resources.c t/schedule/resources.h
t_scale_endure_device_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t $(NL_CFLAGS)
t_scale_endure_device_LDADD = libevrdma.la libevr_util.la $(LIBEVENT_LIBS) $(NL_LIBS)
GUEST_TESTS += t/scale/endure.sh:rxe t/scale/endure.sh:siw
EXTRA_DIST += t/scale/endure.sh
endurance: t/scale/endure_fake.t t/scale/endure_device
	t/scale/endure_fake.t 600
	top_srcdir=$(abs_top_srcdir) top_builddir=$(abs_top_builddir) \
		$(abs_top_srcdir)/t/guest/run -t 400 $(abs_top_srcdir)/t/scale/endure.sh rxe 180
endif
