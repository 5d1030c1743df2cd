/* Pools, shared receive queues and domains: they may be given up while others use them. */
#include "schedule/schedule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- pools ----------------------------------------------------------------------------------- */

static void on_log(enum evrdma_log_level level, const char *text, void *arg)
{
	MUST(!strstr(text, "written to after"), "a buffer was %s", text);
}

static void on_starved(struct evrdma_pool *pool, int err, void *arg)
{
	struct store *store = arg;

	thing_event(&store->thing, POOL_STARVED);
	MUST(pool == store->pool, "pool %u is told of another", store->thing.number);
	MUST(err > 0 && store->thing.world->troubled, "pool %u starves with %d for nothing",
		store->thing.number, err);
	world_act(store->thing.world);
}

/* Whoever writes to a buffer that is free is found, the device too. */
static struct evrdma_pool *new_pool(struct home *home, struct store *store)
{
	static const size_t alignments[] = { 64, 64, 4096 };
	struct random *r = &home->thing.world->random;
	struct evrdma_pool_options options;

	evrdma_set_log_cb(on_log, NULL);
	evrdma_pool_options_init(&options);
	options.max_bufs = store->bufs;
	options.flags = EVRDMA_POOL_OPT_POISON;
	options.alignment = RANDOM_OF(r, alignments);
	if (random_once_in(r, 2))
		options.slab_bytes = 4096;
	if (random_once_in(r, 6))
		return evrdma_pool_new(home->base, BUF_SIZE, store->bufs);
	return evrdma_pool_new_with_options(home->base, BUF_SIZE, &options);
}

struct store *store_new(struct home *home)
{
	static const unsigned bufs[] = { 6, 20, 64 };
	struct world *w = home->thing.world;
	struct store *store = thing_new(w, POOL, home->thing.home, sizeof(*store));

	store->bufs = RANDOM_OF(&w->random, bufs);
	INSIDE(w, store->pool = new_pool(home, store));
	MUST(store->pool, "no pool: %d", errno);
	INSIDE(w, evrdma_pool_set_starved_cb(store->pool, on_starved, store));
	trace(w, "pool %u: %u buffers", store->thing.number, store->bufs);
	return store;
}

/* The buffers that are out come back to it, wherever it is. */
void store_give_up(struct home *home)
{
	struct store *store = home->store;

	thing_call(&store->thing, POOL_FREE);
	evrdma_pool_free(store->pool);
	thing_returned(&store->thing, POOL_FREE, 0);
	thing_gone(&store->thing);
}

static void replace_pool(struct world *w)
{
	struct home *home = world_home(w);

	if (!home_has_room(home, POOL))
		return;
	store_give_up(home);
	home->store = store_new(home);
}

static struct store *pick_store(struct world *w)
{
	return thing_pick(w, POOL, ANY_STATE);
}

static void get_pool(struct world *w)
{
	struct store *store = pick_store(w);
	struct evrdma_pool_stats s;

	if (!store)
		return;
	thing_call(&store->thing, POOL_GET);
	evrdma_pool_get_stats(store->pool, &s);
	MUST(evrdma_pool_buf_size(store->pool) == BUF_SIZE, "pool %u: another size",
		store->thing.number);
	thing_returned(&store->thing, POOL_GET, 0);
	MUST(s.bufs <= store->bufs && s.bufs_out <= s.bufs && s.bufs_out <= s.bufs_out_max &&
			s.bufs_out <= s.gets && !s.bufs == !s.slabs && !s.bufs == !s.bytes,
		"pool %u: %llu buffers of %u, %llu out, %llu bytes", store->thing.number,
		(unsigned long long)s.bufs, store->bufs, (unsigned long long)s.bufs_out,
		(unsigned long long)s.bytes);
}

