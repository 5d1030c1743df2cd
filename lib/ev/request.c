#include "ev/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ev/addr.h"
#include "ev/base.h"

/* The kernel's limit for what travels with a reject. */
enum { MAX_REJECT_DATA = 148 };

/* Nothing is heard of an id before it is accepted, but for the removal of its device. */
static void on_event(struct evr_cmid *cmid, const struct rdma_cm_event *event)
{
	struct evrdma_request *request = evr_container_of(cmid, struct evrdma_request, cmid);

	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL && cmid->cm->verbs)
		evr_device_set_removed(request->obj.base, cmid->cm->verbs);
}

static void on_lost(struct evr_cmid *cmid, int err)
{
}

static const struct evr_cmid_ops cmid_ops = { .event = on_event, .lost = on_lost };

/* Destroying the id of a request rejects it. */
static int request_end(struct evr_obj *obj)
{
	struct evrdma_request *request = evr_container_of(obj, struct evrdma_request, obj);

	evr_cmid_destroy(&request->cmid);
	return 0;
}

static void request_closed(struct evr_obj *obj)
{
}

static void stop_waiting(struct evrdma_request *request)
{
	if (request->waiting_on)
		TAILQ_REMOVE(request->waiting_on, request, waiting_link);
	request->waiting_on = NULL;
}

static bool request_shutdown(struct evr_obj *obj)
{
	evr_request_close(evr_container_of(obj, struct evrdma_request, obj));
	return false;
}

static void request_free(struct evr_obj *obj)
{
	struct evrdma_request *request = evr_container_of(obj, struct evrdma_request, obj);

	stop_waiting(request);
	free(request);
}

static const struct evr_obj_class request_class = {
	.end = request_end,
	.shutdown = request_shutdown,
	.closed = request_closed,
	.free = request_free,
};

static void keep(struct evrdma_request *request, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *param = &event->param.conn;

	if (param->private_data && param->private_data_len) {
		memcpy(request->private_data, param->private_data, param->private_data_len);
		request->private_data_len = param->private_data_len;
	}
	request->responder_resources = param->responder_resources;
	request->initiator_depth = param->initiator_depth;
	evr_addr_copy(&request->peer_addr, rdma_get_peer_addr(event->id));
}

struct evrdma_request *evr_request_new(
	struct evrdma_base *base, const struct rdma_cm_event *event)
{
	struct evrdma_request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->cmid.owner = &request->obj;
	request->cmid.ops = &cmid_ops;
	if (evr_cmid_take(&request->cmid, base, event->id)) {
		free(request);
		return NULL;
	}
	if (evr_obj_init(&request->obj, base, &request_class)) {
		evr_cmid_release(&request->cmid);
		free(request);
		return NULL;
	}
	keep(request, event);
	return request;
}

void evr_request_close(struct evrdma_request *request)
{
	stop_waiting(request);
	evr_obj_close(&request->obj);
}

int evrdma_request_reject(struct evrdma_request *request, const void *data, size_t len)
{
	if (len > MAX_REJECT_DATA)
		return -EINVAL;
	/* It fails when the peer has gone: then there is nobody to tell. */
	rdma_reject(request->cmid.cm, data, (uint8_t)len);
	evr_request_close(request);
	return 0;
}

/* --- to another base ------------------------------------------------------------------------ */

/* On the new base's thread. A closing base takes no objects: the id goes, so the peer knows. */
static void arrive(struct evrdma_base *base, struct evr_inbox_item *item)
{
	struct evrdma_request *request = evr_container_of(item, struct evrdma_request, item);
	struct rdma_cm_id *cm = request->cmid.cm;

	if (evr_cmid_take(&request->cmid, base, cm)) {
		rdma_destroy_id(cm);
		free(request);
		return;
	}
	if (evr_obj_init(&request->obj, base, &request_class)) {
		evr_cmid_destroy(&request->cmid);
		free(request);
		return;
	}
	request->cb(request, request->arg);
}

/* Under the new base's inbox lock: from here on its thread may find the request. */
static int depart(struct evrdma_base *base, struct evr_inbox_item *item)
{
	struct evrdma_request *request = evr_container_of(item, struct evrdma_request, item);
	struct rdma_cm_id *cm = request->cmid.cm;

	if (base != request->from && rdma_migrate_id(cm, base->channel))
		return -errno;
	evr_cmid_release(&request->cmid);
	request->cmid.cm = cm;
	evr_obj_leave(&request->obj);
	return 0;
}

int evrdma_request_move(struct evrdma_request *request, struct evrdma_base *base,
	evrdma_request_cb cb, void *arg)
{
	if (request->obj.closing)
		return -EPIPE;
	request->item.deliver = arrive;
	request->from = request->obj.base;
	request->cb = cb;
	request->arg = arg;
	return evr_inbox_put(base, &request->item, depart);
}

/* --- what is known of it -------------------------------------------------------------------- */

const void *evrdma_request_get_private_data(const struct evrdma_request *request, size_t *len)
{
	*len = request->private_data_len;
	return request->private_data_len ? request->private_data : NULL;
}

struct rdma_cm_id *evrdma_request_get_cm_id(const struct evrdma_request *request)
{
	return request->cmid.cm;
}

const struct sockaddr *evrdma_request_get_peer_addr(const struct evrdma_request *request)
{
	return (const struct sockaddr *)&request->peer_addr;
}

struct evrdma_base *evrdma_request_get_base(const struct evrdma_request *request)
{
	return request->obj.base;
}
