/* Pools of buffers, and where their slabs are registered. */
#ifndef EVR_EV_POOL_H
#define EVR_EV_POOL_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

#include "ev/task.h"
#include "util/list.h"

#include <evrdma/buf.h>

struct evrdma_base;
struct evr_device;
struct evr_slab;

/* One slab on one device. */
struct evr_mr {
	TAILQ_ENTRY(evr_mr) device_link;
	TAILQ_ENTRY(evr_mr) slab_link;
	struct evr_device *device;
	struct evr_slab *slab;
	struct ibv_mr *mr;
};

TAILQ_HEAD(evr_mr_list, evr_mr);

struct evrdma_buf {
	struct evr_slab *slab;
	void *data;
	unsigned refs;
	struct evrdma_buf *next_free;
};

/* Somebody who wants a buffer of a pool that had none. */
struct evr_pool_waiter {
	TAILQ_ENTRY(evr_pool_waiter) link;
	void (*available)(struct evr_pool_waiter *waiter);
	bool waiting;
};

TAILQ_HEAD(evr_pool_waiter_list, evr_pool_waiter);
TAILQ_HEAD(evr_slab_list, evr_slab);

struct evrdma_pool {
	TAILQ_ENTRY(evrdma_pool) link;
	struct evrdma_base *base; /* NULL once the base is gone */
	struct evr_slab_list slabs;
	struct evr_pool_waiter_list waiters;
	struct evrdma_buf *free_list;
	size_t buf_size;
	size_t max_bufs;
	size_t bufs;
	size_t bufs_out;
	unsigned users; /* the owner, and every QP that receives into it */
};

TAILQ_HEAD(evr_pool_list, evrdma_pool);

void evr_pool_ref(struct evrdma_pool *pool);
void evr_pool_unref(struct evrdma_pool *pool);
void evr_pool_wait(struct evrdma_pool *pool, struct evr_pool_waiter *waiter);
void evr_pool_stop_waiting(struct evrdma_pool *pool, struct evr_pool_waiter *waiter);

/* The key of a buffer on a device; registers its slab there the first time, which is slow. */
int evr_buf_lkey(struct evrdma_buf *buf, struct evr_device *device, uint32_t *lkey);

void evr_pool_forget_device(struct evr_device *device);
void evr_pool_release_all(struct evrdma_base *base);

#endif
