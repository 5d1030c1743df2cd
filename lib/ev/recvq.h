/*
 * A queue of receive buffers, of one QP or shared by many: what was submitted, what is posted, what
 * is to be posted. A buffer is referenced from submit to completion.
 */
#ifndef EVR_EV_RECVQ_H
#define EVR_EV_RECVQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "ev/pool.h"
#include "ev/work.h"

struct evr_pd;
struct evr_recvq;

struct evr_recvq_ops {
	/* As ibv_post_recv(). */
	int (*post)(struct evr_recvq *recvq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	/* Something was submitted to an open queue: evr_recvq_post() is to be called. */
	void (*unposted)(struct evr_recvq *recvq);
};

struct evr_recvq {
	const struct evr_recvq_ops *ops;
	struct evrdma_pool *pool; /* NULL: the user submits */
	uint32_t depth;
	struct evr_pd *pd;
	uint32_t number; /* in the upper half of every wr_id */
	bool open;
	struct evrdma_buf **bufs; /* by slot; NULL when it is free */
	uint32_t *free_slots;
	uint32_t free_count;
	uint32_t *new_slots; /* submitted, not posted */
	uint32_t new_count;
	uint32_t posted;
	struct evr_pool_waiter pool_waiter;
};

int evr_recvq_init(struct evr_recvq *recvq, uint32_t depth, struct evrdma_pool *pool,
	const struct evr_recvq_ops *ops);
/* Everything must be taken. */
void evr_recvq_fini(struct evr_recvq *recvq);

/* There is a verbs queue now: fills it from the pool and posts. 0 or -errno; then it is not open.
 */
int evr_recvq_open(struct evr_recvq *recvq, struct evr_pd *pd, uint32_t number);
/* No more is posted. */
void evr_recvq_stop(struct evr_recvq *recvq);
/* The verbs queue is gone, and with it what was posted: it is as if just submitted. */
void evr_recvq_close(struct evr_recvq *recvq);

/* 0, or -EAGAIN when the queue is full. */
int evr_recvq_submit(struct evr_recvq *recvq, struct evrdma_buf *buf);
/* 0, or -errno of the verb or of a registration. */
int evr_recvq_post(struct evr_recvq *recvq);

/* A posted slot is complete: frees it and gives its buffer with the reference, or NULL for none. */
struct evrdma_buf *evr_recvq_complete(struct evr_recvq *recvq, uint32_t slot);
/* The user has seen the buffer: it is posted again when nobody held it and the queue wants it. */
void evr_recvq_recycle(struct evr_recvq *recvq, struct evrdma_buf *buf);
/* Any buffer that is in a closed queue, with its reference; NULL when there is none. */
struct evrdma_buf *evr_recvq_take_any(struct evr_recvq *recvq);

#endif
