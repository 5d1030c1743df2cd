#include "ev/queue/qp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "ev/cm/cmid.h"
#include "ev/core/base.h"
#include "ev/core/error.h"
#include "ev/device/device.h"
#include "ev/device/devices.h"
#include "ev/queue/qp_send.h"
#include "util/clock.h"
#include "util/number.h"

enum { FLUSH_AGAIN_MS = 20 };

static struct evr_qp *of_owner(struct evr_work_owner *owner)
{
	return evr_container_of(owner, struct evr_qp, owner);
}

static struct evr_qp *of_recvq(struct evr_recvq *recvq)
{
	return evr_container_of(recvq, struct evr_qp, recvq);
}

/* --- life ----------------------------------------------------------------------------------- */

static void complete(struct evr_work_owner *owner, uint32_t index, const struct ibv_wc *wc);
static void post(struct evr_task *task);
static void tell(struct evr_task *task);
static void look_for_flushes(struct evr_qp *qp);
static void on_sends_told(struct evr_cq_wait *wait);
static void on_recvs_told(struct evr_cq_wait *wait);

static int post_recv(struct evr_recvq *recvq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct evr_qp *qp = of_recvq(recvq);

	EVR_QP_COUNT(qp, receive_chains, 1);
	return ibv_post_recv(qp->qp, wr, bad);
}

static void recvq_unposted(struct evr_recvq *recvq)
{
	struct evr_qp *qp = of_recvq(recvq);

	evr_base_queue_post(qp->base, &qp->post);
}

static void recvq_refused(struct evr_recvq *recvq, struct evrdma_buf *buf, int err)
{
	struct evr_qp *qp = of_recvq(recvq);
	const struct evrdma_recv recv = { .buf = buf,
		.data = buf->data,
		.err = -err,
		.wc_status = IBV_WC_LOC_PROT_ERR };

	EVR_QP_COUNT(qp, receive_errors, 1);
	qp->ops->received(qp, &recv);
	evr_buf_unref(buf);
}

static void recvq_used_up(struct evr_recvq *recvq)
{
	EVR_QP_COUNT(of_recvq(recvq), receive_queue_empty, 1);
}

static const struct evr_recvq_ops recvq_ops = {
	.post = post_recv,
	.unposted = recvq_unposted,
	.refused = recvq_refused,
	.used_up = recvq_used_up,
};

static bool nothing_posted(const struct evr_qp *qp)
{
	if (qp->lost)
		return true;
	return qp->send_posted == qp->send_tail && (!qp->recvq.posted || evr_qp_is_iwarp(qp));
}

/*
 * What the device has taken out of a shared queue for a message goes with the QP, and is the
 * queue's loss, unless the device is left to give it back. Many never say that they have: of one
 * that did not when it had the time it is not expected again. With the base the queue goes too.
 */
static bool holds_shared(const struct evr_qp *qp)
{
	const struct evr_device *device = qp->device;

	return qp->srq && !qp->last_receive && !qp->base->closing &&
		(device->tells_last_receive || !device->keeps_last_receive);
}

/*
 * A receive that was posted when the QP was in error already, before anybody knew, is not flushed
 * by rxe until the QP is moved to the error state once more.
 */
static void on_drain_timer(evutil_socket_t fd, short what, void *arg)
{
	struct evr_qp *qp = arg;
	uint64_t now_us = evr_clock_now_us();

	/* A loop that was held up comes late: what is left counts from the beginning. */
	if (qp->drain_again)
		evr_qp_set_error(qp);
	if (qp->drain_again && !qp->lost && now_us < qp->drain_end_us) {
		qp->drain_again = false;
		look_for_flushes(qp);
		evr_timer_start(&qp->drain_timer, evr_clock_ms_of(qp->drain_end_us - now_us));
		return;
	}
	qp->drain_over = true;
	if (holds_shared(qp) && nothing_posted(qp))
		qp->device->keeps_last_receive = true;
	qp->ops->drained(qp);
}

