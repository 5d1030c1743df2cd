/* A listener and a connection to it: a message goes there and back, then the client closes. */
#include "conform/sweep.h"

#include <errno.h>
#include <string.h>

/* --- work ------------------------------------------------------------------------------------ */

static void over(struct run *r, const struct evrdma_error *error)
{
	r->over++;
	if (error)
		run_note(r, error->err);
}

void pair_on_work(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg)
{
	over(arg, error);
}

static void on_sent(struct evrdma_conn *conn, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	over(arg, error);
}

void pair_send(struct run *r, struct evrdma_conn *conn)
{
	struct evrdma_buf *buf = run_have(r, evrdma_pool_get(r->pool));

	if (!buf)
		return;
	memset(evrdma_buf_data(buf), 0x5a, SWEEP_LEN);
	r->asked += run_ok(r, evrdma_conn_send(conn, buf, SWEEP_LEN, on_sent, r));
	evrdma_buf_unref(buf);
}

/* --- a connection ---------------------------------------------------------------------------- */

static void on_closed(struct run *r, struct evrdma_conn *conn)
{
	r->closed++;
	if (conn == r->client)
		r->client = NULL;
	if (conn == r->server)
		r->server = NULL;
	if (r->on_closed && !r->finished)
		r->on_closed(r, conn);
}

static void on_up(struct run *r)
{
	if (++r->up < 2)
		return;
	if (r->on_up)
		r->on_up(r);
	else
		pair_send(r, r->client);
}

static void on_error(struct run *r, struct evrdma_conn *conn, const struct evrdma_error *error)
{
	char text[EVRDMA_ERROR_TEXT_MAX];

	evrdma_error_text(error, text, sizeof(text));
	if (r->on_error)
		r->on_error(r, conn, error);
	else
		run_fail(r, error->err);
}

static void on_down(struct run *r, struct evrdma_conn *conn)
{
	if (r->on_down)
		r->on_down(r, conn);
	else
		run_finish(r);
}

static void on_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	struct run *r = arg;

	if (event == EVRDMA_CONN_CLOSED)
		on_closed(r, conn);
	else if (event == EVRDMA_CONN_ERROR)
		on_error(r, conn, error);
	else if (r->finished)
		return;
	else if (event == EVRDMA_CONN_CONNECTED)
		on_up(r);
	else if (event == EVRDMA_CONN_DISCONNECTED)
		on_down(r, conn);
	else if (r->on_writable)
		r->on_writable(r);
}

static void on_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	struct run *r = arg;

	if (r->on_recv) {
		r->on_recv(r, conn, recv);
	} else if (r->finished || recv->err || recv->len != SWEEP_LEN) {
		return;
	} else if (conn == r->server) {
		pair_send(r, conn);
	} else {
		r->through = true;
		if (r->on_answer)
			r->on_answer(r);
		else
			evrdma_conn_close(conn);
	}
}

struct evrdma_conn *pair_new_conn(struct run *r, struct evrdma_base *base)
{
	struct evrdma_conn *conn = run_made(r, evrdma_conn_new(base, &r->options));

	if (conn)
		evrdma_conn_setcb(conn, on_recv, on_event, r);
	return conn;
}

/* --- the listener ---------------------------------------------------------------------------- */

void pair_accept(struct run *r, struct evrdma_request *request)
{
	r->server = pair_new_conn(r, r->serves);
	if (!r->server || !run_ok(r, evrdma_conn_accept(r->server, request)))
		evrdma_request_reject(request, NULL, 0);
}

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct run *r = arg;

	r->requests++;
	if (r->finished)
		evrdma_request_reject(request, NULL, 0);
	else if (r->on_request)
		r->on_request(r, request);
	else
		pair_accept(r, request);
}

static void on_listener_event(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	struct run *r = arg;

	if (!r->finished && r->on_listener && r->on_listener(r, event))
		return;
	if (event == EVRDMA_LISTENER_ERROR) {
		run_fail(r, error->err);
	} else if (event == EVRDMA_LISTENER_CLOSED) {
		r->closed++;
		r->listener = NULL;
	} else if (r->on_limited && !r->finished) {
		r->on_limited(r);
	}
}

void pair_init(struct run *r)
{
	r->ip = sweep_ip();
	r->listens = r->serves = r->connects = r->base;
	evrdma_conn_options_init(&r->options);
	r->options.recv_depth = r->options.send_depth = 4;
	r->options.connect_timeout_ms = 200;
	r->options.drain_timeout_ms = 20;
	evrdma_listener_options_init(&r->listening);
	r->listening.request_timeout_ms = 200;
}

void pair_listen(struct run *r)
{
	r->listener = run_made(r, evrdma_listener_new(r->listens, run_address(r->ip, SWEEP_PORT),
					  &r->listening, on_request, r));
	if (r->listener)
		evrdma_listener_set_event_cb(r->listener, on_listener_event);
}

static int connect_by_address(struct run *r, struct evrdma_conn *conn)
{
	return evrdma_conn_connect(conn, NULL, run_address(r->ip, SWEEP_PORT));
}

void pair_connect(struct run *r)
{
	if (!r->finished)
		r->client = pair_new_conn(r, r->connects);
	if (r->finished)
		return;
	r->connects_begun++;
	run_ok(r, r->connect ? r->connect(r, r->client) : connect_by_address(r, r->client));
}

void pair_start(struct run *r)
{
	if (!r->pool)
		r->pool = run_have(r, evrdma_pool_new(r->base, SWEEP_LEN, 0));
	if (!r->finished && !r->options.srq && !r->options.recv_pool)
		r->options.recv_pool = r->pool;
	if (!r->finished)
		pair_listen(r);
	if (!r->finished)
		pair_connect(r);
}
