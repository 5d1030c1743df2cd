/*
 * Bufferevents over RDMA, on two bases of their own, of those that connect and those that accept:
 * of them the schedule knows no states, but that what arrives is what was sent, in order, that an
 * end comes after all of it, and that none is told of anything inside a call.
 */
#include "schedule/schedule.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

enum { MAX_SIDES = 6, MAX_FLOWS = 256, MUCH = 20000, RING = 8192, SHUTDOWN_MS = 20 };

enum { CONNECTS, ACCEPTS, BASES };

/* What one side sends to the other. */
struct flow {
	uint16_t port; /* of who connected */
	int from;      /* one of the bases */
	struct flow *back; /* the other way; NULL: not known yet */
	size_t due;    /* what arrives before an end does */
	bool cut;      /* nothing more will */
};

struct side {
	struct bufferevent *bev;
	size_t sent, received;
	bool reads;
	int base;
	struct flow *out; /* NULL: not known yet */
	uint16_t port;
};

static struct {
	struct schedule *schedule;
	struct evrdma_base *bases[BASES];
	bool leave[BASES]; /* shut down, or being closed */
	struct evrdma_listener *listener;
	unsigned accepts;
	struct side sides[MAX_SIDES];
	struct flow flows[MAX_FLOWS]; /* the latest */
	unsigned num_flows;
} streams;

static unsigned char byte_at(size_t i)
{
	return (unsigned char)(i * 13 + (i >> 8));
}

static void happens(const char *what)
{
	trace(streams.schedule, "stream: * %s", what);
	MUST(!streams.schedule->in_call, "a bufferevent: %s inside a call", what);
}

/* --- flows ----------------------------------------------------------------------------------- */

/* The way back, of which nobody knew yet where it goes. Ports are used again. */
static struct flow *flow_back(const struct flow *flow)
{
	unsigned i;

	for (i = streams.num_flows; i-- && streams.num_flows - i <= MAX_FLOWS;) {
		struct flow *other = &streams.flows[i % MAX_FLOWS];

		if (other->port == flow->port && other->from != flow->from && !other->back)
			return other;
	}
	return NULL;
}

static uint16_t port_of(const struct side *side)
{
	struct evrdma_conn *conn = evrdma_bufferevent_get_conn(side->bev);
	const struct sockaddr *addr = NULL;

	if (conn)
		addr = side->base == CONNECTS ? evrdma_conn_get_local_addr(conn)
					      : evrdma_conn_get_peer_addr(conn);
	return addr ? ((const struct sockaddr_in *)addr)->sin_port : 0;
}

static void flow_begin(struct side *side)
{
	side->port = port_of(side);
	if (!side->port)
		return;
	side->out = &streams.flows[streams.num_flows++ % MAX_FLOWS];
	*side->out = (struct flow){ .port = side->port, .from = side->base, .due = side->sent };
	side->out->back = flow_back(side->out);
	if (side->out->back)
		side->out->back->back = side->out;
}

/* What the output buffer has goes nowhere. */
static void flow_cut(struct side *side)
{
	size_t left = evbuffer_get_length(bufferevent_get_output(side->bev));
	struct flow *out = side->out;

	if (!out || out->cut || out->port != side->port)
		return;
	if (out->due > side->sent - left)
		out->due = side->sent - left;
	out->cut = true;
}

static size_t received_by(const struct side *side)
{
	return side->received + evbuffer_get_length(bufferevent_get_input(side->bev));
}

/* An end that the peer made, and no error: it comes after all that the peer has sent. */
static void flow_check(const struct side *side)
{
	const struct flow *in;

	if (streams.leave[side->base] || !side->out || side->out->port != side->port)
		return;
	in = side->out->back;
	MUST(!in || received_by(side) >= in->due, "a stream ends after %zu bytes of %zu",
		received_by(side), in->due);
}

/* --- sides ----------------------------------------------------------------------------------- */

static void side_free(struct side *side)
{
	struct bufferevent *bev = side->bev;

	if (bev)
		flow_cut(side);
	side->bev = NULL;
	if (bev)
		INSIDE(streams.schedule, bufferevent_free(bev));
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct side *side = arg;
	unsigned char bytes[512];
	int i, n;

	happens("READ");
	while ((n = bufferevent_read(bev, bytes, sizeof(bytes))) > 0)
		for (i = 0; i < n; i++, side->received++)
			MUST(bytes[i] == byte_at(side->received), "byte %zu of a stream is wrong",
				side->received);
	schedule_act(streams.schedule);
}

static void on_write(struct bufferevent *bev, void *arg)
{
	happens("WRITTEN");
	schedule_act(streams.schedule);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct side *side = arg;
	struct evrdma_error error;

	happens(what & BEV_EVENT_CONNECTED ? "CONNECTED" : what & BEV_EVENT_EOF ? "END" : "ERROR");
	if (what & BEV_EVENT_CONNECTED)
		flow_begin(side);
	if (what & BEV_EVENT_EOF)
		flow_check(side);
	if (!(what & BEV_EVENT_CONNECTED)) {
		INSIDE(streams.schedule, evrdma_bufferevent_get_error(bev, &error));
		side_free(side);
	}
	schedule_act(streams.schedule);
}

