/* Posting work, ending it, flushing it. */
#include "fake/fake_verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- receives --- */

struct fake_recv *fake_recv_new(const struct ibv_recv_wr *wr)
{
	size_t size = (size_t)wr->num_sge * sizeof(wr->sg_list[0]);
	struct fake_recv *recv = fake_alloc(sizeof(*recv) + size);

	recv->wr_id = wr->wr_id;
	recv->sges = wr->num_sge;
	if (size)
		memcpy(recv->sge, wr->sg_list, size);
	return recv;
}

void fake_recv_free(struct fake_recv *recv)
{
	if (recv)
		free(recv->late);
	free(recv);
}

void fake_recvs_free(struct fake_recvs *recvs)
{
	struct fake_recv *recv;

	while ((recv = TAILQ_FIRST(recvs))) {
		TAILQ_REMOVE(recvs, recv, link);
		fake_recv_free(recv);
	}
}

int fake_signed(const struct fake_node *node, int err)
{
	return fake_profile_at(node)->errors_are_negative ? -err : err;
}

/* Where a queue pair in error refuses work, it does so in the middle of a chain as well. */
static bool refuses_late(const struct fake_qp *qp)
{
	return fake_profile_at(&qp->node)->late_post == FAKE_LATE_POST_REFUSED;
}

static int recv_fits(const struct fake_qp *qp, const struct ibv_recv_wr *wr)
{
	if (qp->qp.state == IBV_QPS_RESET || qp->qp.srq || fake_is_xrc(qp) ||
		(qp->qp.state == IBV_QPS_ERR && refuses_late(qp)))
		return EINVAL;
	if (wr->num_sge < 0 || wr->num_sge > (int)qp->init.cap.max_recv_sge)
		return EINVAL;
	return qp->recv_count < qp->init.cap.max_recv_wr ? 0 : ENOMEM;
}

int fake_post_recv(struct ibv_qp *verbs, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_qp *qp = fake_qp_of(verbs);
	struct fake_recv *recv;
	int err = 0;

	FAKE_GUARD();
	for (; wr; wr = wr->next) {
		err = fake_fault(FAKE_VERBS, "ibv_post_recv");
		if (!err)
			err = recv_fits(qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
		recv = fake_recv_new(wr);
		TAILQ_INSERT_TAIL(&qp->recvs, recv, link);
		qp->recv_count++;
		if (refuses_late(qp))
			fake_work_run();
	}
	if (verbs->state == IBV_QPS_ERR &&
		fake_profile_at(&qp->node)->late_post != FAKE_LATE_RECEIVE_STAYS)
		fake_qp_flush(qp);
	fake_work_run();
	return fake_signed(&qp->node, err);
}

struct fake_recv *fake_srq_take(struct fake_srq *srq)
{
	struct fake_recv *recv = TAILQ_FIRST(&srq->recvs);
	struct ibv_async_event event = { .element.srq = &srq->srq,
		.event_type = IBV_EVENT_SRQ_LIMIT_REACHED };

	if (!recv)
		return NULL;
	TAILQ_REMOVE(&srq->recvs, recv, link);
	srq->count--;
	if (srq->count < srq->attr.srq_limit) {
		srq->attr.srq_limit = 0;
		fake_async_raise(srq->node.context, &event);
	}
	return recv;
}

static struct fake_recv *xrc_take(struct fake_srq *srq)
{
	struct fake_recv *recv = fake_srq_take(srq);

	if (recv)
		recv->xrc = srq;
	return recv;
}

struct fake_recv *fake_recv_take(struct fake_qp *qp, struct fake_srq *xrc)
{
	struct fake_recv *recv = TAILQ_FIRST(&qp->recvs);

	if (xrc)
		return xrc_take(xrc);
	if (qp->qp.srq)
		return fake_srq_take(fake_srq_of(qp->qp.srq));
	if (!recv)
		return NULL;
	TAILQ_REMOVE(&qp->recvs, recv, link);
	qp->recv_count--;
	return recv;
}

/* --- sends --- */

void fake_send_free(struct fake_send *send)
{
	free(send->inlined);
	free(send);
}

static void copy_inline(struct fake_send *send)
{
	int i;

	send->inlined_len = fake_sge_len(send->sge, send->sges);
	send->inlined = fake_alloc(send->inlined_len + 1);
	send->inlined_len = 0;
	for (i = 0; i < send->sges; i++) {
		if (send->sge[i].length)
			memcpy(send->inlined + send->inlined_len,
				(const void *)(uintptr_t)send->sge[i].addr, send->sge[i].length);
		send->inlined_len += send->sge[i].length;
	}
}

/* Some look at the first, whatever the count is. */
static int sges_of(const struct fake_profile *profile, const struct ibv_send_wr *wr)
{
	bool rdma = wr->opcode == IBV_WR_RDMA_READ || wr->opcode == IBV_WR_RDMA_WRITE;

	return !wr->num_sge && wr->sg_list && rdma && profile->reads_sge0 ? 1 : wr->num_sge;
}

static struct fake_send *send_new(const struct fake_profile *profile, const struct ibv_send_wr *wr)
{
	int sges = sges_of(profile, wr);
	size_t size = (size_t)sges * sizeof(wr->sg_list[0]);
	struct fake_send *send = fake_alloc(sizeof(*send) + size);

	send->wr = *wr;
	send->sges = sges;
	if (size)
		memcpy(send->sge, wr->sg_list, size);
	if (wr->send_flags & IBV_SEND_INLINE)
		copy_inline(send);
	return send;
}

static bool is_connected_type(const struct fake_qp *qp)
{
	return qp->qp.qp_type == IBV_QPT_RC || qp->qp.qp_type == IBV_QPT_XRC_SEND;
}

static bool opcode_ok(const struct fake_qp *qp, enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		/* iWARP carries no immediate data. */
		return opcode == IBV_WR_SEND || qp->node.context->device->kind != FAKE_IWARP;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		return is_connected_type(qp);
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return is_connected_type(qp) && qp->node.context->device->kind != FAKE_IWARP &&
		       (opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
			       !fake_profile_at(&qp->node)->no_atomics);
	default:
		return false;
	}
}

