#include "ev/queue/srq.h"

#include <errno.h>
#include <stdlib.h>

#include "ev/core/base.h"
#include "ev/core/error.h"
#include "ev/core/log.h"
#include "ev/core/part.h"
#include "ev/device/devices.h"
#include "ev/queue/qp.h"

/* --- completions ---------------------------------------------------------------------------- */

static void *key_of(uint32_t qp_number)
{
	return (void *)((uintptr_t)qp_number + 1);
}

static void post_due(struct evr_srq *srq);

static void complete(struct evr_work_owner *owner, uint32_t index, const struct ibv_wc *wc)
{
	struct evr_srq *srq = evr_container_of(owner, struct evr_srq, owner);
	struct evr_qp *qp = evr_ptrmap_find(&srq->qps, key_of(wc->qp_num));
	struct evrdma_buf *buf = evr_recvq_complete(&srq->recvq, index & ~EVR_WR_RECV);

	if (!buf)
		return;
	if (qp)
		evr_qp_received(qp, buf, wc);
	evr_recvq_recycle(&srq->recvq, buf);
	post_due(srq);
	if (qp)
		evr_qp_report_status(qp, wc);
}

/* --- asynchronous events -------------------------------------------------------------------- */

/* Whoever comes next has another, with all its buffers. */
static void fail_all(struct evr_srq *srq, int err)
{
	struct evr_qp *qp;

	srq->failed = true;
	evr_recvq_stop(&srq->recvq);
	TAILQ_FOREACH (qp, &srq->users, link)
		evr_qp_fail(qp, err);
}

static void on_async(struct evr_async_subject *subject, uint32_t events)
{
	struct evr_srq *srq = evr_container_of(subject, struct evr_srq, async);
	struct evrdma_srq *of = srq->of;

	if (events & 1u << IBV_EVENT_SRQ_ERR)
		fail_all(srq, EIO);
	/* Last: the callback may give the queue up, and it may go with that. */
	if (events & 1u << IBV_EVENT_SRQ_LIMIT_REACHED && of->limit)
		of->limit_cb(of, of->limit_arg);
}

static int set_limit(struct evr_srq *srq)
{
	struct ibv_srq_attr attr = { .srq_limit = srq->of->limit };

	return -abs(ibv_modify_srq(srq->srq, &attr, IBV_SRQ_LIMIT));
}

/* --- on a protection domain ----------------------------------------------------------------- */

static struct evr_srq *of_recvq(struct evr_recvq *recvq)
{
	return evr_container_of(recvq, struct evr_srq, recvq);
}

static int post_recv(struct evr_recvq *recvq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct evr_srq *srq = of_recvq(recvq);

	srq->of->base->traffic.receive_chains++;
	return ibv_post_srq_recv(srq->srq, wr, bad);
}

static void recvq_unposted(struct evr_recvq *recvq)
{
	struct evr_srq *srq = of_recvq(recvq);

	evr_base_queue_post_first(srq->of->base, &srq->post);
}

static void recvq_used_up(struct evr_recvq *recvq)
{
	of_recvq(recvq)->of->base->traffic.receive_queue_empty++;
}

static const struct evr_recvq_ops recvq_ops = {
	.post = post_recv, .unposted = recvq_unposted, .used_up = recvq_used_up
};

/* A queue that takes no buffers would leave all on it to wait for ever. */
static void post(struct evr_task *task)
{
	struct evr_srq *srq = evr_container_of(task, struct evr_srq, post);
	int ret = srq->failed ? 0 : evr_recvq_post(&srq->recvq);

	if (ret)
		fail_all(srq, -ret);
}

static void post_due(struct evr_srq *srq)
{
	int ret = evr_recvq_post_due(&srq->recvq);

	if (ret)
		fail_all(srq, -ret);
}

static int create(struct evr_srq *srq)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = srq->of->depth, .max_sge = 1 },
	};

	errno = 0;
	srq->srq = ibv_create_srq(srq->pd->pd, &attr);
	if (!srq->srq)
		return evr_verbs_error();
	srq->async.happened = on_async;
	return evr_async_watch(&srq->pd->device->async, srq->srq, &srq->async);
}