static struct side *free_side(void)
{
	unsigned i;

	for (i = 0; i < MAX_SIDES; i++)
		if (!streams.sides[i].bev)
			return &streams.sides[i];
	return NULL;
}

static void side_begin(struct bufferevent *bev, int base)
{
	struct side *side = free_side();

	if (!side) {
		INSIDE(streams.schedule, bufferevent_free(bev));
		return;
	}
	*side = (struct side){ .bev = bev, .reads = true, .base = base };
	if (base == ACCEPTS)
		flow_begin(side);
	bufferevent_setcb(bev, on_read, on_write, on_event, side);
	bufferevent_enable(bev, EV_READ);
}

static struct side *pick(struct schedule *s)
{
	struct side *side = &streams.sides[random_below(&s->random, MAX_SIDES)];

	return side->bev ? side : NULL;
}

/* --- what is made ---------------------------------------------------------------------------- */

static void choose(struct schedule *s, struct evrdma_bev_options *options,
	struct evrdma_conn_options *conn)
{
	INSIDE(s, evrdma_conn_options_init(conn));
	conn->send_depth = conn->recv_depth = 20;
	conn->connect_timeout_ms = 20;
	conn->drain_timeout_ms = 10;
	INSIDE(s, evrdma_bev_options_init(options));
	options->conn = conn;
	options->recv_bytes = options->send_bytes = RING;
	options->linger_timeout_ms = 20;
	options->flags = random_once_in(&s->random, 3) ? EVRDMA_BUFFEREVENT_OPT_COPY : 0;
}

static int choose_bev_options(struct schedule *s)
{
	static const int all[] = { 0, 0, BEV_OPT_DEFER_CALLBACKS };

	return RANDOM_OF(&s->random, all);
}

static void on_accepted(struct bufferevent *bev, const struct evrdma_error *error, void *arg)
{
	happens(bev ? "ACCEPTED" : "NOT ACCEPTED");
	MUST(streams.accepts--, "a bufferevent is accepted that nobody asked for");
	if (bev)
		side_begin(bev, ACCEPTS);
	schedule_act(streams.schedule);
}

static void on_bufferevent(struct evrdma_listener *listener, struct bufferevent *bev,
	const struct sockaddr *peer, void *arg)
{
	happens("ARRIVED");
	side_begin(bev, ACCEPTS);
	schedule_act(streams.schedule);
}

static void on_request(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct schedule *s = streams.schedule;
	struct evrdma_bev_options options;
	struct evrdma_conn_options conn;
	int ret;

	happens("REQUEST");
	choose(s, &options, &conn);
	streams.accepts++;
	INSIDE(s, ret = evrdma_bufferevent_accept(
			       request, &options, choose_bev_options(s), on_accepted, NULL));
	if (!ret)
		return;
	streams.accepts--;
	INSIDE(s, evrdma_request_reject(request, NULL, 0));
}

static void listen_for(struct schedule *s)
{
	struct evrdma_bev_options options;
	struct evrdma_conn_options conn;
	struct sockaddr_in sin;
	struct sockaddr *at = (struct sockaddr *)&sin;

	schedule_address(&sin, s->ip, 0);
	choose(s, &options, &conn);
	if (random_once_in(&s->random, 2))
		INSIDE(s, streams.listener = evrdma_listener_new(
				  streams.bases[ACCEPTS], at, NULL, on_request, NULL));
	else
		INSIDE(s, streams.listener = evrdma_bufferevent_listen(streams.bases[ACCEPTS], at,
				  NULL, &options, choose_bev_options(s), on_bufferevent, NULL));
	MUST(streams.listener || schedule_excuses(s, -errno), "no listener of streams: %d", errno);
}

static void open_base(struct schedule *s, int base)
{
	struct evrdma_base_options options;

	evrdma_base_options_init(&options);
	if (s->hands_in)
		options.flags |= EVRDMA_BASE_OPT_NO_ASYNC_EVENTS;
	INSIDE(s, streams.bases[base] = evrdma_base_new(s->loop, &options));
	streams.leave[base] = false;
	if (base == ACCEPTS && streams.bases[base])
		listen_for(s);
}

static void open_streams(struct schedule *s)
{
	int base;

	if (s->ending)
		return;
	signal(SIGPIPE, SIG_IGN);
	streams.schedule = s;
	for (base = 0; base < BASES; base++)
		if (!streams.bases[base])
			open_base(s, base);
}