static void apply_defaults(struct evr_qp_config *config)
{
	if (!config->low_water)
		config->low_water = (config->send_depth + 3) / 4;
	if (!config->max_segs)
		config->max_segs = 1;
	if (config->srq)
		config->recv_depth = 0;
}

/* They go with their base, whoever uses them. */
static bool shares_of_base(const struct evr_qp_config *config, const struct evrdma_base *base)
{
	return (!config->recv_pool || config->recv_pool->base == base) &&
	       (!config->srq || config->srq->base == base) &&
	       evr_domain_fits(config->domain, base);
}

static int init_queues(struct evr_qp *qp)
{
	int ret = evr_sends_init(qp);

	if (ret)
		return ret;
	ret = evr_recvq_init(&qp->recvq, qp->base, qp->config.recv_depth,
		qp->config.recv_pool, &recvq_ops);
	if (ret)
		evr_sends_fini(qp);
	return ret;
}

int evr_qp_init(struct evr_qp *qp, struct evrdma_base *base, const struct evr_qp_config *config,
	const struct evr_qp_ops *ops)
{
	int ret;

	if (!shares_of_base(config, base))
		return -EINVAL;
	qp->base = base;
	qp->owner.complete = complete;
	qp->post.run = post;
	qp->tell.run = tell;
	qp->send_wait.over = on_sends_told;
	qp->recv_wait.over = on_recvs_told;
	qp->config = *config;
	qp->ops = ops;
	apply_defaults(&qp->config);
	ret = evr_domain_take(base, config->domain, &qp->config.domain);
	if (ret)
		return ret;
	ret = init_queues(qp);
	if (ret) {
		evr_domain_unref(qp->config.domain);
		return ret;
	}
	evr_srq_ref(qp->config.srq);
	evr_timer_assign(&qp->drain_timer, base, on_drain_timer, qp);
	return 0;
}

void evr_qp_fini(struct evr_qp *qp)
{
	evr_qp_stop_catching_up(qp);
	evr_base_cancel_post(qp->base, &qp->post);
	evr_base_cancel_tell(qp->base, &qp->tell);
	evr_timer_stop(&qp->drain_timer);
	evr_recvq_fini(&qp->recvq);
	evr_sends_fini(qp);
	evr_srq_unref(qp->config.srq);
	evr_domain_unref(qp->config.domain);
}

void evr_qp_set_shared(
	struct evr_qp *qp, struct evrdma_domain *domain, struct evrdma_srq *srq)
{
	struct evr_qp_config *config = &qp->config;

	if (!config->domain)
		config->domain = evr_domain_ref(domain);
	if (!srq || config->srq || config->recv_pool || qp->recvq.new_count)
		return;
	evr_srq_ref(srq);
	config->srq = srq;
	config->recv_depth = 0;
}

/* --- asynchronous events -------------------------------------------------------------------- */

static void fail(struct evr_qp *qp, const struct evrdma_error *error)
{
	qp->failed = true;
	qp->ops->failed(qp, error);
}

void evr_qp_fail(struct evr_qp *qp, int err)
{
	struct evrdma_error error;

	evr_error_set(&error, err, EVRDMA_STEP_TRANSFER);
	fail(qp, &error);
}

void evr_qp_lose(struct evr_qp *qp, int err)
{
	qp->gap = true;
	evr_qp_fail(qp, err);
}

static void be_flushed(struct evr_qp *qp)
{
	qp->flushed = true;
	qp->ops->flushed(qp);
}

void evr_qp_tell_flushed(struct evr_qp *qp)
{
	if (qp->flushed)
		qp->ops->flushed(qp);
}

bool evr_qp_is_sound(const struct evr_qp *qp)
{
	return !qp->failed && !qp->flushed;
}

/* With the last of its receives flushed, a QP on a shared queue is in error like any other. */
static void on_last_receive(struct evr_qp *qp)
{
	qp->last_receive = true;
	qp->device->tells_last_receive = true;
	if (qp->in_error)
		qp->ops->drained(qp);
	else
		be_flushed(qp);
}

