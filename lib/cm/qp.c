#include "cm/cm.h"

#include <errno.h>
#include <string.h>

/* A completion queue and its channel, as they stand on an id. */
struct queue {
	struct ibv_comp_channel **channel;
	struct ibv_cq **cq;
};

static struct queue send_queue(struct rdma_cm_id *id)
{
	return (struct queue){ &id->send_cq_channel, &id->send_cq };
}

static struct queue recv_queue(struct rdma_cm_id *id)
{
	return (struct queue){ &id->recv_cq_channel, &id->recv_cq };
}

static void destroy_queue(struct queue queue)
{
	if (*queue.cq)
		ibv_destroy_cq(*queue.cq);
	if (*queue.channel)
		ibv_destroy_comp_channel(*queue.channel);
	*queue.cq = NULL;
	*queue.channel = NULL;
}

static int verbs_error(void)
{
	return errno ? -errno : -EIO;
}

static int create_queue(struct rdma_cm_id *id, struct queue queue, uint32_t num_wr)
{
	int ret;

	errno = 0;
	*queue.channel = ibv_create_comp_channel(id->verbs);
	if (!*queue.channel)
		return verbs_error();
	*queue.cq = ibv_create_cq(id->verbs, num_wr ? (int)num_wr : 1, id, *queue.channel, 0);
	if (*queue.cq)
		return 0;
	ret = verbs_error();
	destroy_queue(queue);
	return ret;
}

/* The queue of the attributes, else the id's, else a new one that is the id's from now on. */
static int choose_queue(struct rdma_cm_id *id, struct queue queue, struct ibv_cq **named,
	uint32_t num_wr, bool *created)
{
	int ret = 0;

	*created = !*named && !*queue.cq;
	if (*created)
		ret = create_queue(id, queue, num_wr);
	if (!*named)
		*named = *queue.cq;
	*created &= !ret;
	return ret;
}

static int check_pd(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (attr->comp_mask & IBV_QP_INIT_ATTR_PD)
		return attr->pd && attr->pd->context == id->verbs ? 0 : -EINVAL;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD)
		return 0;
	attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
	attr->pd = id->pd;
	return 0;
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

static void give_qp(struct evr_cm_id *id, struct ibv_qp *qp)
{
	pthread_mutex_lock(&id->work_lock);
	id->id.qp = qp;
	id->id.pd = qp->pd;
	pthread_mutex_unlock(&id->work_lock);
}

static int create_and_init(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;
	int ret;

	errno = 0;
	qp = ibv_create_qp_ex(id->verbs, attr);
	if (!qp)
		return verbs_error();
	ret = evr_cm_ece_of_new_qp(evr_cm_id(id), qp);
	if (!ret)
		ret = evr_cm_qp_init(evr_cm_id(id), qp);
	if (ret) {
		ibv_destroy_qp(qp);
		return ret;
	}
	give_qp(evr_cm_id(id), qp);
	return 0;
}

static int create_qp(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	bool new_send = false, new_recv = false;
	int ret = check_attr(id, attr);

	if (!ret)
		ret = choose_queue(
			id, send_queue(id), &attr->send_cq, attr->cap.max_send_wr, &new_send);
	if (!ret)
		ret = choose_queue(
			id, recv_queue(id), &attr->recv_cq, attr->cap.max_recv_wr, &new_recv);
	if (!ret && !attr->srq)
		attr->srq = id->srq;
	if (!ret)
		ret = create_and_init(id, attr);
	if (ret && new_recv)
		destroy_queue(recv_queue(id));
	if (ret && new_send)
		destroy_queue(send_queue(id));
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
	attr.comp_mask = pd ? IBV_QP_INIT_ATTR_PD : 0;
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
	id->id.qp = NULL;
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
	destroy_queue(send_queue(id));
	destroy_queue(recv_queue(id));
	errno = saved;
}
