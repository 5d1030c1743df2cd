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

#include "ev/core/task.h"
#include "ev/core/timer.h"
#include "ev/device/async.h"
#include "ev/device/cq.h"
#include "ev/device/owner.h"
#include "ev/queue/recvq.h"
#include "ev/queue/srq.h"
#include "ev/queue/work.h"

#include <evrdma/conn.h>
#include <evrdma/error.h>
#include <evrdma/stats.h>

struct evrdma_base;
struct evrdma_domain;
struct evr_ah;
struct evr_cmid;
struct evr_device;
struct evr_qp;

/* One piece of work for the send queue. Whoever submits fills it; the ring keeps a copy. */
struct evr_send {
	enum ibv_wr_opcode opcode;
	unsigned flags; /* IBV_SEND_FENCE, IBV_SEND_INLINE */
	uint32_t imm;
	union {
		struct {
			uint64_t remote_addr;
			uint64_t compare_add;
			uint64_t swap;
			uint32_t rkey;
		} rdma;
		struct {
			struct evr_ah *ah;
			uint32_t remote_qpn;
			uint32_t remote_qkey;
		} ud;
	} wr;
	struct evrdma_buf *buf; /* the first one, or NULL; set by evr_qp_submit_send() */
	unsigned seg_count;	/* set by evr_qp_submit_send() */
	bool counted;		/* among the sends, when room was kept for it */
	int kind;		/* of cb, the submitter's own affair */
	void *cookie;
	void (*cb)(void);
	void *arg;
	bool over; /* complete with this status, and to be told when all before it is */
	enum ibv_wc_status status;
};

struct evr_qp_ops {
	/* A send is over: error is NULL, or why it failed. */
	void (*sent)(struct evr_qp *qp, const struct evr_send *send,
		const struct evrdma_error *error);
	void (*received)(struct evr_qp *qp, const struct evrdma_recv *recv);
	/* Posting or a completion failed: the QP is of no use any more. May come more than once. */
	void (*failed)(struct evr_qp *qp, const struct evrdma_error *error);
	/* The device says that the peer sends already. May be NULL. */
	void (*spoken_to)(struct evr_qp *qp);
	/* Work was flushed: the QP is in error for a reason told elsewhere. May come often. */
	void (*flushed)(struct evr_qp *qp);
	/* After a submit gave -EAGAIN: low_water sends are free again. */
	void (*writable)(struct evr_qp *qp);
	/* Nothing is posted any more. Comes only after evr_qp_set_error(). */
	void (*drained)(struct evr_qp *qp);
	/* What evr_qp_catch_up() waits for is over. */
	void (*caught_up)(struct evr_qp *qp);
};

struct evr_qp_config {
	enum ibv_qp_type type;
	uint32_t send_depth;
	uint32_t send_queue; /* how many more may wait for their turn */
	uint32_t max_segs;   /* buffers in one send */
	uint32_t inline_bytes;
	bool inline_spare; /* fewer inline_bytes will do, where the device has no more */
	uint32_t recv_depth;
	uint32_t low_water;
	uint32_t create_flags;
	uint32_t header_bytes; /* in front of each received message */
	struct evrdma_pool *recv_pool;
	struct evrdma_srq *srq; /* in place of recv_depth and recv_pool */
	struct evrdma_domain *domain;
};

/* The next step of evr_qp_destroy(). */
enum { EVR_SEGS_MAX = 32 };

enum evr_qp_end { EVR_QP_END_TELL, EVR_QP_END_VERBS, EVR_QP_END_PARTS, EVR_QP_END_WORK };

struct evr_qp {
	struct evr_work_owner owner;
	TAILQ_ENTRY(evr_qp) link; /* of those on a shared queue, while there is a verbs QP */
	struct evr_async_subject async;
	struct evr_cq_user on_cq;
	struct evrdma_base *base;
	const struct evr_qp_ops *ops;
	struct evr_qp_config config;

	struct evr_device *device;
	struct evr_pd *pd;
	struct evr_cq *send_cq;
	struct evr_cq *recv_cq;
	struct evr_srq *srq;
	struct ibv_qp *qp; /* NULL while there is none */
	uint32_t inline_max; /* of its sends */

	struct evr_send *sends; /* a ring; head, posted and tail count up and wrap */
	struct ibv_sge *sges;	/* of each send, max_segs */
	struct evrdma_buf **bufs;
	unsigned char *inline_data; /* of each send, inline_bytes */
	uint32_t capacity;  /* sends taken at once: posted, or waiting */
	uint32_t ring_mask;
	uint32_t send_head;
	uint32_t send_posted;
	uint32_t send_tail;
	uint32_t sends_coming; /* room is kept for them */
	uint8_t initiator_depth; /* reads and atomics under way at once, as agreed on */
	bool want_writable;
	bool sends_held; /* taken, but not posted before evr_qp_release_sends() */

	struct evr_recvq recvq;
	struct evr_task post; /* at the end of a turn */
	struct evr_task tell; /* what is over, beyond the budget of a turn */
	struct evr_cq_wait send_wait;
	struct evr_cq_wait recv_wait;
	enum evr_qp_end end;

	struct evrdma_traffic_stats traffic;
	struct evr_timer drain_timer;
	uint64_t drain_end_us;
	bool drain_again; /* the timer's first end is not the last */
	bool drain_over;
	bool last_receive; /* the device holds nothing of the shared queue any more */
	bool in_error;
	bool failed;  /* it was told so, and is of no use until it is bound anew */
	bool flushed; /* the same, for a reason that is told elsewhere */
	bool lost; /* its device went without waiting, and nothing of it is under way */
	bool gap;  /* a message was lost: none that follows it is told */
};