static int state_fits(const struct fake_qp *qp)
{
	int early = fake_profile_at(&qp->node)->send_before_rts;

	if (qp->qp.state == IBV_QPS_ERR)
		return refuses_late(qp) ? EINVAL : 0;
	if (qp->qp.state >= IBV_QPS_RTS || early < 0)
		return 0;
	return early ? early : EINVAL;
}

static int send_fits(const struct fake_qp *qp, const struct ibv_send_wr *wr)
{
	const struct ibv_device_attr *attr = &qp->node.context->device->attr;
	int err = state_fits(qp);

	if (err)
		return err;
	if (!opcode_ok(qp, wr->opcode) || qp->qp.qp_type == IBV_QPT_XRC_RECV)
		return EINVAL;
	if (wr->opcode == IBV_WR_RDMA_READ && wr->num_sge > attr->max_sge_rd)
		return EINVAL;
	if (wr->num_sge < 0 || wr->num_sge > (int)qp->init.cap.max_send_sge)
		return EINVAL;
	if (wr->opcode == IBV_WR_RDMA_READ &&
		wr->num_sge > qp->node.context->device->attr.max_sge_rd)
		return EINVAL;
	if ((wr->send_flags & IBV_SEND_INLINE) &&
		(fake_sge_len(wr->sg_list, wr->num_sge) > qp->init.cap.max_inline_data ||
			wr->opcode == IBV_WR_RDMA_READ))
		return EINVAL;
	if (qp->qp.qp_type == IBV_QPT_UD && (!wr->wr.ud.ah || wr->wr.ud.ah->pd != qp->qp.pd))
		return EINVAL;
	return qp->sq_used < qp->init.cap.max_send_wr ? 0 : ENOMEM;
}

/* What was posted to a queue pair in error; its receives, if any stayed, do not come with it. */
static void flush_sends_of(struct fake_qp *qp)
{
	if (fake_profile_at(&qp->node)->late_post != FAKE_LATE_RECEIVE_STAYS) {
		fake_qp_flush(qp);
		return;
	}
	while (!TAILQ_EMPTY(&qp->sends))
		fake_send_complete(qp, TAILQ_FIRST(&qp->sends), IBV_WC_WR_FLUSH_ERR, 0);
}

