# Tests of lib/proto.
EVR_UNIT_TESTS += \
	t/unit/proto_conndata.t \
	t/unit/proto_credit.t \
	t/unit/proto_dgram.t \
	t/unit/proto_imm.t \
	t/unit/proto_memory.t \
	t/unit/proto_pair.t \
	t/unit/proto_stream.t
EVR_UNIT_PROTO_LIBS = libevr_test.la libevr_proto.la $(CHECK_LIBS)
t_unit_proto_conndata_t_SOURCES = t/unit/proto_conndata.c
t_unit_proto_conndata_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_proto_conndata_t_LDADD = $(EVR_UNIT_PROTO_LIBS)
t_unit_proto_credit_t_SOURCES = t/unit/proto_credit.c
t_unit_proto_credit_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_proto_credit_t_LDADD = $(EVR_UNIT_PROTO_LIBS)
t_unit_proto_dgram_t_SOURCES = t/unit/proto_dgram.c
t_unit_proto_dgram_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_proto_dgram_t_LDADD = $(EVR_UNIT_PROTO_LIBS)
t_unit_proto_imm_t_SOURCES = t/unit/proto_imm.c
t_unit_proto_imm_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_proto_imm_t_LDADD = $(EVR_UNIT_PROTO_LIBS)
t_unit_proto_memory_t_SOURCES = t/unit/proto_memory.c
t_unit_proto_memory_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_proto_memory_t_LDADD = $(EVR_UNIT_PROTO_LIBS)
t_unit_proto_pair_t_SOURCES = t/unit/proto_pair.c t/unit/proto_wire.c t/unit/proto_wire.h t/unit/must.h
t_unit_proto_pair_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_proto_pair_t_LDADD = $(EVR_UNIT_PROTO_LIBS)
t_unit_proto_stream_t_SOURCES = t/unit/proto_stream.c
t_unit_proto_stream_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_proto_stream_t_LDADD = $(EVR_UNIT_PROTO_LIBS)
