#include "ev/connection/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "ev/cm/addr.h"
#include "ev/cm/channel.h"
#include "ev/core/base.h"
#include "ev/core/error.h"
#include "ev/core/log.h"
#include "ev/core/stats.h"
#include "ev/device/pd.h"
#include "ev/queue/srq.h"
#include "util/options.h"

/*
 * What no honest program meets: the kernel keeps 1024 requests for a program that does not look,
 * and no peer that asks by the CM's own rules waits for two minutes.
 */
enum { MAX_PENDING = 8192, REQUEST_TIMEOUT_MS = 120000 };

static const struct evrdma_listener_options default_options = {
	.port_space = RDMA_PS_TCP,
	.ack_timeout = -1,
	.max_pending = MAX_PENDING,
	.request_timeout_ms = REQUEST_TIMEOUT_MS,
};

void evrdma_listener_options_init_sized(struct evrdma_listener_options *options, size_t size)
{
	evr_options_init(options, size, &default_options, sizeof(default_options));
}

/* --- events --------------------------------------------------------------------------------- */

static void tell(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error)
{
	if (listener->event_cb)
		listener->event_cb(listener, event, error, listener->arg);
}

/* Bounded by max_pending, which goes with it. */
static unsigned pending_from(
	const struct evrdma_listener *listener, const struct sockaddr_storage *peer)
{
	const struct evrdma_request *request;
	unsigned n = 0;

	TAILQ_FOREACH (request, &listener->pending, listener_link)
		n += evr_addr_same_host(&request->peer_addr, peer);
	return n;
}

/* Takes a slot, or gives the counter of the limit that is reached. */
static uint64_t *take_slot(struct evrdma_listener *listener, const struct rdma_cm_event *event)
{
	const struct evrdma_listener_options *o = &listener->options;
	struct sockaddr_storage peer;

	if (o->max_pending && listener->stats.pending >= o->max_pending)
		return &listener->stats.refused_pending;
	evr_addr_copy(&peer, rdma_get_peer_addr(event->id));
	if (o->max_pending_per_source &&
		pending_from(listener, &peer) >= o->max_pending_per_source)
		return &listener->stats.refused_source;
	return evr_slots_take(listener->slots) ? NULL : &listener->stats.refused_connections;
}

/* Destroying the id rejects the peer. */
static void refuse(struct evrdma_listener *listener, const struct rdma_cm_event *event)
{
	listener->obj.base->stats.requests_refused++;
	rdma_destroy_id(event->id);
}

static void refuse_for_limit(struct evrdma_listener *listener, const struct rdma_cm_event *event)
{
	refuse(listener, event);
	if (listener->limited)
		return;
	listener->limited = true;
	evr_log(EVRDMA_LOG_MSG, "the listener on port %u has reached a limit", listener->port);
	tell(listener, EVRDMA_LISTENER_LIMITED, NULL);
}

static void refuse_for_memory(struct evrdma_listener *listener, const struct rdma_cm_event *event)
{
	listener->stats.refused_no_memory++;
	evr_log_failure("taking a connection request", ENOMEM);
	evr_slots_give(listener->slots);
	refuse(listener, event);
}

/* What the kernel does not pass on, the listener's options, goes with the request. */
static void let_in(struct evrdma_listener *listener, struct evrdma_request *request)
{
	const struct evrdma_listener_options *o = &listener->options;

	listener->limited = false;
	listener->stats.pending++;
	TAILQ_INSERT_TAIL(&listener->pending, request, listener_link);
	request->listener = listener;
	request->slots = listener->slots;
	request->ack_timeout = o->ack_timeout;
	request->domain = evr_domain_ref(o->domain);
	request->srq = o->srq;
	evr_srq_ref(o->srq);
	request->timeout_ms = o->request_timeout_ms;
	evr_request_start_timer(request);
}

void evr_listener_settled(struct evrdma_listener *listener, struct evrdma_request *request)
{
	listener->stats.pending--;
	TAILQ_REMOVE(&listener->pending, request, listener_link);
	request->listener = NULL;
}

