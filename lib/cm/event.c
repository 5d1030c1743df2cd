#include "cm/cm.h"

#include <errno.h>
#include <stdlib.h>

/* Documented outcomes of serving an event, beside -errno. */
enum { DELIVER = 0, SWALLOW = 1 };

typedef int (*serve_fn)(struct evr_cm_event *evt, const struct evr_ucma_event *raw);

static struct evr_cm_id *id_of(struct evr_cm_event *evt)
{
	return evr_cm_id(evt->event.id);
}

/* What failed on our side is told as the event's failure, with errno to say more. */
static int turn_into(struct evr_cm_event *evt, enum rdma_cm_event_type type, int error)
{
	evt->event.event = type;
	evt->event.status = -1;
	evt->error = error;
	errno = -error;
	return DELIVER;
}

static void copy_param(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	if (evr_cm_is_ud(id_of(evt)))
		evr_cm_param_ud(evt, raw);
	else
		evr_cm_param_conn(evt, raw);
}

static int serve_addr_resolved(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	struct evr_cm_id *id = id_of(evt);
	int ret = evr_cm_addr_query(id);

	if (!ret && !id->dev)
		ret = -ENODEV;
	if (!ret && evr_cm_is_ib(id))
		ret = evr_cm_addr_query_gid(id);
	return ret ? turn_into(evt, RDMA_CM_EVENT_ADDR_ERROR, ret) : DELIVER;
}

static int serve_route_resolved(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	struct evr_cm_id *id = id_of(evt);
	int ret;

	if (!id->dev || !evr_cm_is_ib(id))
		return DELIVER;
	ret = evr_cm_route_query(id);
	return ret ? turn_into(evt, RDMA_CM_EVENT_ROUTE_ERROR, ret) : DELIVER;
}

static int fill_child(struct evr_cm_id *child, const struct evr_cm_id *listener)
{
	int ret = listener->sync ? evr_cm_migrate(child, NULL) : 0;

	if (!ret)
		ret = evr_cm_addr_query(child);
	if (!ret && !child->dev)
		ret = -ENODEV;
	if (!ret)
		ret = evr_cm_addr_query_gid(child);
	if (!ret && evr_cm_is_ib(child))
		ret = evr_cm_route_query(child);
	return ret;
}

static void refuse_child(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	uint32_t reported;

	evr_ucma_destroy_id(evt->channel->fd, raw->handle, &reported);
}

/* The child is on the channel of its request, where the listener need not be any more. */
static int adopt_child(
	struct evr_cm_event *evt, const struct evr_ucma_event *raw, struct evr_cm_id **out)
{
	struct evr_cm_id *listener = id_of(evt), *child;
	int ret = evr_cm_id_new(evt->channel, listener->id.context, listener->id.ps, &child);

	if (ret) {
		refuse_child(evt, raw);
		return ret;
	}
	child->handle = raw->handle;
	child->id.qp_type = listener->id.qp_type;
	child->passive = true;
	ret = evr_cm_map_add_child(child);
	if (!ret)
		ret = fill_child(child, listener);
	if (ret) {
		/* Gone in the kernel, it takes its connection with it: the peer is rejected. */
		evr_cm_id_drop(child);
		return ret;
	}
	*out = child;
	return 0;
}

static int serve_connect_request(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	struct evr_cm_id *listener = id_of(evt);
	struct evr_cm_id *child;

	if (adopt_child(evt, raw, &child))
		return SWALLOW;
	evt->event.listen_id = &listener->id;
	evt->event.id = &child->id;
	child->remote_ece = raw->ece;
	if (!evr_cm_is_ud(child)) {
		child->responder_resources = raw->param.conn.responder_resources;
		child->initiator_depth = raw->param.conn.initiator_depth;
	}
	copy_param(evt, raw);
	return DELIVER;
}

static int serve_connect_response(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	struct evr_cm_id *id = id_of(evt);
	int ret;

	evr_cm_param_conn(evt, raw);
	id->remote_ece = raw->ece;
	if (!id->id.qp)
		return DELIVER;
	ret = evr_cm_connect_finish(id);
	id->response_failed = ret != 0;
	if (ret)
		return turn_into(evt, RDMA_CM_EVENT_CONNECT_ERROR, ret);
	evt->event.event = RDMA_CM_EVENT_ESTABLISHED;
	return DELIVER;
}

/* Even failures can have something to say: a datagram service gives its reason with UNREACHABLE. */
static int serve_plainly(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	copy_param(evt, raw);
	return DELIVER;
}

static int serve_rejected(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	struct evr_cm_id *id = id_of(evt);

	if (id->response_failed)
		return SWALLOW;
	evr_cm_param_conn(evt, raw);
	evr_cm_qp_error(id);
	return DELIVER;
}

static int serve_disconnected(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	if (id_of(evt)->response_failed)
		return SWALLOW;
	evr_cm_param_conn(evt, raw);
	return DELIVER;
}

static int serve_device_removal(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	struct evr_cm_device *dev = id_of(evt)->dev;

	if (dev)
		atomic_store_explicit(&dev->removed, true, memory_order_relaxed);
	return DELIVER;
}

static int serve_multicast_join(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	int ret = evr_cm_mc_joined(evt->mc, raw);

	evr_cm_param_ud(evt, raw);
	evt->event.param.ud.private_data = evt->mc->context;
	return ret ? turn_into(evt, RDMA_CM_EVENT_MULTICAST_ERROR, ret) : DELIVER;
}

static int serve_multicast_error(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	evt->event.param.ud.private_data = evt->mc->context;
	return DELIVER;
}

static int serve_addrinfo_resolved(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	int ret = evr_cm_lookup_found(id_of(evt));

	return ret ? turn_into(evt, RDMA_CM_EVENT_ADDRINFO_ERROR, ret) : DELIVER;
}

