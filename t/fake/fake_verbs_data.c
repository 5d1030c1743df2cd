/* Reliable connections: what each kind of send does to the peer. */
#include "fake/fake_verbs.h"

#include <stdlib.h>
#include <string.h>

size_t fake_sge_len(const struct ibv_sge *sge, int sges)
{
	size_t len = 0;
	int i;

	for (i = 0; i < sges; i++)
		len += sge[i].length;
	return len;
}

/* --- local buffers --- */

enum ibv_wc_status fake_gather(
	struct fake_qp *qp, struct fake_send *send, uint8_t **data, size_t *len)
{
	size_t at = 0;
	int i;

	*len = send->inlined ? send->inlined_len : fake_sge_len(send->sge, send->sges);
	*data = fake_alloc(*len + 1);
	if (send->inlined) {
		memcpy(*data, send->inlined, *len);
		return IBV_WC_SUCCESS;
	}
	for (i = 0; i < send->sges; i++) {
		const struct ibv_sge *sge = &send->sge[i];
		const void *from =
			fake_mr_at(fake_mr_find(qp->qp.pd, sge->lkey), sge->addr, sge->length, 0);

		if (!sge->length)
			continue;
		if (!from) {
			free(*data);
			*data = NULL;
			return IBV_WC_LOC_PROT_ERR;
		}
		memcpy(*data + at, from, sge->length);
		at += sge->length;
	}
	return IBV_WC_SUCCESS;
}

enum ibv_wc_status fake_scatter(const struct ibv_pd *pd, const struct ibv_sge *sge, int sges,
	const uint8_t *data, size_t len, int access)
{
	int i;

	if (len > fake_sge_len(sge, sges))
		return IBV_WC_LOC_LEN_ERR;
	for (i = 0; i < sges && len; i++) {
		size_t part = sge[i].length < len ? sge[i].length : len;
		void *to = fake_mr_at(
			fake_mr_find(pd, sge[i].lkey), sge[i].addr, sge[i].length, access);

		if (!part)
			continue;
		if (!to)
			return IBV_WC_LOC_PROT_ERR;
		memcpy(to, data, part);
		data += part;
		len -= part;
	}
	return IBV_WC_SUCCESS;
}

enum { MAX_LATE = 64 };

/* Where each part of it goes is settled now: nobody looks at the regions again. */
static enum ibv_wc_status settle(
	const struct ibv_pd *pd, struct fake_recv *recv, const uint8_t *data, size_t len)
{
	int i;

	if (len > fake_sge_len(recv->sge, recv->sges))
		return IBV_WC_LOC_LEN_ERR;
	for (i = 0; i < recv->sges; i++) {
		struct ibv_sge *sge = &recv->sge[i];
		void *to = fake_mr_at(fake_mr_find(pd, sge->lkey), sge->addr, sge->length,
			IBV_ACCESS_LOCAL_WRITE);

		if (!to && sge->length)
			return IBV_WC_LOC_PROT_ERR;
		sge->addr = (uintptr_t)to;
	}
	recv->late = fake_alloc(len + 1);
	recv->late_len = len;
	memcpy(recv->late, data, len);
	return IBV_WC_SUCCESS;
}

void fake_receive_late(struct fake_recv *recv)
{
	const uint8_t *data = recv->late;
	size_t len = recv->late_len;
	int i;

	for (i = 0; i < recv->sges && len; i++) {
		size_t part = recv->sge[i].length < len ? recv->sge[i].length : len;

		if (part)
			memcpy((void *)(uintptr_t)recv->sge[i].addr, data, part);
		data += part;
		len -= part;
	}
}

enum ibv_wc_status fake_receive(const struct fake_profile *profile, const struct ibv_pd *pd,
	struct fake_recv *recv, const uint8_t *data, size_t len)
{
	if (profile->copies_when_polled && len <= MAX_LATE)
		return settle(pd, recv, data, len);
	return fake_scatter(pd, recv->sge, recv->sges, data, len, IBV_ACCESS_LOCAL_WRITE);
}

/* --- the peer --- */

static struct fake_qp *peer_of(const struct fake_qp *qp)
{
	struct fake_qp *peer = fake_qp_find(qp->attr.dest_qp_num);
	enum ibv_qp_type type = qp->qp.qp_type == IBV_QPT_XRC_SEND ? IBV_QPT_XRC_RECV : IBV_QPT_RC;

	if (!peer || peer->qp.qp_type != type || peer->node.context->gone ||
		!peer->node.context->device->present || peer->attr.dest_qp_num != qp->qp.qp_num)
		return NULL;
	return peer->qp.state == IBV_QPS_RTR || peer->qp.state == IBV_QPS_RTS ||
			       peer->qp.state == IBV_QPS_SQD
		       ? peer
		       : NULL;
}