static void connect_stream(struct schedule *s)
{
	struct evrdma_bev_options options;
	struct evrdma_conn_options conn;
	struct bufferevent *bev;
	struct sockaddr_in sin;
	uint16_t port;

	if (s->ending || !streams.listener || !streams.bases[CONNECTS] || streams.leave[CONNECTS] ||
		!free_side())
		return;
	choose(s, &options, &conn);
	port = random_once_in(&s->random, 8) ? 9 : evrdma_listener_get_port(streams.listener);
	schedule_address(&sin, s->ip, port);
	if (random_once_in(&s->random, 3))
		INSIDE(s, bev = evrdma_bufferevent_connect_hostname(streams.bases[CONNECTS],
				  s->names, AF_INET, s->ip, port, &options, choose_bev_options(s)));
	else
		INSIDE(s, bev = evrdma_bufferevent_connect(streams.bases[CONNECTS], NULL,
				  (struct sockaddr *)&sin, &options, choose_bev_options(s)));
	if (bev && random_once_in(&s->random, 2))
		bufferevent_set_max_single_write(bev, 1 + random_below(&s->random, MUCH));
	if (bev)
		side_begin(bev, CONNECTS);
}

/* --- what is done with it -------------------------------------------------------------------- */

static void write_stream(struct schedule *s)
{
	struct side *side = pick(s);
	unsigned char bytes[MUCH];
	size_t i, len = 1 + random_below(&s->random, random_once_in(&s->random, 3) ? MUCH : 100);

	if (!side)
		return;
	trace(s, "  stream %u of %d: write %zu", side->port, side->base, len);
	for (i = 0; i < len; i++)
		bytes[i] = byte_at(side->sent++);
	if (side->out && !side->out->cut && side->out->port == side->port &&
		!streams.leave[side->base])
		side->out->due = side->sent;
	INSIDE(s, bufferevent_write(side->bev, bytes, len));
}

static void hold_stream(struct schedule *s)
{
	struct side *side = pick(s);

	if (!side)
		return;
	side->reads = !side->reads;
	if (side->reads)
		INSIDE(s, bufferevent_enable(side->bev, EV_READ));
	else
		INSIDE(s, bufferevent_disable(side->bev, EV_READ));
}

static void look_at_stream(struct schedule *s)
{
	struct side *side = pick(s);

	if (side)
		INSIDE(s, evrdma_bufferevent_get_conn(side->bev));
}

static void shut_stream(struct schedule *s)
{
	struct side *side = pick(s);

	if (!side)
		return;
	trace(s, "  stream %u of %d: shut", side->port, side->base);
	flow_cut(side);
	INSIDE(s, shutdown(bufferevent_getfd(side->bev), SHUT_WR));
}

static void free_stream(struct schedule *s)
{
	struct side *side = pick(s);

	if (side)
		side_free(side);
}

static void close_listener(struct schedule *s)
{
	INSIDE(s, evrdma_listener_close(streams.listener));
	streams.listener = NULL;
}

static void on_closed(struct evrdma_base *base, void *arg)
{
	*(struct evrdma_base **)arg = NULL;
	if (!streams.bases[ACCEPTS])
		MUST(!streams.accepts, "%u accepts of bufferevents have no end", streams.accepts);
}

static void leave_streams(struct schedule *s)
{
	int base = (int)random_below(&s->random, BASES);

	if (!streams.bases[base] || streams.leave[base])
		return;
	trace(s, "  streams %d: shut down", base);
	streams.leave[base] = true;
	if (base == ACCEPTS)
		streams.listener = NULL;
	INSIDE(s, evrdma_base_shutdown(
			  streams.bases[base], SHUTDOWN_MS, on_closed, &streams.bases[base]));
}

const struct action stream_actions[] = {
	{ "open streams", 1, open_streams },
	{ "connect a stream", 6, connect_stream },
	{ "write to a stream", 8, write_stream },
	{ "hold a stream", 3, hold_stream },
	{ "look at a stream", 2, look_at_stream },
	{ "shut a stream", 1, shut_stream },
	{ "free a stream", 2, free_stream },
	{ "close the listener of streams", 1, close_listener },
	{ "shut a base of streams down", 1, leave_streams },
	{ 0 },
};

/* --- the end --------------------------------------------------------------------------------- */

void streams_close(struct schedule *s)
{
	unsigned i;
	int base;

	if (random_once_in(&s->random, 2))
		for (i = 0; i < MAX_SIDES; i++)
			side_free(&streams.sides[i]);
	streams.listener = NULL;
	for (base = 0; base < BASES; base++)
		if (streams.bases[base] && !streams.leave[base])
			INSIDE(s, evrdma_base_close(
					  streams.bases[base], on_closed, &streams.bases[base]));
	streams.leave[CONNECTS] = streams.leave[ACCEPTS] = true;
}

void streams_end(struct schedule *s)
{
	unsigned i, turns = 0;

	while (streams.bases[CONNECTS] || streams.bases[ACCEPTS]) {
		enum clock_turn turn = clock_turn(s->loop, true);

		MUST(turn != CLOCK_FOREVER && turn != CLOCK_EMPTY && turns++ < 100000,
			"streams are closed, and there is no end to it");
	}
	for (i = 0; i < MAX_SIDES; i++)
		side_free(&streams.sides[i]);
	memset(streams.leave, 0, sizeof(streams.leave));
	streams.num_flows = 0;
	schedule_settle(s);
}
