# Numbers, never verdicts. `make bench` runs the table of table.sh where RDMA is and writes
# bench/table.tsv and bench/index.html, and why.sh, which says what the rows are made of; cost.sh, pingpong.sh,
# rstream.sh and runs.sh go into single questions: `t/guest/run t/bench/cost.sh rxe`. RESULTS has some of each.
# short.sh is what the tests have of them.
EVR_BENCHES = t/bench/minimal$(EXEEXT)
check_PROGRAMS += t/bench/minimal
t_bench_minimal_SOURCES = t/bench/minimal.c t/bench/bench.h
t_bench_minimal_LDADD = $(RDMACM_LIBS) $(VERBS_LIBS) $(LIBEVENT_LIBS)
EVR_BENCHES += \
	t/bench/loops$(EXEEXT) t/bench/spent$(EXEEXT) t/bench/requests$(EXEEXT) t/bench/stream$(EXEEXT)
check_PROGRAMS += t/bench/loops t/bench/spent t/bench/requests t/bench/stream
t_bench_loops_SOURCES = t/bench/loops.c t/bench/bench.h
t_bench_loops_LDADD = libevrdma.la $(LIBEVENT_LIBS)
t_bench_spent_SOURCES = t/bench/spent.c
t_bench_requests_SOURCES = t/bench/requests.c t/bench/bench.h
t_bench_requests_LDADD = libevrdma.la $(LIBEVENT_LIBS)
t_bench_stream_SOURCES = t/bench/stream.c t/bench/bench.h
t_bench_stream_LDADD = libevrdma.la $(LIBEVENT_LIBS)
if !SYSTEM_RDMACM
EVR_BENCHES += t/bench/sockets$(EXEEXT)
check_PROGRAMS += t/bench/sockets
t_bench_sockets_SOURCES = t/bench/sockets.c t/bench/bench.h
t_bench_sockets_LDADD = librdmacm.la
EVR_BENCHES += t/bench/cost$(EXEEXT) t/bench/pingpong$(EXEEXT)
EXTRA_PROGRAMS += t/bench/cost t/bench/pingpong
t_bench_cost_SOURCES = t/bench/cost.c t/bench/bench.h
t_bench_cost_LDADD = librdmacm.la libevr_util.la $(VERBS_LIBS)
t_bench_pingpong_SOURCES = t/bench/pingpong.c t/bench/bench.h
t_bench_pingpong_LDADD = librdmacm.la $(LIBEVENT_LIBS)
endif
CLEANFILES += $(EVR_BENCHES)

# What one message, write or connection takes of the library in instructions is judged: it is the same
# on every machine, for one compiler.
if TESTS_ENABLED
if !SYSTEM_RDMACM
check_PROGRAMS += t/bench/instructions
t_bench_instructions_SOURCES = t/bench/instructions.c
t_bench_instructions_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t
t_bench_instructions_LDADD = libevr_clock.la libevr_ev.la libevr_cm.la libevr_fake.la $(LIBEVENT_LIBS)
TESTS += t/bench/instructions.sh t/bench/tables.sh
GUEST_TESTS += t/bench/short.sh:rxe
endif
endif
EXTRA_DIST += t/bench/budget t/bench/instructions.awk t/bench/instructions.sh t/bench/tables.sh

# BENCH_ROUNDS=5 BENCH_SCALE=100 (per cent of the messages) BENCH_KIND=rxe BENCH_ROWS="ping send"
bench: all $(EVR_BENCHES)
	@$(GUEST_ENV) $(srcdir)/t/bench/run
clean-local: clean-bench
clean-bench:
	rm -rf bench
.PHONY: bench clean-bench
EXTRA_DIST += t/bench/cost.sh t/bench/pingpong.sh t/bench/rstream.sh t/bench/why.sh t/bench/RESULTS \
	t/bench/page t/bench/run t/bench/runs.sh t/bench/series.sh t/bench/short.sh t/bench/sides.sh \
	t/bench/table.awk t/bench/table.sh
