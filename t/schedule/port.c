/* Listeners, and the requests that come to them. */
#include "schedule/schedule.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_PENDING = IN(REQUEST_OFFERED) | IN(REQUEST_KEPT) | IN(REQUEST_MOVED) };

/* --- requests -------------------------------------------------------------------------------- */

void ask_forget(struct ask *ask)
{
	ask->request = NULL;
	object_gone(&ask->object);
}

static struct ask *ask_new(struct port *port, struct evrdma_request *request)
{
	struct ask *ask =
		object_new(port->object.schedule, REQUEST, port->object.owner, sizeof(*ask));
	size_t len;
	const void *data = evrdma_request_get_private_data(request, &len);

	ask->request = request;
	ask->port = port;
	ask->since_us = clock_now_us();
	if (data && len >= sizeof(ask->from))
		memcpy(&ask->from, data, sizeof(ask->from));
	trace(ask->object.schedule, "request %u from %u", ask->object.number, ask->from);
	return ask;
}

void ask_reject(struct ask *ask)
{
	int ret;

	if (ask->object.state == REQUEST_MOVING)
		return;
	object_call(&ask->object, REQUEST_REJECT);
	ret = evrdma_request_reject(ask->request, "no", 3);
	object_returned(&ask->object, REQUEST_REJECT, ret);
	MUST(!ret, "request %u: reject gives %d", ask->object.number, ret);
	ask_forget(ask);
}

/* It may have waited before it was handed out, so it can be late sooner. */
static bool is_late(const struct ask *ask)
{
	uint64_t limit_us = (uint64_t)ask->port->request_timeout_ms * US_PER_MS;

	return limit_us && clock_now_us() - ask->since_us > limit_us + SLACK_US;
}

void ask_check_idle(const struct ask *ask)
{
	MUST(ask->object.state == REQUEST_MOVING || !is_late(ask) ||
			!evrdma_request_get_cm_id(ask->request),
		"request %u is late, and still there", ask->object.number);
}

bool ask_may_end(const struct ask *ask, int ret)
{
	const struct schedule *s = ask->object.schedule;

	return (ret == -ENODEV && s->pulls) || (ret == -EACCES && s->losses) ||
	       (ret == -ETIMEDOUT && ask->port->request_timeout_ms);
}

static bool may_have_ended(const struct ask *ask)
{
	return ask_may_end(ask, -ENODEV) || ask_may_end(ask, -EACCES) ||
	       ask_may_end(ask, -ETIMEDOUT);
}

static void reject(struct schedule *s)
{
	struct ask *ask = object_pick(s, REQUEST, ALL_PENDING);

	if (ask)
		ask_reject(ask);
}

static void serve(struct ask *ask);

static void on_arrived(struct evrdma_request *request, void *arg)
{
	struct ask *ask = arg;
	struct schedule *s = ask->object.schedule;

	object_event(&ask->object, REQUEST_ARRIVED);
	MUST(ask->request == request && ask->object.state == REQUEST_MOVING,
		"request %u arrives and was not sent", ask->object.number);
	ask->object.state = REQUEST_MOVED;
	MUST(evrdma_request_get_base(request) == s->owners[ask->object.owner]->base,
		"request %u arrived somewhere else", ask->object.number);
	if (random_once_in(&s->random, 2))
		serve(ask);
	schedule_act(s);
}

static void move_to(struct ask *ask, struct owner *owner)
{
	struct schedule *s = ask->object.schedule;
	int ret;

	object_call(&ask->object, REQUEST_MOVE);
	ret = evrdma_request_move(ask->request, owner->base, on_arrived, ask);
	object_returned(&ask->object, REQUEST_MOVE, ret);
	MUST(ret == (owner->object.state == BASE_OPEN ? 0 : -EPIPE) || schedule_excuses(s, ret) ||
			ask_may_end(ask, ret),
		"request %u: move gives %d", ask->object.number, ret);
	if (ret)
		return;
	ask->object.owner = owner->object.owner;
	ask->object.state = REQUEST_MOVING;
	ask->has_moved = true;
}

static void move(struct schedule *s)
{
	struct ask *ask = object_pick(s, REQUEST, ALL_PENDING);
	struct owner *owner = object_pick(s, BASE, ANY_STATE);

	if (ask && owner)
		move_to(ask, owner);
}