static void on_async(struct evr_async_subject *subject, uint32_t events)
{
	struct evr_qp *qp = evr_container_of(subject, struct evr_qp, async);

	if (events & 1u << IBV_EVENT_COMM_EST && qp->ops->spoken_to)
		qp->ops->spoken_to(qp);
	if (events & 1u << IBV_EVENT_QP_ACCESS_ERR)
		evr_qp_fail(qp, EACCES);
	else if (events & (1u << IBV_EVENT_QP_FATAL | 1u << IBV_EVENT_QP_REQ_ERR))
		evr_qp_fail(qp, EIO);
	/* Last: why it ended is known best by what else was said. */
	if (events & 1u << IBV_EVENT_QP_LAST_WQE_REACHED)
		on_last_receive(qp);
}

/* --- the verbs QP --------------------------------------------------------------------------- */

static int create_with(struct evr_qp *qp, struct evr_cmid *cmid, uint32_t inline_bytes)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = qp->config.type,
		.send_cq = qp->send_cq->cq,
		.recv_cq = qp->recv_cq->cq,
		.srq = qp->srq ? qp->srq->srq : NULL,
		.cap = {
			.max_send_wr = qp->config.send_depth,
			.max_recv_wr = qp->config.recv_depth ? qp->config.recv_depth : 1,
			.max_send_sge = qp->config.max_segs,
			.max_recv_sge = 1,
			.max_inline_data = inline_bytes,
		},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = qp->pd->pd,
		.create_flags = qp->config.create_flags,
	};

	if (qp->config.create_flags)
		attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	errno = 0;
	if (rdma_create_qp_ex(cmid->cm, &attr))
		return evr_verbs_error();
	/* Some devices give less room than was asked for, where others refuse. */
	if (attr.cap.max_inline_data < inline_bytes && !qp->config.inline_spare) {
		rdma_destroy_qp(cmid->cm);
		return -EINVAL;
	}
	qp->inline_max = evr_smaller(attr.cap.max_inline_data, inline_bytes);
	qp->qp = cmid->cm->qp;
	return 0;
}

static int create(struct evr_qp *qp, struct evr_cmid *cmid)
{
	uint32_t inline_bytes = qp->config.inline_bytes;
	int ret = create_with(qp, cmid, inline_bytes);

	while (ret && inline_bytes && qp->config.inline_spare) {
		inline_bytes /= 2;
		ret = create_with(qp, cmid, inline_bytes);
	}
	return ret;
}

static int attach(struct evr_qp *qp)
{
	int ret = qp->srq ? evr_srq_attach(qp->srq, qp) : 0;

	qp->async.happened = on_async;
	return ret ? ret : evr_async_watch(&qp->device->async, qp->qp, &qp->async);
}

static uint32_t cq_entries(const struct evr_qp *qp)
{
	return qp->config.send_depth + qp->config.recv_depth;
}

static void on_broken(struct evr_cq_user *user)
{
	evr_qp_fail(evr_container_of(user, struct evr_qp, on_cq), EIO);
}

/* What a shared receive queue completes has room on the CQ of that queue. */
static int get_cqs(struct evr_qp *qp)
{
	int ret;

	qp->on_cq.broken = on_broken;
	ret = evr_cq_reserve(qp->device, cq_entries(qp), &qp->on_cq, &qp->send_cq);
	if (!ret)
		qp->recv_cq = qp->srq ? qp->srq->cq : qp->send_cq;
	return ret;
}

static void put_cqs(struct evr_qp *qp)
{
	evr_cq_unreserve(qp->send_cq, cq_entries(qp), &qp->on_cq);
	qp->send_cq = NULL;
	qp->recv_cq = NULL;
}

