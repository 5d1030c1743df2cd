# The fuzz targets. Every build replays their corpus; --enable-fuzzers builds the fuzzers. See README.
EVR_FUZZ_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t
EVR_FUZZ_LINK = $(AM_LDFLAGS) -Wl,--wrap=pthread_cond_wait
EVR_FUZZ_LIBS = libevr_cm.la libevr_fake.la
EVR_FUZZ_COMMON = t/fuzz/fuzz.c t/fuzz/fuzz.h
EVR_FUZZ_DGRAM = t/fuzz/dgram.c $(EVR_FUZZ_COMMON)
EVR_FUZZ_EVENT = t/fuzz/event.c $(EVR_FUZZ_COMMON)
EVR_FUZZ_SEQUENCE = \
	t/fuzz/sequence.c t/fuzz/sequence.h \
	t/fuzz/sequence_addr.c \
	t/fuzz/sequence_check.c \
	t/fuzz/sequence_ep.c \
	t/fuzz/sequence_kernel.c \
	t/fuzz/sequence_ops.c \
	$(EVR_FUZZ_COMMON)
EVR_FUZZ_STREAM = t/fuzz/stream.c $(EVR_FUZZ_COMMON)

EVR_FUZZ_TESTS = t/fuzz/event.t t/fuzz/sequence.t t/fuzz/stream.t
check_PROGRAMS += $(EVR_FUZZ_TESTS)
TESTS += $(EVR_FUZZ_TESTS)
t_fuzz_event_t_SOURCES = $(EVR_FUZZ_EVENT) t/fuzz/replay.c
t_fuzz_event_t_CPPFLAGS = $(EVR_FUZZ_CPPFLAGS) -DFUZZ_CORPUS='"t/fuzz/corpus/event"'
t_fuzz_event_t_LDFLAGS = $(EVR_FUZZ_LINK)
t_fuzz_event_t_LDADD = $(EVR_FUZZ_LIBS)
t_fuzz_sequence_t_SOURCES = $(EVR_FUZZ_SEQUENCE) t/fuzz/replay.c
t_fuzz_sequence_t_CPPFLAGS = $(EVR_FUZZ_CPPFLAGS) -DFUZZ_CORPUS='"t/fuzz/corpus/sequence"'
t_fuzz_sequence_t_LDFLAGS = $(EVR_FUZZ_LINK)
t_fuzz_sequence_t_LDADD = $(EVR_FUZZ_LIBS)
t_fuzz_stream_t_SOURCES = $(EVR_FUZZ_STREAM) t/fuzz/replay.c
t_fuzz_stream_t_CPPFLAGS = $(EVR_FUZZ_CPPFLAGS) -DFUZZ_CORPUS='"t/fuzz/corpus/stream"'
t_fuzz_stream_t_LDFLAGS = $(EVR_FUZZ_LINK)
t_fuzz_stream_t_LDADD = libevr_proto.la $(EVR_FUZZ_LIBS)
if !SYSTEM_RDMACM
check_PROGRAMS += t/fuzz/dgram.t
TESTS += t/fuzz/dgram.t
t_fuzz_dgram_t_SOURCES = $(EVR_FUZZ_DGRAM) t/fuzz/replay.c
t_fuzz_dgram_t_CPPFLAGS = $(EVR_FUZZ_CPPFLAGS) -DFUZZ_CORPUS='"t/fuzz/corpus/dgram"'
t_fuzz_dgram_t_LDFLAGS = $(EVR_FUZZ_LINK)
t_fuzz_dgram_t_LDADD = libevr_rs.la $(EVR_FUZZ_LIBS)
endif

if FUZZERS
noinst_PROGRAMS += t/fuzz/dgram t/fuzz/event t/fuzz/sequence t/fuzz/stream
t_fuzz_dgram_SOURCES = $(EVR_FUZZ_DGRAM)
t_fuzz_dgram_CPPFLAGS = $(EVR_FUZZ_CPPFLAGS)
t_fuzz_dgram_LDFLAGS = $(EVR_FUZZ_LINK) -fsanitize=fuzzer
t_fuzz_dgram_LDADD = libevr_rs.la $(EVR_FUZZ_LIBS)
t_fuzz_event_SOURCES = $(EVR_FUZZ_EVENT)
t_fuzz_event_CPPFLAGS = $(EVR_FUZZ_CPPFLAGS)
t_fuzz_event_LDFLAGS = $(EVR_FUZZ_LINK) -fsanitize=fuzzer
t_fuzz_event_LDADD = $(EVR_FUZZ_LIBS)
t_fuzz_sequence_SOURCES = $(EVR_FUZZ_SEQUENCE)
t_fuzz_sequence_CPPFLAGS = $(EVR_FUZZ_CPPFLAGS)
t_fuzz_sequence_LDFLAGS = $(EVR_FUZZ_LINK) -fsanitize=fuzzer
t_fuzz_sequence_LDADD = $(EVR_FUZZ_LIBS)
t_fuzz_stream_SOURCES = $(EVR_FUZZ_STREAM)
t_fuzz_stream_CPPFLAGS = $(EVR_FUZZ_CPPFLAGS)
t_fuzz_stream_LDFLAGS = $(EVR_FUZZ_LINK) -fsanitize=fuzzer
t_fuzz_stream_LDADD = libevr_proto.la $(EVR_FUZZ_LIBS)
endif

EXTRA_DIST += t/fuzz/README t/fuzz/corpus t/fuzz/sequence.dict
