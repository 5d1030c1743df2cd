/* Connections: how they are made, and how they end. */
#include "schedule/schedule.h"

#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

const char *const receiving_names[] = { "by pool", "by SRQ", "by hand" };

/* --- callbacks ------------------------------------------------------------------------------- */

static void now_closing(struct connection *connection)
{
	connection->object.state = CONN_CLOSING;
	connection->since_us = clock_now_us();
}

void connection_closing(struct connection *connection)
{
	if (connection->object.state != CONN_CLOSING)
		now_closing(connection);
}

/* Whom the handshake says that it was made with. */
static void learn_peer(struct connection *connection)
{
	struct schedule *s = connection->object.schedule;
	size_t len;
	const uint32_t *data = evrdma_conn_get_private_data(connection->conn, &len);
	struct connection *peer = NULL;

	if (data && len >= sizeof(*data))
		peer = (struct connection *)object_numbered(s, CONN, *data);
	if (!peer)
		return;
	connection->peer = peer;
	if (!peer->peer)
		peer->peer = connection;
}

static void on_connected(struct connection *connection)
{
	unsigned was = connection->object.state;

	MUST(was == CONN_CONNECTING || was == CONN_ACCEPTING, "conn %u is connected for nothing",
		connection->object.number);
	MUST(!connection->messages_received, "conn %u received before it was connected",
		connection->object.number);
	connection->object.state = CONN_UP;
	connection->was_up = true;
	connection->since_us = clock_now_us();
	learn_peer(connection);
	MUST(evrdma_conn_get_cm_id(connection->conn), "conn %u is connected and has no id",
		connection->object.number);
}

static void on_end(struct connection *connection, const struct evrdma_error *error)
{
	unsigned was = connection->object.state;

	MUST(!connection->ended, "the end of conn %u is told twice", connection->object.number);
	MUST(was != CONN_NEW && was != CONN_CLOSING, "conn %u ends in state %s",
		connection->object.number, cover_state_name(CONN, was));
	MUST(error || connection->was_up, "conn %u is disconnected and was never connected",
		connection->object.number);
	MUST(!error || error->err > 0, "conn %u ends with the error %d", connection->object.number,
		error ? error->err : 0);
	MUST(!error || error->err != ENOMEM || connection->object.schedule->troubled,
		"conn %u was short of something, and no call was made to fail",
		connection->object.number);
	connection->ended = true;
	connection->object.state = CONN_ENDED;
	connection->since_us = clock_now_us();
}

static void on_writable(struct connection *connection)
{
	MUST(connection->want_writable, "conn %u is told WRITABLE, and nobody was waiting",
		connection->object.number);
	connection->want_writable = false;
}

static void on_closed(struct connection *connection)
{
	unsigned number = connection->object.number;

	MUST(connection->object.state == CONN_CLOSING, "conn %u is closed, and nobody asked",
		number);
	MUST(TAILQ_EMPTY(&connection->tickets),
		"conn %u is closed, and %u pieces of work are not over", number,
		connection->under_way);
	MUST(!connection->posted_count, "conn %u is closed, and %u buffers did not come back",
		number, connection->posted_count);
	MUST(!evrdma_conn_get_cm_id(connection->conn), "conn %u is closed and has an id", number);
}

static void say_error(struct connection *connection, const struct evrdma_error *error)
{
	char text[EVRDMA_ERROR_TEXT_MAX];

	MUST(*evrdma_error_text(error, text, sizeof(text)) && *evrdma_step_text(error->step),
		"conn %u: an error without a text", connection->object.number);
	trace(connection->object.schedule, "  error %d in step %d, cm %d (%d), wc %d: %s",
		error->err, error->step, error->cm_event, error->cm_status, error->wc_status, text);
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
	struct connection *connection = arg;

	object_event(&connection->object, marks[event]);
	MUST(conn == connection->conn, "conn %u is told of another", connection->object.number);
	MUST(!error == (event != EVRDMA_CONN_ERROR), "conn %u: an event with a wrong error",
		connection->object.number);
	if (error)
		say_error(connection, error);
	switch (event) {
	case EVRDMA_CONN_CONNECTED:
		on_connected(connection);
		break;
	case EVRDMA_CONN_DISCONNECTED:
	case EVRDMA_CONN_ERROR:
		on_end(connection, error);
		break;
	case EVRDMA_CONN_WRITABLE:
		on_writable(connection);
		break;
	case EVRDMA_CONN_CLOSED:
		on_closed(connection);
		break;
	case EVRDMA_CONN_ADDR_CHANGED:
		break;
	}
	schedule_act(connection->object.schedule);
	if (event == EVRDMA_CONN_CLOSED)
		object_gone(&connection->object);
}

