#include "cm/cm.h"

#include <rdma/rdma_verbs.h>
#include <string.h>

static int check_attr(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	if (!id->verbs || id->srq || !(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE))
		return -EINVAL;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd)
		attr->pd = id->pd;
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	return attr->pd->context == id->verbs ? 0 : -EINVAL;
}

/* Receives of XRC complete where the queue says, and are found through its domain. */
static int need_xrc(struct evr_cm_id *id, struct ibv_srq_init_attr_ex *attr, bool *new_queue)
{
	int ret = 0;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd)
		ret = evr_cm_device_xrcd(id->dev, &attr->xrcd);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ))
		attr->cq = NULL;
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	if (ret)
		return ret;
	return evr_cm_queue_choose(
		&id->id, evr_cm_recv_queue(&id->id), &attr->cq, attr->attr.max_wr, new_queue);
}

static int create_srq(struct evr_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	bool xrc = attr->srq_type == IBV_SRQT_XRC, new_queue = false;
	int ret = check_attr(&id->id, attr);

	if (!ret && xrc)
		ret = need_xrc(id, attr, &new_queue);
	if (ret)
		return ret;
	errno = 0;
	id->id.srq = ibv_create_srq_ex(id->id.verbs, attr);
	if (!id->id.srq) {
		ret = evr_cm_verbs_error();
		if (new_queue)
			evr_cm_queue_destroy(evr_cm_recv_queue(&id->id));
		return ret;
	}
	id->srq_cq = xrc ? attr->cq : NULL;
	return 0;
}

/* The caller's attributes change only when all went well. */
int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr_ex copy;
	int ret;

	if (!id || !attr)
		return evr_cm_result(-EINVAL);
	copy = *attr;
	ret = create_srq(evr_cm_id(id), &copy);
	if (!ret)
		*attr = copy;
	return evr_cm_result(ret);
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = { 0 };
	int ret;

	if (!id || !attr)
		return evr_cm_result(-EINVAL);
	memcpy(&ex, attr, sizeof(*attr));
	ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	ex.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
	ex.pd = pd;
	ret = create_srq(evr_cm_id(id), &ex);
	if (!ret)
		memcpy(attr, &ex, sizeof(*attr));
	return evr_cm_result(ret);
}

/* One that a queue pair still uses stays, to be destroyed after it. */
void rdma_destroy_srq(struct rdma_cm_id *id)
{
	int saved = errno;
	struct evr_cm_id *p = evr_cm_id(id);
	bool own_queue;

	if (!id || !id->srq)
		return;
	if (!ibv_destroy_srq(id->srq)) {
		own_queue = p->srq_cq && p->srq_cq == id->recv_cq;
		id->srq = NULL;
		p->srq_cq = NULL;
		if (own_queue && !id->qp)
			evr_cm_queue_destroy(evr_cm_recv_queue(id));
	}
	errno = saved;
}
