/* Connections: how they are made, and how they end. */
#include "schedule/schedule.h"

#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

/* The longest wait for acknowledgements that may still come, before a drain begins. */
enum { SETTLE_US = 60000 };

const char *const receiving_names[] = { "by pool", "by SRQ", "by hand" };

/* --- callbacks ------------------------------------------------------------------------------- */

static void now_closing(struct side *side)
{
	side->thing.state = CONN_CLOSING;
	side->since_us = clock_now_us();
}

void side_closing(struct side *side)
{
	if (side->thing.state != CONN_CLOSING)
		now_closing(side);
}

/* Whom the handshake says that it was made with. */
static void learn_peer(struct side *side)
{
	struct world *w = side->thing.world;
	size_t len;
	const uint32_t *data = evrdma_conn_get_private_data(side->conn, &len);
	struct side *peer = NULL;

	if (data && len >= sizeof(*data))
		peer = (struct side *)thing_numbered(w, CONN, *data);
	if (!peer)
		return;
	side->peer = peer;
	if (!peer->peer)
		peer->peer = side;
}

static void on_connected(struct side *side)
{
	unsigned was = side->thing.state;

	MUST(was == CONN_CONNECTING || was == CONN_ACCEPTING, "conn %u is connected for nothing",
		side->thing.number);
	MUST(!side->messages_received, "conn %u received before it was connected",
		side->thing.number);
	side->thing.state = CONN_UP;
	side->was_up = true;
	side->since_us = clock_now_us();
	learn_peer(side);
	MUST(evrdma_conn_get_cm_id(side->conn), "conn %u is connected and has no id",
		side->thing.number);
}

static void on_end(struct side *side, const struct evrdma_error *error)
{
	unsigned was = side->thing.state;

	MUST(!side->ended, "the end of conn %u is told twice", side->thing.number);
	MUST(was != CONN_NEW && was != CONN_CLOSING, "conn %u ends in state %s", side->thing.number,
		cover_state_name(CONN, was));
	MUST(error || side->was_up, "conn %u is disconnected and was never connected",
		side->thing.number);
	MUST(!error || error->err > 0, "conn %u ends with the error %d", side->thing.number,
		error ? error->err : 0);
	MUST(!error || error->err != ENOMEM || side->thing.world->troubled,
		"conn %u was short of something, and no call was made to fail", side->thing.number);
	side->ended = true;
	side->thing.state = CONN_ENDED;
	side->since_us = clock_now_us();
}

static void on_writable(struct side *side)
{
	MUST(side->want_writable, "conn %u is told WRITABLE, and nobody was waiting",
		side->thing.number);
	side->want_writable = false;
}

static void on_closed(struct side *side)
{
	unsigned number = side->thing.number;

	MUST(side->thing.state == CONN_CLOSING, "conn %u is closed, and nobody asked", number);
	MUST(TAILQ_EMPTY(&side->tickets), "conn %u is closed, and %u pieces of work are not over",
		number, side->under_way);
	MUST(!side->posted_count, "conn %u is closed, and %u buffers did not come back", number,
		side->posted_count);
	MUST(!evrdma_conn_get_cm_id(side->conn), "conn %u is closed and has an id", number);
}

static void say_error(struct side *side, const struct evrdma_error *error)
{
	char text[EVRDMA_ERROR_TEXT_MAX];

	MUST(*evrdma_error_text(error, text, sizeof(text)) && *evrdma_step_text(error->step),
		"conn %u: an error without a text", side->thing.number);
	trace(side->thing.world, "  error %d in step %d, cm %d (%d), wc %d: %s", error->err,
		error->step, error->cm_event, error->cm_status, error->wc_status, text);
}