static int find_parts(struct evr_qp *qp)
{
	int ret = evr_pd_get(qp->device, qp->config.domain, &qp->pd);

	if (!ret && qp->config.srq)
		ret = evr_srq_get(qp->config.srq, qp->pd, &qp->srq);
	if (!ret)
		ret = get_cqs(qp);
	return ret;
}

static struct evr_idmap *owners_of(const struct evr_qp *qp)
{
	return &qp->device->devices->work_owners;
}

static int make(struct evr_qp *qp, struct evr_cmid *cmid)
{
	int ret = evr_idmap_add(owners_of(qp), &qp->owner, &qp->owner.number);

	if (!ret) {
		ret = create(qp, cmid);
		if (!ret)
			ret = attach(qp);
		if (!ret)
			ret = evr_recvq_open(
				&qp->recvq, qp->pd, qp->recv_cq, qp->owner.number);
		if (!ret)
			return 0;
		if (!qp->qp)
			evr_idmap_remove(owners_of(qp), qp->owner.number);
	}
	if (qp->qp)
		evr_qp_unbind(qp, cmid);
	else
		put_cqs(qp);
	return ret;
}

static int get_device(struct evr_qp *qp, struct evr_cmid *cmid)
{
	return qp->device ? 0 : evr_device_get(qp->base, cmid, &qp->device);
}

/* A shared queue has its buffers posted once, for all. */
int evr_qp_prepare(struct evr_qp *qp, struct evr_cmid *cmid)
{
	uint64_t deadline_us = evr_clock_now_us() + qp->base->options.turn_budget_us;
	int ret = get_device(qp, cmid);

	if (ret)
		return ret;
	ret = evr_pd_get(qp->device, qp->config.domain, &qp->pd);
	if (!ret && !qp->config.srq)
		ret = evr_recvq_prepare(&qp->recvq, qp->pd, deadline_us);
	if (ret && ret != -EAGAIN)
		evr_qp_put_device(qp);
	return ret;
}

int evr_qp_bind(struct evr_qp *qp, struct evr_cmid *cmid)
{
	int ret = get_device(qp, cmid);

	if (ret)
		return ret;
	qp->last_receive = false;
	qp->failed = qp->flushed = qp->gap = false;
	qp->lost = false;
	ret = find_parts(qp);
	if (!ret)
		ret = make(qp, cmid);
	if (ret)
		evr_qp_put_device(qp);
	else
		qp->device->proven = true;
	return ret;
}

static void destroy_verbs(struct evr_qp *qp, struct evr_cmid *cmid)
{
	if (qp->srq)
		evr_srq_detach(qp->srq, qp);
	evr_async_unwatch(qp->qp, &qp->async);
	rdma_destroy_qp(cmid->cm);
	qp->qp = NULL;
}

/* From here on what is late finds nobody. */
static void put_parts(struct evr_qp *qp)
{
	evr_qp_stop_catching_up(qp);
	evr_idmap_remove(owners_of(qp), qp->owner.number);
	put_cqs(qp);
	/* What was posted went with the verbs QP: it is as if it had just been submitted. */
	qp->send_posted = qp->send_tail;
	evr_recvq_close(&qp->recvq);
}

void evr_qp_unbind(struct evr_qp *qp, struct evr_cmid *cmid)
{
	if (!qp->qp)
		return;
	destroy_verbs(qp, cmid);
	put_parts(qp);
}

void evr_qp_put_device(struct evr_qp *qp)
{
	struct evr_device *device = qp->device;

	evr_srq_put(qp->srq);
	qp->device = NULL;
	qp->pd = NULL;
	qp->srq = NULL;
	evr_device_put(device);
}

void evr_qp_set_error(struct evr_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	evr_qp_in_error(qp);
	if (qp->qp)
		qp->lost = abs(ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE)) == EIO;
}

void evr_qp_in_error(struct evr_qp *qp)
{
	qp->in_error = true;
	evr_recvq_stop(&qp->recvq);
}

bool evr_qp_is_iwarp(const struct evr_qp *qp)
{
	return qp->qp && qp->qp->context->device->transport_type == IBV_TRANSPORT_IWARP;
}