/* Counts in the QP and in its base, whose header the caller has. */
#define EVR_QP_COUNT(qp, what, n)                                                                  \
	do {                                                                                       \
		(qp)->traffic.what += (n);                                                         \
		(qp)->base->traffic.what += (n);                                                   \
	} while (0)

int evr_qp_init(struct evr_qp *qp, struct evrdma_base *base, const struct evr_qp_config *config,
	const struct evr_qp_ops *ops);
/* Everything must be complete or cancelled. */
void evr_qp_fini(struct evr_qp *qp);
/* What it shares with others where it has nothing of its own; before it is bound. NULL is fine. */
void evr_qp_set_shared(
	struct evr_qp *qp, struct evrdma_domain *domain, struct evrdma_srq *srq);

bool evr_qp_is_iwarp(const struct evr_qp *qp);
/* Nothing says that it would not hear of what completes on it. */
bool evr_qp_is_sound(const struct evr_qp *qp);

/*
 * Opens what the device needs, and registers what is to be received into, for as long as a turn may
 * take: then -EAGAIN, to be called again. Slow. 0, or -errno.
 */
int evr_qp_prepare(struct evr_qp *qp, struct evr_cmid *cmid);
/* Opens what the device needs, makes the verbs QP of an id, and posts its receives. Slow. */
int evr_qp_bind(struct evr_qp *qp, struct evr_cmid *cmid);
/* Destroys the verbs QP, if there is one; what was posted becomes work to post again. Slow. */
void evr_qp_unbind(struct evr_qp *qp, struct evr_cmid *cmid);
/*
 * The same, after what is complete was told; then all that was submitted ends with ECANCELED. Each
 * call is one step: 0 when all is over, -EAGAIN, or -EINPROGRESS until caught_up is called.
 */
int evr_qp_destroy(struct evr_qp *qp, struct evr_cmid *cmid);
/* Lets the device go. Slow when it is removed. */
void evr_qp_put_device(struct evr_qp *qp);

/* Moves the verbs QP to the error state, so that what is posted is flushed. */
void evr_qp_set_error(struct evr_qp *qp);
/* Somebody else did. */
void evr_qp_in_error(struct evr_qp *qp);
/*
 * Waits, timeout_ms at most, until nothing is posted that would still be flushed: what iWARP
 * devices have in the receive queue they may keep for ever. Of a shared one, until the device says
 * that it holds nothing of it for this QP, if it ever does. drained is called when
 * evr_qp_is_drained() is worth another look.
 */
void evr_qp_start_drain(struct evr_qp *qp, int timeout_ms);
bool evr_qp_is_drained(struct evr_qp *qp);

/*
 * Takes work of n segments, or of inline bytes. 0; -EAGAIN when the queue is full; -EINVAL for more
 * segments than max_segs or one that is not inside its buffer; -EMSGSIZE for more inline bytes than
 * there are; -EOPNOTSUPP when the device has no such work; -errno of a registration.
 */
int evr_qp_submit_send(struct evr_qp *qp, const struct evr_send *send,
	const struct evrdma_seg *segs, unsigned n);
int evr_qp_submit_inline(
	struct evr_qp *qp, const struct evr_send *send, const void *data, size_t len);
void evr_qp_hold_sends(struct evr_qp *qp);
void evr_qp_release_sends(struct evr_qp *qp);
uint32_t evr_qp_send_space(const struct evr_qp *qp);
/*
 * Takes a send that comes later: 0 or -EAGAIN, as a submit. Its room is given back just before
 * that, or when it does not come: then it is counted as over with the error, and others may want to
 * know of the room.
 */
int evr_qp_reserve_send(struct evr_qp *qp, struct evr_send *send, uint64_t bytes);
void evr_qp_unreserve_send(struct evr_qp *qp);
void evr_qp_count_ended(struct evr_qp *qp, const struct evrdma_error *error);
void evr_qp_tell_writable(struct evr_qp *qp);
bool evr_qp_has_sent_all(const struct evr_qp *qp);
/* 0, or -EAGAIN. */
int evr_qp_submit_recv(struct evr_qp *qp, struct evrdma_buf *buf);

/* Whether the device says that it is over, as it may before that is told. Asks the kernel. */
bool evr_qp_is_over(struct evr_qp *qp);
/* It is of no use any more, for the reason err. */
void evr_qp_fail(struct evr_qp *qp, int err);
/* The same, for a message that is lost: it leaves a gap that no later one may jump. */
void evr_qp_lose(struct evr_qp *qp, int err);
/* Tells once more that it was flushed, if it was: whoever is told may not have been ready. */
void evr_qp_tell_flushed(struct evr_qp *qp);

/*
 * Something is to be told after all that is complete already. False when that can be now: what is
 * being told is the latest; otherwise caught_up says when, unless it is called off.
 */
bool evr_qp_catch_up(struct evr_qp *qp);
bool evr_qp_is_catching_up(const struct evr_qp *qp);
void evr_qp_stop_catching_up(struct evr_qp *qp);
/* Completions of one of its CQs are being told. */
bool evr_qp_is_telling(const struct evr_qp *qp);

/* Tells what a receive brought, and what its status means for the QP. */
void evr_qp_report_status(struct evr_qp *qp, const struct ibv_wc *wc);
void evr_qp_received(struct evr_qp *qp, struct evrdma_buf *buf, const struct ibv_wc *wc);

#endif
