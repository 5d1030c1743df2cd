# The conformance suite: the same cases on the fake and on every kind of device.
EVR_CONFORM_SOURCES = \
	t/conform/suite.c t/conform/suite.h \
	t/conform/world.c t/conform/world.h \
	t/conform/close.c \
	t/conform/handover.c \
	t/conform/removal.c \
	t/conform/scale.c
EVR_CONFORM_LIBS = libevr_util.la $(VERBS_LIBS) $(LIBEVENT_LIBS) $(CHECK_LIBS)

check_PROGRAMS += t/conform/device
t_conform_device_SOURCES = $(EVR_CONFORM_SOURCES) t/conform/device.c
t_conform_device_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t
t_conform_device_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_conform_device_LDADD = libevrdma.la $(RDMACM_LIBS) $(EVR_CONFORM_LIBS)

EXTRA_DIST += t/conform/device.sh
GUEST_TESTS += \
	t/conform/device.sh:rxe:ours t/conform/device.sh:siw:ours \
	t/conform/device.sh:rxe:stock t/conform/device.sh:siw:stock
