#include "config.h"

#include "ev/memory/pool.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ev/core/base.h"
#include "ev/core/log.h"
#include "ev/core/part.h"
#include "ev/core/stats.h"
#include "ev/memory/poison.h"
#include "util/options.h"

/* The size goes to mmap() as a power of two, in the flags' upper bits. */
enum {
	HUGE_PAGE_BITS = 21,
	HUGE_PAGE = 1 << HUGE_PAGE_BITS,
	HUGE_PAGE_FLAGS = MAP_HUGETLB | HUGE_PAGE_BITS << 26,
};

/* Buffers that are still held, of those that are told one by one. */
enum { HELD_TOLD = 8, PLACE_TEXT = 128 };

/* Buffers that are made at once of a slab's memory. */
enum { CARVED_AT_ONCE = 64 };

static const unsigned huge_flags = EVRDMA_POOL_OPT_HUGE_PAGES | EVRDMA_POOL_OPT_HUGE_PAGES_ONLY;

static const size_t largest_buf = (size_t)1 << 30;
static const size_t largest_slab = (size_t)1 << 30;

static const struct evrdma_pool_options default_options = {
	.alignment = 64,
	.slab_bytes = 256 * 1024,
};

void evrdma_pool_options_init_sized(struct evrdma_pool_options *options, size_t size)
{
	evr_options_init(options, size, &default_options, sizeof(default_options));
}

struct evr_slab {
	TAILQ_ENTRY(evr_slab) link;
	struct evrdma_pool *pool;
	struct evr_region region;
	bool huge;
	size_t count;
	size_t carved; /* the others have not been taken yet */
	size_t free; /* while the pool is trimmed: of its buffers */
	bool going;
	struct evrdma_buf bufs[];
};

/* --- for debugging -------------------------------------------------------------------------- */

/* What took a buffer, as addr2line(1) wants it. */
static const char *where_taken(const struct evrdma_buf *buf, char text[PLACE_TEXT])
{
	Dl_info info;

	if (!buf->taken_at)
		return "to receive into";
	if (!dladdr(buf->taken_at, &info) || !info.dli_fname)
		snprintf(text, PLACE_TEXT, "at %p", buf->taken_at);
	else
		snprintf(text, PLACE_TEXT, "at %s+0x%zx", info.dli_fname,
			(size_t)((const char *)buf->taken_at - (const char *)info.dli_fbase));
	return text;
}

static void log_held(const struct evrdma_buf *buf)
{
	char text[PLACE_TEXT];

	evr_log(EVRDMA_LOG_WARN, "still held: the buffer at %p, taken %s, user pointer %p",
		buf->data, where_taken(buf, text), buf->user);
}

static void log_written(const struct evrdma_buf *buf)
{
	char text[PLACE_TEXT];

	evr_log(EVRDMA_LOG_ERROR, "written to after it was given back: the buffer at %p, taken %s",
		buf->data, where_taken(buf, text));
}

/* The base goes, and whoever has a buffer of it is the program. */
static void tell_held(const struct evrdma_pool *pool)
{
	const struct evr_slab *slab;
	unsigned told = 0;
	size_t i;

	if (!pool->stats.bufs_out)
		return;
	evr_log(EVRDMA_LOG_WARN, "a base was closed, and %llu buffers of %zu bytes are still held",
		(unsigned long long)pool->stats.bufs_out, pool->buf_size);
	TAILQ_FOREACH (slab, &pool->slabs, link)
		for (i = 0; i < slab->carved; i++)
			if (slab->bufs[i].refs && told++ < HELD_TOLD)
				log_held(&slab->bufs[i]);
}

/* --- slabs ---------------------------------------------------------------------------------- */

