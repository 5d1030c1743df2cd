#include "cm/cm.h"

#include <errno.h>
#include <string.h>

enum { MOST_RETRIES = 7 };

static bool depths_fit(const struct evr_cm_device *dev, const struct rdma_conn_param *param)
{
	if (param->responder_resources != RDMA_MAX_RESP_RES &&
		param->responder_resources > dev->max_responder_resources)
		return false;
	return param->initiator_depth == RDMA_MAX_INIT_DEPTH ||
	       param->initiator_depth <= dev->max_initiator_depth;
}

static uint8_t data_len(const struct rdma_conn_param *param)
{
	return param->private_data ? param->private_data_len : 0;
}

int evr_cm_param_check(const struct evr_cm_id *id, const struct rdma_conn_param *param)
{
	if (!id->dev)
		return -EINVAL;
	if (!param)
		return id->id.qp || id->id.ps != RDMA_PS_TCP ? 0 : -EINVAL;
	if (id->connect_len + data_len(param) > UINT8_MAX)
		return -EINVAL;
	return id->id.ps != RDMA_PS_TCP || depths_fit(id->dev, param) ? 0 : -EINVAL;
}

static void put_data(struct evr_ucma_conn_param *kern, const void *data, uint8_t len)
{
	if (!len)
		return;
	memcpy(kern->private_data + kern->private_data_len, data, len);
	kern->private_data_len = (uint8_t)(kern->private_data_len + len);
}

/* Of the queue pair on the id, else as the caller says; datagrams need neither to connect. */
static uint32_t qp_num_of(const struct ibv_qp *qp, const struct rdma_conn_param *param)
{
	if (qp)
		return qp->qp_num;
	return param ? param->qp_num : 0;
}

static bool has_srq(const struct ibv_qp *qp, const struct rdma_conn_param *param)
{
	return qp ? qp->srq != NULL : param && param->srq;
}

void evr_cm_param_to_kern(const struct evr_cm_id *id, const struct rdma_conn_param *param,
	struct evr_ucma_conn_param *kern)
{
	const struct ibv_qp *qp = id->id.qp;

	*kern = (struct evr_ucma_conn_param){
		.qp_num = qp_num_of(qp, param),
		.srq = has_srq(qp, param),
		.responder_resources = id->responder_resources,
		.initiator_depth = id->initiator_depth,
		.retry_count = param ? param->retry_count : MOST_RETRIES,
		.rnr_retry_count = param ? param->rnr_retry_count : MOST_RETRIES,
		.flow_control = param ? param->flow_control : 0,
		.valid = 1,
	};
	put_data(kern, id->connect_data, id->connect_len);
	if (param)
		put_data(kern, param->private_data, data_len(param));
}

static const void *keep_data(struct evr_cm_event *evt, struct evr_ucma_event_data data)
{
	if (!data.len)
		return NULL;
	memcpy(evt->private_data, data.bytes, data.len);
	return evt->private_data;
}

void evr_cm_param_conn(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	const struct evr_ucma_conn_param *from = &raw->param.conn;

	evt->event.param.conn = (struct rdma_conn_param){
		.private_data = keep_data(evt, evr_ucma_event_conn_data(raw)),
		.private_data_len = from->private_data_len,
		.responder_resources = from->responder_resources,
		.initiator_depth = from->initiator_depth,
		.flow_control = from->flow_control,
		.retry_count = from->retry_count,
		.rnr_retry_count = from->rnr_retry_count,
		.srq = from->srq,
		.qp_num = from->qp_num,
	};
}

void evr_cm_param_ud(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	const struct evr_ucma_ud_param *from = &raw->param.ud;
	struct rdma_ud_param *to = &evt->event.param.ud;

	to->private_data = keep_data(evt, evr_ucma_event_ud_data(raw));
	to->private_data_len = from->private_data_len;
	evr_cm_ah_from_kern(&to->ah_attr, &from->ah_attr);
	to->qp_num = from->qp_num;
	to->qkey = from->qkey;
}
