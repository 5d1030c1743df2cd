/* The allocator, which may fail. */
#include "fake/fake_heap.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
int __real_fake_lock(void);
void __real_fake_unlock(int *guard);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
int __wrap_fake_lock(void);
void __wrap_fake_unlock(int *guard);

int __real_posix_memalign(void **memory, size_t align, size_t size);
int __wrap_posix_memalign(void **memory, size_t align, size_t size);

/* The library may have a thread of its own. */
static struct {
	atomic_uint count;
	atomic_uint left;
	atomic_bool lasting;
	atomic_bool failed;
} heap;
static _Thread_local unsigned in_fake;

void fake_heap_fail_nth(unsigned n)
{
	heap.left = n;
	heap.lasting = false;
	heap.failed = false;
}

void fake_heap_fail_from(unsigned n)
{
	fake_heap_fail_nth(n);
	heap.lasting = true;
}

bool fake_heap_failed(void)
{
	return heap.failed;
}

unsigned fake_heap_count(void)
{
	return heap.count;
}

bool fake_heap_fails(void)
{
	unsigned left = heap.left, after;

	heap.count += !in_fake;
	do {
		if (!left || in_fake)
			return false;
		after = left > 1 ? left - 1 : heap.lasting;
	} while (!atomic_compare_exchange_weak(&heap.left, &left, after));
	if (left > 1)
		return false;
	heap.failed = true;
	errno = ENOMEM;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return fake_heap_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fake_heap_fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fake_heap_fails() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
	return fake_heap_fails() ? NULL : __real_strdup(text);
}

int __wrap_posix_memalign(void **memory, size_t align, size_t size)
{
	return fake_heap_fails() ? ENOMEM : __real_posix_memalign(memory, align, size);
}

/* Whoever has the fake's lock is the fake. */
int __wrap_fake_lock(void)
{
	int ret = __real_fake_lock();

	in_fake++;
	return ret;
}

void __wrap_fake_unlock(int *guard)
{
	in_fake--;
	__real_fake_unlock(guard);
}
