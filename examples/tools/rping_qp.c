#include "rping_qp.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <event2/event.h>
#include <rdma/rdma_cma.h>

#define AT_ONCE 16

/* --- completions ---------------------------------------------------------------------------- */

static void read_channel(struct rping_qp *qp)
{
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(qp->channel, &cq, &context))
		qp->unacked++;
}

/* Returns whether there may be more. */
static int poll_some(struct rping_qp *qp)
{
	struct ibv_wc wcs[AT_ONCE];
	int freed = 0;
	int n = ibv_poll_cq(qp->cq, AT_ONCE, wcs);

	qp->freed = &freed;
	for (int i = 0; i < n; i++) {
		qp->cb(qp, &wcs[i], qp->arg);
		if (freed)
			return 0;
	}
	qp->freed = NULL;
	return n > 0;
}

/* It is armed before the last look, so that nothing is missed. */
static void completed(evutil_socket_t fd, short what, void *arg)
{
	struct rping_qp *qp = arg;

	read_channel(qp);
	ibv_req_notify_cq(qp->cq, 0);
	while (poll_some(qp))
		;
}

int rping_qp_start(struct rping_qp *qp)
{
	if (event_add(qp->event, NULL))
		return -ENOMEM;
	event_active(qp->event, EV_READ, 0);
	return 0;
}

/* --- life ----------------------------------------------------------------------------------- */

static int make_queues(struct rping_qp *qp, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = RPING_QP_SENDS,
			.max_recv_wr = RPING_QP_RECVS,
			.max_send_sge = 1,
			.max_recv_sge = 1 },
		.sq_sig_all = 1,
	};

	qp->pd = ibv_alloc_pd(id->verbs);
	if (!qp->pd)
		return -errno;
	qp->channel = ibv_create_comp_channel(id->verbs);
	if (!qp->channel || fcntl(qp->channel->fd, F_SETFL, O_NONBLOCK))
		return -errno;
	qp->cq = ibv_create_cq(id->verbs, RPING_QP_SENDS + RPING_QP_RECVS, NULL, qp->channel, 0);
	if (!qp->cq)
		return -errno;
	attr.send_cq = attr.recv_cq = qp->cq;
	qp->qp = ibv_create_qp(qp->pd, &attr);
	return qp->qp ? 0 : -errno;
}

int rping_qp_init(struct rping_qp *qp, struct event_base *event_base, struct rdma_cm_id *id,
	rping_qp_cb cb, void *arg)
{
	int ret;

	memset(qp, 0, sizeof(*qp));
	qp->cb = cb;
	qp->arg = arg;
	ret = make_queues(qp, id);
	if (!ret) {
		qp->event =
			event_new(event_base, qp->channel->fd, EV_READ | EV_PERSIST, completed, qp);
		ret = qp->event ? 0 : -ENOMEM;
	}
	if (ret)
		rping_qp_fini(qp);
	return ret;
}

static void free_cq(struct rping_qp *qp)
{
	if (qp->unacked)
		ibv_ack_cq_events(qp->cq, qp->unacked);
	ibv_destroy_cq(qp->cq);
}

void rping_qp_fini(struct rping_qp *qp)
{
	if (qp->freed)
		*qp->freed = 1;
	if (qp->event)
		event_free(qp->event);
	if (qp->qp)
		ibv_destroy_qp(qp->qp);
	if (qp->cq)
		free_cq(qp);
	if (qp->channel)
		ibv_destroy_comp_channel(qp->channel);
	while (qp->n_regions)
		ibv_dereg_mr(qp->regions[--qp->n_regions]);
	if (qp->pd)
		ibv_dealloc_pd(qp->pd);
	memset(qp, 0, sizeof(*qp));
}

struct ibv_mr *rping_qp_register(struct rping_qp *qp, void *data, size_t len)
{
	struct ibv_mr *region = ibv_reg_mr(qp->pd, data, len,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);

	if (region)
		qp->regions[qp->n_regions++] = region;
	return region;
}

int rping_qp_modify(struct rping_qp *qp, struct rdma_cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	if (rdma_init_qp_attr(id, &attr, &mask))
		return -errno;
	return -ibv_modify_qp(qp->qp, &attr, mask);
}

/* --- work ----------------------------------------------------------------------------------- */

int rping_qp_recv(struct rping_qp *qp, struct ibv_sge *sge, uint64_t wr_id)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = 1 }, *bad;

	return -ibv_post_recv(qp->qp, &wr, &bad);
}

int rping_qp_send(struct rping_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return -ibv_post_send(qp->qp, wr, &bad);
}
