#include "ev/cq.h"

#include <errno.h>
#include <stdlib.h>

#include "ev/base.h"
#include "ev/error.h"
#include "ev/log.h"

enum {
	BATCH = 16,
	ACK_BATCH = 256, /* an acknowledgement takes a lock, so they are given in bulk */
};

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void on_async(struct evr_async_subject *subject, uint32_t events)
{
	struct evr_cq *cq = evr_container_of(subject, struct evr_cq, async);
	struct evr_qp *qp;

	cq->broken = true;
	TAILQ_FOREACH (qp, &cq->device->qps, link)
		if (qp->send_cq == cq || qp->recv_cq == cq)
			evr_qp_fail(qp, EIO);
}

static int watch(struct evr_cq *cq)
{
	cq->async.happened = on_async;
	return evr_async_watch(&cq->device->async, cq->cq, &cq->async);
}

static int create(struct evr_device *device, uint32_t entries, struct evr_cq **created)
{
	uint32_t wanted = device->base->options.cq_entries;
	uint32_t most = (uint32_t)device->attr.max_cqe;
	struct evr_cq *cq;
	int ret;

	if (entries > most)
		return -EINVAL;
	if (wanted < entries)
		wanted = entries;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	errno = 0;
	cq->cq = ibv_create_cq(device->verbs, (int)smaller(wanted, most), cq, device->channel, 0);
	ret = cq->cq ? 0 : evr_verbs_error();
	if (ret)
		goto free_cq;
	cq->device = device;
	ret = watch(cq);
	if (ret)
		goto destroy_cq;
	TAILQ_INSERT_TAIL(&device->cqs, cq, link);
	*created = cq;
	return 0;
destroy_cq:
	ibv_destroy_cq(cq->cq);
free_cq:
	free(cq);
	return ret;
}

static void set_ready(struct evr_cq *cq, bool ready)
{
	struct evrdma_base *base = cq->device->base;

	if (cq->ready == ready)
		return;
	cq->ready = ready;
	if (ready) {
		TAILQ_INSERT_TAIL(&base->ready_cqs, cq, ready_link);
		/* A turn looks at the list at its end. */
		if (!base->in_turn)
			evr_base_kick(base);
	} else {
		TAILQ_REMOVE(&base->ready_cqs, cq, ready_link);
	}
}

int evr_cq_reserve(struct evr_device *device, uint32_t entries, struct evr_cq **found)
{
	struct evr_cq *cq;
	int ret;

	TAILQ_FOREACH (cq, &device->cqs, link)
		if (!cq->broken && (uint32_t)cq->cq->cqe - cq->reserved >= entries)
			break;
	if (!cq) {
		ret = create(device, entries, &cq);
		if (ret)
			return ret;
	}
	cq->reserved += entries;
	if (!cq->armed)
		set_ready(cq, true);
	*found = cq;
	return 0;
}

void evr_cq_unreserve(struct evr_cq *cq, uint32_t entries)
{
	cq->released += entries;
	set_ready(cq, true);
}

static void ack(struct evr_cq *cq)
{
	if (cq->unacked)
		ibv_ack_cq_events(cq->cq, cq->unacked);
	cq->unacked = 0;
}

void evr_cq_destroy_all(struct evr_cq_list *cqs)
{
	struct evr_cq *cq;

	while ((cq = TAILQ_FIRST(cqs))) {
		set_ready(cq, false);
		ack(cq);
		evr_async_unwatch(cq->cq, &cq->async);
		evr_log_failure("ibv_destroy_cq", ibv_destroy_cq(cq->cq));
		TAILQ_REMOVE(cqs, cq, link);
		free(cq);
	}
}

/* What comes late, for one who is gone, finds nobody. */
static void dispatch(struct evrdma_base *base, const struct ibv_wc *wc)
{
	struct evr_work_owner *owner =
		evr_idmap_find(&base->work_owners, (uint32_t)(wc->wr_id >> 32));

	if (owner)
		owner->complete(owner, (uint32_t)wc->wr_id, wc);
}

/* Takes up to a batch. Returns how many, or -EIO from a CQ that is broken. */
static int poll_batch(struct evr_cq *cq, int most)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(cq->cq, most < BATCH ? most : BATCH, wc);
	int i;

	cq->device->base->stats.polls++;
	cq->device->base->stats.completions += n > 0 ? (uint64_t)n : 0;
	cq->polling = true;
	for (i = 0; i < n; i++)
		dispatch(cq->device->base, &wc[i]);
	cq->polling = false;
	return n < 0 ? -EIO : n;
}

static void set_empty(struct evr_cq *cq)
{
	cq->reserved -= cq->released;
	cq->released = 0;
}

/* Returns what is left of the budget: 0 when there may be more completions. */
static int poll_until_empty(struct evr_cq *cq, int budget)
{
	while (budget > 0) {
		int n = poll_batch(cq, budget);

		if (n < 0)
			return 1;
		if (!n) {
			set_empty(cq);
			return budget;
		}
		budget -= n;
	}
	return 0;
}

/*
 * Leaves the CQ either armed and seen empty since, or ready for another turn. What completes
 * between the last poll and the arming would raise no event: hence the second poll.
 */
static void service(struct evr_cq *cq)
{
	int budget = (int)cq->device->base->options.cq_budget;

	budget = poll_until_empty(cq, budget);
	if (budget && !cq->armed) {
		cq->armed = !ibv_req_notify_cq(cq->cq, 0);
		cq->device->base->stats.arms++;
		budget = cq->armed ? poll_until_empty(cq, budget) : 0;
	}
	set_ready(cq, !budget);
}

void evr_cq_drain(struct evr_cq *cq)
{
	int most = cq->polling ? 0 : cq->cq->cqe;

	/* No more than the queue can hold: what is added meanwhile is the next turn's. */
	while (most > 0) {
		int n = poll_batch(cq, most);

		if (n <= 0)
			break;
		most -= n;
	}
}

void evr_cq_read_channel(struct evr_device *device)
{
	struct ibv_cq *ibv_cq;
	void *context;

	while (!ibv_get_cq_event(device->channel, &ibv_cq, &context)) {
		struct evr_cq *cq = context;

		cq->armed = false;
		device->base->stats.cq_events++;
		if (++cq->unacked >= ACK_BATCH)
			ack(cq);
		set_ready(cq, true);
	}
	evr_cq_service_ready(device->base);
}

void evr_cq_service_ready(struct evrdma_base *base)
{
	struct evr_cq_list round = TAILQ_HEAD_INITIALIZER(round);
	struct evr_cq *cq;

	/* Each one once: those that have more come back to the base's list, for the next turn. */
	TAILQ_CONCAT(&round, &base->ready_cqs, ready_link);
	while ((cq = TAILQ_FIRST(&round))) {
		TAILQ_REMOVE(&round, cq, ready_link);
		cq->ready = false;
		service(cq);
	}
}
