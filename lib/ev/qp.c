#include "ev/qp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "ev/base.h"
#include "ev/error.h"

enum {
	CHAIN = 32,       /* work requests given to the device in one call */
	SIGNAL_EVERY = 16 /* sends per signalled completion; the last of a chain always is */
};

#define RECV_BIT UINT32_C(0x80000000)

static uint64_t wr_id(const struct evr_qp *qp, uint32_t index)
{
	return (uint64_t)qp->number << 32 | index;
}

/* --- life ----------------------------------------------------------------------------------- */

static void fill(struct evr_qp *qp);

static void on_pool_available(struct evr_pool_waiter *waiter)
{
	fill(evr_container_of(waiter, struct evr_qp, pool_waiter));
}

static int alloc_rings(struct evr_qp *qp)
{
	uint32_t n = qp->config.recv_depth;
	uint32_t i;

	qp->sends = calloc(qp->config.send_depth, sizeof(*qp->sends));
	qp->recvs = calloc(n ? n : 1, sizeof(*qp->recvs));
	qp->free_slots = calloc(n ? n : 1, sizeof(*qp->free_slots));
	qp->new_slots = calloc(n ? n : 1, sizeof(*qp->new_slots));
	if (!qp->sends || !qp->recvs || !qp->free_slots || !qp->new_slots)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		qp->free_slots[i] = n - 1 - i;
	qp->free_count = n;
	return 0;
}

static void free_rings(struct evr_qp *qp)
{
	free(qp->sends);
	free(qp->recvs);
	free(qp->free_slots);
	free(qp->new_slots);
}

int evr_qp_init(struct evr_qp *qp, struct evrdma_base *base, const struct evr_qp_config *config,
	const struct evr_qp_ops *ops)
{
	qp->base = base;
	qp->config = *config;
	qp->ops = ops;
	qp->pool_waiter.available = on_pool_available;
	if (!qp->config.low_water)
		qp->config.low_water = (qp->config.send_depth + 3) / 4;
	if (alloc_rings(qp)) {
		free_rings(qp);
		return -ENOMEM;
	}
	evr_pool_ref(config->recv_pool);
	return 0;
}

static void set_unposted(struct evr_qp *qp, bool unposted)
{
	if (qp->unposted == unposted)
		return;
	qp->unposted = unposted;
	if (unposted) {
		TAILQ_INSERT_TAIL(&qp->base->unposted_qps, qp, unposted_link);
		evr_base_kick(qp->base);
	} else {
		TAILQ_REMOVE(&qp->base->unposted_qps, qp, unposted_link);
	}
}

void evr_qp_fini(struct evr_qp *qp)
{
	set_unposted(qp, false);
	if (qp->config.recv_pool)
		evr_pool_stop_waiting(qp->config.recv_pool, &qp->pool_waiter);
	evr_pool_unref(qp->config.recv_pool);
	free_rings(qp);
}

static uint32_t cq_entries(const struct evr_qp *qp)
{
	return qp->config.send_depth + qp->config.recv_depth;
}

static int create(struct evr_qp *qp, struct evr_cmid *cmid)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = qp->config.type,
		.send_cq = qp->cq->cq,
		.recv_cq = qp->cq->cq,
		.cap = {
			.max_send_wr = qp->config.send_depth,
			.max_recv_wr = qp->config.recv_depth ? qp->config.recv_depth : 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = qp->device->pd,
		.create_flags = qp->config.create_flags,
	};

	if (qp->config.create_flags)
		attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	errno = 0;
	if (rdma_create_qp_ex(cmid->cm, &attr))
		return errno ? -errno : -EIO;
	qp->qp = cmid->cm->qp;
	return 0;
}

static int create_on_cq(struct evr_qp *qp, struct evr_cmid *cmid)
{
	int ret = evr_cq_reserve(qp->device, cq_entries(qp), &qp->cq);

	if (ret)
		return ret;
	ret = evr_idmap_add(&qp->base->qp_numbers, qp, &qp->number);
	if (ret)
		goto unreserve;
	ret = create(qp, cmid);
	if (ret)
		goto remove_number;
	return 0;
remove_number:
	evr_idmap_remove(&qp->base->qp_numbers, qp->number);
unreserve:
	evr_cq_unreserve(qp->cq, cq_entries(qp));
	qp->cq = NULL;
	return ret;
}

static int post_recvs(struct evr_qp *qp);

int evr_qp_bind(struct evr_qp *qp, struct evr_cmid *cmid)
{
	int ret = evr_device_get(qp->base, cmid->cm->verbs, &qp->device);

	if (ret)
		return ret;
	ret = create_on_cq(qp, cmid);
	if (ret) {
		evr_qp_put_device(qp);
		return ret;
	}
	fill(qp);
	ret = qp->config.recv_pool && !qp->new_count ? -errno : post_recvs(qp);
	if (ret) {
		evr_qp_unbind(qp, cmid);
		evr_qp_put_device(qp);
	}
	return ret;
}

