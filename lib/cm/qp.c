#include "cm/cm.h"

#include <errno.h>
#include <string.h>

static int check_pd(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd)
		attr->pd = id->pd;
	attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
	return attr->pd->context == id->verbs ? 0 : -EINVAL;
}

static int check_attr(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (!id->verbs || id->qp)
		return -EINVAL;
	if (id->send_cq && attr->send_cq && id->send_cq != attr->send_cq)
		return -EINVAL;
	if (id->recv_cq && attr->recv_cq && id->recv_cq != attr->recv_cq)
		return -EINVAL;
	return check_pd(id, attr);
}

static void give_qp(struct evr_cm_id *id, struct ibv_qp *qp, struct ibv_pd *pd)
{
	pthread_mutex_lock(&id->work_lock);
	id->id.qp = qp;
	id->id.pd = pd;
	pthread_mutex_unlock(&id->work_lock);
}

static int create_and_init(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;
	int ret;

	errno = 0;
	qp = ibv_create_qp_ex(id->verbs, attr);
	if (!qp)
		return evr_cm_verbs_error();
	ret = evr_cm_ece_of_new_qp(evr_cm_id(id), qp);
	if (!ret)
		ret = evr_cm_qp_init(evr_cm_id(id), qp);
	if (!ret && evr_cm_id(id)->remote_ece.vendor_id)
		ret = evr_cm_ece_refresh(evr_cm_id(id), qp);
	if (ret) {
		ibv_destroy_qp(qp);
		return ret;
	}
	give_qp(evr_cm_id(id), qp, attr->pd);
	return 0;
}

/* The receiving half of XRC has no queues: its receives are those of the SRQs in its domain. */
static int need_xrcd(struct evr_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	int ret;

	if (attr->qp_type != IBV_QPT_XRC_RECV)
		return 0;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD && attr->xrcd)
		return 0;
	ret = evr_cm_device_xrcd(id->dev, &attr->xrcd);
	attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
	return ret;
}

/* On top of an SRQ as many receives can complete at once as the SRQ holds. */
static int count_receives(const struct ibv_qp_init_attr_ex *attr, uint32_t *num_wr)
{
	struct ibv_srq_attr srq;
	int ret;

	*num_wr = attr->cap.max_recv_wr;
	if (*num_wr || !attr->srq || attr->recv_cq)
		return 0;
	ret = ibv_query_srq(attr->srq, &srq);
	if (!ret)
		*num_wr = srq.max_wr;
	return evr_cm_verbs_result(ret);
}

static int choose_recv_queue(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr, bool *created)
{
	uint32_t num_wr;
	int ret;

	if (attr->qp_type == IBV_QPT_XRC_RECV || attr->qp_type == IBV_QPT_XRC_SEND)
		return 0;
	if (!attr->srq)
		attr->srq = id->srq;
	ret = count_receives(attr, &num_wr);
	if (ret)
		return ret;
	return evr_cm_queue_choose(id, evr_cm_recv_queue(id), &attr->recv_cq, num_wr, created);
}

static int choose_send_queue(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr, bool *created)
{
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return 0;
	return evr_cm_queue_choose(
		id, evr_cm_send_queue(id), &attr->send_cq, attr->cap.max_send_wr, created);
}

static int create_qp(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	bool new_send = false, new_recv = false;
	int ret = check_attr(id, attr);

	if (!ret)
		ret = need_xrcd(evr_cm_id(id), attr);
	if (!ret)
		ret = choose_send_queue(id, attr, &new_send);
	if (!ret)
		ret = choose_recv_queue(id, attr, &new_recv);
	if (!ret)
		ret = create_and_init(id, attr);
	if (ret && new_recv)
		evr_cm_queue_destroy(evr_cm_recv_queue(id));
	if (ret && new_send)
		evr_cm_queue_destroy(evr_cm_send_queue(id));
	return ret;
}

/* The caller's attributes change only when all went well. */
int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *qp_init_attr)
{
	struct ibv_qp_init_attr_ex attr;
	int ret;

	if (!id || !qp_init_attr)
		return evr_cm_result(-EINVAL);
	attr = *qp_init_attr;
	ret = create_qp(id, &attr);
	if (!ret)
		*qp_init_attr = attr;
	return evr_cm_result(ret);
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	struct ibv_qp_init_attr_ex attr = { 0 };
	int ret;

	if (!id || !qp_init_attr)
		return evr_cm_result(-EINVAL);
	memcpy(&attr, qp_init_attr, sizeof(*qp_init_attr));
	attr.pd = pd;
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	ret = create_qp(id, &attr);
	if (!ret)
		memcpy(qp_init_attr, &attr, sizeof(*qp_init_attr));
	return evr_cm_result(ret);
}

/* From here on no event finds it any more. */
static struct ibv_qp *take_qp(struct evr_cm_id *id)
{
	struct ibv_qp *qp;

	pthread_mutex_lock(&id->work_lock);
	evr_cm_mc_detach_all(id);
	qp = id->id.qp;
	id->id.qp = id->init_qp = NULL;
	pthread_mutex_unlock(&id->work_lock);
	return qp;
}

/* Its end can wait for the caller to acknowledge the events of verbs: not under the lock. */
void rdma_destroy_qp(struct rdma_cm_id *id)
{
	int saved = errno;

	if (!id || !id->qp)
		return;
	ibv_destroy_qp(take_qp(evr_cm_id(id)));
	if (id->send_cq == id->recv_cq)
		id->send_cq = NULL;
	evr_cm_queue_destroy(evr_cm_send_queue(id));
	/* One that receives of an SRQ go to leaves with the SRQ. */
	if (!id->recv_cq || id->recv_cq != evr_cm_id(id)->srq_cq)
		evr_cm_queue_destroy(evr_cm_recv_queue(id));
	errno = saved;
}
