/* The send queue: a ring of work, of which at most send_depth pieces are posted. */

#include "ev/core/base.h"
#include "ev/core/error.h"
#include "ev/device/ah.h"
#include "ev/device/device.h"
#include "ev/queue/qp.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "ev/queue/qp_send.h"
#include "util/number.h"

enum {
	CHAIN = 32,	  /* work requests given to the device in one call */
	SIGNAL_EVERY = 16 /* sends per signalled completion; the last of a chain always is */
};

int evr_sends_init(struct evr_qp *qp)
{
	const struct evr_qp_config *config = &qp->config;
	size_t n = 1;

	qp->capacity = config->send_depth + config->send_queue;
	while (n < qp->capacity)
		n *= 2; /* so that a position that wraps stays in its slot's order */
	qp->ring_mask = (uint32_t)n - 1;
	qp->sends = calloc(n, sizeof(*qp->sends));
	qp->sges = calloc(n * config->max_segs, sizeof(*qp->sges));
	qp->bufs = calloc(n * config->max_segs, sizeof(struct evrdma_buf *));
	qp->inline_data = config->inline_bytes ? calloc(n, config->inline_bytes) : NULL;
	if (qp->sends && qp->sges && qp->bufs && (qp->inline_data || !config->inline_bytes))
		return 0;
	evr_sends_fini(qp);
	return -ENOMEM;
}

void evr_sends_fini(struct evr_qp *qp)
{
	free(qp->sends);
	free(qp->sges);
	free(qp->bufs);
	free(qp->inline_data);
}

uint32_t evr_qp_send_space(const struct evr_qp *qp)
{
	return qp->capacity - (qp->send_head - qp->send_tail) - qp->sends_coming;
}

bool evr_qp_has_sent_all(const struct evr_qp *qp)
{
	return qp->send_head == qp->send_tail && !qp->sends_coming;
}

static struct evr_send *send_at(struct evr_qp *qp, uint32_t position)
{
	return &qp->sends[position & qp->ring_mask];
}

static struct ibv_sge *sges_at(struct evr_qp *qp, uint32_t position)
{
	return &qp->sges[(size_t)(position & qp->ring_mask) * qp->config.max_segs];
}

static struct evrdma_buf **bufs_at(struct evr_qp *qp, uint32_t position)
{
	return &qp->bufs[(size_t)(position & qp->ring_mask) * qp->config.max_segs];
}

/* --- in ------------------------------------------------------------------------------------- */

/*
 * iWARP carries no immediate data, and a device may have no atomics. What fetches and was not
 * agreed on a device would take, and keep for ever.
 */
static int check_opcode(const struct evr_qp *qp, enum ibv_wr_opcode opcode)
{
	if (evr_work_fetches(opcode) && !qp->initiator_depth)
		return -EOPNOTSUPP;
	switch (opcode) {
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return evr_qp_is_iwarp(qp) ? -EOPNOTSUPP : 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return qp->device->attr.atomic_cap == IBV_ATOMIC_NONE ? -EOPNOTSUPP : 0;
	default:
		return 0;
	}
}

static int check_space(struct evr_qp *qp)
{
	if (evr_qp_send_space(qp))
		return 0;
	qp->want_writable = true;
	EVR_QP_COUNT(qp, eagains, 1);
	return -EAGAIN;
}

static int check(struct evr_qp *qp, const struct evr_send *send)
{
	int ret = check_space(qp);

	return ret ? ret : check_opcode(qp, send->opcode);
}

/* A device may read into fewer than it sends from; 0 is one that does not say. */
static unsigned most_segs(const struct evr_qp *qp, bool read)
{
	unsigned to_read = (unsigned)qp->device->attr.max_sge_rd;

	return read && to_read && to_read < qp->config.max_segs ? to_read : qp->config.max_segs;
}

static bool is_inside(const struct evrdma_seg *seg)
{
	size_t size = seg->buf->size;

	return seg->len <= UINT32_MAX && seg->offset <= size && seg->len <= size - seg->offset;
}

