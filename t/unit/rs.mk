# lib/rs, on the fake
EVR_UNIT_RS = t/unit/rs_unit.c t/unit/rs_unit.h $(EVR_UNIT_CM)
EVR_UNIT_TESTS += t/unit/rs_stream.t
t_unit_rs_stream_t_SOURCES = t/unit/rs_stream.c $(EVR_UNIT_RS)
t_unit_rs_stream_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_rs_stream_t_LDADD = libevr_rs.la $(EVR_UNIT_CM_LIBS)
