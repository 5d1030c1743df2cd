/*
 * The data path of a connection or an endpoint: what was submitted, what is posted, what is
 * complete. It outlives the verbs QP below it: work is taken before there is one, posted when there
 * is, and cancelled after it was destroyed.
 *
 * Work completes exactly once. A buffer is referenced from submit to completion, so that it stays
 * whatever its owner does; and nothing that is posted is reported as cancelled before the verbs QP
 * is gone, so that the device has let go of it.
 */
#ifndef EVR_EV_QP_H
#define EVR_EV_QP_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "ev/pool.h"
#include "util/list.h"

#include <evrdma/conn.h>
#include <evrdma/error.h>

struct evrdma_base;
struct evr_cmid;
struct evr_cq;
struct evr_device;
struct evr_qp;

/* A send. Whoever submits fills it; the ring keeps a copy. */
struct evr_send {
	struct evrdma_buf *buf;
	uint32_t len;
	uint32_t lkey;
	uint32_t imm;
	bool has_imm;
	struct ibv_ah *ah; /* datagrams */
	uint32_t remote_qpn;
	uint32_t remote_qkey;
	void *cookie;
	void (*cb)(void);
	void *arg;
};

struct evr_qp_ops {
	/* A send is over: error is NULL, or why it failed. */
	void (*sent)(struct evr_qp *qp, const struct evr_send *send,
		const struct evrdma_error *error);
	void (*received)(struct evr_qp *qp, const struct evrdma_recv *recv);
	/* Posting or a completion failed: the QP is of no use any more. May come more than once. */
	void (*failed)(struct evr_qp *qp, const struct evrdma_error *error);
	/* Work was flushed: the QP is in error for a reason told elsewhere. May come often. */
	void (*flushed)(struct evr_qp *qp);
	/* After a submit gave -EAGAIN: low_water sends are free again. */
	void (*writable)(struct evr_qp *qp);
	/* Nothing is posted any more. Comes only after evr_qp_set_error(). */
	void (*drained)(struct evr_qp *qp);
};

struct evr_qp_config {
	enum ibv_qp_type type;
	uint32_t send_depth;
	uint32_t recv_depth;
	uint32_t low_water;
	uint32_t create_flags;
	uint32_t header_bytes; /* in front of each received message */
	struct evrdma_pool *recv_pool;
};

struct evr_qp {
	struct evrdma_base *base;
	const struct evr_qp_ops *ops;
	struct evr_qp_config config;

	struct evr_device *device;
	struct evr_cq *cq;
	struct ibv_qp *qp; /* NULL while there is none */
	uint32_t number;   /* in the upper half of every wr_id; another one for each verbs QP */

	struct evr_send *sends; /* a ring; head, posted and tail count up and wrap */
	uint32_t send_head;
	uint32_t send_posted;
	uint32_t send_tail;
	bool want_writable;
	bool sends_held; /* taken, but not posted before evr_qp_release_sends() */

	struct evrdma_buf **recvs; /* by slot; NULL when it is free */
	uint32_t *free_slots;
	uint32_t free_count;
	uint32_t *new_slots; /* submitted, not posted */
	uint32_t new_count;
	uint32_t recv_posted;

	TAILQ_ENTRY(evr_qp) unposted_link;
	bool unposted;
	struct evr_pool_waiter pool_waiter;
	bool in_error;
};

TAILQ_HEAD(evr_qp_list, evr_qp);

int evr_qp_init(struct evr_qp *qp, struct evrdma_base *base, const struct evr_qp_config *config,
	const struct evr_qp_ops *ops);
/* Everything must be complete or cancelled. */
void evr_qp_fini(struct evr_qp *qp);

bool evr_qp_is_iwarp(const struct evr_qp *qp);

/* Opens what the device needs, makes the verbs QP of an id, and posts its receives. Slow. */
int evr_qp_bind(struct evr_qp *qp, struct evr_cmid *cmid);
/* Destroys the verbs QP, if there is one; what was posted becomes work to post again. Slow. */
void evr_qp_unbind(struct evr_qp *qp, struct evr_cmid *cmid);
/* Lets the device go. Slow when it is removed. */
void evr_qp_put_device(struct evr_qp *qp);

/* Moves the verbs QP to the error state, so that what is posted is flushed. */
void evr_qp_set_error(struct evr_qp *qp);
/*
 * Nothing is posted that would still be flushed. What iWARP devices have in the receive queue they
 * may keep for ever: it is taken back with the verbs QP.
 */
bool evr_qp_is_drained(const struct evr_qp *qp);
/* Ends all that was submitted with ECANCELED. Only without a verbs QP. */
void evr_qp_cancel(struct evr_qp *qp);

/* 0, -EAGAIN, or -errno of a registration. The send's lkey is filled in here. */
int evr_qp_submit_send(struct evr_qp *qp, struct evr_send *send);
void evr_qp_hold_sends(struct evr_qp *qp);
void evr_qp_release_sends(struct evr_qp *qp);
uint32_t evr_qp_send_space(const struct evr_qp *qp);
/* 0, or -EAGAIN. */
int evr_qp_submit_recv(struct evr_qp *qp, struct evrdma_buf *buf);

void evr_qp_complete(struct evrdma_base *base, const struct ibv_wc *wc);
/* Takes what is complete already, before an event that comes after it is told. */
void evr_qp_reap(struct evr_qp *qp);

/* Posts what was submitted in this turn. */
void evr_qp_post_all(struct evrdma_base *base);

#endif