/* --- the end -------------------------------------------------------------------------------- */

static void look_for_flushes(struct evr_qp *qp)
{
	evr_cq_look(qp->send_cq);
	if (qp->recv_cq != qp->send_cq)
		evr_cq_look(qp->recv_cq);
}

void evr_qp_start_drain(struct evr_qp *qp, int timeout_ms)
{
	/* A QP that is not there has nothing to say. */
	qp->drain_over = !qp->qp || !timeout_ms;
	qp->drain_again = timeout_ms > FLUSH_AGAIN_MS;
	qp->drain_end_us = evr_clock_now_us() + (uint64_t)timeout_ms * EVR_US_PER_MS;
	/* Some devices flush when they are asked what is complete, and raise no event. */
	if (!qp->drain_over)
		look_for_flushes(qp);
	if (!qp->drain_over)
		evr_timer_start(&qp->drain_timer, qp->drain_again ? FLUSH_AGAIN_MS : timeout_ms);
}

bool evr_qp_is_drained(struct evr_qp *qp)
{
	if (!qp->drain_over && (!nothing_posted(qp) || holds_shared(qp)))
		return false;
	evr_timer_stop(&qp->drain_timer);
	return true;
}

/* Returns whether there are more than this turn may tell. */
static bool cancel_recvs(struct evr_qp *qp)
{
	struct evrdma_recv recv = { .err = ECANCELED, .wc_status = IBV_WC_WR_FLUSH_ERR };
	struct evrdma_buf *buf;

	while (qp->base->tell_budget > 0 && (buf = evr_recvq_take_any(&qp->recvq))) {
		recv.buf = buf;
		recv.data = buf->data;
		if (!qp->config.recv_pool)
			qp->ops->received(qp, &recv);
		qp->base->tell_budget--;
		evr_buf_unref(buf);
	}
	return qp->recvq.new_count;
}

bool evr_qp_is_catching_up(const struct evr_qp *qp)
{
	return qp->send_wait.cq || qp->recv_wait.cq;
}

/* On some devices its completions go with it, and on some they must not outlive it. */
static int end_tell(struct evr_qp *qp, struct evr_cmid *cmid)
{
	qp->end = qp->qp ? EVR_QP_END_VERBS : EVR_QP_END_WORK;
	return qp->qp && evr_qp_catch_up(qp) ? -EINPROGRESS : -EAGAIN;
}

/* On the others, what completed meanwhile is in the CQ, and counts. */
static int end_verbs(struct evr_qp *qp, struct evr_cmid *cmid)
{
	destroy_verbs(qp, cmid);
	qp->end = EVR_QP_END_PARTS;
	return evr_qp_catch_up(qp) ? -EINPROGRESS : -EAGAIN;
}

static int end_parts(struct evr_qp *qp, struct evr_cmid *cmid)
{
	put_parts(qp);
	qp->end = EVR_QP_END_WORK;
	return -EAGAIN;
}

static bool cancel_work(struct evr_qp *qp)
{
	return evr_sends_cancel(qp) || cancel_recvs(qp);
}

static int end_work(struct evr_qp *qp, struct evr_cmid *cmid)
{
	evr_base_cancel_tell(qp->base, &qp->tell);
	if (!cancel_work(qp))
		return 0;
	evr_base_queue_tell(qp->base, &qp->tell);
	return -EINPROGRESS;
}

int evr_qp_destroy(struct evr_qp *qp, struct evr_cmid *cmid)
{
	static int (*const steps[])(struct evr_qp *, struct evr_cmid *) = {
		[EVR_QP_END_TELL] = end_tell,
		[EVR_QP_END_VERBS] = end_verbs,
		[EVR_QP_END_PARTS] = end_parts,
		[EVR_QP_END_WORK] = end_work,
	};

	return evr_qp_is_catching_up(qp) ? -EINPROGRESS : steps[qp->end](qp, cmid);
}

/* --- receiving ------------------------------------------------------------------------------ */