/* The verbs QP is gone, and with it what was posted: it is as if it had just been submitted. */
static void take_back_posted(struct evr_qp *qp)
{
	uint32_t i;

	qp->send_posted = qp->send_tail;
	qp->new_count = 0;
	for (i = 0; i < qp->config.recv_depth; i++)
		if (qp->recvs[i])
			qp->new_slots[qp->new_count++] = i;
	qp->recv_posted = 0;
}

void evr_qp_unbind(struct evr_qp *qp, struct evr_cmid *cmid)
{
	if (!qp->qp)
		return;
	rdma_destroy_qp(cmid->cm);
	qp->qp = NULL;
	/* What completed before is in the CQ, and counts. */
	evr_cq_drain(qp->cq);
	evr_idmap_remove(&qp->base->qp_numbers, qp->number);
	evr_cq_unreserve(qp->cq, cq_entries(qp));
	qp->cq = NULL;
	take_back_posted(qp);
}

void evr_qp_put_device(struct evr_qp *qp)
{
	struct evr_device *device = qp->device;

	qp->device = NULL;
	evr_device_put(device);
}

void evr_qp_set_error(struct evr_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	qp->in_error = true;
	if (qp->qp)
		ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);
}

bool evr_qp_is_iwarp(const struct evr_qp *qp)
{
	return qp->qp && qp->qp->context->device->transport_type == IBV_TRANSPORT_IWARP;
}

bool evr_qp_is_drained(const struct evr_qp *qp)
{
	return qp->send_posted == qp->send_tail && (!qp->recv_posted || evr_qp_is_iwarp(qp));
}

/* --- receiving ------------------------------------------------------------------------------ */

int evr_qp_submit_recv(struct evr_qp *qp, struct evrdma_buf *buf)
{
	uint32_t slot;

	if (!qp->free_count)
		return -EAGAIN;
	slot = qp->free_slots[--qp->free_count];
	qp->recvs[slot] = evrdma_buf_ref(buf);
	qp->new_slots[qp->new_count++] = slot;
	if (qp->qp)
		set_unposted(qp, true);
	return 0;
}

/* Keeps the receive queue full from the pool, or waits for a buffer to come back to it. */
static void fill(struct evr_qp *qp)
{
	struct evrdma_pool *pool = qp->config.recv_pool;
	struct evrdma_buf *buf;

	if (!pool || !qp->qp || qp->in_error)
		return;
	while (qp->free_count) {
		buf = evrdma_pool_get(pool);
		if (!buf) {
			evr_pool_wait(pool, &qp->pool_waiter);
			return;
		}
		evr_qp_submit_recv(qp, buf);
		evrdma_buf_unref(buf);
	}
}

/* Posts the last n of the new slots. Returns 0, or -errno with those not posted still new. */
static int post_recv_chain(struct evr_qp *qp, uint32_t n)
{
	struct ibv_recv_wr wrs[CHAIN], *bad = NULL;
	struct ibv_sge sges[CHAIN];
	const uint32_t *slots = &qp->new_slots[qp->new_count - n];
	uint32_t i, done;
	int ret;

	for (i = 0; i < n; i++) {
		struct evrdma_buf *buf = qp->recvs[slots[i]];

		sges[i] = (struct ibv_sge){ .addr = (uintptr_t)evrdma_buf_data(buf),
			.length = (uint32_t)evrdma_buf_size(buf) };
		ret = evr_buf_lkey(buf, qp->device, &sges[i].lkey);
		if (ret)
			return ret;
		wrs[i] = (struct ibv_recv_wr){ .wr_id = wr_id(qp, RECV_BIT | slots[i]),
			.sg_list = &sges[i], .num_sge = 1, .next = i + 1 < n ? &wrs[i + 1] : NULL };
	}
	ret = ibv_post_recv(qp->qp, wrs, &bad);
	done = ret && bad ? (uint32_t)(bad - wrs) : n;
	qp->recv_posted += done;
	memmove(&qp->new_slots[qp->new_count - n], slots + done, (n - done) * sizeof(*slots));
	qp->new_count -= done;
	return -abs(ret);
}

static int post_recvs(struct evr_qp *qp)
{
	int ret = 0;

	while (qp->new_count && !ret)
		ret = post_recv_chain(qp, qp->new_count < CHAIN ? qp->new_count : CHAIN);
	return ret;
}

