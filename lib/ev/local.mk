# All of it is a convenience library, so that the tests can link it with the fake kernel.
noinst_LTLIBRARIES += libevr_ev.la
libevr_ev_la_SOURCES = \
	lib/ev/base.c
libevr_ev_la_LIBADD = libevr_util.la

lib_LTLIBRARIES += libevrdma.la
libevrdma_la_SOURCES =
libevrdma_la_LIBADD = libevr_ev.la $(RDMACM_LIBS) $(VERBS_LIBS) $(LIBEVENT_LIBS)
libevrdma_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined \
	-Wl,--version-script=$(top_srcdir)/lib/ev/evrdma.map
EXTRA_libevrdma_la_DEPENDENCIES = lib/ev/evrdma.map
EXTRA_DIST += lib/ev/evrdma.map
pkgconfig_DATA += lib/ev/evrdma.pc
