/* What the programs of this folder share: a clock, and an end where a call has failed. */
#ifndef EVR_BENCH_BENCH_H
#define EVR_BENCH_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double bench_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Says why, by errno. */
static inline void bench_check(int failed, const char *what)
{
	if (!failed)
		return;
	perror(what);
	exit(1);
}

#endif