static int set_sge(struct evr_qp *qp, const struct evrdma_seg *seg, int more, struct ibv_sge *sge)
{
	if (!seg->buf || !is_inside(seg))
		return -EINVAL;
	sge->addr = (uintptr_t)seg->buf->data + seg->offset;
	sge->length = (uint32_t)seg->len;
	return evr_buf_lkey(seg->buf, qp->pd, more, &sge->lkey);
}

static uint64_t bytes_of(const struct ibv_sge *sges, unsigned n)
{
	uint64_t bytes = 0;

	while (n--)
		bytes += sges[n].length;
	return bytes;
}

static void count_taken(struct evr_qp *qp, enum ibv_wr_opcode opcode, uint64_t bytes)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		EVR_QP_COUNT(qp, writes, 1);
		EVR_QP_COUNT(qp, bytes_written, bytes);
		break;
	case IBV_WR_RDMA_READ:
		EVR_QP_COUNT(qp, reads, 1);
		EVR_QP_COUNT(qp, bytes_read, bytes);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		EVR_QP_COUNT(qp, atomics, 1);
		break;
	default:
		EVR_QP_COUNT(qp, sends, 1);
		EVR_QP_COUNT(qp, bytes_sent, bytes);
		break;
	}
}

int evr_qp_reserve_send(struct evr_qp *qp, struct evr_send *send, uint64_t bytes)
{
	int ret = check_space(qp);

	if (ret)
		return ret;
	qp->sends_coming++;
	send->counted = true;
	count_taken(qp, send->opcode, bytes);
	return 0;
}

void evr_qp_unreserve_send(struct evr_qp *qp)
{
	qp->sends_coming--;
}

static void take(struct evr_qp *qp, const struct evr_send *send, unsigned n)
{
	struct evr_send *slot = send_at(qp, qp->send_head);

	*slot = *send;
	slot->seg_count = n;
	if (!send->counted)
		count_taken(qp, send->opcode, bytes_of(sges_at(qp, qp->send_head), n));
	slot->buf = n ? *bufs_at(qp, qp->send_head) : NULL;
	qp->send_head++;
	evr_base_queue_post(qp->base, &qp->post);
}

int evr_qp_submit_send(
	struct evr_qp *qp, const struct evr_send *send, const struct evrdma_seg *segs, unsigned n)
{
	struct evrdma_buf **bufs = bufs_at(qp, qp->send_head);
	struct ibv_sge *sges = sges_at(qp, qp->send_head);
	bool read = send->opcode == IBV_WR_RDMA_READ;
	int more = read && evr_qp_is_iwarp(qp) ? EVR_BUF_SINK : 0;
	unsigned i;
	int ret = check(qp, send);

	if (!ret && n > most_segs(qp, read))
		ret = -EINVAL;
	for (i = 0; i < n && !ret; i++)
		ret = set_sge(qp, &segs[i], more, &sges[i]);
	if (ret)
		return ret;
	for (i = 0; i < n; i++)
		bufs[i] = evr_buf_ref(segs[i].buf);
	take(qp, send, n);
	return 0;
}

int evr_qp_submit_inline(
	struct evr_qp *qp, const struct evr_send *send, const void *data, size_t len)
{
	struct evr_send copy = *send;
	unsigned char *to;
	int ret = check(qp, send);

	if (ret)
		return ret;
	if (len > qp->inline_max)
		return -EMSGSIZE;
	to = len ? &qp->inline_data[(size_t)(qp->send_head & qp->ring_mask) *
				    qp->config.inline_bytes]
		 : NULL;
	if (len)
		memcpy(to, data, len);
	*sges_at(qp, qp->send_head) =
		(struct ibv_sge){ .addr = (uintptr_t)to, .length = (uint32_t)len };
	*bufs_at(qp, qp->send_head) = NULL;
	copy.flags |= IBV_SEND_INLINE;
	take(qp, &copy, 1);
	return 0;
}