static void on_request(struct evrdma_listener *listener, const struct rdma_cm_event *event)
{
	struct evrdma_request *request;
	uint64_t *refused;

	if (listener->obj.ending || listener->away) {
		refuse(listener, event);
		return;
	}
	listener->stats.requests++;
	refused = take_slot(listener, event);
	if (refused) {
		++*refused;
		refuse_for_limit(listener, event);
		return;
	}
	request = evr_request_new(listener->obj.base, event);
	if (!request) {
		refuse_for_memory(listener, event);
		return;
	}
	let_in(listener, request);
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

	if (listener->obj.ending || listener->away)
		return;
	evr_error_set(&error, err, step);
	listener->away = step == EVRDMA_STEP_REMOVAL && listener->options.relisten_ms;
	if (listener->away)
		evr_obj_work(&listener->obj);
	else
		evr_obj_end(&listener->obj);
	tell(listener, EVRDMA_LISTENER_ERROR, &error);
}

static void on_event(struct evr_cmid *cmid, const struct rdma_cm_event *event)
{
	struct evrdma_listener *listener = evr_container_of(cmid, struct evrdma_listener, cmid);

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		on_request(listener, event);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		fail(listener, ENODEV, EVRDMA_STEP_REMOVAL);
		break;
	default:
		break;
	}
}

static void on_lost(struct evr_cmid *cmid, int err)
{
	fail(evr_container_of(cmid, struct evrdma_listener, cmid), err, EVRDMA_STEP_CHANNEL);
}

static const struct evr_cmid_ops cmid_ops = { .event = on_event, .lost = on_lost };

/* --- life ----------------------------------------------------------------------------------- */

static struct evrdma_listener *of_obj(struct evr_obj *obj)
{
	return evr_container_of(obj, struct evrdma_listener, obj);
}

static int set_options(struct evrdma_listener *listener)
{
	int one = 1;

	if (listener->options.v6_only &&
		rdma_set_option(listener->cmid.cm, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one,
			sizeof(one)))
		return -errno;
	return 0;
}

static int listen_once(struct evrdma_listener *listener)
{
	const struct evrdma_listener_options *o = &listener->options;
	int ret = evr_cmid_create(
		&listener->cmid, listener->obj.base, (enum rdma_port_space)o->port_space);

	if (ret)
		return ret;
	ret = set_options(listener);
	if (!ret && rdma_bind_addr(listener->cmid.cm, (struct sockaddr *)&listener->addr))
		ret = -errno;
	if (!ret && rdma_listen(listener->cmid.cm, o->backlog))
		ret = -errno;
	if (ret)
		evr_cmid_destroy(&listener->cmid);
	return ret;
}

/* On iWARP a port that the CM has chosen may be one that TCP has: it chooses another. */
static int listen_on_free_port(struct evrdma_listener *listener)
{
	bool is_given = evr_addr_has_port(&listener->addr);
	int ret = listen_once(listener), others;

	for (others = 0; ret == -EADDRINUSE && !is_given && others < EVR_OTHER_PORTS; others++)
		ret = listen_once(listener);
	return ret;
}

/* On the same port each time. */
static int listen_on(struct evrdma_listener *listener)
{
	int ret = listen_on_free_port(listener);
	uint16_t port;

	if (ret)
		return ret;
	port = rdma_get_src_port(listener->cmid.cm);
	evr_addr_set_port(&listener->addr, port);
	listener->port = ntohs(port);
	listener->cmid.listens = true;
	return 0;
}

static void leave(struct evrdma_listener *listener)
{
	struct evrdma_request *request;

	while ((request = TAILQ_FIRST(&listener->waiting)))
		evr_request_close(request);
	evr_cmid_destroy(&listener->cmid);
}

static void on_again_timer(evutil_socket_t fd, short what, void *arg)
{
	struct evrdma_listener *listener = arg;

	listener->due = true;
	evr_obj_work(&listener->obj);
}

/* That there is no device is why it tries; anything else is said once. */
static int listen_again(struct evrdma_listener *listener)
{
	const int err = -evr_errno(listen_on(listener));

	if (err && err != ENODEV && err != EADDRNOTAVAIL && err != listener->again_err) {
		evr_log_failure("listening again", err);
		listener->again_err = err;
	}
	return -err;
}

/* The id goes in one step, as its device waits for that, and each attempt is another. */
static void come_back(struct evrdma_listener *listener)
{
	const bool due = listener->due;
	const int err = evr_channel_of(listener->obj.base)->err;

	listener->due = false;
	if (err) {
		listener->away = false;
		fail(listener, err, EVRDMA_STEP_CHANNEL);
		return;
	}
	if (listener->cmid.cm)
		leave(listener);
	listener->away = !due || listen_again(listener);
	if (listener->away)
		evr_timer_start(&listener->again_timer, listener->options.relisten_ms);
	else
		tell(listener, EVRDMA_LISTENER_LISTENING, NULL);
}

