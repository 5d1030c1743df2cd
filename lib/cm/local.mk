if !SYSTEM_RDMACM
# All of it is a convenience library, so that the tests can link it with the fake kernel.
noinst_LTLIBRARIES += libevr_cm.la
libevr_cm_la_SOURCES = \
	lib/cm/cm.h \
	lib/cm/addr.c \
	lib/cm/addrinfo.c \
	lib/cm/addrinfo_async.c \
	lib/cm/channel.c \
	lib/cm/connect.c \
	lib/cm/device.c \
	lib/cm/devlist.c \
	lib/cm/ece.c \
	lib/cm/ep.c \
	lib/cm/event.c \
	lib/cm/event_map.c \
	lib/cm/event_str.c \
	lib/cm/event_write.c \
	lib/cm/fork.c \
	lib/cm/id.c \
	lib/cm/listen.c \
	lib/cm/mcast.c \
	lib/cm/option.c \
	lib/cm/param.c \
	lib/cm/qp.c \
	lib/cm/qp_state.c \
	lib/cm/queue.c \
	lib/cm/request.c \
	lib/cm/route.c \
	lib/cm/service.c \
	lib/cm/srq.c \
	lib/cm/wait.c
libevr_cm_la_LIBADD = libevr_kern.la libevr_util.la

cmlib_LTLIBRARIES += librdmacm.la
librdmacm_la_SOURCES =
librdmacm_la_LIBADD = libevr_rs.la libevr_cm.la $(VERBS_LIBS) $(NL_LIBS)
librdmacm_la_LDFLAGS = $(AM_LDFLAGS) -version-info 5:0:4 -no-undefined \
	-Wl,--version-script=$(top_srcdir)/lib/cm/librdmacm.map
EXTRA_librdmacm_la_DEPENDENCIES = lib/cm/librdmacm.map
# Libtool links libevrdma and the module with it again when it installs them, where it is to be by then:
# it would take the distribution's, or find none. By a name that automake does not take for its own.
EVR_NEED_CM_INSTALLED = install-libLTLIBRARIES install-rsocketlibLTLIBRARIES
$(EVR_NEED_CM_INSTALLED): install-cmlibLTLIBRARIES
cmpkgconfigdir = $(cmlibdir)/pkgconfig
cmpkgconfig_DATA = lib/cm/librdmacm.pc
EXTRA_DIST += lib/cm/librdmacm.map
endif