int evr_qp_submit_recv(struct evr_qp *qp, struct evrdma_buf *buf)
{
	return evr_recvq_submit(&qp->recvq, buf);
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

/* What the device says of a length is not trusted beyond the buffer. */
static void set_length(struct evr_qp *qp, const struct ibv_wc *wc, struct evrdma_recv *recv)
{
	uint32_t header = qp->config.header_bytes;

	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		recv->written = wc->byte_len;
	else if (wc->byte_len < header || wc->byte_len > recv->buf->size)
		recv->err = EIO;
	else
		recv->len = wc->byte_len - header;
}

static void set_message(struct evr_qp *qp, const struct ibv_wc *wc, struct evrdma_recv *recv)
{
	set_length(qp, wc, recv);
	recv->has_imm = !!(wc->wc_flags & IBV_WC_WITH_IMM);
	recv->imm = recv->has_imm ? ntohl(wc->imm_data) : 0;
	if (qp->config.header_bytes) {
		recv->src_qp = wc->src_qp;
		recv->grh = wc->wc_flags & IBV_WC_GRH ? recv->buf->data : NULL;
	}
}

static void count_recv(struct evr_qp *qp, const struct evrdma_recv *recv)
{
	if (recv->err) {
		EVR_QP_COUNT(qp, receive_errors, recv->err != ECANCELED);
		return;
	}
	EVR_QP_COUNT(qp, messages_received, 1);
	EVR_QP_COUNT(qp, bytes_received, recv->len);
}

/* What was to be received into is told to whoever gave it; of a pool's buffers nobody asks. */
static bool is_from_pool(const struct evr_qp *qp)
{
	return qp->config.recv_pool || qp->srq;
}

void evr_qp_received(struct evr_qp *qp, struct evrdma_buf *buf, const struct ibv_wc *wc)
{
	struct evrdma_recv recv;

	if (qp->gap || (wc->status == IBV_WC_WR_FLUSH_ERR && is_from_pool(qp)))
		return;
	recv = (struct evrdma_recv){
		.buf = buf,
		.data = (char *)buf->data + qp->config.header_bytes,
		.err = recv_err(wc),
		.wc_status = (int)wc->status,
		.wc = wc,
	};

	if (!recv.err)
		set_message(qp, wc, &recv);
	count_recv(qp, &recv);
	if (!recv.err || !is_from_pool(qp))
		qp->ops->received(qp, &recv);
	else if (wc->status == IBV_WC_SUCCESS && !qp->config.header_bytes)
		evr_qp_lose(qp, recv.err);
}

bool evr_qp_is_over(struct evr_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(qp->qp, &attr, IBV_QP_STATE, &init))
		return false;
	return attr.qp_state == IBV_QPS_SQD || attr.qp_state == IBV_QPS_SQE ||
		attr.qp_state == IBV_QPS_ERR;
}

/*
 * Some devices refuse work for a QP that is over, where others flush it. Neither is the reason. Who
 * posts is not to have it in line: see t/bench/budget.
 */
__attribute__((cold)) static void refused(struct evr_qp *qp, int err)
{
	if (evr_qp_is_over(qp))
		be_flushed(qp);
	else
		evr_qp_fail(qp, err);
}

static void post_due(struct evr_qp *qp)
{
	int ret = qp->qp && !qp->in_error ? evr_recvq_post_due(&qp->recvq) : 0;

	if (ret)
		refused(qp, -ret);
}

static void complete_recv(struct evr_qp *qp, uint32_t slot, const struct ibv_wc *wc)
{
	struct evrdma_buf *buf = evr_recvq_complete(&qp->recvq, slot);

	if (!buf)
		return;
	evr_qp_received(qp, buf, wc);
	evr_recvq_recycle(&qp->recvq, buf);
	post_due(qp);
}

/* --- completions ---------------------------------------------------------------------------- */

