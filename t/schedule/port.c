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
	thing_gone(&ask->thing);
}

static struct ask *ask_new(struct port *port, struct evrdma_request *request)
{
	struct ask *ask = thing_new(port->thing.world, REQUEST, port->thing.home, sizeof(*ask));
	size_t len;
	const void *data = evrdma_request_get_private_data(request, &len);

	ask->request = request;
	ask->port = port;
	if (data && len >= sizeof(ask->from))
		memcpy(&ask->from, data, sizeof(ask->from));
	trace(ask->thing.world, "request %u from %u", ask->thing.number, ask->from);
	return ask;
}

void ask_reject(struct ask *ask)
{
	int ret;

	if (ask->thing.state == REQUEST_MOVING)
		return;
	thing_call(&ask->thing, REQUEST_REJECT);
	ret = evrdma_request_reject(ask->request, "no", 3);
	thing_returned(&ask->thing, REQUEST_REJECT, ret);
	MUST(!ret, "request %u: reject gives %d", ask->thing.number, ret);
	ask_forget(ask);
}

static void reject(struct world *w)
{
	struct ask *ask = thing_pick(w, REQUEST, ALL_PENDING);

	if (ask)
		ask_reject(ask);
}

static void on_arrived(struct evrdma_request *request, void *arg)
{
	struct ask *ask = arg;
	struct world *w = ask->thing.world;

	thing_event(&ask->thing, REQUEST_ARRIVED);
	MUST(ask->request == request && ask->thing.state == REQUEST_MOVING,
		"request %u arrives and was not sent", ask->thing.number);
	ask->thing.state = REQUEST_MOVED;
	MUST(evrdma_request_get_base(request) == w->homes[ask->thing.home]->base,
		"request %u arrived somewhere else", ask->thing.number);
	world_act(w);
}

static void move(struct world *w)
{
	struct ask *ask = thing_pick(w, REQUEST, ALL_PENDING);
	struct home *home = thing_pick(w, BASE, ANY_STATE);
	int ret;

	if (!ask || !home)
		return;
	thing_call(&ask->thing, REQUEST_MOVE);
	ret = evrdma_request_move(ask->request, home->base, on_arrived, ask);
	thing_returned(&ask->thing, REQUEST_MOVE, ret);
	MUST(ret == (home->thing.state == BASE_CLOSING ? -EPIPE : 0) || world_excuses(w, ret),
		"request %u: move gives %d", ask->thing.number, ret);
	if (ret)
		return;
	ask->thing.home = home->thing.home;
	ask->thing.state = REQUEST_MOVING;
	/* There it is rejected. */
	if (home->thing.state == BASE_LEAVING)
		ask_forget(ask);
}

static void get_request(struct world *w)
{
	struct ask *ask = thing_pick(w, REQUEST, ALL_PENDING);

	if (!ask)
		return;
	thing_call(&ask->thing, REQUEST_GET);
	evrdma_request_get_peer_addr(ask->request);
	MUST(evrdma_request_get_cm_id(ask->request), "request %u has no id", ask->thing.number);
	thing_returned(&ask->thing, REQUEST_GET, 0);
}

/* Mostly where datagrams are asked for. */
struct port *port_for_dgrams(struct world *w)
{
	struct port *port = NULL;
	unsigned tries = 8;

	while (tries-- && (port = thing_pick(w, LISTENER, ANY_STATE)) && !port->for_dgrams)
		;
	return port;
}

static void serve_dgram(struct ask *ask)
{
	struct endpoint *e = thing_pick(ask->thing.world, DGRAM, IN(DGRAM_READY));

	if (e)
		endpoint_accept(e, ask);
}

/* --- listeners ------------------------------------------------------------------------------- */

/* Most are taken at once, as servers do. */
static void serve(struct ask *ask)
{
	struct world *w = ask->thing.world;
	struct side *side;

	if (random_once_in(&w->random, 4))
		return;
	if (ask->port->for_dgrams) {
		serve_dgram(ask);
		return;
	}
	if (!home_has_room(w->homes[ask->thing.home], CONN))
		return;
	side = side_new(w, ask->thing.home);
	if (side)
		side_accept(side, ask);
}

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct port *port = arg;
	struct ask *ask;

	thing_event(&port->thing, LISTENER_REQUEST);
	MUST(listener == port->listener, "listener %u is told of another", port->thing.number);
	MUST(port->thing.state == LISTENER_ENABLED, "listener %u: a request comes while it is %s",
		port->thing.number, cover_state_name(LISTENER, port->thing.state));
	ask = ask_new(port, request);
	serve(ask);
	world_act(port->thing.world);
	if (ask->thing.state == REQUEST_OFFERED)
		ask->thing.state = REQUEST_KEPT;
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

	thing_event(&port->thing, marks[event]);
	MUST(!error == (event != EVRDMA_LISTENER_ERROR), "listener %u: a wrong error",
		port->thing.number);
	if (event == EVRDMA_LISTENER_LIMITED) {
		MUST(port->max_pending, "listener %u has no limit, and reached it",
			port->thing.number);
		world_act(port->thing.world);
		return;
	}
	if (event == EVRDMA_LISTENER_ERROR) {
		MUST(port->thing.state < LISTENER_ENDED, "listener %u ends twice",
			port->thing.number);
		port->thing.state = LISTENER_ENDED;
		world_act(port->thing.world);
		return;
	}
	if (event == EVRDMA_LISTENER_LISTENING) {
		MUST(port->thing.state == LISTENER_ENDED && port->comes_back,
			"listener %u listens again, and nobody asked", port->thing.number);
		port->thing.state = port->disabled ? LISTENER_DISABLED : LISTENER_ENABLED;
		world_act(port->thing.world);
		return;
	}
	MUST(port->thing.state == LISTENER_CLOSING, "listener %u is closed, and nobody asked",
		port->thing.number);
	world_act(port->thing.world);
	thing_gone(&port->thing);
}

