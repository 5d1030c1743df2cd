#include "ev/qp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "ev/base.h"
#include "ev/error.h"
#include "ev/qp_send.h"

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

static const struct evr_recvq_ops recvq_ops = { .post = post_recv, .unposted = recvq_unposted };

static void on_drain_timer(evutil_socket_t fd, short what, void *arg)
{
	struct evr_qp *qp = arg;

	qp->drain_over = true;
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
	       (!config->domain || config->domain->base == base);
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
	qp->config = *config;
	qp->ops = ops;
	apply_defaults(&qp->config);
	ret = evr_sends_init(qp);
	if (ret)
		return ret;
	ret = evr_recvq_init(&qp->recvq, qp->config.recv_depth, qp->config.recv_pool, &recvq_ops);
	if (ret) {
		evr_sends_fini(qp);
		return ret;
	}
	evr_srq_ref(qp->config.srq);
	evr_domain_ref(qp->config.domain);
	evtimer_assign(&qp->drain_timer, base->event_base, on_drain_timer, qp);
	return 0;
}

void evr_qp_fini(struct evr_qp *qp)
{
	evr_base_cancel_post(qp->base, &qp->post);
	event_del(&qp->drain_timer);
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

void evr_qp_fail(struct evr_qp *qp, int err)
{
	struct evrdma_error error;

	evr_error_set(&error, err, EVRDMA_STEP_TRANSFER);
	qp->ops->failed(qp, &error);
}

/* With the last of its receives flushed, a QP on a shared queue is in error like any other. */
static void on_last_receive(struct evr_qp *qp)
{
	if (qp->in_error)
		qp->ops->drained(qp);
	else
		qp->ops->flushed(qp);
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
	else if (events & 1u << IBV_EVENT_QP_LAST_WQE_REACHED)
		on_last_receive(qp);
}

/* --- the verbs QP --------------------------------------------------------------------------- */

static int create(struct evr_qp *qp, struct evr_cmid *cmid)
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
			.max_inline_data = qp->config.inline_bytes,
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
	qp->qp = cmid->cm->qp;
	TAILQ_INSERT_TAIL(&qp->device->qps, qp, link);
	return 0;
}

static int attach(struct evr_qp *qp)
{
	int ret;

	qp->async.happened = on_async;
	ret = evr_async_watch(&qp->device->async, qp->qp, &qp->async);
	if (!ret && qp->srq)
		ret = evr_srq_attach(qp->srq, qp);
	return ret;
}

static uint32_t cq_entries(const struct evr_qp *qp)
{
	return qp->config.send_depth + qp->config.recv_depth;
}

/* What a shared receive queue completes has room on the CQ of that queue. */
static int get_cqs(struct evr_qp *qp)
{
	int ret = evr_cq_reserve(qp->device, cq_entries(qp), &qp->send_cq);

	qp->recv_cq = qp->srq ? qp->srq->cq : qp->send_cq;
	return ret;
}