int fake_post_send(struct ibv_qp *verbs, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *qp = fake_qp_of(verbs);
	int err = 0;

	FAKE_GUARD();
	for (; wr; wr = wr->next) {
		err = fake_fault(FAKE_VERBS, "ibv_post_send");
		if (!err)
			err = send_fits(qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
		fake_work_add(qp, send_new(fake_profile_at(&qp->node), wr));
		qp->sq_used++;
		if (refuses_late(qp))
			fake_work_run();
	}
	if (verbs->state == IBV_QPS_ERR)
		flush_sends_of(qp);
	fake_work_run();
	return fake_signed(&qp->node, err);
}

/* --- completions --- */

static enum ibv_wc_opcode completed_opcode(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	default:
		return IBV_WC_SEND;
	}
}

/* Of a completion in error only these fields mean anything; the rest is made to look odd. */
static void failed_wc(struct ibv_wc *wc, uint64_t wr_id, enum ibv_wc_status status, uint32_t qp_num)
{
	memset(wc, 0x5a, sizeof(*wc));
	wc->wr_id = wr_id;
	wc->status = status;
	wc->vendor_err = 0;
	wc->qp_num = qp_num;
}

static void push(struct fake_qp *qp, const struct fake_cqe *cqe)
{
	fake_cq_push(fake_cq_of(qp->qp.send_cq), cqe, false);
}

static void push_failed(
	struct fake_qp *qp, uint64_t wr_id, enum ibv_wc_status status, unsigned sq_slots)
{
	struct fake_cqe cqe = { .sq_slots = sq_slots };

	failed_wc(&cqe.wc, wr_id, status, qp->qp.qp_num);
	push(qp, &cqe);
}

/* The reason goes to the oldest that is not known to be done, though it is. */
static void blame_oldest(struct fake_qp *qp, uint64_t wr_id, enum ibv_wc_status status)
{
	unsigned i;

	qp->silent[qp->sq_silent - 1] = wr_id;
	for (i = 0; i < qp->sq_silent; i++)
		push_failed(qp, qp->silent[i], i ? IBV_WC_WR_FLUSH_ERR : status, 1);
}

static void send_failed(
	struct fake_qp *qp, uint64_t wr_id, enum ibv_wc_status status, bool signalled)
{
	const struct fake_profile *profile = fake_profile_at(&qp->node);

	if (status == IBV_WC_WR_FLUSH_ERR && !signalled && profile->flushes_only_signalled)
		return;
	if (status != IBV_WC_WR_FLUSH_ERR && profile->access_error_first)
		fake_async_qp(&qp->qp, IBV_EVENT_QP_ACCESS_ERR);
	if (profile->blames_the_oldest)
		blame_oldest(qp, wr_id, status);
	else
		push_failed(qp, wr_id, status, qp->sq_silent);
	qp->sq_silent = 0;
}

static void send_done(struct fake_qp *qp, const struct ibv_wc *wc)
{
	const struct fake_cqe cqe = { .wc = *wc, .sq_slots = qp->sq_silent };

	qp->sq_silent = 0;
	push(qp, &cqe);
}

void fake_send_complete(
	struct fake_qp *qp, struct fake_send *send, enum ibv_wc_status status, uint32_t byte_len)
{
	bool signalled = qp->init.sq_sig_all || (send->wr.send_flags & IBV_SEND_SIGNALED);
	const struct ibv_wc wc = {
		.wr_id = send->wr.wr_id,
		.qp_num = qp->qp.qp_num,
		.opcode = completed_opcode(send->wr.opcode),
		.byte_len = byte_len,
	};

	qp->sq_silent++;
	fake_work_remove(qp, send);
	fake_send_free(send);
	if (status != IBV_WC_SUCCESS)
		send_failed(qp, wc.wr_id, status, signalled);
	else if (signalled)
		send_done(qp, &wc);
	else
		qp->silent[qp->sq_silent - 1] = wc.wr_id;
}

