/* Small sums. */
#ifndef EVR_UTIL_NUMBER_H
#define EVR_UTIL_NUMBER_H

#include <stdint.h>

static inline uint32_t evr_smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

#endif
