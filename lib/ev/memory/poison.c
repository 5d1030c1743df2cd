#include "ev/memory/poison.h"

#include <string.h>

enum { PATTERN = 0xdb };

void evr_poison_with_pattern(void *data, size_t size)
{
	memset(data, PATTERN, size);
}

/* All bytes are like the first, and that is as it was left. */
bool evr_has_pattern(const void *data, size_t size)
{
	const unsigned char *bytes = data;

	return bytes[0] == PATTERN && !memcmp(bytes, bytes + 1, size - 1);
}