/* Hands out one waiting request a step, as an arriving one would be. */
static void listener_work(struct evr_obj *obj)
{
	struct evrdma_listener *listener = of_obj(obj);
	struct evrdma_request *request = TAILQ_FIRST(&listener->waiting);

	if (listener->away) {
		come_back(listener);
		return;
	}
	if (listener->disabled || !request)
		return;
	TAILQ_REMOVE(&listener->waiting, request, waiting_link);
	request->waiting_on = NULL;
	evr_obj_work(obj);
	listener->request_cb(listener, request, listener->arg);
}

static int listener_end(struct evr_obj *obj)
{
	evr_timer_stop(&of_obj(obj)->again_timer);
	leave(of_obj(obj));
	return 0;
}

static bool listener_shutdown(struct evr_obj *obj)
{
	evr_obj_close(obj);
	return false;
}

static void listener_closed(struct evr_obj *obj)
{
	tell(of_obj(obj), EVRDMA_LISTENER_CLOSED, NULL);
}

static void listener_free(struct evr_obj *obj)
{
	struct evrdma_listener *listener = of_obj(obj);
	struct evrdma_request *request;

	TAILQ_FOREACH (request, &listener->pending, listener_link)
		request->listener = NULL;
	if (listener->gone)
		listener->gone(listener);
	evr_slots_unref(listener->slots);
	evr_domain_unref(listener->options.domain);
	evr_srq_unref(listener->options.srq);
	free(listener);
}

void evrdma_listener_get_stats_sized(
	const struct evrdma_listener *listener, struct evrdma_listener_stats *stats, size_t size)
{
	struct evrdma_listener_stats now = listener->stats;

	now.connections = atomic_load(&listener->slots->used);
	evr_options_store(stats, size, &now, sizeof(now));
}

static void listener_dump(const struct evr_obj *obj, const struct evr_dump *to)
{
	const struct evrdma_listener *listener =
		evr_container_of(obj, struct evrdma_listener, obj);
	struct evrdma_listener_stats stats;
	char what[24];

	evrdma_listener_get_stats(listener, &stats);
	snprintf(what, sizeof(what), "listener %u", listener->port);
	evr_dump_listener(to, what, &stats);
}

static const struct evr_obj_class listener_class = {
	.work = listener_work,
	.end = listener_end,
	.shutdown = listener_shutdown,
	.closed = listener_closed,
	.free = listener_free,
	.dump = listener_dump,
};

/* --- the calls ------------------------------------------------------------------------------ */

static int load_options(struct evrdma_listener *listener, const struct evrdma_base *base,
	const struct evrdma_listener_options *options)
{
	struct evrdma_listener_options *o = &listener->options;

	*o = default_options;
	if (evr_options_load(o, sizeof(*o), options))
		return -EINVAL;
	if (o->backlog < 0 || o->v6_only < 0 || o->v6_only > 1 || o->ack_timeout < -1 ||
		o->ack_timeout > 31 || o->request_timeout_ms < 0 || o->relisten_ms < 0)
		return -EINVAL;
	if (!evr_domain_fits(o->domain, base) || (o->srq && o->srq->base != base))
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

static int begin(struct evrdma_listener *listener, struct evrdma_base *base)
{
	int ret = evr_obj_init(&listener->obj, base, &listener_class);

	if (ret)
		return ret;
	evr_timer_assign(&listener->again_timer, base, on_again_timer, listener);
	ret = listen_on(listener);
	if (ret)
		evr_obj_leave(&listener->obj);
	return ret;
}

static int init(struct evrdma_listener *listener, struct evrdma_base *base,
	const struct sockaddr *addr, const struct evrdma_listener_options *options)
{
	int ret = addr ? load_options(listener, base, options) : -EINVAL;

	if (ret)
		return ret;
	listener->slots = evr_slots_new(listener->options.max_connections);
	if (!listener->slots)
		return -ENOMEM;
	listener->cmid.owner = &listener->obj;
	listener->cmid.ops = &cmid_ops;
	TAILQ_INIT(&listener->waiting);
	TAILQ_INIT(&listener->pending);
	ret = evr_addr_copy(&listener->addr, addr);
	if (ret)
		return ret;
	ret = evr_domain_take(base, listener->options.domain, &listener->options.domain);
	if (ret)
		return ret;
	ret = begin(listener, base);
	if (ret)
		evr_domain_unref(listener->options.domain);
	else
		evr_srq_ref(listener->options.srq);
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
		evr_slots_unref(listener->slots);
		free(listener);
		errno = -evr_errno(ret);
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
