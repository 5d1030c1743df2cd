# All of it is a convenience library, so that the tests can link it with the fake kernel.
noinst_LTLIBRARIES += libevr_ev.la
libevr_ev_la_SOURCES = \
	lib/ev/base_new.c \
	lib/ev/core/base.c lib/ev/core/base.h \
	lib/ev/core/cause.c lib/ev/core/cause.h \
	lib/ev/core/error.c lib/ev/core/error.h \
	lib/ev/core/inbox.c lib/ev/core/inbox.h \
	lib/ev/core/lock.c lib/ev/core/lock.h \
	lib/ev/core/log.c lib/ev/core/log.h \
	lib/ev/core/obj.c lib/ev/core/obj.h \
	lib/ev/core/part.c lib/ev/core/part.h \
	lib/ev/core/shutdown.c \
	lib/ev/core/stats.c lib/ev/core/stats.h \
	lib/ev/core/task.h \
	lib/ev/core/timer.c lib/ev/core/timer.h \
	lib/ev/cm/addr.c lib/ev/cm/addr.h \
	lib/ev/cm/channel.c lib/ev/cm/channel.h \
	lib/ev/cm/cmid.c lib/ev/cm/cmid.h \
	lib/ev/cm/linger.c lib/ev/cm/linger.h \
	lib/ev/cm/lookup.c lib/ev/cm/lookup.h \
	lib/ev/cm/slots.c lib/ev/cm/slots.h \
	lib/ev/cm/target.c lib/ev/cm/target.h \
	lib/ev/device/ah.c lib/ev/device/ah.h \
	lib/ev/device/async.c lib/ev/device/async.h \
	lib/ev/device/cq.c lib/ev/device/cq.h \
	lib/ev/device/device.c lib/ev/device/device.h \
	lib/ev/device/devices.c lib/ev/device/devices.h \
	lib/ev/device/devlist.c lib/ev/device/devlist.h \
	lib/ev/device/owner.h \
	lib/ev/device/pd.c lib/ev/device/pd.h \
	lib/ev/device/region.c lib/ev/device/region.h \
	lib/ev/device/shared.c lib/ev/device/shared.h \
	lib/ev/device/source.c lib/ev/device/source.h \
	lib/ev/memory/buf.c lib/ev/memory/buf.h \
	lib/ev/memory/poison.c lib/ev/memory/poison.h \
	lib/ev/memory/pool.c lib/ev/memory/pool.h \
	lib/ev/memory/remote.c \
	lib/ev/queue/qp.c lib/ev/queue/qp.h \
	lib/ev/queue/qp_send.c lib/ev/queue/qp_send.h \
	lib/ev/queue/recvq.c lib/ev/queue/recvq.h \
	lib/ev/queue/rnr.c lib/ev/queue/rnr.h \
	lib/ev/queue/srq.c lib/ev/queue/srq.h \
	lib/ev/queue/work.c lib/ev/queue/work.h \
	lib/ev/connection/conn.c lib/ev/connection/conn.h \
	lib/ev/connection/conn_alive.c \
	lib/ev/connection/conn_read.c \
	lib/ev/connection/conn_setup.c \
	lib/ev/connection/id.c \
	lib/ev/connection/kept.c lib/ev/connection/kept.h \
	lib/ev/connection/listener.c lib/ev/connection/listener.h \
	lib/ev/connection/request.c lib/ev/connection/request.h \
	lib/ev/datagram/dgram.c lib/ev/datagram/dgram.h \
	lib/ev/datagram/dgram_send.c \
	lib/ev/datagram/mcast.c lib/ev/datagram/mcast.h \
	lib/ev/datagram/peer.c lib/ev/datagram/peer.h \
	lib/ev/datagram/reply.c lib/ev/datagram/reply.h \
	lib/ev/stream/bell.c lib/ev/stream/bell.h \
	lib/ev/stream/bufferevent.c lib/ev/stream/bufferevent.h \
	lib/ev/stream/bufferevent_buffers.c \
	lib/ev/stream/bufferevent_new.c \
	lib/ev/stream/bufferevent_pair.c \
	lib/ev/stream/listen.c \
	lib/ev/stream/pipe.c lib/ev/stream/pipe.h \
	lib/ev/stream/pipe_memory.c \
	lib/ev/stream/pipe_read.c \
	lib/ev/stream/pipe_send.c \
	lib/ev/stream/registry.c lib/ev/stream/registry.h
libevr_ev_la_LIBADD = libevr_proto.la libevr_util.la

lib_LTLIBRARIES += libevrdma.la
libevrdma_la_SOURCES =
libevrdma_la_LIBADD = libevr_ev.la $(RDMACM_LIBS) $(VERBS_LIBS) $(LIBEVENT_LIBS)
libevrdma_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined \
	-Wl,--version-script=$(top_srcdir)/lib/ev/evrdma.map
EXTRA_libevrdma_la_DEPENDENCIES = lib/ev/evrdma.map
EXTRA_DIST += lib/ev/evrdma.map
pkgconfig_DATA += lib/ev/evrdma.pc
