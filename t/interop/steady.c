/*
 * steady: for perftest, to be preloaded. It measures the rate of the processor's counter against
 * gettimeofday(), and reports nothing where the machine paused between the two. Here the time is
 * the counter's, of a processor of 1 GHz.
 */
#include "config.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

enum { TICKS_PER_US = 1000, US_PER_S = 1000000 };

static uint64_t ticks(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * US_PER_S * TICKS_PER_US + (uint64_t)now.tv_nsec;
#endif
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	uint64_t us = ticks() / TICKS_PER_US;

	*now = (struct timeval){
		.tv_sec = (time_t)(us / US_PER_S),
		.tv_usec = (suseconds_t)(us % US_PER_S),
	};
	return 0;
}
