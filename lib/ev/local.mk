# All of it is a convenience library, so that the tests can link it with the fake kernel.
noinst_LTLIBRARIES += libevr_ev.la
libevr_ev_la_SOURCES = \
	lib/ev/addr.c lib/ev/addr.h \
	lib/ev/ah.c lib/ev/ah.h \
	lib/ev/async.c lib/ev/async.h \
	lib/ev/base.c lib/ev/base.h \
	lib/ev/base_new.c \
	lib/ev/buf.c lib/ev/buf.h \
	lib/ev/cause.c lib/ev/cause.h \
	lib/ev/channel.c lib/ev/channel.h \
	lib/ev/cmid.c lib/ev/cmid.h \
	lib/ev/conn.c lib/ev/conn.h lib/ev/conn_alive.c lib/ev/conn_read.c \
	lib/ev/conn_setup.c \
	lib/ev/cq.c lib/ev/cq.h \
	lib/ev/device.c lib/ev/device.h \
	lib/ev/devices.c lib/ev/devices.h \
	lib/ev/devlist.c lib/ev/devlist.h \
	lib/ev/dgram.c lib/ev/dgram.h lib/ev/dgram_send.c \
	lib/ev/error.c lib/ev/error.h \
	lib/ev/id.c \
	lib/ev/inbox.c lib/ev/inbox.h \
	lib/ev/kept.c lib/ev/kept.h \
	lib/ev/linger.c lib/ev/linger.h \
	lib/ev/listener.c lib/ev/listener.h \
	lib/ev/lock.c lib/ev/lock.h \
	lib/ev/log.c lib/ev/log.h \
	lib/ev/lookup.c lib/ev/lookup.h \
	lib/ev/mcast.c lib/ev/mcast.h \
	lib/ev/obj.c lib/ev/obj.h \
	lib/ev/owner.h \
	lib/ev/part.c lib/ev/part.h \
	lib/ev/pd.c lib/ev/pd.h \
	lib/ev/peer.c lib/ev/peer.h \
	lib/ev/poison.c lib/ev/poison.h \
	lib/ev/pool.c lib/ev/pool.h \
	lib/ev/qp.c lib/ev/qp.h \
	lib/ev/qp_send.c lib/ev/qp_send.h \
	lib/ev/recvq.c lib/ev/recvq.h \
	lib/ev/region.c lib/ev/region.h \
	lib/ev/remote.c \
	lib/ev/request.c lib/ev/request.h \
	lib/ev/rnr.c lib/ev/rnr.h \
	lib/ev/shutdown.c \
	lib/ev/srq.c lib/ev/srq.h \
	lib/ev/source.c lib/ev/source.h \
	lib/ev/target.c lib/ev/target.h \
	lib/ev/slots.c lib/ev/slots.h \
	lib/ev/stats.c lib/ev/stats.h \
	lib/ev/task.h \
	lib/ev/work.c lib/ev/work.h
libevr_ev_la_LIBADD = libevr_util.la

lib_LTLIBRARIES += libevrdma.la
libevrdma_la_SOURCES =
libevrdma_la_LIBADD = libevr_ev.la $(RDMACM_LIBS) $(VERBS_LIBS) $(LIBEVENT_LIBS)
libevrdma_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined \
	-Wl,--version-script=$(top_srcdir)/lib/ev/evrdma.map
EXTRA_libevrdma_la_DEPENDENCIES = lib/ev/evrdma.map
EXTRA_DIST += lib/ev/evrdma.map
pkgconfig_DATA += lib/ev/evrdma.pc
