/* Numbers that follow from a seed. */
#ifndef EVR_SCHEDULE_RANDOM_H
#define EVR_SCHEDULE_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct random {
	uint64_t state;
};

static inline uint64_t random_next(struct random *random)
{
	uint64_t z = (random->state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* From 0 to n - 1. */
static inline unsigned random_below(struct random *random, unsigned n)
{
	return (unsigned)(random_next(random) % n);
}

/* Once in n times. */
static inline bool random_once_in(struct random *random, unsigned n)
{
	return !random_below(random, n);
}

#define RANDOM_OF(random, array)                                                                   \
	((array)[random_below((random), sizeof(array) / sizeof((array)[0]))])

#endif
