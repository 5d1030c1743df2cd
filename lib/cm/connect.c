#include "cm/cm.h"

#include <errno.h>

enum { REASON_CONSUMER = 0, REASON_ECE = 35 };

static uint8_t depth_or(uint8_t asked, uint8_t most)
{
	return asked == RDMA_MAX_RESP_RES ? most : asked;
}

static uint8_t smaller(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static void set_depths(struct evr_cm_id *id, const struct rdma_conn_param *param,
	uint8_t most_resources, uint8_t most_depth)
{
	id->responder_resources =
		depth_or(param ? param->responder_resources : RDMA_MAX_RESP_RES, most_resources);
	id->initiator_depth =
		depth_or(param ? param->initiator_depth : RDMA_MAX_INIT_DEPTH, most_depth);
}

/* On a synchronous id the peer may have ended it before anybody could say that it was there. */
static int await_connection(struct evr_cm_id *id)
{
	int ret = evr_cm_complete(id);

	if (!ret && id->sync && id->id.event->event == RDMA_CM_EVENT_DISCONNECTED)
		return evr_cm_result(-ECONNRESET);
	return ret;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	struct evr_cm_id *p = evr_cm_id(id);
	struct evr_ucma_conn_param kern;
	int ret = id ? evr_cm_param_check(p, conn_param) : -EINVAL;

	if (ret)
		return evr_cm_result(ret);
	set_depths(p, conn_param, p->dev->max_responder_resources, p->dev->max_initiator_depth);
	evr_cm_param_to_kern(p, conn_param, &kern);
	ret = evr_ucma_connect(evr_cm_fd(p), p->handle, &kern, &p->local_ece);
	return ret ? evr_cm_result(ret) : await_connection(p);
}

/* Ready to use: the last message of the active side, without parameters. */
static int confirm(struct evr_cm_id *id)
{
	const struct evr_ucma_ece none = { 0 };

	return evr_ucma_accept(evr_cm_fd(id), id->handle, evr_cm_uid(id), NULL, &none);
}

/* Left alone, the peer would wait until its retries end or the caller destroys the id. */
static void refuse_response(struct evr_cm_id *id)
{
	evr_cm_qp_error(id);
	evr_ucma_reject(evr_cm_fd(id), id->handle, NULL, 0, REASON_CONSUMER);
}

int evr_cm_connect_finish(struct evr_cm_id *id)
{
	int ret = evr_cm_ece_of_answer(id);

	if (!ret)
		ret = evr_cm_qp_connected(id, RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH);
	if (!ret)
		ret = evr_cm_ece_refresh(id, id->id.qp);
	if (!ret)
		ret = confirm(id);
	if (ret)
		refuse_response(id);
	return ret;
}

int rdma_establish(struct rdma_cm_id *id)
{
	if (!id || id->qp)
		return evr_cm_result(-EINVAL);
	return evr_cm_result(confirm(evr_cm_id(id)));
}

static int accept_in_kernel(struct evr_cm_id *id, const struct rdma_conn_param *param)
{
	const struct evr_ucma_ece ece = evr_cm_ece_to_answer(id);
	struct evr_ucma_conn_param kern;
	int ret;

	evr_cm_param_to_kern(id, param, &kern);
	ret = evr_ucma_accept(evr_cm_fd(id), id->handle, evr_cm_uid(id), &kern, &ece);
	if (ret)
		evr_cm_qp_error(id);
	return ret;
}

static int accept_connection(struct evr_cm_id *id, const struct rdma_conn_param *param)
{
	const struct evr_cm_device *dev = id->dev;
	int ret = 0;

	set_depths(id, param, smaller(id->responder_resources, dev->max_responder_resources),
		smaller(id->initiator_depth, dev->max_initiator_depth));
	if (!evr_cm_is_ud(id))
		ret = evr_cm_qp_connected(id, id->responder_resources, id->initiator_depth);
	return ret ? ret : accept_in_kernel(id, param);
}

/* On a datagram id nothing follows: the service has been told, that is all. */
int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	struct evr_cm_id *p = evr_cm_id(id);
	int ret = id && (id->qp || conn_param) ? evr_cm_param_check(p, conn_param) : -EINVAL;

	if (!ret)
		ret = accept_connection(p, conn_param);
	if (ret)
		return evr_cm_result(ret);
	if (!evr_cm_is_ud(p))
		return await_connection(p);
	if (p->sync)
		evr_cm_release_event(p);
	return 0;
}

static int reject(struct rdma_cm_id *id, const void *data, uint8_t len, uint8_t reason)
{
	struct evr_cm_id *p = evr_cm_id(id);

	if (!id)
		return evr_cm_result(-EINVAL);
	return evr_cm_result(
		evr_ucma_reject(evr_cm_fd(p), p->handle, data, data ? len : 0, reason));
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return reject(id, private_data, private_data_len, REASON_CONSUMER);
}

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return reject(id, private_data, private_data_len, REASON_ECE);
}

/* iWARP ends its stream in order, which takes a queue pair that still sends. */
static int stop_qp(struct evr_cm_id *id)
{
	switch (id->id.verbs->device->transport_type) {
	case IBV_TRANSPORT_IB:
		return evr_cm_qp_error(id);
	case IBV_TRANSPORT_IWARP:
		return evr_cm_qp_drain(id);
	default:
		return -EINVAL;
	}
}

/* Then there is nothing more to wait for. */
static bool was_told_of_end(const struct evr_cm_id *id)
{
	return id->sync && id->id.event && id->id.event->event == RDMA_CM_EVENT_DISCONNECTED;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	struct evr_cm_id *p = evr_cm_id(id);
	int ret = id && p->dev ? stop_qp(p) : -EINVAL;

	if (!ret)
		ret = evr_ucma_disconnect(evr_cm_fd(p), p->handle);
	if (ret || was_told_of_end(p))
		return evr_cm_result(ret);
	return evr_cm_complete(p);
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	struct evr_cm_id *p = evr_cm_id(id);

	if (!id)
		return evr_cm_result(-EINVAL);
	return evr_cm_result(evr_ucma_notify(evr_cm_fd(p), p->handle, event));
}
