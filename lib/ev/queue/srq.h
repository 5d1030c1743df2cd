/*
 * Receive buffers that many connections share. On each protection domain where it is used there is
 * one verbs SRQ, with room for all its completions on one CQ.
 */
#ifndef EVR_EV_SRQ_H
#define EVR_EV_SRQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "ev/core/task.h"
#include "ev/device/async.h"
#include "ev/device/cq.h"
#include "ev/device/owner.h"
#include "ev/device/pd.h"
#include "ev/queue/recvq.h"
#include "util/list.h"
#include "util/ptrmap.h"

#include <evrdma/srq.h>

struct evr_qp;

TAILQ_HEAD(evr_qp_list, evr_qp);

struct evr_srq {
	struct evr_work_owner owner;
	TAILQ_ENTRY(evr_srq) link;
	struct evrdma_srq *of;
	struct evr_pd *pd;
	struct evr_cq *cq;
	struct ibv_srq *srq;
	struct evr_recvq recvq;
	struct evr_task post;
	struct evr_async_subject async;
	struct evr_cq_user on_cq;
	struct evr_pd_user on_pd;
	struct evr_ptrmap qps; /* QP number -> struct evr_qp */
	struct evr_qp_list users;
	unsigned holders; /* the QPs that have it, attached or not */
	bool failed;	  /* no QP is added, and those on it end */
};

TAILQ_HEAD(evr_srq_list, evr_srq);

struct evrdma_srq {
	TAILQ_ENTRY(evrdma_srq) link;
	struct evrdma_base *base; /* NULL once the base is gone */
	struct evrdma_pool *pool;
	uint32_t depth;
	unsigned users; /* the owner, and every QP on it */
	struct evr_srq_list on_pds;
	uint32_t limit; /* 0: none is watched for */
	evrdma_srq_limit_cb limit_cb;
	void *limit_arg;
};

TAILQ_HEAD(evr_shared_list, evrdma_srq);

/* NULL is fine for both. */
void evr_srq_ref(struct evrdma_srq *srq);
void evr_srq_unref(struct evrdma_srq *srq);

/*
 * Finds or makes it; slow when it is made. 0 or -errno. One that broke, or whose CQ did, is never
 * found again, and goes with its last user.
 */
int evr_srq_get(struct evrdma_srq *srq, struct evr_pd *pd, struct evr_srq **found);
/* Slow when it goes. NULL is fine. */
void evr_srq_put(struct evr_srq *srq);
/* What comes for the verbs QP is told to it: 0 or -ENOMEM, and then it is detached all the same. */
int evr_srq_attach(struct evr_srq *srq, struct evr_qp *qp);
void evr_srq_detach(struct evr_srq *srq, struct evr_qp *qp);

int evr_srqs_start(struct evrdma_base *base);

#endif
