/*
 * What the numbers stand for. An entry is the pointer, with its lowest bit set while somebody is
 * about to take a reference: so no call waits for one on another number, or for a lock at all.
 */
#include "rs/rs.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

enum { BLOCKS = 1024, BLOCK = 1024 };

#define BUSY ((uintptr_t)1)

typedef _Atomic(uintptr_t) entry;

static _Atomic(entry *) blocks[BLOCKS];
static atomic_bool used;

static entry *find(int fd)
{
	entry *block;

	if (fd < 0 || fd >= BLOCKS * BLOCK)
		return NULL;
	block = atomic_load_explicit(&blocks[fd / BLOCK], memory_order_acquire);
	return block ? &block[fd % BLOCK] : NULL;
}

/* Blocks stay for good: they may be looked at at any time. */
static entry *make(int fd)
{
	entry *block, *expected = NULL;

	if (fd < 0 || fd >= BLOCKS * BLOCK)
		return NULL;
	if (find(fd))
		return find(fd);
	block = calloc(BLOCK, sizeof(*block));
	if (block && !atomic_compare_exchange_strong(&blocks[fd / BLOCK], &expected, block))
		free(block);
	return find(fd);
}

static uintptr_t lock(entry *at)
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

static struct evr_rs *exchange(entry *at, struct evr_rs *rs)
{
	uintptr_t before = lock(at);

	atomic_store(at, (uintptr_t)rs);
	return (struct evr_rs *)before;
}

int evr_rs_table_add(int fd, struct evr_rs *rs, struct evr_rs **stale)
{
	entry *at = make(fd);

	*stale = NULL;
	if (!at)
		return fd < BLOCKS * BLOCK ? -ENOMEM : -EMFILE;
	atomic_store(&used, true);
	*stale = exchange(at, rs);
	return 0;
}

struct evr_rs *evr_rs_table_remove(int fd)
{
	entry *at = find(fd);

	return at ? exchange(at, NULL) : NULL;
}

struct evr_rs *evr_rs_get(int fd)
{
	entry *at = find(fd);
	struct evr_rs *rs;

	if (!at || !atomic_load(at))
		return NULL;
	rs = (struct evr_rs *)lock(at);
	if (rs)
		atomic_fetch_add(&rs->refs, 1);
	atomic_store(at, (uintptr_t)rs);
	return rs;
}

bool evr_rs_table_is_used(void)
{
	return atomic_load_explicit(&used, memory_order_relaxed);
}
