#include <errno.h>
#include <stdlib.h>

#include <evrdma/listener.h>

#include "ev/addr.h"
#include "ev/base.h"
#include "ev/error.h"
#include "ev/request.h"
#include "util/options.h"

/*
 * Listening from the start, until it is closed or its device is removed. A disabled listener keeps
 * the requests in a list.
 */
struct evrdma_listener {
	struct evr_obj obj;
	struct evr_cmid cmid;
	struct evrdma_listener_options options;
	evrdma_listener_request_cb request_cb;
	evrdma_listener_event_cb event_cb;
	void *arg;
	struct evr_request_list waiting;
	bool disabled;
	uint16_t port;
};

static const struct evrdma_listener_options default_options = {
	.size = sizeof(struct evrdma_listener_options),
	.port_space = RDMA_PS_TCP,
	.ack_timeout = -1,
};

void evrdma_listener_options_init_sized(struct evrdma_listener_options *options, size_t size)
{
	evr_options_store(options, size, &default_options, sizeof(default_options));
}

/* --- events --------------------------------------------------------------------------------- */

static void on_request(struct evrdma_listener *listener, const struct rdma_cm_event *event)
{
	struct evrdma_request *request = NULL;

	if (!listener->obj.ending)
		request = evr_request_new(listener->obj.base, event);
	if (!request) {
		rdma_destroy_id(event->id); /* the peer is rejected */
		return;
	}
	/* The kernel does not pass the listener's own on. */
	request->ack_timeout = listener->options.ack_timeout;
	if (!listener->disabled && TAILQ_EMPTY(&listener->waiting)) {
		listener->request_cb(listener, request, listener->arg);
		return;
	}
	request->waiting_on = &listener->waiting;
	TAILQ_INSERT_TAIL(&listener->waiting, request, waiting_link);
}

static void fail(struct evrdma_listener *listener, int err, enum evrdma_step step)
{
	struct evrdma_error error;

	if (listener->obj.ending)
		return;
	evr_error_set(&error, err, step);
	evr_obj_end(&listener->obj);
	if (listener->event_cb)
		listener->event_cb(listener, EVRDMA_LISTENER_ERROR, &error, listener->arg);
}

static void on_event(struct evr_cmid *cmid, const struct rdma_cm_event *event)
{
	struct evrdma_listener *listener = evr_container_of(cmid, struct evrdma_listener, cmid);

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		on_request(listener, event);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		if (cmid->cm->verbs)
			evr_device_set_removed(listener->obj.base, cmid->cm->verbs);
		fail(listener, ENODEV, EVRDMA_STEP_REMOVAL);
		break;
	default:
		break;
	}
}

static void on_lost(struct evr_cmid *cmid, int err)
{
	fail(evr_container_of(cmid, struct evrdma_listener, cmid), err, EVRDMA_STEP_LISTEN);
}

static const struct evr_cmid_ops cmid_ops = { .event = on_event, .lost = on_lost };

/* --- life ----------------------------------------------------------------------------------- */

static struct evrdma_listener *of_obj(struct evr_obj *obj)
{
	return evr_container_of(obj, struct evrdma_listener, obj);
}

/* Hands out one waiting request a step, as an arriving one would be. */
static void listener_work(struct evr_obj *obj)
{
	struct evrdma_listener *listener = of_obj(obj);
	struct evrdma_request *request = TAILQ_FIRST(&listener->waiting);

	if (listener->disabled || !request)
		return;
	TAILQ_REMOVE(&listener->waiting, request, waiting_link);
	request->waiting_on = NULL;
	evr_obj_work(obj);
	listener->request_cb(listener, request, listener->arg);
}

static int listener_end(struct evr_obj *obj)
{
	struct evrdma_listener *listener = of_obj(obj);
	struct evrdma_request *request;

	while ((request = TAILQ_FIRST(&listener->waiting)))
		evr_request_close(request);
	evr_cmid_destroy(&listener->cmid);
	return 0;
}

static bool listener_shutdown(struct evr_obj *obj)
{
	evr_obj_close(obj);
	return false;
}

static void listener_closed(struct evr_obj *obj)
{
	struct evrdma_listener *listener = of_obj(obj);

	if (listener->event_cb)
		listener->event_cb(listener, EVRDMA_LISTENER_CLOSED, NULL, listener->arg);
}