static void on_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	static const unsigned marks[] = {
		[EVRDMA_CONN_CONNECTED] = CONN_CONNECTED,
		[EVRDMA_CONN_DISCONNECTED] = CONN_DISCONNECTED,
		[EVRDMA_CONN_ERROR] = CONN_ERROR,
		[EVRDMA_CONN_WRITABLE] = CONN_WRITABLE,
		[EVRDMA_CONN_CLOSED] = CONN_CLOSED,
		[EVRDMA_CONN_ADDR_CHANGED] = CONN_ADDR_CHANGED,
	};
	struct side *side = arg;

	thing_event(&side->thing, marks[event]);
	MUST(conn == side->conn, "conn %u is told of another", side->thing.number);
	MUST(!error == (event != EVRDMA_CONN_ERROR), "conn %u: an event with a wrong error",
		side->thing.number);
	if (error)
		say_error(side, error);
	switch (event) {
	case EVRDMA_CONN_CONNECTED:
		on_connected(side);
		break;
	case EVRDMA_CONN_DISCONNECTED:
	case EVRDMA_CONN_ERROR:
		on_end(side, error);
		break;
	case EVRDMA_CONN_WRITABLE:
		on_writable(side);
		break;
	case EVRDMA_CONN_CLOSED:
		on_closed(side);
		break;
	case EVRDMA_CONN_ADDR_CHANGED:
		break;
	}
	world_act(side->thing.world);
	if (event == EVRDMA_CONN_CLOSED)
		thing_gone(&side->thing);
}

/* --- life ------------------------------------------------------------------------------------ */

static void choose_receiving(struct side *side, struct home *home)
{
	struct random *r = &side->thing.world->random;
	struct evrdma_conn_options *o = &side->options;

	side->receiving = (enum receiving)random_below(r, 3);
	if (side->receiving == BY_SRQ && !home->shared)
		side->receiving = BY_POOL;
	o->recv_depth = 1 + random_below(r, 6);
	if (side->receiving == BY_POOL)
		o->recv_pool = home->store->pool;
	else if (side->receiving == BY_SRQ)
		o->srq = home_srq(home);
}

static void choose_options(struct side *side, struct home *home)
{
	static const unsigned ms[] = { 1, 20, 1000 }, inline_bytes[] = { 0, 0, 32 };
	struct random *r = &side->thing.world->random;
	struct evrdma_conn_options *o = &side->options;

	evrdma_conn_options_init(o);
	choose_receiving(side, home);
	o->send_depth = 1 + random_below(r, 8);
	o->send_queue = random_once_in(r, 2) ? random_below(r, 6) : 0;
	o->low_water = random_below(r, o->send_depth + o->send_queue + 1);
	o->send_segs = 1 + random_below(r, 3);
	o->inline_bytes = RANDOM_OF(r, inline_bytes);
	o->connect_timeout_ms = 10 + (int)RANDOM_OF(r, ms);
	o->drain_timeout_ms = (int)RANDOM_OF(r, ms);
	if (random_once_in(r, 8))
		o->keepalive_ms = 100;
	if (random_once_in(r, 12))
		o->idle_timeout_ms = 50;
	o->domain = home_choose_domain(home);
	if (o->domain && o->domain == side->thing.world->shared)
		side->shared = side->thing.world->shared_number;
	if (random_once_in(r, 3))
		o->rnr_retry_count = 1;
	o->private_data = &side->thing.number;
	o->private_data_len = sizeof(side->thing.number);
}

struct side *side_new(struct world *w, unsigned home)
{
	struct side *side = thing_new(w, CONN, home, sizeof(*side));

	TAILQ_INIT(&side->tickets);
	side->events_home = home;
	choose_options(side, w->homes[home]);
	w->in_call = true;
	side->conn = evrdma_conn_new(w->homes[home]->base, &side->options);
	w->in_call = false;
	trace(w, "conn %u: new on base %u, %u + %u sends, %u receives %s", side->thing.number,
		w->homes[home]->thing.number, side->options.send_depth, side->options.send_queue,
		side->options.recv_depth, receiving_names[side->receiving]);
	if (!side->conn) {
		home_refused(w->homes[home], errno);
		thing_gone(&side->thing);
		return NULL;
	}
	evrdma_conn_setcb(side->conn, side_on_recv, on_event, side);
	return side;
}

void side_close(struct side *side)
{
	thing_call(&side->thing, CONN_CLOSE);
	evrdma_conn_close(side->conn);
	thing_returned(&side->thing, CONN_CLOSE, 0);
	side_closing(side);
}

/* --- what must not be left undone ------------------------------------------------------------- */