static void end(struct fake_qp *qp, struct fake_send *send, enum ibv_wc_status status, size_t len)
{
	fake_send_complete(qp, send, status, (uint32_t)len);
	if (status != IBV_WC_SUCCESS)
		fake_qp_to_error(qp);
}

/* Under RNR: false to wait for a receive, true when the send has failed for want of one. */
static bool not_ready(struct fake_qp *qp, struct fake_send *send)
{
	fake_work_not_ready(send);
	if (qp->attr.rnr_retry) {
		qp->waits_for_receive = true;
		return false;
	}
	end(qp, send, IBV_WC_RNR_RETRY_EXC_ERR, 0);
	return true;
}

static void request_error(struct fake_qp *peer, enum ibv_event_type type)
{
	fake_async_qp(&peer->qp, type);
	fake_qp_to_error(peer);
}

/* The SRQ that a sender of XRC names, or NULL. */
static struct fake_srq *target_of(const struct fake_qp *peer, const struct fake_send *send)
{
	return peer->xrcd ? fake_srq_find(peer->xrcd, send->wr.qp_type.xrc.remote_srqn) : NULL;
}

static const struct ibv_pd *pd_of(const struct fake_qp *peer, const struct fake_recv *recv)
{
	return recv->xrc ? recv->xrc->srq.pd : peer->qp.pd;
}

/* --- sends --- */

static enum ibv_wc_status seen_by_sender(enum ibv_wc_status at_peer)
{
	switch (at_peer) {
	case IBV_WC_SUCCESS:
		return IBV_WC_SUCCESS;
	case IBV_WC_LOC_LEN_ERR:
		return IBV_WC_REM_INV_REQ_ERR;
	default:
		return IBV_WC_REM_OP_ERR;
	}
}

