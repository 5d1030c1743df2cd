# The wire protocol of rsockets without I/O, for rsockets and for bufferevents.
noinst_LTLIBRARIES += libevr_proto.la
libevr_proto_la_SOURCES = \
	lib/proto/bytes.h \
	lib/proto/conndata.c lib/proto/conndata.h \
	lib/proto/credit.c lib/proto/credit.h \
	lib/proto/dgram.c lib/proto/dgram.h \
	lib/proto/grh.c lib/proto/grh.h \
	lib/proto/imm.c lib/proto/imm.h \
	lib/proto/iomap.c lib/proto/iomap.h \
	lib/proto/rxring.c lib/proto/rxring.h \
	lib/proto/sendq.c lib/proto/sendq.h \
	lib/proto/sge.c lib/proto/sge.h \
	lib/proto/stream.c lib/proto/stream.h lib/proto/stream_internal.h \
	lib/proto/stream_in.c \
	lib/proto/stream_out.c \
	lib/proto/target.c lib/proto/target.h \
	lib/proto/txring.c lib/proto/txring.h \
	lib/proto/wrid.h
