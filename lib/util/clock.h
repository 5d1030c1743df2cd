/* The one clock of the libraries: monotonic, in microseconds. */
#ifndef EVR_UTIL_CLOCK_H
#define EVR_UTIL_CLOCK_H

#include <stdint.h>

enum { EVR_US_PER_MS = 1000 };

uint64_t evr_clock_now_us(void);

/* For a timer: not before it is over. */
static inline int evr_clock_ms_of(uint64_t us)
{
	return (int)((us + EVR_US_PER_MS - 1) / EVR_US_PER_MS);
}

#endif
