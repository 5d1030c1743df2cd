#include "ev/memory/poison.h"

/* All bytes are like the first, and that is as it was left. */
bool evr_has_pattern(const void *data, size_t size)
{
	const unsigned char *bytes = data;

	return bytes[0] == EVR_POISON_PATTERN && !memcmp(bytes, bytes + 1, size - 1);
}
