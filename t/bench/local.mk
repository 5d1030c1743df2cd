# Numbers, never verdicts: `make bench`, then for instance `t/guest/run t/bench/cost.sh rxe`;
# RESULTS has some.
if !SYSTEM_RDMACM
EXTRA_PROGRAMS += t/bench/cost
t_bench_cost_SOURCES = t/bench/cost.c
t_bench_cost_LDADD = librdmacm.la libevr_util.la $(VERBS_LIBS)
EXTRA_PROGRAMS += t/bench/pingpong
t_bench_pingpong_SOURCES = t/bench/pingpong.c
t_bench_pingpong_LDADD = librdmacm.la $(LIBEVENT_LIBS)
bench: t/bench/cost$(EXEEXT) t/bench/pingpong$(EXEEXT)
CLEANFILES += t/bench/cost$(EXEEXT) t/bench/pingpong$(EXEEXT)
endif
.PHONY: bench
EXTRA_DIST += t/bench/cost.sh t/bench/pingpong.sh t/bench/rstream.sh t/bench/RESULTS
