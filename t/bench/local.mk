# Numbers, never verdicts: `make bench`, then for instance `t/guest/run t/bench/cost.sh rxe`.
if !SYSTEM_RDMACM
EXTRA_PROGRAMS += t/bench/cost
t_bench_cost_SOURCES = t/bench/cost.c
t_bench_cost_LDADD = librdmacm.la libevr_util.la $(VERBS_LIBS)
bench: t/bench/cost$(EXEEXT)
CLEANFILES += t/bench/cost$(EXEEXT)
endif
.PHONY: bench
EXTRA_DIST += t/bench/cost.sh