/* Of a queue that is filled: an empty one is below every limit. */
static int open(struct evr_srq *srq)
{
	int ret = evr_recvq_open(&srq->recvq, srq->pd, srq->cq, srq->owner.number);

	return !ret && srq->of->limit ? set_limit(srq) : ret;
}

/* Nobody uses it any more, so what is still complete of it is nobody's. */
static void destroy(struct evr_srq *srq)
{
	struct evrdma_base *base = srq->of->base;
	struct evrdma_buf *buf;

	TAILQ_REMOVE(&srq->of->on_pds, srq, link);
	evr_async_unwatch(srq->srq, &srq->async);
	if (srq->srq)
		evr_log_failure("ibv_destroy_srq", ibv_destroy_srq(srq->srq));
	TAILQ_REMOVE(&srq->pd->users, &srq->on_pd, link);
	evr_idmap_remove(&srq->pd->device->devices->work_owners, srq->owner.number);
	evr_cq_unreserve(srq->cq, srq->of->depth, &srq->on_cq);
	evr_recvq_close(&srq->recvq);
	while ((buf = evr_recvq_take_any(&srq->recvq)))
		evrdma_buf_unref(buf);
	evr_recvq_fini(&srq->recvq);
	evr_base_cancel_post(base, &srq->post);
	evr_ptrmap_fini(&srq->qps);
	free(srq);
}

static void on_broken(struct evr_cq_user *user)
{
	fail_all(evr_container_of(user, struct evr_srq, on_cq), EIO);
}

static void on_forget(struct evr_pd_user *user)
{
	destroy(evr_container_of(user, struct evr_srq, on_pd));
}

static int init(struct evr_srq *srq, struct evrdma_srq *of, struct evr_pd *pd)
{
	struct evrdma_base *base = of->base;
	int ret = evr_recvq_init(&srq->recvq, base, of->depth, of->pool, &recvq_ops);

	if (ret)
		return ret;
	ret = evr_cq_reserve(pd->device, of->depth, &srq->on_cq, &srq->cq);
	if (ret)
		goto fini_recvq;
	ret = evr_idmap_add(
		&pd->device->devices->work_owners, &srq->owner, &srq->owner.number);
	if (ret)
		goto unreserve;
	srq->of = of;
	srq->pd = pd;
	srq->owner.complete = complete;
	srq->on_cq.broken = on_broken;
	srq->on_pd.forget = on_forget;
	srq->post.run = post;
	evr_ptrmap_init(&srq->qps);
	TAILQ_INIT(&srq->users);
	TAILQ_INSERT_TAIL(&of->on_pds, srq, link);
	TAILQ_INSERT_TAIL(&pd->users, &srq->on_pd, link);
	return 0;
unreserve:
	evr_cq_unreserve(srq->cq, of->depth, &srq->on_cq);
fini_recvq:
	evr_recvq_fini(&srq->recvq);
	return ret;
}

static int make(struct evrdma_srq *of, struct evr_pd *pd, struct evr_srq **made)
{
	struct evr_srq *srq = calloc(1, sizeof(*srq));
	int ret = srq ? init(srq, of, pd) : -ENOMEM;

	if (ret) {
		free(srq);
		return ret;
	}
	ret = create(srq);
	if (!ret)
		ret = open(srq);
	if (ret)
		destroy(srq);
	else
		*made = srq;
	return ret;
}

static bool is_broken(const struct evr_srq *srq)
{
	return srq->failed || srq->cq->broken;
}

static void destroy_if_spent(struct evr_srq *srq)
{
	if (!srq->holders && is_broken(srq))
		destroy(srq);
}

static void forget_spent(struct evrdma_srq *srq)
{
	struct evr_srq *on_pd, *next;

	TAILQ_FOREACH_SAFE (on_pd, &srq->on_pds, link, next)
		destroy_if_spent(on_pd);
}

static struct evr_srq *find(const struct evrdma_srq *srq, const struct evr_pd *pd)
{
	struct evr_srq *on_pd;

	TAILQ_FOREACH (on_pd, &srq->on_pds, link)
		if (on_pd->pd == pd && !is_broken(on_pd))
			break;
	return on_pd;
}

