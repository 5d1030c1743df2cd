/* malloc(3) and its like in the place of the C library's, for all that is in the process. */
#include "scale/allocations.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

static atomic_ulong count;

unsigned long allocations_now(void)
{
	return atomic_load(&count);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* The C library's own names of them; its free(3) takes what comes of these. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
	atomic_fetch_add(&count, 1);
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	atomic_fetch_add(&count, 1);
	return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	atomic_fetch_add(&count, 1);
	return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	atomic_fetch_add(&count, 1);
	return __libc_memalign(alignment, size);
}
#endif