/* --- to the device -------------------------------------------------------------------------- */

static void set_peer(const struct evr_qp *qp, const struct evr_send *send, struct ibv_send_wr *wr)
{
	if (qp->config.type == IBV_QPT_UD) {
		wr->wr.ud.ah = send->wr.ud.ah->ah;
		wr->wr.ud.remote_qpn = send->wr.ud.remote_qpn;
		wr->wr.ud.remote_qkey = send->wr.ud.remote_qkey;
		return;
	}
	switch (send->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr->wr.atomic.remote_addr = send->wr.rdma.remote_addr;
		wr->wr.atomic.rkey = send->wr.rdma.rkey;
		wr->wr.atomic.compare_add = send->wr.rdma.compare_add;
		wr->wr.atomic.swap = send->wr.rdma.swap;
		break;
	default:
		wr->wr.rdma.remote_addr = send->wr.rdma.remote_addr;
		wr->wr.rdma.rkey = send->wr.rdma.rkey;
		break;
	}
}

/*
 * siw reads into the first segment that its queue has at that place, also of none: there an older
 * send has left its own. So a read has always one.
 */
static int sges_of(const struct evr_send *send, bool is_empty)
{
	if (is_empty)
		return send->opcode == IBV_WR_RDMA_READ;
	return (int)send->seg_count;
}

/* A work request is large: what its operation does not take is left as it is. */
static void build(struct evr_qp *qp, uint32_t position, struct ibv_send_wr *wr, bool last)
{
	static struct ibv_sge nothing; /* some devices look at the first of none */
	const struct evr_send *send = send_at(qp, position);
	struct ibv_sge *sges = sges_at(qp, position);
	bool is_empty = !send->seg_count || (send->seg_count == 1 && !sges->length);

	wr->wr_id = evr_wr_id(qp->owner.number, position & qp->ring_mask);
	wr->sg_list = is_empty ? &nothing : sges;
	wr->num_sge = sges_of(send, is_empty);
	wr->opcode = send->opcode;
	wr->imm_data = htonl(send->imm);
	wr->send_flags = send->flags;
	if (last || evr_work_fetches(send->opcode) || !((position + 1) % SIGNAL_EVERY))
		wr->send_flags |= IBV_SEND_SIGNALED;
	set_peer(qp, send, wr);
}

static int post_chain(struct evr_qp *qp, uint32_t n)
{
	struct ibv_send_wr wrs[CHAIN], *bad = NULL;
	uint32_t i;
	int ret;

	for (i = 0; i < n; i++) {
		build(qp, qp->send_posted + i, &wrs[i], i + 1 == n);
		wrs[i].next = i + 1 < n ? &wrs[i + 1] : NULL;
	}
	EVR_QP_COUNT(qp, send_chains, 1);
	ret = ibv_post_send(qp->qp, wrs, &bad);
	qp->send_posted += ret && bad ? (uint32_t)(bad - wrs) : n;
	return -abs(ret);
}

/* What waits, as far as the device's queue has room for it. */
static uint32_t postable(const struct evr_qp *qp)
{
	return evr_smaller(qp->send_head - qp->send_posted,
		qp->config.send_depth - (qp->send_posted - qp->send_tail));
}

int evr_sends_post(struct evr_qp *qp)
{
	uint32_t n;
	int ret = 0;

	while (!ret && !qp->sends_held && (n = postable(qp)))
		ret = post_chain(qp, evr_smaller(n, CHAIN));
	return ret;
}

/* --- out ------------------------------------------------------------------------------------ */

void evr_qp_count_ended(struct evr_qp *qp, const struct evrdma_error *error)
{
	if (!error)
		EVR_QP_COUNT(qp, work_done, 1);
	else if (error->err == ECANCELED)
		EVR_QP_COUNT(qp, work_cancelled, 1);
	else
		EVR_QP_COUNT(qp, work_failed, 1);
}