static void put_immediate(struct ibv_wc *wc, const struct ibv_send_wr *wr)
{
	if (wr->opcode != IBV_WR_SEND_WITH_IMM && wr->opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
		return;
	wc->imm_data = wr->imm_data;
	wc->wc_flags |= IBV_WC_WITH_IMM;
}

static enum ibv_wc_status seen_by_receiver(
	const struct fake_profile *profile, enum ibv_wc_status status)
{
	if (status == IBV_WC_LOC_LEN_ERR && !profile->too_long_is_told)
		return IBV_WC_LOC_QP_OP_ERR;
	return status;
}

static bool lies;

void fake_lie_of_length(void)
{
	FAKE_GUARD();
	lies = true;
}

void fake_data_reset(void)
{
	lies = false;
}

static uint32_t length_told(size_t len)
{
	uint32_t told = lies ? UINT32_MAX : (uint32_t)len;

	lies = false;
	return told;
}

static bool run_send(struct fake_qp *qp, struct fake_qp *peer, struct fake_send *send)
{
	const struct fake_profile *profile = fake_profile_at(&peer->node);
	struct ibv_wc wc = { .opcode = IBV_WC_RECV, .src_qp = qp->qp.qp_num };
	bool solicited = send->wr.send_flags & IBV_SEND_SOLICITED;
	struct fake_recv *recv;
	enum ibv_wc_status status;
	uint8_t *data;
	size_t len;

	status = fake_gather(qp, send, &data, &len);
	if (status != IBV_WC_SUCCESS) {
		end(qp, send, status, 0);
		return true;
	}
	recv = fake_recv_take(peer, target_of(peer, send));
	if (!recv) {
		free(data);
		return not_ready(qp, send);
	}
	status = fake_receive(profile, pd_of(peer, recv), recv, data, len);
	wc.status = seen_by_receiver(profile, status);
	free(data);
	wc.byte_len = length_told(len);
	put_immediate(&wc, &send->wr);
	fake_recv_complete(peer, recv, &wc, solicited);
	if (wc.status != IBV_WC_SUCCESS)
		fake_qp_to_error(peer);
	end(qp, send, seen_by_sender(wc.status), len);
	return true;
}

/* --- RDMA --- */

/* Where the request points in the peer's memory, or NULL. */
static void *remote_at(struct fake_qp *peer, uint64_t addr, uint32_t key, size_t len, int access)
{
	static uint8_t nothing;

	if (!(peer->attr.qp_access_flags & (unsigned)access))
		return NULL;
	if (!len)
		return &nothing;
	return fake_mr_at(fake_mr_find(peer->qp.pd, key), addr, len, access);
}

static bool run_write(struct fake_qp *qp, struct fake_qp *peer, struct fake_send *send)
{
	struct ibv_wc wc = { .opcode = IBV_WC_RECV_RDMA_WITH_IMM, .src_qp = qp->qp.qp_num };
	bool immediate = send->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct fake_recv *recv = NULL;
	enum ibv_wc_status status;
	uint8_t *data;
	size_t len;
	void *to;

	status = fake_gather(qp, send, &data, &len);
	if (status == IBV_WC_SUCCESS) {
		to = remote_at(peer, send->wr.wr.rdma.remote_addr, send->wr.wr.rdma.rkey, len,
			IBV_ACCESS_REMOTE_WRITE);
		if (!to) {
			status = IBV_WC_REM_ACCESS_ERR;
			request_error(peer, IBV_EVENT_QP_ACCESS_ERR);
		} else if (immediate && !(recv = fake_recv_take(peer, target_of(peer, send)))) {
			free(data);
			return not_ready(qp, send);
		} else {
			memcpy(to, data, len);
		}
	}
	free(data);
	if (recv) {
		wc.byte_len = (uint32_t)len;
		put_immediate(&wc, &send->wr);
		fake_recv_complete(peer, recv, &wc, send->wr.send_flags & IBV_SEND_SOLICITED);
	}
	end(qp, send, status, len);
	return true;
}

static bool run_read(struct fake_qp *qp, struct fake_qp *peer, struct fake_send *send)
{
	size_t len = fake_sge_len(send->sge, send->sges);
	int access = IBV_ACCESS_LOCAL_WRITE;
	enum ibv_wc_status status;
	const void *from;

	if (fake_profile_at(&qp->node)->read_sink_is_remote)
		access |= IBV_ACCESS_REMOTE_WRITE;
	/* siw takes as many reads as are asked for, whatever was agreed. */
	if (qp->node.context->device->kind != FAKE_IWARP &&
		(!qp->attr.max_rd_atomic || !peer->attr.max_dest_rd_atomic)) {
		end(qp, send, IBV_WC_REM_INV_REQ_ERR, 0);
		request_error(peer, IBV_EVENT_QP_REQ_ERR);
		return true;
	}
	from = remote_at(peer, send->wr.wr.rdma.remote_addr, send->wr.wr.rdma.rkey, len,
		IBV_ACCESS_REMOTE_READ);
	if (from) {
		status = fake_scatter(qp->qp.pd, send->sge, send->sges, from, len, access);
	} else {
		status = IBV_WC_REM_ACCESS_ERR;
		request_error(peer, IBV_EVENT_QP_ACCESS_ERR);
	}
	end(qp, send, status, len);
	return true;
}

static bool run_atomic(struct fake_qp *qp, struct fake_qp *peer, struct fake_send *send)
{
	const struct ibv_send_wr *wr = &send->wr;
	enum ibv_wc_status status;
	uint64_t old;
	void *at;

	at = remote_at(peer, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey, sizeof(old),
		IBV_ACCESS_REMOTE_ATOMIC);
	if (!at || wr->wr.atomic.remote_addr % sizeof(old) || !qp->attr.max_rd_atomic) {
		end(qp, send, at ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_ACCESS_ERR, 0);
		request_error(peer, IBV_EVENT_QP_ACCESS_ERR);
		return true;
	}
	memcpy(&old, at, sizeof(old));
	status = fake_scatter(qp->qp.pd, send->sge, send->sges, (const uint8_t *)&old, sizeof(old),
		IBV_ACCESS_LOCAL_WRITE);
	if (status == IBV_WC_SUCCESS) {
		uint64_t new = old + wr->wr.atomic.compare_add;

		if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
			new = old == wr->wr.atomic.compare_add ? wr->wr.atomic.swap : old;
		memcpy(at, &new, sizeof(new));
	}
	end(qp, send, status, sizeof(old));
	return true;
}

static bool takes_receive(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
	       opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* No SRQ of the number is in the peer's domain. */
static bool miss(struct fake_qp *qp, struct fake_qp *peer, struct fake_send *send)
{
	end(qp, send, IBV_WC_REM_INV_REQ_ERR, 0);
	request_error(peer, IBV_EVENT_QP_REQ_ERR);
	return true;
}

bool fake_run_rc(struct fake_qp *qp, struct fake_send *send)
{
	struct fake_qp *peer = peer_of(qp);

	if (!peer)
		return false;
	if (peer->xrcd && takes_receive(send->wr.opcode) && !target_of(peer, send))
		return miss(qp, peer, send);
	switch (send->wr.opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return run_write(qp, peer, send);
	case IBV_WR_RDMA_READ:
		return run_read(qp, peer, send);
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return run_atomic(qp, peer, send);
	default:
		return run_send(qp, peer, send);
	}
}