static void put_cqs(struct evr_qp *qp)
{
	evr_cq_unreserve(qp->send_cq, cq_entries(qp));
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

static int make(struct evr_qp *qp, struct evr_cmid *cmid)
{
	int ret = evr_idmap_add(&qp->base->work_owners, &qp->owner, &qp->owner.number);

	if (!ret) {
		ret = create(qp, cmid);
		if (!ret)
			ret = attach(qp);
		if (!ret)
			ret = evr_recvq_open(&qp->recvq, qp->pd, qp->owner.number);
		if (!ret)
			return 0;
		if (!qp->qp)
			evr_idmap_remove(&qp->base->work_owners, qp->owner.number);
	}
	if (qp->qp)
		evr_qp_unbind(qp, cmid);
	else
		put_cqs(qp);
	return ret;
}

int evr_qp_bind(struct evr_qp *qp, struct evr_cmid *cmid)
{
	int ret = evr_device_get(qp->base, cmid->cm->verbs, &qp->device);

	if (ret)
		return ret;
	ret = find_parts(qp);
	if (!ret)
		ret = make(qp, cmid);
	if (ret)
		evr_qp_put_device(qp);
	return ret;
}

void evr_qp_unbind(struct evr_qp *qp, struct evr_cmid *cmid)
{
	if (!qp->qp)
		return;
	if (qp->srq) {
		evr_qp_reap(qp);
		evr_srq_detach(qp->srq, qp);
	}
	evr_async_unwatch(qp->qp, &qp->async);
	TAILQ_REMOVE(&qp->device->qps, qp, link);
	rdma_destroy_qp(cmid->cm);
	qp->qp = NULL;
	/* What completed before is in the CQ, and counts. */
	evr_qp_reap(qp);
	evr_idmap_remove(&qp->base->work_owners, qp->owner.number);
	put_cqs(qp);
	/* What was posted went with the verbs QP: it is as if it had just been submitted. */
	qp->send_posted = qp->send_tail;
	evr_recvq_close(&qp->recvq);
}

void evr_qp_put_device(struct evr_qp *qp)
{
	struct evr_device *device = qp->device;

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
		ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);
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

void evr_qp_start_drain(struct evr_qp *qp, int timeout_ms)
{
	/* A QP that is not there has nothing to say. */
	qp->drain_over = !qp->qp || !timeout_ms;
	if (!qp->drain_over)
		evr_base_add_timer(&qp->drain_timer, timeout_ms);
}

static bool nothing_posted(const struct evr_qp *qp)
{
	return qp->send_posted == qp->send_tail && (!qp->recvq.posted || evr_qp_is_iwarp(qp));
}

bool evr_qp_is_drained(struct evr_qp *qp)
{
	evr_qp_reap(qp);
	if (!qp->drain_over && !nothing_posted(qp))
		return false;
	event_del(&qp->drain_timer);
	return true;
}

static void cancel_recvs(struct evr_qp *qp)
{
	struct evrdma_recv recv = { .err = ECANCELED, .wc_status = IBV_WC_WR_FLUSH_ERR };
	struct evrdma_buf *buf;

	while ((buf = evr_recvq_take_any(&qp->recvq))) {
		recv.buf = buf;
		recv.data = evrdma_buf_data(buf);
		if (!qp->config.recv_pool)
			qp->ops->received(qp, &recv);
		evrdma_buf_unref(buf);
	}
}

void evr_qp_destroy(struct evr_qp *qp, struct evr_cmid *cmid)
{
	evr_qp_unbind(qp, cmid);
	evr_sends_cancel(qp);
	cancel_recvs(qp);
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
	else if (wc->byte_len < header || wc->byte_len > evrdma_buf_size(recv->buf))
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
		recv->grh = wc->wc_flags & IBV_WC_GRH ? evrdma_buf_data(recv->buf) : NULL;
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

void evr_qp_received(struct evr_qp *qp, struct evrdma_buf *buf, const struct ibv_wc *wc)
{
	struct evrdma_recv recv = {
		.buf = buf,
		.data = (char *)evrdma_buf_data(buf) + qp->config.header_bytes,
		.err = recv_err(wc),
		.wc_status = (int)wc->status,
		.wc = wc,
	};

	if (!recv.err)
		set_message(qp, wc, &recv);
	count_recv(qp, &recv);
	if (!recv.err || (!qp->config.recv_pool && !qp->srq))
		qp->ops->received(qp, &recv);
}

static void complete_recv(struct evr_qp *qp, uint32_t slot, const struct ibv_wc *wc)
{
	struct evrdma_buf *buf = evr_recvq_complete(&qp->recvq, slot);

	if (!buf)
		return;
	evr_qp_received(qp, buf, wc);
	evr_recvq_recycle(&qp->recvq, buf);
}

/* --- completions ---------------------------------------------------------------------------- */

void evr_qp_report_status(struct evr_qp *qp, const struct ibv_wc *wc)
{
	struct evrdma_error error;

	if (wc->status == IBV_WC_SUCCESS)
		return;
	if (wc->status == IBV_WC_WR_FLUSH_ERR) {
		qp->ops->flushed(qp);
		return;
	}
	EVR_QP_COUNT(qp, rnr_errors, wc->status == IBV_WC_RNR_RETRY_EXC_ERR);
	EVR_QP_COUNT(qp, retry_errors, wc->status == IBV_WC_RETRY_EXC_ERR);
	evr_error_from_wc(&error, wc->status);
	qp->ops->failed(qp, &error);
}

static void complete(struct evr_work_owner *owner, uint32_t index, const struct ibv_wc *wc)
{
	struct evr_qp *qp = of_owner(owner);

	/* A QP in the error state: what would be posted again would come back at once. */
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		evr_recvq_stop(&qp->recvq);
	if (index & EVR_WR_RECV)
		complete_recv(qp, index & ~EVR_WR_RECV, wc);
	else
		evr_sends_complete(qp, index, wc);
	evr_qp_report_status(qp, wc);
	if (qp->in_error && nothing_posted(qp))
		qp->ops->drained(qp);
}

void evr_qp_reap(struct evr_qp *qp)
{
	if (qp->send_cq)
		evr_cq_drain(qp->send_cq);
	if (qp->recv_cq && qp->recv_cq != qp->send_cq)
		evr_cq_drain(qp->recv_cq);
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
		evr_qp_fail(qp, -ret);
}