static const struct evrdma_error *error_of(const struct evr_send *send, struct evrdma_error *error)
{
	if (!send->over)
		evr_error_set(error, ECANCELED, EVRDMA_STEP_TRANSFER);
	else if (send->status != IBV_WC_SUCCESS)
		evr_error_from_wc(error, send->status);
	else
		return NULL;
	return error;
}

/* All but the first. One's last reference is a callback, which may submit into the same slot. */
static void drop_bufs(struct evr_qp *qp, uint32_t position, unsigned n)
{
	struct evrdma_buf *bufs[EVR_SEGS_MAX];
	unsigned i;

	memcpy(bufs, bufs_at(qp, position), n * sizeof(bufs[0]));
	for (i = 1; i < n; i++)
		evr_buf_unref(bufs[i]);
}

/* The slot is another's once a callback submits. */
static void end_send(struct evr_qp *qp)
{
	uint32_t position = qp->send_tail++;
	struct evr_send send = *send_at(qp, position);
	struct evrdma_error why;
	const struct evrdma_error *error = error_of(&send, &why);

	if (send.seg_count > 1)
		drop_bufs(qp, position, send.seg_count);
	evr_qp_count_ended(qp, error);
	qp->ops->sent(qp, &send, error);
	evr_buf_unref(send.buf);
}

bool evr_sends_cancel(struct evr_qp *qp)
{
	while (qp->base->tell_budget > 0 && qp->send_tail != qp->send_head) {
		qp->base->tell_budget--;
		end_send(qp);
	}
	return qp->send_tail != qp->send_head;
}

void evr_qp_tell_writable(struct evr_qp *qp)
{
	if (!qp->want_writable || evr_qp_send_space(qp) < qp->config.low_water)
		return;
	qp->want_writable = false;
	EVR_QP_COUNT(qp, writables, 1);
	qp->ops->writable(qp);
}

static void set_over(struct evr_send *send, enum ibv_wc_status status)
{
	send->over = true;
	send->status = status;
}

/*
 * Sends and writes complete in order, so a good completion speaks for the unsignalled ones before
 * it. A flushed one does not: some devices flush unsignalled work without a word. What fetches is
 * over when its answer is here, which no completion but its own says.
 */
static void set_over_up_to(struct evr_qp *qp, uint32_t position, enum ibv_wc_status status)
{
	enum ibv_wc_status before =
		status == IBV_WC_WR_FLUSH_ERR ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS;
	uint32_t i;

	for (i = qp->send_tail; i != position; i++)
		if (!send_at(qp, i)->over && !evr_work_fetches(send_at(qp, i)->opcode))
			set_over(send_at(qp, i), before);
	set_over(send_at(qp, position), status);
}

/* In the order in which they were taken, whatever the order of the completions. */
static bool has_over(struct evr_qp *qp)
{
	return qp->send_tail != qp->send_posted && send_at(qp, qp->send_tail)->over;
}

void evr_sends_tell(struct evr_qp *qp)
{
	while (qp->base->tell_budget > 0 && has_over(qp)) {
		qp->base->tell_budget--;
		end_send(qp);
	}
	if (has_over(qp))
		evr_base_queue_tell(qp->base, &qp->tell);
	if (postable(qp))
		evr_base_queue_post(qp->base, &qp->post);
	evr_qp_tell_writable(qp);
}

void evr_sends_complete(struct evr_qp *qp, uint32_t index, const struct ibv_wc *wc)
{
	uint32_t behind = (index - qp->send_tail) & qp->ring_mask;

	if (index > qp->ring_mask || behind >= qp->send_posted - qp->send_tail)
		return;
	set_over_up_to(qp, qp->send_tail + behind, wc->status);
	/* The first is paid for, by its completion. */
	qp->base->tell_budget += has_over(qp);
	evr_sends_tell(qp);
}
