/* Pools of buffers. */
#ifndef EVR_EV_POOL_H
#define EVR_EV_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "ev/core/task.h"
#include "ev/memory/buf.h"
#include "util/list.h"

#include <evrdma/buf.h>
#include <evrdma/stats.h>

struct evrdma_base;
struct evr_slab;

/* Somebody who wants a buffer of a pool that had none. */
struct evr_pool_waiter {
	TAILQ_ENTRY(evr_pool_waiter) link;
	void (*available)(struct evr_pool_waiter *waiter);
	bool waiting;
	bool starved; /* it has given back what it could not use, and wants other ones */
};

TAILQ_HEAD(evr_pool_waiter_list, evr_pool_waiter);
TAILQ_HEAD(evr_slab_list, evr_slab);

struct evrdma_pool {
	TAILQ_ENTRY(evrdma_pool) link;
	struct evrdma_base *base; /* NULL once the base is gone */
	struct evr_slab_list slabs;
	struct evr_pool_waiter_list waiters;
	struct evrdma_buf *free_list;
	struct evr_slab *uncarved; /* the first that has memory no buffers were made of yet */
	struct evrdma_pool_options options;
	struct evrdma_pool_stats stats;
	size_t buf_size;
	evrdma_pool_starved_cb starved_cb;
	void *starved_arg;
	unsigned users; /* the owner, and every QP that receives into it */
};

TAILQ_HEAD(evr_pool_list, evrdma_pool);

/* As evrdma_pool_get(), for the library's own use. */
struct evrdma_buf *evr_pool_get(struct evrdma_pool *pool);
void evr_pool_ref(struct evrdma_pool *pool);
void evr_pool_unref(struct evrdma_pool *pool);
void evr_pool_wait(struct evrdma_pool *pool, struct evr_pool_waiter *waiter);
void evr_pool_stop_waiting(struct evrdma_pool *pool, struct evr_pool_waiter *waiter);
/*
 * The only references go, to buffers that are of no use now, each the next_free of the one before:
 * they are the last to be taken, and offered to those who wait and have not given any back.
 */
void evr_pool_give_back(struct evrdma_pool *pool, struct evrdma_buf *bufs);
/* Somebody who receives into it lacks buffers, for a reason other than the pool's limit. */
void evr_pool_tell_starved(struct evrdma_pool *pool, int err);

int evr_pools_start(struct evrdma_base *base);

#endif