static void get_request(struct schedule *s)
{
	struct ask *ask = object_pick(s, REQUEST, ALL_PENDING);

	if (!ask)
		return;
	object_call(&ask->object, REQUEST_GET);
	evrdma_request_get_peer_addr(ask->request);
	MUST(evrdma_request_get_cm_id(ask->request) || may_have_ended(ask), "request %u has no id",
		ask->object.number);
	object_returned(&ask->object, REQUEST_GET, 0);
}

/* Mostly where datagrams are asked for. */
struct port *port_for_dgrams(struct schedule *s)
{
	struct port *port = NULL;
	unsigned tries = 8;

	while (tries-- && (port = object_pick(s, LISTENER, ANY_STATE)) && !port->for_dgrams)
		;
	return port;
}

static void serve_dgram(struct ask *ask)
{
	struct endpoint *e = object_pick(ask->object.schedule, DGRAM, IN(DGRAM_READY));

	if (e)
		endpoint_accept(e, ask);
}

/* --- listeners ------------------------------------------------------------------------------- */

/* Most are taken at once, as servers do, and some by others. */
static void serve(struct ask *ask)
{
	struct schedule *s = ask->object.schedule;
	struct connection *connection;
	struct owner *owner;

	if (random_once_in(&s->random, 4))
		return;
	owner = random_once_in(&s->random, 6) ? object_pick(s, BASE, ANY_STATE) : NULL;
	if (owner) {
		move_to(ask, owner);
		return;
	}
	if (ask->port->for_dgrams) {
		serve_dgram(ask);
		return;
	}
	if (!owner_has_room(s->owners[ask->object.owner], CONN))
		return;
	connection = connection_new(s, ask->object.owner);
	if (connection)
		connection_accept(connection, ask);
}

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct port *port = arg;
	struct ask *ask;

	object_event(&port->object, LISTENER_REQUEST);
	MUST(listener == port->listener, "listener %u is told of another", port->object.number);
	MUST(port->object.state == LISTENER_ENABLED, "listener %u: a request comes while it is %s",
		port->object.number, cover_state_name(LISTENER, port->object.state));
	ask = ask_new(port, request);
	serve(ask);
	schedule_act(port->object.schedule);
	if (ask->object.state == REQUEST_OFFERED)
		ask->object.state = REQUEST_KEPT;
}

/* One that was to come back does not, where nothing can be heard any more. */
static bool may_be_lost(const struct port *port, const struct evrdma_error *error)
{
	return port->object.schedule->losses && port->comes_back && error->err == EACCES;
}

static void on_event(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	static const unsigned marks[] = {
		[EVRDMA_LISTENER_ERROR] = LISTENER_ERROR,
		[EVRDMA_LISTENER_LIMITED] = LISTENER_LIMITED,
		[EVRDMA_LISTENER_CLOSED] = LISTENER_CLOSED,
		[EVRDMA_LISTENER_LISTENING] = LISTENER_LISTENING,
	};
	struct port *port = arg;

	object_event(&port->object, marks[event]);
	MUST(!error == (event != EVRDMA_LISTENER_ERROR), "listener %u: a wrong error",
		port->object.number);
	if (event == EVRDMA_LISTENER_LIMITED) {
		MUST(port->max_pending, "listener %u has no limit, and reached it",
			port->object.number);
		schedule_act(port->object.schedule);
		return;
	}
	if (event == EVRDMA_LISTENER_ERROR) {
		MUST(port->object.state < LISTENER_ENDED ||
				(port->object.state == LISTENER_ENDED && may_be_lost(port, error)),
			"listener %u ends twice", port->object.number);
		port->comes_back &= error->err == ENODEV;
		port->object.state = LISTENER_ENDED;
		schedule_act(port->object.schedule);
		return;
	}
	if (event == EVRDMA_LISTENER_LISTENING) {
		MUST(port->object.state == LISTENER_ENDED && port->comes_back,
			"listener %u listens again, and nobody asked", port->object.number);
		port->object.state = port->disabled ? LISTENER_DISABLED : LISTENER_ENABLED;
		schedule_act(port->object.schedule);
		return;
	}
	MUST(port->object.state == LISTENER_CLOSING, "listener %u is closed, and nobody asked",
		port->object.number);
	schedule_act(port->object.schedule);
	object_gone(&port->object);
}

static void options_for(
	struct port *port, struct owner *owner, struct evrdma_listener_options *options)
{
	static const unsigned timeouts_ms[] = { 0, 0, 0, 5, 1000 };
	struct random *r = &owner->object.schedule->random;