static size_t round_up(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static size_t stride(const struct evrdma_pool *pool)
{
	return round_up(pool->buf_size, pool->options.alignment);
}

/* How many buffers the next slab has: 0 when the pool may not grow. */
static size_t next_slab_bufs(const struct evrdma_pool *pool)
{
	size_t n = pool->options.slab_bytes / stride(pool);
	size_t most = pool->options.max_bufs;

	if (!n)
		n = 1;
	if (most && n > most - pool->stats.bufs)
		n = most - pool->stats.bufs;
	return n;
}

static void unused(struct evrdma_buf *buf);

static bool has_pattern(const struct evrdma_pool *pool)
{
	return pool->options.flags & EVRDMA_POOL_OPT_POISON;
}

static void carve(struct evrdma_pool *pool, struct evr_slab *slab)
{
	size_t begin = slab->carved;
	size_t i = begin + CARVED_AT_ONCE;

	if (i > slab->count)
		i = slab->count;
	slab->carved = i;
	while (i-- > begin) {
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
}

/* Whether there was any memory to make buffers of. */
static bool carve_more(struct evrdma_pool *pool)
{
	struct evr_slab *slab = pool->uncarved;

	if (!slab)
		return false;
	carve(pool, slab);
	if (slab->carved == slab->count)
		pool->uncarved = TAILQ_NEXT(slab, link);
	return true;
}

static void *map(size_t bytes, int flags)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* Its length is made up to whole pages. NULL when there is no memory of the kind that is wanted. */
static void *map_slab(const struct evrdma_pool *pool, size_t *bytes, bool *huge)
{
	unsigned flags = pool->options.flags & huge_flags;
	size_t huge_bytes = round_up(*bytes, HUGE_PAGE);
	void *memory = NULL;

	*huge = false;
	if (flags)
		memory = map(huge_bytes, HUGE_PAGE_FLAGS);
	if (memory) {
		*huge = true;
		*bytes = huge_bytes;
		return memory;
	}
	if (flags & EVRDMA_POOL_OPT_HUGE_PAGES_ONLY)
		return NULL;
	if (flags)
		evr_log(EVRDMA_LOG_MSG, "no huge pages for %zu bytes of a pool", huge_bytes);
	*bytes = round_up(*bytes, (size_t)sysconf(_SC_PAGESIZE));
	return map(*bytes, 0);
}

static int add_slab(struct evrdma_pool *pool)
{
	size_t n = next_slab_bufs(pool);
	size_t bytes = n * stride(pool);
	struct evr_slab *slab;
	void *memory;

	if (!n)
		return -ENOBUFS;
	slab = malloc(sizeof(*slab) + n * sizeof(slab->bufs[0]));
	if (!slab)
		return -ENOMEM;
	memory = map_slab(pool, &bytes, &slab->huge);
	if (!memory) {
		free(slab);
		return -ENOMEM;
	}
	slab->pool = pool;
	slab->count = n;
	slab->carved = 0;
	evr_region_init(
		&slab->region, memory, bytes, evr_buf_access(pool->options.buf_flags));
	evr_poison(memory, bytes, has_pattern(pool));
	TAILQ_INSERT_TAIL(&pool->slabs, slab, link);
	if (!pool->uncarved)
		pool->uncarved = slab;
	pool->stats.bufs += n;
	pool->stats.slabs++;
	pool->stats.slabs_huge += slab->huge;
	pool->stats.bytes += bytes;
	return 0;
}

static void free_slab(struct evr_slab *slab)
{
	struct evrdma_pool_stats *stats = &slab->pool->stats;

	if (slab->pool->uncarved == slab)
		slab->pool->uncarved = TAILQ_NEXT(slab, link);
	stats->slabs--;
	stats->slabs_huge -= slab->huge;
	stats->bytes -= slab->region.bytes;
	stats->bufs -= slab->count;
	evr_region_fini(&slab->region);
	evr_unpoison(slab->region.addr, slab->region.bytes, false);
	munmap(slab->region.addr, slab->region.bytes);
	TAILQ_REMOVE(&slab->pool->slabs, slab, link);
	free(slab);
}

/* --- pools ---------------------------------------------------------------------------------- */

static bool options_valid(const struct evrdma_pool_options *o)
{
	const unsigned known = huge_flags | EVRDMA_POOL_OPT_POISON;

	return o->alignment >= 8 && o->alignment <= 4096 && !(o->alignment & (o->alignment - 1)) &&
		o->slab_bytes >= 4096 && o->slab_bytes <= largest_slab &&
		(!o->max_bufs || o->min_bufs <= o->max_bufs) && !(o->flags & ~known) &&
		evr_buf_access(o->buf_flags) >= 0;
}

static int init(struct evrdma_pool *pool, size_t buf_size,
	const struct evrdma_pool_options *options)
{
	int ret = 0;

	TAILQ_INIT(&pool->slabs);
	TAILQ_INIT(&pool->waiters);
	pool->buf_size = buf_size;
	pool->users = 1;
	pool->options = default_options;
	if (!buf_size || buf_size > largest_buf ||
		evr_options_load(&pool->options, sizeof(pool->options), options) ||
		!options_valid(&pool->options))
		return -EINVAL;
	while (!ret && pool->stats.bufs < pool->options.min_bufs)
		ret = add_slab(pool);
	return ret;
}

static void free_slabs(struct evrdma_pool *pool)
{
	struct evr_slab *slab;

	while ((slab = TAILQ_FIRST(&pool->slabs)))
		free_slab(slab);
}

/* Those of a base. */
struct pools {
	struct evr_part part;
	struct evr_pool_list list;
};

static const struct evr_part_class pools_class;

static struct evr_pool_list *list_of(const struct evrdma_base *base)
{
	struct evr_part *part = evr_part_find(base, &pools_class);

	return &evr_container_of(part, struct pools, part)->list;
}

struct evrdma_pool *evrdma_pool_new_with_options(
	struct evrdma_base *base, size_t buf_size, const struct evrdma_pool_options *options)
{
	struct evrdma_pool *pool = calloc(1, sizeof(*pool));
	int ret;

	if (!pool)
		return NULL;
	ret = init(pool, buf_size, options);
	if (ret) {
		free_slabs(pool);
		free(pool);
		errno = -ret;
		return NULL;
	}
	pool->base = base;
	TAILQ_INSERT_TAIL(list_of(base), pool, link);
	return pool;
}

struct evrdma_pool *evrdma_pool_new(struct evrdma_base *base, size_t buf_size, size_t max_bufs)
{
	struct evrdma_pool_options options;

	evrdma_pool_options_init(&options);
	options.max_bufs = max_bufs;
	return evrdma_pool_new_with_options(base, buf_size, &options);
}

static void leave_base(struct evrdma_pool *pool)
{
	if (pool->base)
		TAILQ_REMOVE(list_of(pool->base), pool, link);
	pool->base = NULL;
}

static void free_if_unused(struct evrdma_pool *pool)
{
	if (pool->users || pool->stats.bufs_out)
		return;
	free_slabs(pool);
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

void evrdma_pool_set_starved_cb(struct evrdma_pool *pool, evrdma_pool_starved_cb cb, void *arg)
{
	pool->starved_cb = cb;
	pool->starved_arg = arg;
}

void evr_pool_tell_starved(struct evrdma_pool *pool, int err)
{
	evr_log_failure("registering buffers to receive into", err);
	if (pool->starved_cb)
		pool->starved_cb(pool, err, pool->starved_arg);
}

/* Whoever still receives into it keeps it, but its owner knows it no more. */
void evrdma_pool_free(struct evrdma_pool *pool)
{
	if (pool)
		pool->starved_cb = NULL;
	evr_pool_unref(pool);
}

/* --- the part of the base ------------------------------------------------------------------- */

static void stop(struct evr_part *part)
{
	struct evr_pool_list *list = list_of(part->base);
	struct evrdma_pool *pool;

	while ((pool = TAILQ_FIRST(list))) {
		tell_held(pool);
		leave_base(pool);
		pool->users = 0;
		free_if_unused(pool);
	}
}

static void dump(const struct evr_part *part, const struct evr_dump *to)
{
	const struct evrdma_pool *pool;
	struct evrdma_pool_stats stats;

	TAILQ_FOREACH (pool, list_of(part->base), link) {
		evrdma_pool_get_stats(pool, &stats);
		evr_dump_pool(to, evrdma_pool_buf_size(pool), &stats);
	}
}

static const struct evr_part_class pools_class = { .stop = stop, .dump = dump };

int evr_pools_start(struct evrdma_base *base)
{
	struct pools *pools = calloc(1, sizeof(*pools));

	if (!pools)
		return -ENOMEM;
	TAILQ_INIT(&pools->list);
	evr_part_add(&pools->part, base, &pools_class);
	return 0;
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

/* Until one takes it: the first may have nothing to receive any more. */
static void wake(struct evrdma_pool *pool)
{
	struct evr_pool_waiter *waiter;

	while (pool->free_list && (waiter = TAILQ_FIRST(&pool->waiters))) {
		evr_pool_stop_waiting(pool, waiter);
		waiter->available(waiter);
	}
}

static struct evr_slab *slab_of(const struct evrdma_buf *buf)
{
	return evr_container_of(buf->region, struct evr_slab, region);
}

static void unused(struct evrdma_buf *buf)
{
	struct evrdma_pool *pool = slab_of(buf)->pool;

	evr_poison(buf->data, buf->size, has_pattern(pool));
	buf->next_free = pool->free_list;
	pool->free_list = buf;
	pool->stats.bufs_out--;
	wake(pool);
	free_if_unused(pool);
}

static struct evr_pool_waiter *first_to_offer(const struct evrdma_pool *pool)
{
	struct evr_pool_waiter *waiter;

	TAILQ_FOREACH (waiter, &pool->waiters, link)
		if (!waiter->starved)
			break;
	return waiter;
}

/* Who cannot use them either is starved by that, so that they come back once from each. */
static void offer(struct evrdma_pool *pool)
{
	struct evr_pool_waiter *waiter;

	while (pool->free_list && (waiter = first_to_offer(pool))) {
		evr_pool_stop_waiting(pool, waiter);
		waiter->available(waiter);
	}
}

void evr_pool_give_back(struct evrdma_pool *pool, struct evrdma_buf *bufs)
{
	struct evrdma_buf **last = &pool->free_list;

	while (carve_more(pool))
		;
	while (*last)
		last = &(*last)->next_free;
	*last = bufs;
	for (; bufs; bufs = bufs->next_free) {
		evr_poison(bufs->data, bufs->size, has_pattern(pool));
		bufs->refs = 0;
		pool->stats.bufs_out--;
	}
	offer(pool);
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

static void take(struct evrdma_pool *pool, struct evrdma_buf *buf)
{
	if (!evr_unpoison(buf->data, buf->size, has_pattern(pool)))
		log_written(buf);
	buf->refs = 1;
	buf->user = NULL;
	buf->taken_at = NULL;
	count_get(&pool->stats);
}

static int have_free(struct evrdma_pool *pool)
{
	int ret;

	if (pool->free_list || carve_more(pool))
		return 0;
	ret = add_slab(pool);
	if (!ret)
		carve_more(pool);
	return ret;
}

struct evrdma_buf *evr_pool_get(struct evrdma_pool *pool)
{
	struct evrdma_buf *buf;
	int ret = have_free(pool);

	if (ret) {
		pool->stats.get_errors++;
		errno = -ret;
		return NULL;
	}
	buf = pool->free_list;
	pool->free_list = buf->next_free;
	take(pool, buf);
	return buf;
}

struct evrdma_buf *evrdma_pool_get(struct evrdma_pool *pool)
{
	struct evrdma_buf *buf = evr_pool_get(pool);

	if (buf)
		buf->taken_at = __builtin_return_address(0);
	return buf;
}

/* --- giving back ---------------------------------------------------------------------------- */

static void count_free(struct evrdma_pool *pool)
{
	struct evrdma_buf *buf;
	struct evr_slab *slab;

	TAILQ_FOREACH (slab, &pool->slabs, link)
		slab->free = slab->count - slab->carved;
	for (buf = pool->free_list; buf; buf = buf->next_free)
		slab_of(buf)->free++;
}

static void choose_slabs(struct evrdma_pool *pool)
{
	size_t left = pool->stats.bufs;
	struct evr_slab *slab;

	TAILQ_FOREACH (slab, &pool->slabs, link) {
		slab->going = slab->free == slab->count &&
			left - slab->count >= pool->options.min_bufs;
		left -= slab->going ? slab->count : 0;
	}
}

static void forget_bufs(struct evrdma_pool *pool)
{
	struct evrdma_buf **link = &pool->free_list;

	while (*link)
		if (slab_of(*link)->going)
			*link = (*link)->next_free;
		else
			link = &(*link)->next_free;
}

size_t evrdma_pool_trim(struct evrdma_pool *pool)
{
	uint64_t before = pool->stats.bytes;
	struct evr_slab *slab, *next;

	count_free(pool);
	choose_slabs(pool);
	forget_bufs(pool);
	TAILQ_FOREACH_SAFE (slab, &pool->slabs, link, next)
		if (slab->going)
			free_slab(slab);
	return before - pool->stats.bytes;
}