static int recv_err(const struct ibv_wc *wc)
{
	switch (wc->status) {
	case IBV_WC_SUCCESS:
		return 0;
	case IBV_WC_WR_FLUSH_ERR:
		return ECANCELED;
	case IBV_WC_LOC_LEN_ERR:
		return EMSGSIZE;
	default:
		return EIO;
	}
}

/* Frees the slot and tells. The buffer's reference is the caller's afterwards. */
static struct evrdma_buf *end_recv(struct evr_qp *qp, uint32_t slot, struct evrdma_recv *recv)
{
	struct evrdma_buf *buf = qp->recvs[slot];

	qp->recvs[slot] = NULL;
	qp->free_slots[qp->free_count++] = slot;
	recv->buf = buf;
	recv->data = (char *)evrdma_buf_data(buf) + qp->config.header_bytes;
	if (!recv->err || !qp->config.recv_pool)
		qp->ops->received(qp, recv);
	return buf;
}

static void set_message(struct evr_qp *qp, const struct ibv_wc *wc, struct evrdma_buf *buf,
	struct evrdma_recv *recv)
{
	uint32_t header = qp->config.header_bytes;

	/* What the device says of a length is not trusted beyond the buffer. */
	if (wc->byte_len < header || wc->byte_len > evrdma_buf_size(buf)) {
		recv->err = EIO;
		return;
	}
	recv->len = wc->byte_len - header;
	recv->has_imm = !!(wc->wc_flags & IBV_WC_WITH_IMM);
	recv->imm = recv->has_imm ? ntohl(wc->imm_data) : 0;
	if (header) {
		recv->src_qp = wc->src_qp;
		recv->grh = wc->wc_flags & IBV_WC_GRH ? evrdma_buf_data(buf) : NULL;
	}
}

static void complete_recv(struct evr_qp *qp, uint32_t slot, const struct ibv_wc *wc)
{
	struct evrdma_recv recv = { .err = recv_err(wc), .wc_status = (int)wc->status };
	struct evrdma_buf *buf;

	if (slot >= qp->config.recv_depth || !qp->recvs[slot])
		return;
	qp->recv_posted--;
	if (!recv.err)
		set_message(qp, wc, qp->recvs[slot], &recv);
	buf = end_recv(qp, slot, &recv);
	/* A buffer that nobody held goes straight back; otherwise the pool gives another. */
	if (qp->config.recv_pool && buf->refs == 1 && qp->qp && !qp->in_error)
		evr_qp_submit_recv(qp, buf);
	evrdma_buf_unref(buf);
	fill(qp);
}

/* --- sending -------------------------------------------------------------------------------- */

uint32_t evr_qp_send_space(const struct evr_qp *qp)
{
	return qp->config.send_depth - (qp->send_head - qp->send_tail);
}

static struct evr_send *send_at(struct evr_qp *qp, uint32_t position)
{
	return &qp->sends[position % qp->config.send_depth];
}

int evr_qp_submit_send(struct evr_qp *qp, struct evr_send *send)
{
	int ret;

	if (!evr_qp_send_space(qp)) {
		qp->want_writable = true;
		return -EAGAIN;
	}
	ret = evr_buf_lkey(send->buf, qp->device, &send->lkey);
	if (ret)
		return ret;
	evrdma_buf_ref(send->buf);
	*send_at(qp, qp->send_head++) = *send;
	set_unposted(qp, true);
	return 0;
}

static void build_send(struct evr_qp *qp, uint32_t position, struct ibv_send_wr *wr,
	struct ibv_sge *sge, bool last)
{
	const struct evr_send *send = send_at(qp, position);

	*sge = (struct ibv_sge){ .addr = (uintptr_t)evrdma_buf_data(send->buf),
		.length = send->len, .lkey = send->lkey };
	*wr = (struct ibv_send_wr){
		.wr_id = wr_id(qp, position % qp->config.send_depth),
		.sg_list = sge,
		.num_sge = send->len ? 1 : 0,
		.opcode = send->has_imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
		.imm_data = htonl(send->imm),
		.send_flags = last || !((position + 1) % SIGNAL_EVERY) ? IBV_SEND_SIGNALED : 0,
	};
	if (qp->config.type == IBV_QPT_UD) {
		wr->wr.ud.ah = send->ah;
		wr->wr.ud.remote_qpn = send->remote_qpn;
		wr->wr.ud.remote_qkey = send->remote_qkey;
	}
}

static int post_send_chain(struct evr_qp *qp, uint32_t n)
{
	struct ibv_send_wr wrs[CHAIN], *bad = NULL;
	struct ibv_sge sges[CHAIN];
	uint32_t i;
	int ret;

	for (i = 0; i < n; i++) {
		build_send(qp, qp->send_posted + i, &wrs[i], &sges[i], i + 1 == n);
		wrs[i].next = i + 1 < n ? &wrs[i + 1] : NULL;
	}
	ret = ibv_post_send(qp->qp, wrs, &bad);
	qp->send_posted += ret && bad ? (uint32_t)(bad - wrs) : n;
	return -abs(ret);
}

