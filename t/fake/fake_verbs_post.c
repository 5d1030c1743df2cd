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

void fake_recvs_free(struct fake_recvs *recvs)
{
	struct fake_recv *recv;

	while ((recv = TAILQ_FIRST(recvs))) {
		TAILQ_REMOVE(recvs, recv, link);
		free(recv);
	}
}

static int recv_fits(const struct fake_qp *qp, const struct ibv_recv_wr *wr)
{
	if (qp->qp.state == IBV_QPS_RESET || qp->qp.srq || fake_is_xrc(qp))
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
	}
	if (verbs->state == IBV_QPS_ERR)
		fake_qp_flush(qp);
	fake_work_run();
	return err;
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

	send->inlined_len = fake_sge_len(send->sge, send->wr.num_sge);
	send->inlined = fake_alloc(send->inlined_len + 1);
	send->inlined_len = 0;
	for (i = 0; i < send->wr.num_sge; i++) {
		if (send->sge[i].length)
			memcpy(send->inlined + send->inlined_len,
				(const void *)(uintptr_t)send->sge[i].addr, send->sge[i].length);
		send->inlined_len += send->sge[i].length;
	}
}

static struct fake_send *send_new(const struct ibv_send_wr *wr)
{
	size_t size = (size_t)wr->num_sge * sizeof(wr->sg_list[0]);
	struct fake_send *send = fake_alloc(sizeof(*send) + size);

	send->wr = *wr;
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
		return is_connected_type(qp) && qp->node.context->device->kind != FAKE_IWARP;
	default:
		return false;
	}
}

static int send_fits(const struct fake_qp *qp, const struct ibv_send_wr *wr)
{
	if (qp->qp.state < IBV_QPS_RTS || !opcode_ok(qp, wr->opcode) ||
		qp->qp.qp_type == IBV_QPT_XRC_RECV)
		return EINVAL;
	if (wr->num_sge < 0 || wr->num_sge > (int)qp->init.cap.max_send_sge)
		return EINVAL;
	if ((wr->send_flags & IBV_SEND_INLINE) &&
		(fake_sge_len(wr->sg_list, wr->num_sge) > qp->init.cap.max_inline_data ||
			wr->opcode == IBV_WR_RDMA_READ))
		return EINVAL;
	if (qp->qp.qp_type == IBV_QPT_UD && (!wr->wr.ud.ah || wr->wr.ud.ah->pd != qp->qp.pd))
		return EINVAL;
	return qp->sq_used < qp->init.cap.max_send_wr ? 0 : ENOMEM;
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
		fake_work_add(qp, send_new(wr));
		qp->sq_used++;
	}
	if (verbs->state == IBV_QPS_ERR)
		fake_qp_flush(qp);
	fake_work_run();
	return err;
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

void fake_send_complete(
	struct fake_qp *qp, struct fake_send *send, enum ibv_wc_status status, uint32_t byte_len)
{
	bool signalled = qp->init.sq_sig_all || (send->wr.send_flags & IBV_SEND_SIGNALED);
	struct fake_cqe cqe = { .wc.wr_id = send->wr.wr_id };

	qp->sq_silent++;
	if (status != IBV_WC_SUCCESS)
		failed_wc(&cqe.wc, send->wr.wr_id, status, qp->qp.qp_num);
	cqe.wc.qp_num = qp->qp.qp_num;
	if (status == IBV_WC_SUCCESS) {
		cqe.wc.opcode = completed_opcode(send->wr.opcode);
		cqe.wc.byte_len = byte_len;
	}
	fake_work_remove(qp, send);
	fake_send_free(send);
	if (status == IBV_WC_SUCCESS && !signalled)
		return;
	cqe.sq_slots = qp->sq_silent;
	qp->sq_silent = 0;
	fake_cq_push(fake_cq_of(qp->qp.send_cq), &cqe, false);
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
	free(recv);
	fake_cq_push(fake_cq_of(cq), &cqe, solicited);
}

/* All that is posted ends in a flush, signalled or not. */
void fake_qp_flush(struct fake_qp *qp)
{
	const struct ibv_wc flushed = { .status = IBV_WC_WR_FLUSH_ERR };
	struct fake_recv *recv;

	qp->waiting = qp->waits_for_receive = false;
	while (!TAILQ_EMPTY(&qp->sends))
		fake_send_complete(qp, TAILQ_FIRST(&qp->sends), IBV_WC_WR_FLUSH_ERR, 0);
	while ((recv = TAILQ_FIRST(&qp->recvs))) {
		TAILQ_REMOVE(&qp->recvs, recv, link);
		qp->recv_count--;
		fake_recv_complete(qp, recv, &flushed, false);
	}
	if (qp->qp.srq)
		fake_async_qp(&qp->qp, IBV_EVENT_QP_LAST_WQE_REACHED);
}