	evrdma_listener_options_init(options);
	port->request_timeout_ms = (int)RANDOM_OF(r, timeouts_ms);
	options->request_timeout_ms = port->request_timeout_ms;
	port->shares = owner->shared && random_once_in(r, 2);
	options->srq = port->shares ? owner_srq(owner) : NULL;
	if (port->for_dgrams)
		options->port_space = RDMA_PS_UDP;
	if (random_once_in(r, 4))
		options->ack_timeout = 14;
	options->domain = owner_choose_domain(owner);
	if (random_once_in(r, 3))
		port->max_pending = 1 + random_below(r, 2);
	options->max_pending = port->max_pending;
	port->comes_back = random_once_in(r, 2);
	if (port->comes_back)
		options->relisten_ms = 500;
}

struct port *port_new(struct schedule *s, unsigned owner, bool for_dgrams)
{
	struct port *port = object_new(s, LISTENER, owner, sizeof(*port));
	const char *ip = random_once_in(&s->random, 4) ? "0.0.0.0" : s->ip;
	struct evrdma_listener_options options;
	struct sockaddr_in sin;

	port->for_dgrams = for_dgrams;
	options_for(port, s->owners[owner], &options);
	schedule_address(&sin, ip, 0);
	s->in_call = true;
	port->listener = evrdma_listener_new(
		s->owners[owner]->base, (struct sockaddr *)&sin, &options, on_request, port);
	s->in_call = false;
	trace(s, "listener %u: new on base %u at %s%s", port->object.number,
		s->owners[owner]->object.number, ip, for_dgrams ? ", for datagrams" : "");
	if (!port->listener) {
		owner_refused(s->owners[owner], errno);
		object_gone(&port->object);
		return NULL;
	}
	evrdma_listener_set_event_cb(port->listener, on_event);
	port->number = evrdma_listener_get_port(port->listener);
	return port;
}

void port_close(struct port *port)
{
	object_call(&port->object, LISTENER_CLOSE);
	evrdma_listener_close(port->listener);
	object_returned(&port->object, LISTENER_CLOSE, 0);
	port->object.state = LISTENER_CLOSING;
}

/* --- actions --------------------------------------------------------------------------------- */

static void new_port(struct schedule *s)
{
	struct owner *owner = schedule_owner(s);

	if (owner_has_room(owner, LISTENER) && object_live(s, LISTENER) < 4)
		port_new(
			s, owner->object.owner, s->profile.dgrams && random_once_in(&s->random, 2));
}

static void enable(struct schedule *s)
{
	struct port *port = object_pick(s, LISTENER, ANY_STATE);

	if (!port)
		return;
	object_call(&port->object, LISTENER_ENABLE);
	evrdma_listener_enable(port->listener);
	object_returned(&port->object, LISTENER_ENABLE, 0);
	port->disabled = false;
	if (port->object.state == LISTENER_DISABLED)
		port->object.state = LISTENER_ENABLED;
}

static void disable(struct schedule *s)
{
	struct port *port = object_pick(s, LISTENER, ANY_STATE);

	if (!port)
		return;
	object_call(&port->object, LISTENER_DISABLE);
	evrdma_listener_disable(port->listener);
	object_returned(&port->object, LISTENER_DISABLE, 0);
	port->disabled = true;
	if (port->object.state == LISTENER_ENABLED)
		port->object.state = LISTENER_DISABLED;
}

static void get_port(struct schedule *s)
{
	struct port *port = object_pick(s, LISTENER, ANY_STATE);
	struct evrdma_listener_stats stats;

	if (!port)
		return;
	object_call(&port->object, LISTENER_GET);
	MUST(evrdma_listener_get_port(port->listener) == port->number,
		"listener %u: the port changed", port->object.number);
	evrdma_listener_get_cm_id(port->listener);
	evrdma_listener_get_stats(port->listener, &stats);
	MUST(stats.requests >= stats.pending + stats.accepted + stats.rejected + stats.moved,
		"listener %u has answered more requests than came", port->object.number);
	object_returned(&port->object, LISTENER_GET, 0);
}

static void close_port(struct schedule *s)
{
	struct port *port = object_pick(s, LISTENER, ANY_STATE);

	if (port)
		port_close(port);
}

const struct action port_actions[] = {
	{ "listen", 4, new_port },
	{ "enable", 4, enable },
	{ "disable", 2, disable },
	{ "get port", 1, get_port },
	{ "close listener", 1, close_port },
	{ "reject", 2, reject },
	{ "move", 3, move },
	{ "get request", 1, get_request },
	{ 0 },
};