/* --- life ------------------------------------------------------------------------------------ */

static void choose_receiving(struct connection *connection, struct owner *owner)
{
	struct random *r = &connection->object.schedule->random;
	struct evrdma_conn_options *o = &connection->options;

	connection->receiving = (enum receiving)random_below(r, 3);
	if (connection->receiving == BY_SRQ && !owner->shared)
		connection->receiving = BY_POOL;
	o->recv_depth = 1 + random_below(r, 6);
	if (connection->receiving == BY_POOL)
		o->recv_pool = owner->store->pool;
	else if (connection->receiving == BY_SRQ)
		o->srq = owner_srq(owner);
}

static void choose_options(struct connection *connection, struct owner *owner)
{
	static const unsigned ms[] = { 1, 20, 1000 }, inline_bytes[] = { 0, 0, 32 },
			      attempt_ms[] = { 0, 1, 5, 1000 };
	struct random *r = &connection->object.schedule->random;
	struct evrdma_conn_options *o = &connection->options;

	evrdma_conn_options_init(o);
	choose_receiving(connection, owner);
	o->send_depth = 1 + random_below(r, 8);
	o->send_queue = random_once_in(r, 2) ? random_below(r, 6) : 0;
	o->low_water = random_below(r, o->send_depth + o->send_queue + 1);
	o->send_segs = 1 + random_below(r, 3);
	o->inline_bytes = RANDOM_OF(r, inline_bytes);
	o->connect_timeout_ms = 10 + (int)RANDOM_OF(r, ms);
	o->attempt_timeout_ms = (int)RANDOM_OF(r, attempt_ms);
	o->drain_timeout_ms = (int)RANDOM_OF(r, ms);
	if (random_once_in(r, 8))
		o->keepalive_ms = 100;
	if (random_once_in(r, 12))
		o->idle_timeout_ms = 50;
	o->domain = owner_choose_domain(owner);
	if (o->domain && o->domain == connection->object.schedule->shared)
		connection->shared = connection->object.schedule->shared_number;
	if (random_once_in(r, 3))
		o->rnr_retry_count = 1;
	o->private_data = &connection->object.number;
	o->private_data_len = sizeof(connection->object.number);
}

struct connection *connection_new(struct schedule *s, unsigned owner)
{
	struct connection *connection = object_new(s, CONN, owner, sizeof(*connection));

	TAILQ_INIT(&connection->tickets);
	connection->events_owner = owner;
	choose_options(connection, s->owners[owner]);
	s->in_call = true;
	connection->conn = evrdma_conn_new(s->owners[owner]->base, &connection->options);
	s->in_call = false;
	trace(s, "conn %u: new on base %u, %u + %u sends, %u receives %s",
		connection->object.number, s->owners[owner]->object.number,
		connection->options.send_depth, connection->options.send_queue,
		connection->options.recv_depth, receiving_names[connection->receiving]);
	if (!connection->conn) {
		owner_refused(s->owners[owner], errno);
		object_gone(&connection->object);
		return NULL;
	}
	evrdma_conn_setcb(connection->conn, connection_on_recv, on_event, connection);
	return connection;
}

void connection_close(struct connection *connection)
{
	object_call(&connection->object, CONN_CLOSE);
	evrdma_conn_close(connection->conn);
	object_returned(&connection->object, CONN_CLOSE, 0);
	connection_closing(connection);
}

/* --- what must not be left undone ------------------------------------------------------------- */

static bool is_late(const struct connection *connection, int ms, uint64_t more_us)
{
	uint64_t age_us = clock_now_us() - connection->since_us;

	return age_us > (uint64_t)ms * US_PER_MS + more_us + SLACK_US;
}

