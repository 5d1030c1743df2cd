#include "util/fdmap.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#define BUSY ((uintptr_t)1)

static evr_fdmap_entry *find(struct evr_fdmap *map, int fd)
{
	evr_fdmap_entry *block;

	if (fd < 0 || fd >= EVR_FDMAP_MAX)
		return NULL;
	block = atomic_load_explicit(&map->blocks[fd / EVR_FDMAP_BLOCK], memory_order_acquire);
	return block ? &block[fd % EVR_FDMAP_BLOCK] : NULL;
}

int evr_fdmap_make(struct evr_fdmap *map, int fd)
{
	evr_fdmap_entry *block, *expected = NULL;

	if (fd < 0 || fd >= EVR_FDMAP_MAX)
		return fd < 0 ? -EBADF : -EMFILE;
	if (find(map, fd))
		return 0;
	block = calloc(EVR_FDMAP_BLOCK, sizeof(*block));
	if (!block)
		return -ENOMEM;
	if (!atomic_compare_exchange_strong(&map->blocks[fd / EVR_FDMAP_BLOCK], &expected, block))
		free(block);
	return 0;
}

static uintptr_t lock(evr_fdmap_entry *at)
{
	uintptr_t value = atomic_load(at);

	for (;;) {
		if (value & BUSY) {
			sched_yield();
			value = atomic_load(at);
		} else if (atomic_compare_exchange_weak(at, &value, value | BUSY)) {
			return value;
		}
	}
}

void *evr_fdmap_set(struct evr_fdmap *map, int fd, void *value)
{
	evr_fdmap_entry *at = find(map, fd);
	uintptr_t before;

	if (!at)
		return NULL;
	before = lock(at);
	atomic_store(at, (uintptr_t)value);
	return (void *)before;
}

void *evr_fdmap_peek(struct evr_fdmap *map, int fd)
{
	evr_fdmap_entry *at = find(map, fd);

	return at ? (void *)(atomic_load(at) & ~BUSY) : NULL;
}

void *evr_fdmap_get(struct evr_fdmap *map, int fd, void (*hold)(void *value))
{
	evr_fdmap_entry *at = find(map, fd);
	uintptr_t value;

	if (!at || !atomic_load(at))
		return NULL;
	value = lock(at);
	if (value)
		hold((void *)value);
	atomic_store(at, value);
	return (void *)value;
}

void *evr_fdmap_try(struct evr_fdmap *map, int fd, void (*hold)(void *value))
{
	evr_fdmap_entry *at = find(map, fd);
	uintptr_t value = at ? atomic_load(at) : 0;

	if (!value || value & BUSY || !atomic_compare_exchange_strong(at, &value, value | BUSY))
		return NULL;
	hold((void *)value);
	atomic_store(at, value);
	return (void *)value;
}

int evr_fdmap_next(struct evr_fdmap *map, int fd, const void *value)
{
	for (; fd >= 0 && fd < EVR_FDMAP_MAX; fd++) {
		evr_fdmap_entry *at = find(map, fd);
		uintptr_t there = at ? atomic_load(at) & ~BUSY : 0;

		if (!at)
			fd |= EVR_FDMAP_BLOCK - 1;
		else if (there && (!value || there == (uintptr_t)value))
			return fd;
	}
	return -1;
}

static void unlock_block(evr_fdmap_entry *block)
{
	int i;

	for (i = 0; i < EVR_FDMAP_BLOCK; i++)
		atomic_fetch_and(&block[i], ~BUSY);
}

/* Those that have nothing, too: somebody may have been about to put the first there. */
void evr_fdmap_unlock_all(struct evr_fdmap *map)
{
	evr_fdmap_entry *block;
	int i;

	for (i = 0; i < EVR_FDMAP_BLOCKS; i++) {
		block = atomic_load(&map->blocks[i]);
		if (block)
			unlock_block(block);
	}
}