static bool is_late(const struct side *side, int ms, uint64_t more_us)
{
	uint64_t age_us = clock_now_us() - side->since_us;

	return age_us > (uint64_t)ms * US_PER_MS + more_us + SLACK_US;
}

static void check_deadline(struct side *side, bool for_ever)
{
	const struct evrdma_conn_options *o = &side->options;
	const char *state = cover_state_name(CONN, side->thing.state);
	bool late = false;

	if (side->thing.state == CONN_CONNECTING || side->thing.state == CONN_ACCEPTING)
		late = is_late(side, o->connect_timeout_ms, 0);
	else if (side->thing.state == CONN_LEAVING)
		late = is_late(side, o->drain_timeout_ms, 0);
	else if (side->thing.state == CONN_CLOSING)
		late = is_late(side, o->drain_timeout_ms, SETTLE_US);
	else
		return;
	MUST(!late, "conn %u is %s for too long", side->thing.number, state);
	MUST(!for_ever, "conn %u is %s, and nothing is pending", side->thing.number, state);
}

/* All the world is well, so what happens to one end is told to the other. */
static bool is_calm(const struct world *w)
{
	return machine.exact && !w->profile.holds && !w->profile.by_hand && !w->profile.injects &&
	       !w->troubled;
}

static void check_peer(struct side *side)
{
	struct side *peer = side->peer;
	bool left = peer && peer->peer == side && peer->thing.gone;

	MUST(!left || !is_calm(side->thing.world), "conn %u is up, and conn %u is long gone",
		side->thing.number, peer->thing.number);
}

static void check_writable(struct side *side)
{
	uint32_t capacity = side->options.send_depth + side->options.send_queue;
	uint32_t low = side->options.low_water;

	if (!low)
		low = (side->options.send_depth + 3) / 4;
	MUST(!side->want_writable || evrdma_conn_send_space(side->conn) < low,
		"conn %u: WRITABLE did not come, with room for %u of %u", side->thing.number,
		evrdma_conn_send_space(side->conn), capacity);
}

static void check_reading(struct side *side)
{
	struct evrdma_traffic_stats stats;

	evrdma_conn_get_stats(side->conn, &stats);
	MUST(side->not_reading || !stats.receives_waiting,
		"conn %u reads, and %u receives wait", side->thing.number,
		(unsigned)stats.receives_waiting);
}

void side_check_idle(struct side *side, bool for_ever)
{
	check_deadline(side, for_ever);
	if (side->thing.state != CONN_UP)
		return;
	check_peer(side);
	check_writable(side);
	check_reading(side);
}

void side_check_end(struct side *side)
{
	struct side *peer = side->peer;

	if (side->memory)
		evrdma_buf_unref(side->memory);
	/*
	 * A send that is told as done has arrived, if the other side was there to hear of it. With
	 * iWARP it has only left.
	 */
	if (!machine.exact && side->thing.world->is_iwarp)
		return;
	if (!side->conn || !peer || peer->peer != side || side->thing.world->troubled ||
		side->thing.world->profile.injects || !peer->was_up || peer->did_not_read)
		return;
	MUST(peer->messages_received >= side->messages_told,
		"conn %u: %u messages were sent, %u arrived", side->thing.number,
		side->messages_told, peer->messages_received);
}

/* --- actions --------------------------------------------------------------------------------- */

static void new_conn(struct world *w)
{
	struct home *home = world_home(w);

	if (home_has_room(home, CONN))
		side_new(w, home->thing.home);
}

/* Mostly to a listener that is there. */
static void choose_address(struct world *w, struct sockaddr_in *sin)
{
	const char *const odd[] = { machine.silent_ip, machine.no_rdma_ip, machine.no_route_ip,
		w->ip };
	struct port *port = thing_pick(w, LISTENER, ANY_STATE);

	if (w->open_port && random_once_in(&w->random, 8))
		world_address(sin, w->ip, w->open_port);
	else if (w->stranger && random_once_in(&w->random, 4))
		world_address(sin, w->stranger_ip, w->stranger);
	else if (!port || random_once_in(&w->random, 12))
		world_address(sin, RANDOM_OF(&w->random, odd), 9);
	else
		world_address(sin, w->ip, port->number);
}