void evr_qp_report_status(struct evr_qp *qp, const struct ibv_wc *wc)
{
	struct evrdma_error error;

	if (wc->status == IBV_WC_SUCCESS)
		return;
	if (wc->status == IBV_WC_WR_FLUSH_ERR) {
		be_flushed(qp);
		return;
	}
	EVR_QP_COUNT(qp, rnr_errors, wc->status == IBV_WC_RNR_RETRY_EXC_ERR);
	EVR_QP_COUNT(qp, retry_errors, wc->status == IBV_WC_RETRY_EXC_ERR);
	evr_error_from_wc(&error, wc->status);
	fail(qp, &error);
}

static void look_if_drained(struct evr_qp *qp)
{
	if (qp->in_error && nothing_posted(qp))
		qp->ops->drained(qp);
}

static void complete(struct evr_work_owner *owner, uint32_t index, const struct ibv_wc *wc)
{
	struct evr_qp *qp = of_owner(owner);

	/* A QP in the error state: what would be posted again would come back at once. */
	if (wc->status == IBV_WC_WR_FLUSH_ERR && qp->recvq.open)
		evr_recvq_stop(&qp->recvq);
	if (index & EVR_WR_RECV)
		complete_recv(qp, index & ~EVR_WR_RECV, wc);
	else
		evr_sends_complete(qp, index, wc);
	evr_qp_report_status(qp, wc);
	look_if_drained(qp);
}

/* What is over, but was more than the last turn could tell. */
static void tell(struct evr_task *task)
{
	struct evr_qp *qp = evr_container_of(task, struct evr_qp, tell);

	if (qp->end != EVR_QP_END_WORK) {
		evr_sends_tell(qp);
		look_if_drained(qp);
	} else if (cancel_work(qp)) {
		evr_base_queue_tell(qp->base, &qp->tell);
	} else {
		qp->ops->caught_up(qp);
	}
}

/* A CQ that is telling has told what came before. */
static bool wait_for_cq(struct evr_cq *cq, struct evr_cq_wait *wait)
{
	if (cq->polling)
		evr_cq_stop_waiting(wait);
	else
		evr_cq_wait(cq, wait);
	return wait->cq;
}

bool evr_qp_catch_up(struct evr_qp *qp)
{
	bool waits = qp->send_cq && wait_for_cq(qp->send_cq, &qp->send_wait);

	if (qp->recv_cq != qp->send_cq)
		waits |= wait_for_cq(qp->recv_cq, &qp->recv_wait);
	return waits;
}

bool evr_qp_is_telling(const struct evr_qp *qp)
{
	return qp->send_cq && (qp->send_cq->polling || qp->recv_cq->polling);
}

void evr_qp_stop_catching_up(struct evr_qp *qp)
{
	evr_cq_stop_waiting(&qp->send_wait);
	evr_cq_stop_waiting(&qp->recv_wait);
}

static void on_told(struct evr_qp *qp)
{
	if (!evr_qp_is_catching_up(qp))
		qp->ops->caught_up(qp);
}

static void on_sends_told(struct evr_cq_wait *wait)
{
	on_told(evr_container_of(wait, struct evr_qp, send_wait));
}

static void on_recvs_told(struct evr_cq_wait *wait)
{
	on_told(evr_container_of(wait, struct evr_qp, recv_wait));
}

/* --- posting -------------------------------------------------------------------------------- */

void evr_qp_hold_sends(struct evr_qp *qp)
{
	qp->sends_held = true;
}

void evr_qp_release_sends(struct evr_qp *qp)
{
	if (!qp->sends_held)
		return;
	qp->sends_held = false;
	evr_base_queue_post(qp->base, &qp->post);
}

static void post(struct evr_task *task)
{
	struct evr_qp *qp = evr_container_of(task, struct evr_qp, post);
	int ret;

	if (!qp->qp || qp->in_error)
		return;
	ret = evr_recvq_post(&qp->recvq);
	if (!ret)
		ret = evr_sends_post(qp);
	if (ret)
		refused(qp, -ret);
}