static void listener_free(struct evr_obj *obj)
{
	free(of_obj(obj));
}

static const struct evr_obj_class listener_class = {
	.work = listener_work,
	.end = listener_end,
	.shutdown = listener_shutdown,
	.closed = listener_closed,
	.free = listener_free,
};

/* --- the calls ------------------------------------------------------------------------------ */

static int set_options(struct evrdma_listener *listener)
{
	int one = 1;

	if (listener->options.v6_only &&
		rdma_set_option(listener->cmid.cm, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one,
			sizeof(one)))
		return -errno;
	return 0;
}

static int load_options(
	struct evrdma_listener *listener, const struct evrdma_listener_options *options)
{
	struct evrdma_listener_options *o = &listener->options;

	*o = default_options;
	if (evr_options_load(o, sizeof(*o), options))
		return -EINVAL;
	if (o->backlog < 0 || o->ack_timeout < -1 || o->ack_timeout > 31)
		return -EINVAL;
	switch (o->port_space) {
	case RDMA_PS_TCP:
	case RDMA_PS_IB:
	case RDMA_PS_UDP:
		return 0;
	default:
		return -EINVAL;
	}
}

static int listen_on(struct evrdma_listener *listener, struct evrdma_base *base,
	const struct sockaddr *addr)
{
	struct sockaddr_storage copy;
	int ret = evr_addr_copy(&copy, addr);

	if (ret)
		return ret;
	ret = evr_cmid_create(
		&listener->cmid, base, (enum rdma_port_space)listener->options.port_space);
	if (ret)
		return ret;
	ret = set_options(listener);
	if (!ret && rdma_bind_addr(listener->cmid.cm, (struct sockaddr *)&copy))
		ret = -errno;
	if (!ret && rdma_listen(listener->cmid.cm, listener->options.backlog))
		ret = -errno;
	if (ret)
		evr_cmid_destroy(&listener->cmid);
	else
		listener->port = ntohs(rdma_get_src_port(listener->cmid.cm));
	return ret;
}

static int init(struct evrdma_listener *listener, struct evrdma_base *base,
	const struct sockaddr *addr, const struct evrdma_listener_options *options)
{
	int ret = addr ? load_options(listener, options) : -EINVAL;

	if (ret)
		return ret;
	listener->cmid.owner = &listener->obj;
	listener->cmid.ops = &cmid_ops;
	TAILQ_INIT(&listener->waiting);
	ret = evr_obj_init(&listener->obj, base, &listener_class);
	if (ret)
		return ret;
	ret = listen_on(listener, base, addr);
	if (ret)
		evr_obj_leave(&listener->obj);
	return ret;
}

struct evrdma_listener *evrdma_listener_new(struct evrdma_base *base, const struct sockaddr *addr,
	const struct evrdma_listener_options *options, evrdma_listener_request_cb request_cb,
	void *arg)
{
	struct evrdma_listener *listener = calloc(1, sizeof(*listener));
	int ret;

	if (!listener)
		return NULL;
	listener->request_cb = request_cb;
	listener->arg = arg;
	ret = request_cb ? init(listener, base, addr, options) : -EINVAL;
	if (ret) {
		free(listener);
		errno = -ret;
		return NULL;
	}
	return listener;
}

void evrdma_listener_set_event_cb(struct evrdma_listener *listener, evrdma_listener_event_cb cb)
{
	listener->event_cb = cb;
}

void evrdma_listener_enable(struct evrdma_listener *listener)
{
	listener->disabled = false;
	if (!TAILQ_EMPTY(&listener->waiting))
		evr_obj_work(&listener->obj);
}

void evrdma_listener_disable(struct evrdma_listener *listener)
{
	listener->disabled = true;
}

uint16_t evrdma_listener_get_port(const struct evrdma_listener *listener)
{
	return listener->port;
}

struct rdma_cm_id *evrdma_listener_get_cm_id(const struct evrdma_listener *listener)
{
	return listener->cmid.cm;
}

void evrdma_listener_close(struct evrdma_listener *listener)
{
	if (listener)
		evr_obj_close(&listener->obj);
}