/* What the contract says of a second use. */
static int expected(const struct side *side)
{
	switch (side->thing.state) {
	case CONN_NEW:
		return 0;
	case CONN_UP:
	case CONN_LEAVING:
		return -EISCONN;
	case CONN_CLOSING:
		return -EPIPE;
	default:
		return -EALREADY;
	}
}

static void begun(struct side *side, unsigned mark, int ret, unsigned state)
{
	int want = expected(side);

	thing_returned(&side->thing, mark, ret);
	MUST(ret == want || (ret == -ENOMEM && world_excuses(side->thing.world, ret)),
		"conn %u: %s gives %d in place of %d", side->thing.number,
		cover_mark_name(CONN, mark), ret, want);
	if (ret)
		return;
	side->thing.state = state;
	side->since_us = clock_now_us();
}

void side_connect(struct side *side, uint16_t port)
{
	struct sockaddr_in sin;

	world_address(&sin, side->thing.world->ip, port);
	thing_call(&side->thing, CONN_CONNECT);
	begun(side, CONN_CONNECT, evrdma_conn_connect(side->conn, NULL, (struct sockaddr *)&sin),
		CONN_CONNECTING);
}

static void connect_to(struct world *w)
{
	struct side *side =
		thing_pick(w, CONN, random_once_in(&w->random, 4) ? ANY_STATE : IN(CONN_NEW));
	struct sockaddr_in sin;

	if (!side)
		return;
	choose_address(w, &sin);
	thing_call(&side->thing, CONN_CONNECT);
	begun(side, CONN_CONNECT, evrdma_conn_connect(side->conn, NULL, (struct sockaddr *)&sin),
		CONN_CONNECTING);
}

static void connect_hostname(struct world *w)
{
	struct side *side =
		thing_pick(w, CONN, random_once_in(&w->random, 3) ? ANY_STATE : IN(CONN_NEW));
	struct port *port = thing_pick(w, LISTENER, ANY_STATE);
	const char *host = random_once_in(&w->random, 6) ? "nobody.invalid" : w->ip;

	if (!side)
		return;
	thing_call(&side->thing, CONN_CONNECT_HOSTNAME);
	begun(side, CONN_CONNECT_HOSTNAME,
		evrdma_conn_connect_hostname(
			side->conn, w->names, AF_INET, host, port ? port->number : 9),
		CONN_CONNECTING);
}

static void connect_addrinfo(struct world *w)
{
	struct side *side =
		thing_pick(w, CONN, random_once_in(&w->random, 3) ? ANY_STATE : IN(CONN_NEW));
	struct sockaddr_in first, second;
	struct rdma_addrinfo results[2] = {
		{ .ai_dst_addr = (struct sockaddr *)&first,
			.ai_dst_len = sizeof(first),
			.ai_next = &results[1] },
		{ .ai_dst_addr = (struct sockaddr *)&second, .ai_dst_len = sizeof(second) },
	};

	if (!side)
		return;
	choose_address(w, &first);
	choose_address(w, &second);
	thing_call(&side->thing, CONN_CONNECT_ADDRINFO);
	begun(side, CONN_CONNECT_ADDRINFO, evrdma_conn_connect_addrinfo(side->conn, results),
		CONN_CONNECTING);
}

/* Half of them by a connection that is there already, whatever its state. */
static void accept_request(struct world *w)
{
	struct ask *ask =
		thing_pick(w, REQUEST, IN(REQUEST_OFFERED) | IN(REQUEST_KEPT) | IN(REQUEST_MOVED));
	struct side *side = NULL;

	if (!ask)
		return;
	if (random_once_in(&w->random, 4))
		side = thing_pick(w, CONN, ANY_STATE);
	else if (home_has_room(w->homes[ask->thing.home], CONN))
		side = side_new(w, ask->thing.home);
	if (side)
		side_accept(side, ask);
}

