/* Bufferevents over RDMA. They are ended as all bufferevents are, when they are told of an end. */
#include "destroy/fixture.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <signal.h>

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		bufferevent_free(bev);
}

static void watch(struct bufferevent *bev)
{
	bufferevent_setcb(bev, NULL, NULL, on_event, NULL);
	bufferevent_enable(bev, EV_READ);
	bufferevent_write(bev, "hello", 5);
}

/* --- who accepts ---------------------------------------------------------------------------- */

static void on_bufferevent(struct evrdma_listener *listener, struct bufferevent *bev,
	const struct sockaddr *peer, void *arg)
{
	watch(bev);
	point(arg, ROW_BUFFEREVENT_ARRIVED);
}

/* From the accept to its end the device refuses all. */
static bool refuses;

static void on_accepted(struct bufferevent *bev, const struct evrdma_error *error, void *arg)
{
	if (refuses)
		fake_fail_nth(FAKE_ANY, 0, 0);
	if (bev)
		watch(bev);
	op_told(arg, error != NULL);
}

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct op *op = op_new(arg, ROW_BUFFEREVENT_ACCEPTED, ROW_BUFFEREVENT_NOT_ACCEPTED);

	if (op_begun(op, evrdma_bufferevent_accept(request, NULL, 0, on_accepted, op)))
		evrdma_request_reject(request, NULL, 0);
	else if (refuses)
		fake_fail_from(FAKE_VERBS, 1, EINVAL);
}

static void on_listener_event(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	if (event == EVRDMA_LISTENER_CLOSED)
		last_point(arg, ROW_LISTENER_CLOSED);
	else if (event == EVRDMA_LISTENER_ERROR)
		point(arg, ROW_LISTENER_ERROR);
}

/* The object is the argument of its own callbacks. */
static struct object *listener_new(struct object *base, enum fake_kind kind, bool by_hand)
{
	struct object *object;
	struct sockaddr *at = address(fixture_ip(kind), 0);
	struct object *const next = &base->fixture->objects[base->fixture->num_objects];

	object = object_new(base->fixture, LISTENER, base,
		by_hand ? evrdma_listener_new(base->it, at, NULL, on_request, next)
			: evrdma_bufferevent_listen(
				  base->it, at, NULL, NULL, 0, on_bufferevent, next));
	MUST(object == next, "%s: there is no listener for bufferevents", running);
	evrdma_listener_set_event_cb(object->it, on_listener_event);
	return object;
}

/* --- who connects --------------------------------------------------------------------------- */

static void connect_to(struct object *listener, enum fake_kind kind)
{
	struct object *base = listener->base;
	struct bufferevent *bev;

	if (!base->it || !listener->it || base->ending || base->leaving)
		return;
	bev = evrdma_bufferevent_connect(base->it, NULL,
		address(fixture_ip(kind), evrdma_listener_get_port(listener->it)), NULL, 0);
	if (bev)
		watch(bev);
}

void bufferevents_meet(struct fixture *fixture)
{
	struct object *base = fixture->base;

	signal(SIGPIPE, SIG_IGN);
	if (!base->it || base->ending || base->leaving)
		return;
	fixture->listener = listener_new(base, fixture->kind, false);
	connect_to(fixture->listener, fixture->kind);
}

void bufferevents_are_accepted(struct fixture *fixture)
{
	struct object *base = fixture->base;

	if (!base->it || base->ending || base->leaving)
		return;
	refuses = false;
	fixture->second = listener_new(base, fixture->kind, true);
	connect_to(fixture->second, fixture->kind);
}

void bufferevents_are_refused(struct fixture *fixture)
{
	refuses = true;
	if (fixture->second)
		connect_to(fixture->second, fixture->kind);
}
