#include "ev/memory/poison.h"

#include <string.h>

enum { PATTERN = 0xdb };

/* There when the program is built with AddressSanitizer, whether or not the library is. */
extern void __asan_poison_memory_region(const volatile void *data, size_t size)
	__attribute__((weak));
extern void __asan_unpoison_memory_region(const volatile void *data, size_t size)
	__attribute__((weak));

void evr_poison(void *data, size_t size, bool pattern)
{
	if (pattern)
		memset(data, PATTERN, size);
	if (__asan_poison_memory_region)
		__asan_poison_memory_region(data, size);
}

bool evr_unpoison(void *data, size_t size, bool pattern)
{
	const unsigned char *bytes = data;

	if (__asan_unpoison_memory_region)
		__asan_unpoison_memory_region(data, size);
	/* All bytes are like the first, and that is as it was left. */
	return !pattern || (bytes[0] == PATTERN && !memcmp(bytes, bytes + 1, size - 1));
}
