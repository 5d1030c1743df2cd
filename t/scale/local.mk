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
t_scale_device_SOURCES = t/scale/device.c t/scale/crowd.c t/scale/crowd.h
t_scale_device_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t
t_scale_device_LDADD = libevrdma.la $(LIBEVENT_LIBS)
GUEST_TESTS += t/scale/scale.sh:rxe
EXTRA_DIST += t/scale/scale.sh
endif
