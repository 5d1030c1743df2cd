/* When posted work is carried out, and in which order. */
#include "fake/fake_verbs.h"

#include <limits.h>
#include <string.h>

/* The queue pairs with sends on them, by their number. */
static TAILQ_HEAD(fake_active, fake_qp) active = TAILQ_HEAD_INITIALIZER(active);
static bool by_hand;
static enum fake_order order;
static unsigned before_arming;
static bool last_receive_held;
static unsigned not_ready;

static void activate(struct fake_qp *qp)
{
	struct fake_qp *other;

	if (qp->active)
		return;
	qp->active = true;
	TAILQ_FOREACH (other, &active, active_link)
		if (other->qp.qp_num > qp->qp.qp_num) {
			TAILQ_INSERT_BEFORE(other, qp, active_link);
			return;
		}
	TAILQ_INSERT_TAIL(&active, qp, active_link);
}

void fake_work_add(struct fake_qp *qp, struct fake_send *send)
{
	TAILQ_INSERT_TAIL(&qp->sends, send, link);
	activate(qp);
}

void fake_work_remove(struct fake_qp *qp, struct fake_send *send)
{
	TAILQ_REMOVE(&qp->sends, send, link);
	if (!TAILQ_EMPTY(&qp->sends))
		return;
	qp->active = false;
	TAILQ_REMOVE(&active, qp, active_link);
}

void fake_work_not_ready(struct fake_send *send)
{
	not_ready += !send->not_ready;
	send->not_ready = true;
}

unsigned fake_not_ready(void)
{
	FAKE_GUARD();

	return not_ready;
}

static bool run(struct fake_qp *qp, struct fake_send *send)
{
	qp->waits_for_receive = false;
	qp->waiting =
		qp->qp.qp_type == IBV_QPT_UD ? !fake_run_ud(qp, send) : !fake_run_rc(qp, send);
	return !qp->waiting;
}

/* Where reads are overtaken, one runs when nothing else is left, or a fence waits for it. */
static struct fake_send *next_of(const struct fake_qp *qp)
{
	struct fake_send *first = TAILQ_FIRST(&qp->sends), *send;

	if (!fake_profile_at(&qp->node)->reads_are_overtaken)
		return first;
	TAILQ_FOREACH (send, &qp->sends, link)
		if (send->wr.opcode != IBV_WR_RDMA_READ)
			return send->wr.send_flags & IBV_SEND_FENCE ? first : send;
	return first;
}

/* True when a request was carried out; false when there is none or it has to wait. */
static bool run_one(struct fake_qp *qp)
{
	struct fake_send *send = next_of(qp);

	if (!send || qp->qp.state != IBV_QPS_RTS || qp->node.context->gone ||
		!qp->node.context->device->present)
		return false;
	if (run(qp, send))
		return true;
	return send != TAILQ_FIRST(&qp->sends) && run(qp, TAILQ_FIRST(&qp->sends));
}

/* Carrying one out may empty other queues, so the walk starts again each time. */
static bool run_any(void)
{
	struct fake_qp *qp;

	if (order == FAKE_OLDEST_QP_FIRST) {
		TAILQ_FOREACH (qp, &active, active_link)
			if (run_one(qp))
				return true;
	} else {
		TAILQ_FOREACH_REVERSE(qp, &active, fake_active, active_link)
		if (run_one(qp))
			return true;
	}
	return false;
}

static unsigned run_some(unsigned n)
{
	unsigned done = 0;

	while (done < n && run_any())
		done++;
	return done;
}

void fake_work_run(void)
{
	if (!by_hand)
		run_some(UINT_MAX);
}

void fake_work_arming(void)
{
	run_some(before_arming);
}

void fake_step_before_arming(unsigned n)
{
	FAKE_GUARD();
	before_arming = n;
}

unsigned fake_step(unsigned n)
{
	FAKE_GUARD();

	return run_some(n);
}

unsigned fake_step_qp(struct ibv_qp *qp, unsigned n)
{
	unsigned done = 0;

	FAKE_GUARD();
	while (done < n && run_one(fake_qp_of(qp)))
		done++;
	return done;
}

void fake_work_by_hand(bool on)
{
	FAKE_GUARD();
	by_hand = on;
	fake_work_run();
}

void fake_hold_last_receive(bool on)
{
	FAKE_GUARD();
	last_receive_held = on;
}

bool fake_tells_last_receive(void)
{
	return !last_receive_held;
}

void fake_work_order(enum fake_order wanted)
{
	FAKE_GUARD();
	order = wanted;
}

static struct fake_qp *first_waiting(void)
{
	struct fake_qp *qp;

	TAILQ_FOREACH (qp, &active, active_link)
		if (qp->waiting && !qp->node.context->gone)
			return qp;
	return NULL;
}

unsigned fake_time_out_work(void)
{
	struct fake_qp *qp;
	unsigned n = 0;

	FAKE_GUARD();
	while ((qp = first_waiting())) {
		fake_send_complete(qp, next_of(qp),
			qp->waits_for_receive ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_RETRY_EXC_ERR, 0);
		fake_qp_to_error(qp);
		n++;
	}
	return n;
}

void fake_work_reset(void)
{
	by_hand = false;
	order = FAKE_OLDEST_QP_FIRST;
	before_arming = 0;
	last_receive_held = false;
	not_ready = 0;
}