int evr_srq_get(struct evrdma_srq *srq, struct evr_pd *pd, struct evr_srq **found)
{
	struct evr_srq *on_pd;
	int ret = 0;

	forget_spent(srq);
	on_pd = find(srq, pd);
	if (!on_pd)
		ret = make(srq, pd, &on_pd);
	if (ret)
		return ret;
	on_pd->holders++;
	*found = on_pd;
	return 0;
}

void evr_srq_put(struct evr_srq *srq)
{
	if (!srq)
		return;
	srq->holders--;
	destroy_if_spent(srq);
}

int evr_srq_attach(struct evr_srq *srq, struct evr_qp *qp)
{
	TAILQ_INSERT_TAIL(&srq->users, qp, link);
	return evr_ptrmap_add(&srq->qps, key_of(qp->qp->qp_num), qp);
}

void evr_srq_detach(struct evr_srq *srq, struct evr_qp *qp)
{
	evr_ptrmap_remove(&srq->qps, key_of(qp->qp->qp_num));
	TAILQ_REMOVE(&srq->users, qp, link);
}

/* --- those of a base ------------------------------------------------------------------------ */

struct srqs {
	struct evr_part part;
	struct evr_shared_list list;
};

static const struct evr_part_class srqs_class;

static struct evr_shared_list *list_of(const struct evrdma_base *base)
{
	struct evr_part *part = evr_part_find(base, &srqs_class);

	return &evr_container_of(part, struct srqs, part)->list;
}

/* --- the object ----------------------------------------------------------------------------- */

struct evrdma_srq *evrdma_srq_new(
	struct evrdma_base *base, struct evrdma_pool *pool, uint32_t depth)
{
	struct evrdma_srq *srq;

	if (!pool || pool->base != base || !depth || depth > 65536) {
		errno = EINVAL;
		return NULL;
	}
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	srq->base = base;
	srq->pool = pool;
	srq->depth = depth;
	srq->users = 1;
	TAILQ_INIT(&srq->on_pds);
	evr_pool_ref(pool);
	TAILQ_INSERT_TAIL(list_of(base), srq, link);
	return srq;
}

int evrdma_srq_set_limit(
	struct evrdma_srq *srq, uint32_t limit, evrdma_srq_limit_cb cb, void *arg)
{
	struct evr_srq *on_pd;
	int ret = 0;

	if (limit > srq->depth || (limit && !cb))
		return -EINVAL;
	srq->limit = limit;
	srq->limit_cb = cb;
	srq->limit_arg = arg;
	TAILQ_FOREACH (on_pd, &srq->on_pds, link)
		if (!ret && !is_broken(on_pd))
			ret = set_limit(on_pd);
	return ret;
}

static void leave_base(struct evrdma_srq *srq)
{
	struct evr_srq *on_pd;

	while ((on_pd = TAILQ_FIRST(&srq->on_pds)))
		destroy(on_pd);
	TAILQ_REMOVE(list_of(srq->base), srq, link);
	evr_pool_unref(srq->pool);
	free(srq);
}

void evr_srq_ref(struct evrdma_srq *srq)
{
	if (srq)
		srq->users++;
}

void evr_srq_unref(struct evrdma_srq *srq)
{
	evr_lock_expect_none();
	if (srq && !--srq->users)
		leave_base(srq);
}

/* Whoever still uses it keeps it, but its owner knows it no more. */
void evrdma_srq_free(struct evrdma_srq *srq)
{
	if (srq)
		srq->limit = 0;
	evr_srq_unref(srq);
}

/* --- the end of the base -------------------------------------------------------------------- */

static void stop(struct evr_part *part)
{
	struct evr_shared_list *list = list_of(part->base);
	struct evrdma_srq *srq;

	while ((srq = TAILQ_FIRST(list)))
		leave_base(srq);
}

static const struct evr_part_class srqs_class = { .stop = stop };

int evr_srqs_start(struct evrdma_base *base)
{
	struct srqs *srqs = calloc(1, sizeof(*srqs));

	if (!srqs)
		return -ENOMEM;
	TAILQ_INIT(&srqs->list);
	evr_part_add(&srqs->part, base, &srqs_class);
	return 0;
}