static void options_for(
	struct port *port, struct home *home, struct evrdma_listener_options *options)
{
	struct random *r = &home->thing.world->random;

	evrdma_listener_options_init(options);
	options->request_timeout_ms = 0;
	if (port->for_dgrams)
		options->port_space = RDMA_PS_UDP;
	if (random_once_in(r, 4))
		options->ack_timeout = 14;
	options->domain = home_choose_domain(home);
	if (random_once_in(r, 3))
		port->max_pending = 1 + random_below(r, 2);
	options->max_pending = port->max_pending;
	port->comes_back = random_once_in(r, 2);
	if (port->comes_back)
		options->relisten_ms = 500;
}

struct port *port_new(struct world *w, unsigned home, bool for_dgrams)
{
	struct port *port = thing_new(w, LISTENER, home, sizeof(*port));
	const char *ip = random_once_in(&w->random, 4) ? "0.0.0.0" : w->ip;
	struct evrdma_listener_options options;
	struct sockaddr_in sin;

	port->for_dgrams = for_dgrams;
	options_for(port, w->homes[home], &options);
	world_address(&sin, ip, 0);
	w->in_call = true;
	port->listener = evrdma_listener_new(
		w->homes[home]->base, (struct sockaddr *)&sin, &options, on_request, port);
	w->in_call = false;
	trace(w, "listener %u: new on base %u at %s%s", port->thing.number,
		w->homes[home]->thing.number, ip, for_dgrams ? ", for datagrams" : "");
	if (!port->listener) {
		home_refused(w->homes[home], errno);
		thing_gone(&port->thing);
		return NULL;
	}
	evrdma_listener_set_event_cb(port->listener, on_event);
	port->number = evrdma_listener_get_port(port->listener);
	return port;
}

void port_close(struct port *port)
{
	thing_call(&port->thing, LISTENER_CLOSE);
	evrdma_listener_close(port->listener);
	thing_returned(&port->thing, LISTENER_CLOSE, 0);
	port->thing.state = LISTENER_CLOSING;
}

/* --- actions --------------------------------------------------------------------------------- */

static void new_port(struct world *w)
{
	struct home *home = world_home(w);

	if (home_has_room(home, LISTENER) && thing_live(w, LISTENER) < 4)
		port_new(w, home->thing.home, w->profile.dgrams && random_once_in(&w->random, 2));
}

static void enable(struct world *w)
{
	struct port *port = thing_pick(w, LISTENER, ANY_STATE);

	if (!port)
		return;
	thing_call(&port->thing, LISTENER_ENABLE);
	evrdma_listener_enable(port->listener);
	thing_returned(&port->thing, LISTENER_ENABLE, 0);
	port->disabled = false;
	if (port->thing.state == LISTENER_DISABLED)
		port->thing.state = LISTENER_ENABLED;
}

static void disable(struct world *w)
{
	struct port *port = thing_pick(w, LISTENER, ANY_STATE);

	if (!port)
		return;
	thing_call(&port->thing, LISTENER_DISABLE);
	evrdma_listener_disable(port->listener);
	thing_returned(&port->thing, LISTENER_DISABLE, 0);
	port->disabled = true;
	if (port->thing.state == LISTENER_ENABLED)
		port->thing.state = LISTENER_DISABLED;
}

static void get_port(struct world *w)
{
	struct port *port = thing_pick(w, LISTENER, ANY_STATE);
	struct evrdma_listener_stats stats;

	if (!port)
		return;
	thing_call(&port->thing, LISTENER_GET);
	MUST(evrdma_listener_get_port(port->listener) == port->number,
		"listener %u: the port changed", port->thing.number);
	evrdma_listener_get_cm_id(port->listener);
	evrdma_listener_get_stats(port->listener, &stats);
	MUST(stats.requests >= stats.pending + stats.accepted + stats.rejected + stats.moved,
		"listener %u has answered more requests than came", port->thing.number);
	thing_returned(&port->thing, LISTENER_GET, 0);
}

static void close_port(struct world *w)
{
	struct port *port = thing_pick(w, LISTENER, ANY_STATE);

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
