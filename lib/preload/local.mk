# The preload module: a program's stream sockets become rsockets. It is no library to link with, and goes
# where the stock one is, under its names.
if !SYSTEM_RDMACM
noinst_LTLIBRARIES += libevr_preload.la
libevr_preload_la_SOURCES = \
	lib/preload/preload.h \
	lib/preload/attempt.c lib/preload/attempt.h lib/preload/silent.c lib/preload/silent.h \
	lib/preload/broker.c lib/preload/broker.h \
	lib/preload/carry.c \
	lib/preload/connect.c \
	lib/preload/dgram.c \
	lib/preload/epoll.c \
	lib/preload/file.c \
	lib/preload/ioctl.c \
	lib/preload/listen.c \
	lib/preload/name.c \
	lib/preload/object.c \
	lib/preload/option.c \
	lib/preload/real.c lib/preload/real.h \
	lib/preload/recv.c \
	lib/preload/route.c lib/preload/route.h \
	lib/preload/rsocket.c \
	lib/preload/rules.c lib/preload/rules.h \
	lib/preload/send.c \
	lib/preload/sendfile.c \
	lib/preload/share.c \
	lib/preload/stream.c \
	lib/preload/table.c \
	lib/preload/wait.c \
	lib/preload/wanted.c
# Under their own names, as they are declared without it.
libevr_preload_la_CPPFLAGS = $(AM_CPPFLAGS) -U_FORTIFY_SOURCE

rsocketlibdir = $(libdir)/rsocket
rsocketlib_LTLIBRARIES = librspreload.la
librspreload_la_SOURCES =
librspreload_la_LIBADD = libevr_preload.la libevr_util.la librdmacm.la
librspreload_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -no-undefined \
	-Wl,--version-script=$(top_srcdir)/lib/preload/librspreload.map
EXTRA_librspreload_la_DEPENDENCIES = lib/preload/librspreload.map

EXTRA_DIST += lib/preload/librspreload.map
endif

install-data-hook: install-preload-links
install-preload-links:
	@cd "$(DESTDIR)$(libdir)/rsocket" 2>/dev/null && test -f librspreload.so || exit 0; \
	for name in librspreload.so.1 librspreload.so.1.0.0; do \
		rm -f $$name && $(LN_S) librspreload.so $$name || exit 1; \
	done
uninstall-hook: uninstall-preload-links
uninstall-preload-links:
	@cd "$(DESTDIR)$(libdir)/rsocket" 2>/dev/null || exit 0; \
	rm -f librspreload.so.1 librspreload.so.1.0.0
.PHONY: install-preload-links uninstall-preload-links
