/* The one clock of the libraries: monotonic, in microseconds. */
#ifndef EVR_UTIL_CLOCK_H
#define EVR_UTIL_CLOCK_H

#include <limits.h>
#include <stdint.h>

enum { EVR_US_PER_MS = 1000 };

uint64_t evr_clock_now_us(void);

/* For a timer: not before it is over; of what is longer than a timer takes, the most it takes. */
static inline int evr_clock_ms_of(uint64_t us)
{
	uint64_t ms = us / EVR_US_PER_MS + (us % EVR_US_PER_MS != 0);

	return ms < INT_MAX ? (int)ms : INT_MAX;
}

#endif
