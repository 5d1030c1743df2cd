#include "ev/pool.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ev/base.h"
#include "util/options.h"

enum {
	ALIGNMENT = 64,
	SLAB_BYTES = 256 * 1024,
};

static const size_t largest_buf = (size_t)1 << 30;

struct evr_slab {
	TAILQ_ENTRY(evr_slab) link;
	struct evrdma_pool *pool;
	struct evr_region region;
	struct evrdma_buf bufs[];
};

/* --- slabs ---------------------------------------------------------------------------------- */

static size_t round_up(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static size_t stride(const struct evrdma_pool *pool)
{
	return round_up(pool->buf_size, ALIGNMENT);
}

/* How many buffers the next slab has: 0 when the pool may not grow. */
static size_t next_slab_bufs(const struct evrdma_pool *pool)
{
	size_t n = SLAB_BYTES / stride(pool);

	if (!n)
		n = 1;
	if (pool->max_bufs && n > pool->max_bufs - pool->stats.bufs)
		n = pool->max_bufs - pool->stats.bufs;
	return n;
}

static void unused(struct evrdma_buf *buf);

static void carve(struct evrdma_pool *pool, struct evr_slab *slab, size_t n)
{
	size_t i;

	for (i = n; i-- > 0;) {
		struct evrdma_buf *buf = &slab->bufs[i];

		*buf = (struct evrdma_buf){
			.region = &slab->region,
			.size = pool->buf_size,
			.unused = unused,
			.data = (char *)slab->region.addr + i * stride(pool),
			.next_free = pool->free_list,
		};
		pool->free_list = buf;
	}
	pool->stats.bufs += n;
}

static int add_slab(struct evrdma_pool *pool)
{
	size_t n = next_slab_bufs(pool);
	size_t bytes = round_up(n * stride(pool), (size_t)sysconf(_SC_PAGESIZE));
	struct evr_slab *slab;
	void *memory;

	if (!n)
		return -ENOBUFS;
	slab = malloc(sizeof(*slab) + n * sizeof(slab->bufs[0]));
	if (!slab)
		return -ENOMEM;
	memory = mmap(
		NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		free(slab);
		return -ENOMEM;
	}
	slab->pool = pool;
	evr_region_init(&slab->region, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	TAILQ_INSERT_TAIL(&pool->slabs, slab, link);
	carve(pool, slab, n);
	pool->stats.slabs++;
	pool->stats.bytes += bytes;
	return 0;
}

static void free_slab(struct evr_slab *slab)
{
	evr_region_fini(&slab->region);
	munmap(slab->region.addr, slab->region.bytes);
	TAILQ_REMOVE(&slab->pool->slabs, slab, link);
	free(slab);
}

/* --- pools ---------------------------------------------------------------------------------- */

struct evrdma_pool *evrdma_pool_new(struct evrdma_base *base, size_t buf_size, size_t max_bufs)
{
	struct evrdma_pool *pool;

	if (!buf_size || buf_size > largest_buf) {
		errno = EINVAL;
		return NULL;
	}
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return NULL;
	pool->base = base;
	pool->buf_size = buf_size;
	pool->max_bufs = max_bufs;
	pool->users = 1;
	TAILQ_INIT(&pool->slabs);
	TAILQ_INIT(&pool->waiters);
	TAILQ_INSERT_TAIL(&base->pools, pool, link);
	return pool;
}

static void leave_base(struct evrdma_pool *pool)
{
	if (pool->base)
		TAILQ_REMOVE(&pool->base->pools, pool, link);
	pool->base = NULL;
}

static void free_if_unused(struct evrdma_pool *pool)
{
	struct evr_slab *slab;

	if (pool->users || pool->stats.bufs_out)
		return;
	while ((slab = TAILQ_FIRST(&pool->slabs)))
		free_slab(slab);
	leave_base(pool);
	free(pool);
}

void evr_pool_ref(struct evrdma_pool *pool)
{
	if (pool)
		pool->users++;
}

void evr_pool_unref(struct evrdma_pool *pool)
{
	if (!pool)
		return;
	pool->users--;
	free_if_unused(pool);
}

void evrdma_pool_free(struct evrdma_pool *pool)
{
	evr_pool_unref(pool);
}

void evr_pool_release_all(struct evrdma_base *base)
{
	struct evrdma_pool *pool;

	while ((pool = TAILQ_FIRST(&base->pools))) {
		leave_base(pool);
		pool->users = 0;
		free_if_unused(pool);
	}
}

size_t evrdma_pool_buf_size(const struct evrdma_pool *pool)
{
	return pool->buf_size;
}

void evr_pool_wait(struct evrdma_pool *pool, struct evr_pool_waiter *waiter)
{
	if (waiter->waiting)
		return;
	waiter->waiting = true;
	TAILQ_INSERT_TAIL(&pool->waiters, waiter, link);
}

void evr_pool_stop_waiting(struct evrdma_pool *pool, struct evr_pool_waiter *waiter)
{
	if (!waiter->waiting)
		return;
	waiter->waiting = false;
	TAILQ_REMOVE(&pool->waiters, waiter, link);
}

static void wake_one(struct evrdma_pool *pool)
{
	struct evr_pool_waiter *waiter = TAILQ_FIRST(&pool->waiters);

	if (!waiter)
		return;
	evr_pool_stop_waiting(pool, waiter);
	waiter->available(waiter);
}

static void unused(struct evrdma_buf *buf)
{
	struct evrdma_pool *pool =
		evr_container_of(buf->region, struct evr_slab, region)->pool;

	buf->next_free = pool->free_list;
	pool->free_list = buf;
	pool->stats.bufs_out--;
	wake_one(pool);
	free_if_unused(pool);
}

static void count_get(struct evrdma_pool_stats *stats)
{
	stats->gets++;
	stats->bufs_out++;
	if (stats->bufs_out > stats->bufs_out_max)
		stats->bufs_out_max = stats->bufs_out;
}

void evrdma_pool_get_stats_sized(
	const struct evrdma_pool *pool, struct evrdma_pool_stats *stats, size_t size)
{
	evr_options_store(stats, size, &pool->stats, sizeof(pool->stats));
}

struct evrdma_buf *evrdma_pool_get(struct evrdma_pool *pool)
{
	struct evrdma_buf *buf;
	int ret;

	if (!pool->free_list) {
		ret = add_slab(pool);
		if (ret) {
			pool->stats.get_errors++;
			errno = -ret;
			return NULL;
		}
	}
	buf = pool->free_list;
	pool->free_list = buf->next_free;
	buf->refs = 1;
	count_get(&pool->stats);
	return buf;
}
