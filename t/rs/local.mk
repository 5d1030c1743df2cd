# Sockets' behaviour, on rsockets and on TCP side by side.
if !SYSTEM_RDMACM
check_PROGRAMS += t/rs/device
EVR_RS_DESCRIPTOR = t/rs/calls.c t/rs/calls.h t/rs/descriptor.c t/rs/descriptor.h
t_rs_device_SOURCES = t/rs/device.c $(EVR_RS_DESCRIPTOR)
t_rs_device_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t
t_rs_device_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_rs_device_LDADD = librdmacm.la $(VERBS_LIBS) $(CHECK_LIBS)
check_PROGRAMS += t/rs/fake.t
TESTS += t/rs/fake.t
t_rs_fake_t_SOURCES = t/rs/fake.c $(EVR_RS_DESCRIPTOR) $(EVR_UNIT_CM)
t_rs_fake_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_rs_fake_t_LDADD = libevr_rs.la $(EVR_UNIT_CM_LIBS)
GUEST_TESTS += t/rs/descriptor.sh:rxe t/rs/descriptor.sh:siw
endif
EXTRA_DIST += t/rs/descriptor.sh