void side_accept(struct side *side, struct ask *ask)
{
	int want = expected(side), ret;

	if (!want && side->thing.home != ask->thing.home)
		want = -EXDEV;
	if (!want && ask->port->for_dgrams)
		want = -EINVAL;
	cover(REQUEST, ask->thing.state, REQUEST_ACCEPT);
	thing_call(&side->thing, CONN_ACCEPT);
	ret = evrdma_conn_accept(side->conn, ask->request);
	thing_returned(&side->thing, CONN_ACCEPT, ret);
	MUST(ret == want, "conn %u: accept gives %d in place of %d", side->thing.number, ret, want);
	if (ret)
		return;
	ask_forget(ask);
	side->thing.state = CONN_ACCEPTING;
	side->since_us = clock_now_us();
	learn_peer(side);
}

static void disconnect(struct world *w)
{
	struct side *side =
		thing_pick(w, CONN, random_once_in(&w->random, 3) ? ANY_STATE : IN(CONN_UP));
	bool up;
	int ret;

	if (!side)
		return;
	up = side->thing.state == CONN_UP || side->thing.state == CONN_LEAVING;
	thing_call(&side->thing, CONN_DISCONNECT);
	ret = evrdma_conn_disconnect(side->conn);
	thing_returned(&side->thing, CONN_DISCONNECT, ret);
	MUST(ret == (up ? 0 : -ENOTCONN), "conn %u: disconnect gives %d", side->thing.number, ret);
	if (side->thing.state != CONN_UP)
		return;
	side->thing.state = CONN_LEAVING;
	side->since_us = clock_now_us();
}

static void migrate(struct world *w)
{
	struct side *side = thing_pick(w, CONN, ANY_STATE);
	struct home *home = thing_pick(w, BASE, ANY_STATE);
	bool has_id;
	int ret;

	if (!side || !home)
		return;
	has_id = evrdma_conn_get_cm_id(side->conn) && side->thing.state != CONN_CLOSING &&
		 side->thing.state != CONN_ENDED;
	thing_call(&side->thing, CONN_MIGRATE);
	ret = evrdma_conn_migrate(side->conn, home->base);
	thing_returned(&side->thing, CONN_MIGRATE, ret);
	if (!has_id)
		MUST(ret == -ENOTCONN, "conn %u: migrate gives %d", side->thing.number, ret);
	else if (home->thing.state != BASE_OPEN)
		MUST(ret == -EPIPE, "conn %u: migrate gives %d", side->thing.number, ret);
	else
		MUST(!ret || world_excuses(w, ret), "conn %u: migrate gives %d", side->thing.number,
			ret);
	if (!ret)
		side->events_home = home->thing.home;
}

static void get(struct world *w)
{
	struct side *side = thing_pick(w, CONN, ANY_STATE);
	char text[EVRDMA_ADDR_TEXT_MAX];
	size_t len;

	if (!side)
		return;
	thing_call(&side->thing, CONN_GET);
	MUST(evrdma_conn_get_base(side->conn) == w->homes[side->thing.home]->base,
		"conn %u is on another base", side->thing.number);
	evrdma_conn_get_local_addr(side->conn);
	MUST(*evrdma_addr_text(evrdma_conn_get_peer_addr(side->conn), text, sizeof(text)),
		"conn %u: an address without a text", side->thing.number);
	evrdma_conn_get_private_data(side->conn, &len);
	if (side->thing.state != CONN_UP)
		MUST(!evrdma_conn_send_space(side->conn), "conn %u has room and is not up",
			side->thing.number);
	thing_returned(&side->thing, CONN_GET, 0);
}

/* Seldom one that nothing has happened to. */
static void close_conn(struct world *w)
{
	struct side *side =
		thing_pick(w, CONN, random_once_in(&w->random, 4) ? ANY_STATE : ~IN(CONN_NEW));

	if (side)
		side_close(side);
}

const struct action conn_actions[] = {
	{ "new", 6, new_conn },
	{ "connect", 16, connect_to },
	{ "connect by name", 3, connect_hostname },
	{ "connect to results", 3, connect_addrinfo },
	{ "accept", 12, accept_request },
	{ "recv", 8, side_recv },
	{ "disable", 2, side_disable },
	{ "enable", 4, side_enable },
	{ "send", 24, side_send },
	{ "flood", 3, side_flood },
	{ "submit", 12, side_submit },
	{ "expose", 3, side_expose },
	{ "disconnect", 3, disconnect },
	{ "migrate", 2, migrate },
	{ "get", 2, get },
	{ "close", 3, close_conn },
	{ 0 },
};