static void check_deadline(struct connection *connection, bool for_ever)
{
	const struct evrdma_conn_options *o = &connection->options;
	const char *state = cover_state_name(CONN, connection->object.state);
	bool late = false;

	if (connection->object.state == CONN_CONNECTING ||
		connection->object.state == CONN_ACCEPTING)
		late = is_late(connection, o->connect_timeout_ms, 0);
	else if (connection->object.state == CONN_LEAVING)
		late = is_late(connection, o->drain_timeout_ms, 0);
	else if (connection->object.state == CONN_CLOSING)
		late = is_late(connection, o->drain_timeout_ms, SETTLE_US);
	else
		return;
	MUST(!late, "conn %u is %s for too long", connection->object.number, state);
	MUST(!for_ever, "conn %u is %s, and nothing is pending", connection->object.number, state);
}

/* Nothing was made to go wrong, so what happens to one end is told to the other. */
static bool is_calm(const struct schedule *s)
{
	return machine.exact && !s->profile.holds && !s->profile.by_hand && !s->profile.injects &&
	       !s->troubled;
}

static void check_peer(struct connection *connection)
{
	struct connection *peer = connection->peer;
	bool left = peer && peer->peer == connection && peer->object.gone;

	MUST(!left || !is_calm(connection->object.schedule),
		"conn %u is up, and conn %u is long gone", connection->object.number,
		peer->object.number);
}

/* Of what completes nothing may come any more: that it is over has to be told. */
static void check_deaf(const struct connection *connection)
{
	MUST(!schedule_is_deaf(evrdma_conn_get_cm_id(connection->conn)),
		"conn %u is up, and hears nothing", connection->object.number);
}

static void check_writable(struct connection *connection)
{
	uint32_t capacity = connection->options.send_depth + connection->options.send_queue;
	uint32_t low = connection->options.low_water;

	if (!low)
		low = (connection->options.send_depth + 3) / 4;
	MUST(!connection->want_writable || evrdma_conn_send_space(connection->conn) < low,
		"conn %u: WRITABLE did not come, with room for %u of %u", connection->object.number,
		evrdma_conn_send_space(connection->conn), capacity);
}

static void check_reading(struct connection *connection)
{
	struct evrdma_traffic_stats stats;

	evrdma_conn_get_stats(connection->conn, &stats);
	MUST(connection->not_reading || !stats.receives_waiting,
		"conn %u reads, and %u receives wait", connection->object.number,
		(unsigned)stats.receives_waiting);
}

void connection_check_idle(struct connection *connection, bool for_ever)
{
	check_deadline(connection, for_ever);
	connection_check_told(connection);
	if (connection->object.state != CONN_UP)
		return;
	check_peer(connection);
	check_deaf(connection);
	check_writable(connection);
	check_reading(connection);
}

void connection_check_end(struct connection *connection)
{
	struct connection *peer = connection->peer;

	if (connection->memory)
		evrdma_buf_unref(connection->memory);
	/*
	 * A send that is told as done has arrived, if the other side was there to hear of it. With
	 * iWARP it has only left.
	 */
	if (!machine.exact && connection->object.schedule->is_iwarp)
		return;
	if (!connection->conn || !peer || peer->peer != connection ||
		connection->object.schedule->troubled ||
		connection->object.schedule->profile.injects || !peer->was_up || peer->did_not_read)
		return;
	MUST(peer->messages_received >= connection->messages_told,
		"conn %u: %u messages were sent, %u arrived", connection->object.number,
		connection->messages_told, peer->messages_received);
}

/* --- actions --------------------------------------------------------------------------------- */

static void new_conn(struct schedule *s)
{
	struct owner *owner = schedule_owner(s);

	if (owner_has_room(owner, CONN))
		connection_new(s, owner->object.owner);
}

/* Mostly to a listener that is there. */
static void choose_address(struct schedule *s, struct sockaddr_in *sin)
{
	const char *const odd[] = { machine.silent_ip, machine.no_rdma_ip, machine.no_route_ip,
		s->ip };
	struct port *port = object_pick(s, LISTENER, ANY_STATE);

	if (s->open_port && random_once_in(&s->random, 8))
		schedule_address(sin, s->ip, s->open_port);
	else if (s->stranger && random_once_in(&s->random, 4))
		schedule_address(sin, s->stranger_ip, s->stranger);
	else if (!port || random_once_in(&s->random, 12))
		schedule_address(sin, RANDOM_OF(&s->random, odd), 9);
	else
		schedule_address(sin, s->ip, port->number);
}