static void trim(struct world *w)
{
	struct store *store = pick_store(w);
	struct evrdma_pool_stats before, after;
	size_t bytes;

	if (!store)
		return;
	evrdma_pool_get_stats(store->pool, &before);
	thing_call(&store->thing, POOL_TRIM);
	bytes = evrdma_pool_trim(store->pool);
	thing_returned(&store->thing, POOL_TRIM, (int)bytes);
	evrdma_pool_get_stats(store->pool, &after);
	MUST(before.bytes - after.bytes == bytes && before.bufs_out == after.bufs_out &&
			after.bufs_out <= after.bufs,
		"pool %u: %zu bytes were given back, of %llu are left %llu", store->thing.number,
		bytes, (unsigned long long)before.bytes, (unsigned long long)after.bytes);
	MUST(after.bufs_out || !after.bytes, "pool %u keeps what nobody has", store->thing.number);
}

/* --- shared receive queues ------------------------------------------------------------------- */

static void give_up_one(struct shared *shared)
{
	thing_call(&shared->thing, SRQ_FREE);
	evrdma_srq_free(shared->srq);
	thing_returned(&shared->thing, SRQ_FREE, 0);
	thing_gone(&shared->thing);
}

/* Whoever still uses it keeps it. Completions of all the others may wait. */
void shared_give_up(struct home *home)
{
	if (home->shared)
		give_up_one(home->shared);
	home->shared = NULL;
}

struct shared *shared_new(struct home *home)
{
	struct world *w = home->thing.world;
	struct shared *shared;

	if (!w->has_srqs || w->thing_count >= ENOUGH_THINGS)
		return NULL;
	shared = thing_new(w, SRQ, home->thing.home, sizeof(*shared));
	shared->depth = 1 + random_below(&w->random, 6);
	INSIDE(w, shared->srq = evrdma_srq_new(home->base, home->store->pool, shared->depth));
	MUST(shared->srq, "no SRQ: %d", errno);
	return shared;
}

struct evrdma_srq *home_srq(const struct home *home)
{
	return home->shared ? home->shared->srq : NULL;
}

static void set_limit(struct shared *shared);

static void on_limit(struct evrdma_srq *srq, void *arg)
{
	struct shared *shared = arg;
	struct world *w = shared->thing.world;

	thing_event(&shared->thing, SRQ_LIMIT);
	MUST(srq == shared->srq, "SRQ %u is told of another", shared->thing.number);
	MUST(shared->limit, "SRQ %u is watched by nobody", shared->thing.number);
	if (!w->ending && random_once_in(&w->random, 2))
		set_limit(shared);
	world_act(w);
}

static void set_limit(struct shared *shared)
{
	struct world *w = shared->thing.world;
	uint32_t limit = random_below(&w->random, shared->depth + 2);
	int ret;

	thing_call(&shared->thing, SRQ_SET_LIMIT);
	ret = evrdma_srq_set_limit(shared->srq, limit, limit ? on_limit : NULL, shared);
	thing_returned(&shared->thing, SRQ_SET_LIMIT, ret);
	if (limit > shared->depth) {
		MUST(ret == -EINVAL, "SRQ %u: a limit that is too high gives %d",
			shared->thing.number, ret);
		return;
	}
	MUST(!ret || !machine.exact || world_excuses(w, ret), "SRQ %u: a limit gives %d",
		shared->thing.number, ret);
	shared->limit = limit;
}

static void limit_some(struct world *w)
{
	struct shared *shared = thing_pick(w, SRQ, ANY_STATE);

	if (shared)
		set_limit(shared);
}

/* --- others in their place ------------------------------------------------------------------- */

static void replace_srq(struct world *w)
{
	struct home *home = world_home(w);

	if (!home || home->given_up)
		return;
	trace(w, "base %u: another SRQ", home->thing.number);
	shared_give_up(home);
	home->shared = shared_new(home);
}

static void replace_domain(struct world *w)
{
	struct home *home = world_home(w);

	if (!home || home->given_up)
		return;
	trace(w, "base %u: another domain", home->thing.number);
	INSIDE(w, evrdma_domain_free(home->domain));
	INSIDE(w, home->domain = evrdma_domain_new(home->base));
}

const struct action store_actions[] = {
	{ "replace pool", 1, replace_pool },
	{ "get pool", 1, get_pool },
	{ "trim", 3, trim },
	{ "replace SRQ", 2, replace_srq },
	{ "limit SRQ", 4, limit_some },
	{ "replace domain", 1, replace_domain },
	{ 0 },
};
