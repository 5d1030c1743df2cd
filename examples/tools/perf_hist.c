#include "perf_hist.h"

enum { PART_BITS = 5 }; /* 2 to the power of it are PERF_HIST_PARTS */

static unsigned exponent(uint64_t value)
{
	return 63u - (unsigned)__builtin_clzll(value);
}

/* Small values have a bucket each, larger ones share it with what begins with the same bits. */
static unsigned bucket_of(uint64_t value)
{
	unsigned shift;

	if (value < PERF_HIST_PARTS)
		return (unsigned)value;
	shift = exponent(value) - PART_BITS;
	return (shift + 1) * PERF_HIST_PARTS + (unsigned)(value >> shift) - PERF_HIST_PARTS;
}

/* The largest value of the bucket. */
static uint64_t top_of(unsigned bucket)
{
	unsigned shift;

	if (bucket < PERF_HIST_PARTS)
		return bucket;
	shift = bucket / PERF_HIST_PARTS - 1;
	return ((((uint64_t)bucket % PERF_HIST_PARTS) + PERF_HIST_PARTS + 1) << shift) - 1;
}

void perf_hist_add(struct perf_hist *hist, uint64_t value)
{
	if (!hist->count || value < hist->min)
		hist->min = value;
	if (value > hist->max)
		hist->max = value;
	hist->count++;
	hist->sum += value;
	hist->buckets[bucket_of(value)]++;
}

uint64_t perf_hist_quantile(const struct perf_hist *hist, unsigned permille)
{
	uint64_t seen = 0, top;

	for (unsigned i = 0; i < PERF_HIST_BUCKETS; i++) {
		seen += hist->buckets[i];
		if (!seen || seen * 1000 < hist->count * permille)
			continue;
		top = top_of(i);
		return top < hist->max ? top : hist->max;
	}
	return hist->max;
}
