/* A bufferevent to a listener of them: bytes go there and back, then one side is freed. */
#include "conform/sweep.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/dns.h>
#include <event2/util.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { SOME = 5000, MUCH = 40000, RING = 8192 };

/* The two ends of the run. */
static struct bufferevent *client, *server;
static size_t len;
static bool by_hand;
static struct evdns_base *names;
static struct evrdma_bev_options options;
static struct evrdma_conn_options conn_options;

static void free_one(struct bufferevent **bev)
{
	if (*bev)
		bufferevent_free(*bev);
	*bev = NULL;
}

static void free_both(struct run *r)
{
	free_one(&client);
	free_one(&server);
	if (names)
		evdns_base_free(names, 0);
	names = NULL;
}

static int error_of(struct bufferevent *bev)
{
	struct evrdma_error error;

	return evrdma_bufferevent_get_error(bev, &error) ? EVUTIL_SOCKET_ERROR() : error.err;
}

/* Who is told of an end, or that the other side broke it, may hear of it before that side does. */
static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct run *r = arg;
	int err = what & BEV_EVENT_ERROR ? error_of(bev) : 0;

	if (what & BEV_EVENT_TIMEOUT)
		err = ETIMEDOUT;
	if (!err && !(what & BEV_EVENT_EOF))
		return;
	if (err)
		run_note(r, err);
	free_one(bev == client ? &client : &server);
	if ((!err || err == ECONNRESET) && (client || server))
		return;
	free_one(&client);
	free_one(&server);
	run_finish(r);
}

static void echo(struct bufferevent *bev, void *arg)
{
	bufferevent_write_buffer(bev, bufferevent_get_input(bev));
}

/* The server sees the end. */
static void check(struct bufferevent *bev, void *arg)
{
	struct run *r = arg;
	struct evbuffer *input = bufferevent_get_input(bev);
	const unsigned char *bytes;
	size_t i;

	if (evbuffer_get_length(input) < len)
		return;
	r->through = evbuffer_get_length(input) == len;
	bytes = evbuffer_pullup(input, -1);
	for (i = 0; bytes && i < len; i++)
		r->through &= bytes[i] == (unsigned char)(i / 7);
	free_one(&client);
}

static void begin(struct run *r, struct bufferevent *bev, bufferevent_data_cb on_read)
{
	static const struct timeval patience = { 1, 0 };

	bufferevent_setcb(bev, on_read, NULL, on_event, r);
	bufferevent_set_timeouts(bev, &patience, &patience);
	bufferevent_enable(bev, EV_READ);
}

static void on_bufferevent(struct evrdma_listener *listener, struct bufferevent *bev,
	const struct sockaddr *peer, void *arg)
{
	struct run *r = arg;

	r->requests += !by_hand;
	if (r->finished) {
		bufferevent_free(bev);
		return;
	}
	server = bev;
	begin(r, bev, echo);
}

/* The other side of it ends the run. */
static void on_accepted(struct bufferevent *bev, const struct evrdma_error *error, void *arg)
{
	if (bev)
		on_bufferevent(NULL, bev, NULL, arg);
	else
		run_note(arg, error->err);
}

static void accept_by_hand(struct run *r, struct evrdma_request *request)
{
	int ret = evrdma_bufferevent_accept(request, &options, 0, on_accepted, r);

	if (!run_ok(r, ret))
		evrdma_request_reject(request, NULL, 0);
}

static void on_listener_event(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	struct run *r = arg;

	if (event == EVRDMA_LISTENER_CLOSED)
		r->closed++;
	else if (error)
		run_fail(r, error->err);
}

static void listen_for_them(struct run *r)
{
	if (by_hand) {
		r->on_request = accept_by_hand;
		pair_listen(r);
		return;
	}
	r->listener = run_made(r, evrdma_bufferevent_listen(r->base,
		run_address(sweep_ip(), SWEEP_PORT), NULL, &options, 0, on_bufferevent, r));
	if (r->listener)
		evrdma_listener_set_event_cb(r->listener, on_listener_event);
}

static void write_some(struct run *r)
{
	unsigned char bytes[MUCH];
	size_t i;

	for (i = 0; i < len; i++)
		bytes[i] = (unsigned char)(i / 7);
	if (bufferevent_write(client, bytes, len))
		run_fail(r, ENOMEM);
}

static struct bufferevent *connect_to_them(struct run *r)
{
	if (names)
		return evrdma_bufferevent_connect_hostname(r->base, names, AF_INET, sweep_ip(),
			SWEEP_PORT, &options, BEV_OPT_DEFER_CALLBACKS);
	return evrdma_bufferevent_connect(
		r->base, NULL, run_address(sweep_ip(), SWEEP_PORT), &options, 0);
}

static void start(struct run *r, size_t bytes)
{
	len = bytes;
	signal(SIGPIPE, SIG_IGN);
	pair_init(r);
	evrdma_conn_options_init(&conn_options);
	conn_options.send_depth = conn_options.recv_depth = 20;
	conn_options.connect_timeout_ms = 200;
	conn_options.drain_timeout_ms = 20;
	evrdma_bev_options_init(&options);
	options.conn = &conn_options;
	options.recv_bytes = options.send_bytes = RING;
	options.linger_timeout_ms = 100;
	r->after = free_both;
	listen_for_them(r);
	if (r->finished)
		return;
	r->connects_begun++;
	client = run_have(r, connect_to_them(r));
	if (!client)
		return;
	begin(r, client, check);
	write_some(r);
	if (!r->finished && evrdma_bufferevent_get_conn(client) == NULL)
		r->odd = ENOTCONN;
}

static void a_bufferevent_there_and_back(struct run *r)
{
	by_hand = false;
	start(r, SOME);
}

static void more_than_the_window_there_and_back(struct run *r)
{
	by_hand = false;
	start(r, MUCH);
}

static void a_bufferevent_accepted_by_hand_and_found_by_name(struct run *r)
{
	by_hand = true;
	names = run_have(r, evdns_base_new(r->loop, 0));
	if (names)
		start(r, SOME);
}

const struct scenario sweep_bufferevent[] = {
	{ "a bufferevent there and back", a_bufferevent_there_and_back },
	{ "more than the window there and back", more_than_the_window_there_and_back },
	{ "a bufferevent accepted by hand and found by name",
		a_bufferevent_accepted_by_hand_and_found_by_name },
	{ NULL, NULL },
};