static int post_sends(struct evr_qp *qp)
{
	int ret = 0;

	while (qp->send_posted != qp->send_head && !ret) {
		uint32_t n = qp->send_head - qp->send_posted;

		ret = post_send_chain(qp, n < CHAIN ? n : CHAIN);
	}
	return ret;
}

static void end_send(struct evr_qp *qp, const struct evrdma_error *error)
{
	struct evr_send send = *send_at(qp, qp->send_tail++);

	qp->ops->sent(qp, &send, error);
	evrdma_buf_unref(send.buf);
}

static bool comes_later(const struct evr_qp *qp, uint32_t position)
{
	return qp->send_tail != position;
}

/*
 * Sends complete in order, so a good completion speaks for the unsignalled ones before it. A
 * flushed one does not: some devices flush unsignalled work without a word.
 */
static void complete_send(struct evr_qp *qp, uint32_t index, const struct ibv_wc *wc)
{
	struct evrdma_error error, *before = NULL;
	uint32_t behind = (index + qp->config.send_depth - qp->send_tail % qp->config.send_depth) %
		qp->config.send_depth;
	uint32_t position = qp->send_tail + behind;

	if (behind >= qp->send_posted - qp->send_tail)
		return;
	if (wc->status != IBV_WC_SUCCESS)
		evr_error_from_wc(&error, wc->status);
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		before = &error;
	while (comes_later(qp, position))
		end_send(qp, before);
	end_send(qp, wc->status == IBV_WC_SUCCESS ? NULL : &error);
	if (qp->want_writable && evr_qp_send_space(qp) >= qp->config.low_water) {
		qp->want_writable = false;
		qp->ops->writable(qp);
	}
}

/* --- completions ---------------------------------------------------------------------------- */

static void report_status(struct evr_qp *qp, const struct ibv_wc *wc)
{
	struct evrdma_error error;

	if (wc->status == IBV_WC_SUCCESS)
		return;
	if (wc->status == IBV_WC_WR_FLUSH_ERR) {
		qp->ops->flushed(qp);
		return;
	}
	evr_error_from_wc(&error, wc->status);
	qp->ops->failed(qp, &error);
}

void evr_qp_complete(struct evrdma_base *base, const struct ibv_wc *wc)
{
	struct evr_qp *qp = evr_idmap_find(&base->qp_numbers, (uint32_t)(wc->wr_id >> 32));
	uint32_t index = (uint32_t)wc->wr_id;

	if (!qp)
		return;
	if (index & RECV_BIT)
		complete_recv(qp, index & ~RECV_BIT, wc);
	else
		complete_send(qp, index, wc);
	report_status(qp, wc);
	if (qp->in_error && evr_qp_is_drained(qp))
		qp->ops->drained(qp);
}

void evr_qp_reap(struct evr_qp *qp)
{
	if (qp->cq)
		evr_cq_drain(qp->cq);
}

void evr_qp_hold_sends(struct evr_qp *qp)
{
	qp->sends_held = true;
}

void evr_qp_release_sends(struct evr_qp *qp)
{
	if (!qp->sends_held)
		return;
	qp->sends_held = false;
	set_unposted(qp, true);
}

static void post(struct evr_qp *qp)
{
	struct evrdma_error error;
	int ret = post_recvs(qp);

	if (!ret && !qp->sends_held)
		ret = post_sends(qp);
	if (!ret)
		return;
	evr_error_set(&error, -ret, EVRDMA_STEP_TRANSFER);
	qp->ops->failed(qp, &error);
}

void evr_qp_post_all(struct evrdma_base *base)
{
	struct evr_qp *qp;

	while ((qp = TAILQ_FIRST(&base->unposted_qps))) {
		set_unposted(qp, false);
		if (qp->qp && !qp->in_error)
			post(qp);
	}
}

void evr_qp_cancel(struct evr_qp *qp)
{
	struct evrdma_recv recv = { .err = ECANCELED, .wc_status = IBV_WC_WR_FLUSH_ERR };
	struct evrdma_error error;
	uint32_t i;

	evr_error_set(&error, ECANCELED, EVRDMA_STEP_TRANSFER);
	while (qp->send_tail != qp->send_head)
		end_send(qp, &error);
	qp->new_count = 0;
	for (i = 0; i < qp->config.recv_depth; i++)
		if (qp->recvs[i])
			evrdma_buf_unref(end_recv(qp, i, &recv));
}