static int serve_addrinfo_error(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	evr_cm_lookup_failed(id_of(evt));
	return DELIVER;
}

static int serve_user(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	evt->event.param.arg = evr_ucma_event_arg(raw);
	return DELIVER;
}

/* From rdma_resolve_addrinfo() to itself. One that nobody waits for ends here, acknowledged. */
static int serve_internal(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	if (evr_cm_lookup_told(id_of(evt), evr_ucma_event_arg(raw)))
		return SWALLOW;
	evt->event.event = RDMA_CM_EVENT_ADDRINFO_RESOLVED;
	return DELIVER;
}

static const serve_fn serve[] = {
	[RDMA_CM_EVENT_ADDR_RESOLVED] = serve_addr_resolved,
	[RDMA_CM_EVENT_ROUTE_RESOLVED] = serve_route_resolved,
	[RDMA_CM_EVENT_CONNECT_REQUEST] = serve_connect_request,
	[RDMA_CM_EVENT_CONNECT_RESPONSE] = serve_connect_response,
	[RDMA_CM_EVENT_REJECTED] = serve_rejected,
	[RDMA_CM_EVENT_DISCONNECTED] = serve_disconnected,
	[RDMA_CM_EVENT_DEVICE_REMOVAL] = serve_device_removal,
	[RDMA_CM_EVENT_MULTICAST_JOIN] = serve_multicast_join,
	[RDMA_CM_EVENT_MULTICAST_ERROR] = serve_multicast_error,
	[RDMA_CM_EVENT_ADDRINFO_RESOLVED] = serve_addrinfo_resolved,
	[RDMA_CM_EVENT_ADDRINFO_ERROR] = serve_addrinfo_error,
	[RDMA_CM_EVENT_USER] = serve_user,
	[RDMA_CM_EVENT_INTERNAL] = serve_internal,
};

static bool is_multicast(uint32_t type)
{
	return type == RDMA_CM_EVENT_MULTICAST_JOIN || type == RDMA_CM_EVENT_MULTICAST_ERROR;
}

/*
 * Whom the event is for. It stays there until the event is acknowledged: an id or a membership
 * goes only when all the events that the kernel reported for it have been.
 */
static void find_subject(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	if (is_multicast(raw->type))
		evt->mc = evr_cm_map_find_mc(raw->uid);
	if (evt->mc)
		evt->counted = evt->mc->id;
	else if (raw->uid)
		evt->counted = evr_cm_map_find_id(raw->uid);
	else
		evt->counted = evr_cm_map_find_child(raw->handle);
}

/* What a program on this side wrote, and not the peer's doing. */
static bool is_written(uint32_t type)
{
	return type == RDMA_CM_EVENT_USER || type == RDMA_CM_EVENT_INTERNAL;
}

/*
 * An event about a group is for a member, and an id that was not accepted yet may of its peer only
 * learn that it is established.
 */
static bool is_out_of_place(const struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	if (is_multicast(raw->type))
		return !evt->mc;
	return !raw->uid && raw->type != RDMA_CM_EVENT_ESTABLISHED && !is_written(raw->type);
}

static bool is_gone(const struct evr_cm_event *evt)
{
	return evt->counted->gone || (evt->mc && evt->mc->gone);
}

/* What another thread destroys or leaves meanwhile has no more events. */
static int serve_gone(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	if (raw->type == RDMA_CM_EVENT_CONNECT_REQUEST)
		refuse_child(evt, raw);
	return SWALLOW;
}

static int serve_locked(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	if (is_gone(evt))
		return serve_gone(evt, raw);
	evt->event.id = &evt->counted->id;
	evt->event.event = raw->type;
	evt->event.status = raw->status;
	if (raw->type < sizeof(serve) / sizeof(serve[0]) && serve[raw->type])
		return serve[raw->type](evt, raw);
	return serve_plainly(evt, raw);
}

static int serve_event(struct evr_cm_event *evt, const struct evr_ucma_event *raw)
{
	int ret;

	find_subject(evt, raw);
	if (!evt->counted || is_out_of_place(evt, raw))
		return SWALLOW;
	pthread_mutex_lock(&evt->counted->work_lock);
	ret = serve_locked(evt, raw);
	pthread_mutex_unlock(&evt->counted->work_lock);
	return ret;
}

static void count_event(struct evr_cm_event *evt)
{
	struct evr_cm_id *id = evt->counted;

	if (!id)
		return;
	pthread_mutex_lock(&id->lock);
	id->events_done++;
	if (evt->mc)
		evt->mc->events_done++;
	pthread_cond_broadcast(&id->event_done);
	pthread_mutex_unlock(&id->lock);
	evt->counted = NULL;
}

void evr_cm_event_hand_over(struct rdma_cm_event *event)
{
	count_event((struct evr_cm_event *)event);
}

static void event_free(struct evr_cm_event *evt)
{
	count_event(evt);
	free(evt);
}

static int next_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct evr_cm_event *evt = calloc(1, sizeof(*evt));
	struct evr_ucma_event raw;
	int ret;

	if (!evt)
		return -ENOMEM;
	evt->channel = channel;
	ret = evr_ucma_event_read(channel->fd, &raw);
	if (!ret)
		ret = serve_event(evt, &raw);
	if (ret)
		event_free(evt);
	else
		*event = &evt->event;
	return ret;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	int ret;

	if (!channel || !event)
		return evr_cm_result(-EINVAL);
	evr_cm_device_sweep();
	do {
		ret = next_event(channel, event);
	} while (ret == SWALLOW);
	return evr_cm_result(ret);
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	if (!event)
		return evr_cm_result(-EINVAL);
	event_free((struct evr_cm_event *)event);
	return 0;
}
