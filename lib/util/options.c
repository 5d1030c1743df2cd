#include "util/options.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* In the upper half of a size that evr_options_init() has set. */
static const size_t half = sizeof(size_t) * CHAR_BIT / 2;
static const size_t mark = 0xe5d2;

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

int evr_options_load(void *ours, size_t our_size, const void *callers)
{
	const unsigned char *bytes = callers;
	size_t size, i;

	if (!callers)
		return 0;
	memcpy(&size, callers, sizeof(size));
	if (size >> half != mark)
		return -EINVAL;
	size -= mark << half;
	if (size < sizeof(size))
		return -EINVAL;
	for (i = our_size; i < size; i++)
		if (bytes[i])
			return -EINVAL;
	memcpy(ours, callers, smaller(size, our_size));
	memcpy(ours, &our_size, sizeof(our_size));
	return 0;
}

void evr_options_store(void *callers, size_t size, const void *defaults, size_t our_size)
{
	memset(callers, 0, size);
	memcpy(callers, defaults, smaller(size, our_size));
	memcpy(callers, &size, sizeof(size));
}

void evr_options_init(void *callers, size_t size, const void *defaults, size_t our_size)
{
	size_t marked = mark << half | size;

	evr_options_store(callers, size, defaults, our_size);
	memcpy(callers, &marked, sizeof(marked));
}
