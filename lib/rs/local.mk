# rsockets, on the CM's public headers; a convenience library, as the CM is.
if !SYSTEM_RDMACM
noinst_LTLIBRARIES += libevr_rs.la
libevr_rs_la_SOURCES = \
	lib/rs/rs.h \
	lib/rs/addr.c lib/rs/addr.h \
	lib/rs/backlog.c \
	lib/rs/call.c \
	lib/rs/close.c \
	lib/rs/settings.c lib/rs/settings.h \
	lib/rs/connect.c \
	lib/rs/dgram.c lib/rs/dgram.h \
	lib/rs/dgram_ah.c \
	lib/rs/dgram_dest.c \
	lib/rs/dgram_look.c \
	lib/rs/dgram_option.c \
	lib/rs/dgram_packet.c \
	lib/rs/dgram_recv.c \
	lib/rs/dgram_send.c \
	lib/rs/dgram_ud.c \
	lib/rs/dgram_udp.c \
	lib/rs/end.c \
	lib/rs/event.c \
	lib/rs/fcntl.c \
	lib/rs/fork.c \
	lib/rs/helper.c lib/rs/helper.h \
	lib/rs/iomap.c \
	lib/rs/iov.c lib/rs/iov.h \
	lib/rs/keepalive.c \
	lib/rs/linger.c \
	lib/rs/listen.c \
	lib/rs/name.c \
	lib/rs/option.c lib/rs/option.h \
	lib/rs/poll.c \
	lib/rs/post.c \
	lib/rs/progress.c \
	lib/rs/ready.c lib/rs/ready.h \
	lib/rs/recv.c \
	lib/rs/repoll.c \
	lib/rs/route.c \
	lib/rs/select.c \
	lib/rs/send.c \
	lib/rs/socket.c \
	lib/rs/stream.h \
	lib/rs/table.c \
	lib/rs/transport.c lib/rs/transport.h \
	lib/rs/wait.c \
	lib/rs/watch.c
# What is in lib/util comes with the CM, which every program that has this links, too.
libevr_rs_la_LIBADD = libevr_proto.la
endif
