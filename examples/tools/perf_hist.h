/* How often which time was seen, to three in a hundred, in memory that does not grow. */
#ifndef TOOLS_PERF_HIST_H
#define TOOLS_PERF_HIST_H

#include <stdint.h>

/* A bucket for each of the 32 parts of each power of two. */
#define PERF_HIST_PARTS 32
#define PERF_HIST_BUCKETS ((64 - 4) * PERF_HIST_PARTS)

struct perf_hist {
	uint64_t count;
	uint64_t sum;
	uint64_t min;
	uint64_t max;
	uint64_t buckets[PERF_HIST_BUCKETS];
};

void perf_hist_add(struct perf_hist *hist, uint64_t value);

/* What permille of a thousand are at or below; the largest of all for 1000, 0 when there is none.
 */
uint64_t perf_hist_quantile(const struct perf_hist *hist, unsigned permille);

#endif