/* What the contract says of a second use. */
static int expected(const struct connection *connection)
{
	switch (connection->object.state) {
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

static void begun(struct connection *connection, unsigned mark, int ret, unsigned state)
{
	int want = expected(connection);

	object_returned(&connection->object, mark, ret);
	MUST(ret == want || (ret == -ENOMEM && schedule_excuses(connection->object.schedule, ret)),
		"conn %u: %s gives %d in place of %d", connection->object.number,
		cover_mark_name(CONN, mark), ret, want);
	if (ret)
		return;
	connection->object.state = state;
	connection->since_us = clock_now_us();
}

void connection_connect(struct connection *connection, uint16_t port)
{
	struct sockaddr_in sin;

	schedule_address(&sin, connection->object.schedule->ip, port);
	object_call(&connection->object, CONN_CONNECT);
	begun(connection, CONN_CONNECT,
		evrdma_conn_connect(connection->conn, NULL, (struct sockaddr *)&sin),
		CONN_CONNECTING);
}

static void connect_to(struct schedule *s)
{
	struct connection *connection =
		object_pick(s, CONN, random_once_in(&s->random, 4) ? ANY_STATE : IN(CONN_NEW));
	struct sockaddr_in sin;

	if (!connection)
		return;
	choose_address(s, &sin);
	object_call(&connection->object, CONN_CONNECT);
	begun(connection, CONN_CONNECT,
		evrdma_conn_connect(connection->conn, NULL, (struct sockaddr *)&sin),
		CONN_CONNECTING);
}

static void connect_hostname(struct schedule *s)
{
	struct connection *connection =
		object_pick(s, CONN, random_once_in(&s->random, 3) ? ANY_STATE : IN(CONN_NEW));
	struct port *port = object_pick(s, LISTENER, ANY_STATE);
	const char *host = random_once_in(&s->random, 6) ? "nobody.invalid" : s->ip;

	if (!connection)
		return;
	object_call(&connection->object, CONN_CONNECT_HOSTNAME);
	begun(connection, CONN_CONNECT_HOSTNAME,
		evrdma_conn_connect_hostname(
			connection->conn, s->names, AF_INET, host, port ? port->number : 9),
		CONN_CONNECTING);
}

static void connect_addrinfo(struct schedule *s)
{
	struct connection *connection =
		object_pick(s, CONN, random_once_in(&s->random, 3) ? ANY_STATE : IN(CONN_NEW));
	struct sockaddr_in first, second;
	struct rdma_addrinfo results[2] = {
		{ .ai_dst_addr = (struct sockaddr *)&first,
			.ai_dst_len = sizeof(first),
			.ai_next = &results[1] },
		{ .ai_dst_addr = (struct sockaddr *)&second, .ai_dst_len = sizeof(second) },
	};

	if (!connection)
		return;
	choose_address(s, &first);
	choose_address(s, &second);
	object_call(&connection->object, CONN_CONNECT_ADDRINFO);
	begun(connection, CONN_CONNECT_ADDRINFO,
		evrdma_conn_connect_addrinfo(connection->conn, results), CONN_CONNECTING);
}

/* Half of them by a connection that is there already, whatever its state. */
static void accept_request(struct schedule *s)
{
	struct ask *ask =
		object_pick(s, REQUEST, IN(REQUEST_OFFERED) | IN(REQUEST_KEPT) | IN(REQUEST_MOVED));
	struct connection *connection = NULL;

	if (!ask)
		return;
	if (random_once_in(&s->random, 4))
		connection = object_pick(s, CONN, ANY_STATE);
	else if (owner_has_room(s->owners[ask->object.owner], CONN))
		connection = connection_new(s, ask->object.owner);
	if (connection)
		connection_accept(connection, ask);
}

void connection_accept(struct connection *connection, struct ask *ask)
{
	int want = expected(connection), ret;

	if (!want && connection->object.owner != ask->object.owner)
		want = -EXDEV;
	if (!want && ask->port->for_dgrams)
		want = -EINVAL;
	cover(REQUEST, ask->object.state, REQUEST_ACCEPT);
	object_call(&connection->object, CONN_ACCEPT);
	ret = evrdma_conn_accept(connection->conn, ask->request);
	object_returned(&connection->object, CONN_ACCEPT, ret);
	MUST(ret == want || ask_may_end(ask, ret),
		"conn %u: accept gives %d in place of %d", connection->object.number, ret, want);
	if (ret)
		return;
	/* Who has nothing to receive into has the listener's queue. */
	if (ask->port->shares && !ask->has_moved && connection->receiving == BY_HAND &&
		!connection->posted_count)
		connection->receiving = BY_SRQ;
	ask_forget(ask);
	connection->object.state = CONN_ACCEPTING;
	connection->since_us = clock_now_us();
	learn_peer(connection);
}

static void disconnect(struct schedule *s)
{
	struct connection *connection =
		object_pick(s, CONN, random_once_in(&s->random, 3) ? ANY_STATE : IN(CONN_UP));
	bool up;
	int ret;

	if (!connection)
		return;
	up = connection->object.state == CONN_UP || connection->object.state == CONN_LEAVING;
	object_call(&connection->object, CONN_DISCONNECT);
	ret = evrdma_conn_disconnect(connection->conn);
	object_returned(&connection->object, CONN_DISCONNECT, ret);
	MUST(ret == (up ? 0 : -ENOTCONN), "conn %u: disconnect gives %d", connection->object.number,
		ret);
	if (connection->object.state != CONN_UP)
		return;
	connection->object.state = CONN_LEAVING;
	connection->since_us = clock_now_us();
}

static void migrate(struct schedule *s)
{
	struct connection *connection = object_pick(s, CONN, ANY_STATE);
	struct owner *owner = object_pick(s, BASE, ANY_STATE);
	bool has_id;
	int ret;

	if (!connection || !owner)
		return;
	has_id = evrdma_conn_get_cm_id(connection->conn) &&
		 connection->object.state != CONN_CLOSING && connection->object.state != CONN_ENDED;
	object_call(&connection->object, CONN_MIGRATE);
	ret = evrdma_conn_migrate(connection->conn, owner->base);
	object_returned(&connection->object, CONN_MIGRATE, ret);
	if (!has_id)
		MUST(ret == -ENOTCONN, "conn %u: migrate gives %d", connection->object.number, ret);
	else if (owner->object.state != BASE_OPEN)
		MUST(ret == -EPIPE, "conn %u: migrate gives %d", connection->object.number, ret);
	else
		MUST(!ret || schedule_excuses(s, ret), "conn %u: migrate gives %d",
			connection->object.number, ret);
	if (!ret)
		connection->events_owner = owner->object.owner;
}

static void get(struct schedule *s)
{
	struct connection *connection = object_pick(s, CONN, ANY_STATE);
	char text[EVRDMA_ADDR_TEXT_MAX];
	size_t len;

	if (!connection)
		return;
	object_call(&connection->object, CONN_GET);
	MUST(evrdma_conn_get_base(connection->conn) == s->owners[connection->object.owner]->base,
		"conn %u is on another base", connection->object.number);
	evrdma_conn_get_local_addr(connection->conn);
	MUST(*evrdma_addr_text(evrdma_conn_get_peer_addr(connection->conn), text, sizeof(text)),
		"conn %u: an address without a text", connection->object.number);
	evrdma_conn_get_private_data(connection->conn, &len);
	if (connection->object.state != CONN_UP)
		MUST(!evrdma_conn_send_space(connection->conn), "conn %u has room and is not up",
			connection->object.number);
	object_returned(&connection->object, CONN_GET, 0);
}

/* Seldom one that nothing has happened to. */
static void close_conn(struct schedule *s)
{
	struct connection *connection =
		object_pick(s, CONN, random_once_in(&s->random, 4) ? ANY_STATE : ~IN(CONN_NEW));

	if (connection)
		connection_close(connection);
}

const struct action conn_actions[] = {
	{ "new", 6, new_conn },
	{ "connect", 16, connect_to },
	{ "connect by name", 3, connect_hostname },
	{ "connect to results", 3, connect_addrinfo },
	{ "accept", 12, accept_request },
	{ "recv", 8, connection_recv },
	{ "disable", 2, connection_disable },
	{ "enable", 4, connection_enable },
	{ "send", 24, connection_send },
	{ "flood", 3, connection_flood },
	{ "submit", 12, connection_submit },
	{ "expose", 3, connection_expose },
	{ "disconnect", 3, disconnect },
	{ "migrate", 2, migrate },
	{ "get", 2, get },
	{ "close", 3, close_conn },
	{ 0 },
};
