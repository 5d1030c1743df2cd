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

	object_event(&store->object, POOL_STARVED);
	MUST(pool == store->pool, "pool %u is told of another", store->object.number);
	MUST(err > 0 && store->object.schedule->troubled, "pool %u starves with %d for nothing",
		store->object.number, err);
	schedule_act(store->object.schedule);
}

/* Whoever writes to a buffer that is free is found, the device too. */
static struct evrdma_pool *new_pool(struct owner *owner, struct store *store)
{
	static const size_t alignments[] = { 64, 64, 4096 };
	struct random *r = &owner->object.schedule->random;
	struct evrdma_pool_options options;

	evrdma_set_log_cb(on_log, NULL);
	evrdma_pool_options_init(&options);
	options.max_bufs = store->bufs;
	options.flags = EVRDMA_POOL_OPT_POISON;
	options.alignment = RANDOM_OF(r, alignments);
	if (random_once_in(r, 2))
		options.slab_bytes = 4096;
	if (random_once_in(r, 6))
		return evrdma_pool_new(owner->base, BUF_SIZE, store->bufs);
	return evrdma_pool_new_with_options(owner->base, BUF_SIZE, &options);
}

struct store *store_new(struct owner *owner)
{
	static const unsigned bufs[] = { 6, 20, 64 };
	struct schedule *s = owner->object.schedule;
	struct store *store = object_new(s, POOL, owner->object.owner, sizeof(*store));

	store->bufs = RANDOM_OF(&s->random, bufs);
	INSIDE(s, store->pool = new_pool(owner, store));
	MUST(store->pool, "no pool: %d", errno);
	INSIDE(s, evrdma_pool_set_starved_cb(store->pool, on_starved, store));
	trace(s, "pool %u: %u buffers", store->object.number, store->bufs);
	return store;
}

/* The buffers that are out come back to it, wherever it is. */
void store_give_up(struct owner *owner)
{
	struct store *store = owner->store;

	object_call(&store->object, POOL_FREE);
	evrdma_pool_free(store->pool);
	object_returned(&store->object, POOL_FREE, 0);
	object_gone(&store->object);
}

static void replace_pool(struct schedule *s)
{
	struct owner *owner = schedule_owner(s);

	if (!owner_has_room(owner, POOL))
		return;
	store_give_up(owner);
	owner->store = store_new(owner);
}

static struct store *pick_store(struct schedule *s)
{
	return object_pick(s, POOL, ANY_STATE);
}

static void get_pool(struct schedule *s)
{
	struct store *store = pick_store(s);
	struct evrdma_pool_stats stats;

	if (!store)
		return;
	object_call(&store->object, POOL_GET);
	evrdma_pool_get_stats(store->pool, &stats);
	MUST(evrdma_pool_buf_size(store->pool) == BUF_SIZE, "pool %u: another size",
		store->object.number);
	object_returned(&store->object, POOL_GET, 0);
	MUST(stats.bufs <= store->bufs && stats.bufs_out <= stats.bufs &&
			stats.bufs_out <= stats.bufs_out_max && stats.bufs_out <= stats.gets &&
			!stats.bufs == !stats.slabs && !stats.bufs == !stats.bytes,
		"pool %u: %llu buffers of %u, %llu out, %llu bytes", store->object.number,
		(unsigned long long)stats.bufs, store->bufs, (unsigned long long)stats.bufs_out,
		(unsigned long long)stats.bytes);
}

static void trim(struct schedule *s)
{
	struct store *store = pick_store(s);
	struct evrdma_pool_stats before, after;
	size_t bytes;

	if (!store)
		return;
	evrdma_pool_get_stats(store->pool, &before);
	object_call(&store->object, POOL_TRIM);
	bytes = evrdma_pool_trim(store->pool);
	object_returned(&store->object, POOL_TRIM, (int)bytes);
	evrdma_pool_get_stats(store->pool, &after);
	MUST(before.bytes - after.bytes == bytes && before.bufs_out == after.bufs_out &&
			after.bufs_out <= after.bufs,
		"pool %u: %zu bytes were given back, of %llu are left %llu", store->object.number,
		bytes, (unsigned long long)before.bytes, (unsigned long long)after.bytes);
	MUST(after.bufs_out || !after.bytes, "pool %u keeps what nobody has", store->object.number);
}

/* --- shared receive queues ------------------------------------------------------------------- */

static void give_up_one(struct shared *shared)
{
	object_call(&shared->object, SRQ_FREE);
	evrdma_srq_free(shared->srq);
	object_returned(&shared->object, SRQ_FREE, 0);
	object_gone(&shared->object);
}

/* Whoever still uses it keeps it. Completions of all the others may wait. */
void shared_give_up(struct owner *owner)
{
	if (owner->shared)
		give_up_one(owner->shared);
	owner->shared = NULL;
}

struct shared *shared_new(struct owner *owner)
{
	struct schedule *s = owner->object.schedule;
	struct shared *shared;

	if (!s->has_srqs || s->object_count >= ENOUGH_OBJECTS)
		return NULL;
	shared = object_new(s, SRQ, owner->object.owner, sizeof(*shared));
	shared->depth = 1 + random_below(&s->random, 6);
	INSIDE(s, shared->srq = evrdma_srq_new(owner->base, owner->store->pool, shared->depth));
	MUST(shared->srq, "no SRQ: %d", errno);
	return shared;
}

struct evrdma_srq *owner_srq(const struct owner *owner)
{
	return owner->shared ? owner->shared->srq : NULL;
}

static void set_limit(struct shared *shared);

static void on_limit(struct evrdma_srq *srq, void *arg)
{
	struct shared *shared = arg;
	struct schedule *s = shared->object.schedule;

	object_event(&shared->object, SRQ_LIMIT);
	MUST(srq == shared->srq, "SRQ %u is told of another", shared->object.number);
	MUST(shared->limit, "SRQ %u is watched by nobody", shared->object.number);
	if (!s->ending && random_once_in(&s->random, 2))
		set_limit(shared);
	schedule_act(s);
}

static void set_limit(struct shared *shared)
{
	struct schedule *s = shared->object.schedule;
	uint32_t limit = random_below(&s->random, shared->depth + 2);
	int ret;

	object_call(&shared->object, SRQ_SET_LIMIT);
	ret = evrdma_srq_set_limit(shared->srq, limit, limit ? on_limit : NULL, shared);
	object_returned(&shared->object, SRQ_SET_LIMIT, ret);
	if (limit > shared->depth) {
		MUST(ret == -EINVAL, "SRQ %u: a limit that is too high gives %d",
			shared->object.number, ret);
		return;
	}
	MUST(!ret || !machine.exact || schedule_excuses(s, ret), "SRQ %u: a limit gives %d",
		shared->object.number, ret);
	shared->limit = limit;
}

static void limit_some(struct schedule *s)
{
	struct shared *shared = object_pick(s, SRQ, ANY_STATE);

	if (shared)
		set_limit(shared);
}

/* --- replacements --------------------------------------------------------------------------- */

static void replace_srq(struct schedule *s)
{
	struct owner *owner = schedule_owner(s);

	if (!owner || owner->given_up)
		return;
	trace(s, "base %u: another SRQ", owner->object.number);
	shared_give_up(owner);
	owner->shared = shared_new(owner);
}

static void replace_domain(struct schedule *s)
{
	struct owner *owner = schedule_owner(s);

	if (!owner || owner->given_up)
		return;
	trace(s, "base %u: another domain", owner->object.number);
	INSIDE(s, evrdma_domain_free(owner->domain));
	INSIDE(s, owner->domain = evrdma_domain_new(owner->base));
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
