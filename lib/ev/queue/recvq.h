/*
 * A queue of receive buffers, of one QP or shared by many: what was submitted, what is posted, what
 * is to be posted. A buffer is referenced from submit to completion.
 */
#ifndef EVR_EV_RECVQ_H
#define EVR_EV_RECVQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "ev/core/timer.h"
#include "ev/device/owner.h"
#include "ev/memory/pool.h"

struct evr_cq;
struct evr_pd;
struct evrdma_base;
struct evr_recvq;

struct evr_recvq_ops {
	/* As ibv_post_recv(). */
	int (*post)(struct evr_recvq *recvq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	/* Something was submitted to an open queue: evr_recvq_post() is to be called. */
	void (*unposted)(struct evr_recvq *recvq);
	/* A buffer of the user's cannot be registered. From within evr_recvq_post(). */
	void (*refused)(struct evr_recvq *recvq, struct evrdma_buf *buf, int err);
	/* What was posted when the CQ was last seen empty is used. From evr_recvq_complete(). */
	void (*used_up)(struct evr_recvq *recvq);
};

struct evr_recvq {
	const struct evr_recvq_ops *ops;
	struct evrdma_pool *pool; /* NULL: the user submits */
	uint32_t depth;
	struct evr_pd *pd;
	const struct evr_cq *cq;
	uint32_t number; /* in the upper half of every wr_id */
	bool open;
	struct evrdma_buf **bufs; /* by slot; NULL when it is free */
	uint32_t *free_slots;
	uint32_t free_count;
	uint32_t *new_slots; /* submitted, not posted */
	uint32_t new_count;
	uint32_t posted;
	uint32_t posted_before; /* of them, those from before the CQ was last seen empty */
	unsigned cq_times_empty; /* when that was counted */
	uint32_t held; /* complete, and not told: each keeps a free slot from being used */
	bool paused;
	struct evr_pool_waiter pool_waiter;
	int lack; /* why the pool had no buffer, other than that all are out; 0 */
	struct evr_timer retry_timer; /* while it is starved */
};

int evr_recvq_init(struct evr_recvq *recvq, struct evrdma_base *base, uint32_t depth,
	struct evrdma_pool *pool, const struct evr_recvq_ops *ops);
/* Everything must be taken. */
void evr_recvq_fini(struct evr_recvq *recvq);

/*
 * There will be one in this domain: takes buffers from the pool and registers what is there, until
 * the time is over, then -EAGAIN; or 0.
 */
int evr_recvq_prepare(struct evr_recvq *recvq, struct evr_pd *pd, uint64_t deadline_us);
/* There is a verbs queue now: fills it from the pool and posts, all of it or nothing more: 0, or
 * -errno; then it is not open. */
int evr_recvq_open(struct evr_recvq *recvq, struct evr_pd *pd, const struct evr_cq *cq,
	uint32_t number);
/* While it is paused what is submitted is not posted, but what evr_recvq_open() has; a pool goes on
 * to replace what was told, but nothing that is held. */
void evr_recvq_pause(struct evr_recvq *recvq);
void evr_recvq_resume(struct evr_recvq *recvq);
/* No more is posted. */
void evr_recvq_stop(struct evr_recvq *recvq);
/* The verbs queue is gone, and with it what was posted: it is as if just submitted. */
void evr_recvq_close(struct evr_recvq *recvq);

/* 0, or -EAGAIN when the queue is full. */
int evr_recvq_submit(struct evr_recvq *recvq, struct evrdma_buf *buf);
/*
 * 0, or -errno of the verb. What cannot be registered is passed over: a buffer of the user's is
 * refused; those of a pool are tried again a little later, and the pool's owner is told.
 */
int evr_recvq_post(struct evr_recvq *recvq);

/*
 * The same between two completions, if a quarter of the queue or a whole chain is to be posted: a
 * turn may tell of more messages than there are buffers.
 */
int evr_recvq_post_due(struct evr_recvq *recvq);

/* A posted slot is complete: frees it and gives its buffer with the reference, or NULL for none. */
struct evrdma_buf *evr_recvq_complete(struct evr_recvq *recvq, uint32_t slot);
/* The user has seen the buffer: it is posted again when nobody held it and the queue wants it. */
void evr_recvq_recycle(struct evr_recvq *recvq, struct evrdma_buf *buf);
/* Any buffer that is in a closed queue, with its reference; NULL when there is none. */
struct evrdma_buf *evr_recvq_take_any(struct evr_recvq *recvq);

#endif