void fake_recv_complete(
	struct fake_qp *qp, struct fake_recv *recv, const struct ibv_wc *result, bool solicited)
{
	struct fake_cqe cqe = { .wc = *result };
	struct ibv_cq *cq = recv->xrc ? recv->xrc->cq : qp->qp.recv_cq;

	if (result->status != IBV_WC_SUCCESS)
		failed_wc(&cqe.wc, recv->wr_id, result->status, qp->qp.qp_num);
	cqe.wc.wr_id = recv->wr_id;
	cqe.wc.qp_num = qp->qp.qp_num;
	if (recv->late)
		cqe.recv = recv;
	else
		fake_recv_free(recv);
	fake_cq_push(fake_cq_of(cq), &cqe, solicited);
}

/* --- the end of it --- */

static void tell_last(struct fake_qp *qp)
{
	qp->to_tell_last = false;
	fake_async_qp(&qp->qp, IBV_EVENT_QP_LAST_WQE_REACHED);
}

static void flush_receives(struct fake_qp *qp)
{
	const struct ibv_wc flushed = { .status = IBV_WC_WR_FLUSH_ERR };
	struct fake_recv *recv;

	if (fake_profile_at(&qp->node)->keeps_receives)
		return;
	while ((recv = TAILQ_FIRST(&qp->recvs))) {
		TAILQ_REMOVE(&qp->recvs, recv, link);
		qp->recv_count--;
		fake_recv_complete(qp, recv, &flushed, false);
	}
}

/* The receive that half a message was in. */
static void flush_half(struct fake_qp *qp)
{
	const struct ibv_wc flushed = { .status = IBV_WC_WR_FLUSH_ERR };
	struct fake_recv *recv = fake_srq_take(fake_srq_of(qp->qp.srq));

	if (recv)
		fake_recv_complete(qp, recv, &flushed, false);
}

/* All that is posted ends in a flush, signalled or not. */
static void flush(struct fake_qp *qp)
{
	const struct fake_profile *profile = fake_profile_at(&qp->node);

	qp->to_flush = false;
	while (!TAILQ_EMPTY(&qp->sends))
		fake_send_complete(qp, TAILQ_FIRST(&qp->sends), IBV_WC_WR_FLUSH_ERR, 0);
	flush_receives(qp);
	if (!qp->qp.srq)
		return;
	if (profile->srq_half_received && !qp->has_flushed)
		flush_half(qp);
	qp->has_flushed = true;
	if (!fake_tells_last_receive())
		return;
	qp->to_tell_last = profile->last_wqe == FAKE_LAST_WQE_LATE;
	if (profile->last_wqe == FAKE_LAST_WQE_AT_ONCE)
		tell_last(qp);
}

void fake_qp_flush(struct fake_qp *qp)
{
	const struct fake_profile *profile = fake_profile_at(&qp->node);

	qp->waiting = qp->waits_for_receive = false;
	if (profile->flush == FAKE_FLUSH_AT_ONCE) {
		flush(qp);
		return;
	}
	qp->to_flush = true;
	if (profile->flush != FAKE_FLUSH_WHEN_POLLED)
		return;
	if (qp->qp.send_cq)
		fake_cq_wake(fake_cq_of(qp->qp.send_cq));
	if (qp->qp.recv_cq && qp->qp.recv_cq != qp->qp.send_cq)
		fake_cq_wake(fake_cq_of(qp->qp.recv_cq));
}

void fake_flush_late(struct fake_cq *cq)
{
	const struct fake_profile *profile = fake_profile_at(&cq->node);
	struct fake_node *node = NULL;

	if (profile->flush == FAKE_FLUSH_AT_ONCE && profile->last_wqe != FAKE_LAST_WQE_LATE)
		return;
	while ((node = fake_node_next(FAKE_QP, node))) {
		struct fake_qp *qp = fake_of(node, fake_qp, node);

		if (qp->qp.send_cq != &cq->cq && qp->qp.recv_cq != &cq->cq)
			continue;
		if (qp->to_flush)
			flush(qp);
		else if (qp->to_tell_last)
			tell_last(qp);
	}
}
