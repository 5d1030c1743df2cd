#include "cm/cm.h"

/* The peer of a child that goes before it was accepted is rejected by the kernel. */
static int refuse(struct rdma_cm_event *event)
{
	struct evr_cm_id *child = evr_cm_id(event->id);
	int saved = errno;

	rdma_ack_cm_event(event);
	evr_cm_id_drop(child);
	errno = saved;
	return -1;
}

/* For a connection that is over the kernel knows of no queue pair. */
static bool has_left(struct rdma_cm_id *child)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	return rdma_init_qp_attr(child, &attr, &mask) && errno == EINVAL;
}

static int make_qp(struct rdma_cm_id *child, struct rdma_cm_id *listener)
{
	const struct ibv_qp_init_attr *saved = evr_cm_id(listener)->child_attr;
	struct ibv_qp_init_attr attr;
	int ret;

	if (!saved)
		return 0;
	attr = *saved;
	ret = rdma_create_qp(child, listener->pd, &attr);
	if (!ret || errno != EINVAL)
		return ret;
	return evr_cm_result(has_left(child) ? -ECONNABORTED : -EINVAL);
}

/* The event is the child's from now on, and the listener does not wait for it any more. */
int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	struct rdma_cm_event *event;

	if (!listen || !id || !evr_cm_id(listen)->sync)
		return evr_cm_result(-EINVAL);
	if (evr_cm_await_request(evr_cm_id(listen), &event))
		return -1;
	if (make_qp(event->id, listen))
		return refuse(event);
	evr_cm_event_hand_over(event);
	event->id->event = event;
	*id = event->id;
	return 0;
}
