/*
 * Memory that nobody may touch: under AddressSanitizer, whoever does is stopped there and then;
 * with a pattern it is found when the memory is used again.
 */
#ifndef EVR_EV_POISON_H
#define EVR_EV_POISON_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { EVR_POISON_PATTERN = 0xdb };

/* There when the program is built with AddressSanitizer, whether or not the library is. */
extern void __asan_poison_memory_region(const volatile void *data, size_t size)
	__attribute__((weak));
extern void __asan_unpoison_memory_region(const volatile void *data, size_t size)
	__attribute__((weak));

bool evr_has_pattern(const void *data, size_t size);

static inline void evr_poison(void *data, size_t size, bool pattern)
{
	if (pattern)
		memset(data, EVR_POISON_PATTERN, size);
	if (__asan_poison_memory_region)
		__asan_poison_memory_region(data, size);
}

/* Whether nobody has written to it meanwhile, as far as is known. */
static inline bool evr_unpoison(void *data, size_t size, bool pattern)
{
	if (__asan_unpoison_memory_region)
		__asan_unpoison_memory_region(data, size);
	return !pattern || evr_has_pattern(data, size);
}

#endif
