/* Connections: who closes, who listens, who lends what, and what comes of a request. */
#include "conform/sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- the end --------------------------------------------------------------------------------- */

static void client_closes(struct run *r)
{
	pair_init(r);
	pair_start(r);
}

static void disconnect_client(struct run *r)
{
	run_ok(r, evrdma_conn_disconnect(r->client));
}

static void client_disconnects(struct run *r)
{
	pair_init(r);
	r->on_answer = disconnect_client;
	pair_start(r);
}

static void close_server(struct run *r)
{
	evrdma_conn_close(r->server);
}

static void server_closes(struct run *r)
{
	pair_init(r);
	r->on_answer = close_server;
	pair_start(r);
}

/* --- requests -------------------------------------------------------------------------------- */

static struct evrdma_request *ignored;

static void serve(struct evrdma_request *request, void *arg)
{
	struct run *r = arg;

	if (r->finished)
		evrdma_request_reject(request, NULL, 0);
	else
		pair_accept(r, request);
}

static void move_request(struct run *r, struct evrdma_request *request)
{
	if (!run_ok(r, evrdma_request_move(request, r->serves, serve, r)))
		evrdma_request_reject(request, NULL, 0);
}

/* From the base where it listens to the one where it is served. */
static void request_moves(struct run *r)
{
	pair_init(r);
	r->on_request = move_request;
	r->listens = run_add_base(r, NULL);
	if (r->listens)
		pair_start(r);
}

static void ignore(struct run *r, struct evrdma_request *request)
{
	ignored = request;
}

/* The library has rejected it meanwhile. */
static void let_go(struct run *r, struct evrdma_conn *conn, const struct evrdma_error *error)
{
	if (!ignored || error->err != ECONNREFUSED) {
		run_fail(r, error->err);
		return;
	}
	r->through = evrdma_request_move(ignored, r->base, serve, r) == -ETIMEDOUT &&
		     !evrdma_request_get_cm_id(ignored);
	evrdma_request_reject(ignored, NULL, 0);
	run_finish(r);
}

static void request_is_ignored(struct run *r)
{
	ignored = NULL;
	pair_init(r);
	r->listening.request_timeout_ms = 5;
	r->on_request = ignore;
	r->on_error = let_go;
	pair_start(r);
}

static void say_no(struct run *r, struct evrdma_request *request)
{
	size_t len;
	const char *data = evrdma_request_get_private_data(request, &len);

	r->up = data && !strcmp(data, "please") && evrdma_request_get_cm_id(request) &&
		evrdma_request_get_base(request) == r->base &&
		evrdma_request_get_peer_addr(request)->sa_family == AF_INET;
	run_ok(r, evrdma_request_reject(request, "no", 3));
}

static void hear_no(struct run *r, struct evrdma_conn *conn, const struct evrdma_error *error)
{
	size_t len;
	const char *data = evrdma_conn_get_private_data(conn, &len);

	if (error->err == ECONNREFUSED && r->up) {
		/* Where the CM could not say so, the end of the request did, without data. */
		r->through = data && !strcmp(data, "no");
		r->told |= !r->through;
		run_finish(r);
	} else {
		run_fail(r, error->err);
	}
}

static void request_is_rejected(struct run *r)
{
	pair_init(r);
	r->options.private_data = "please";
	r->options.private_data_len = 7;
	r->on_request = say_no;
	r->on_error = hear_no;
	pair_start(r);
}

/* --- the listener ---------------------------------------------------------------------------- */

static void enable(evutil_socket_t fd, short what, void *arg)
{
	struct run *r = arg;

	if (r->listener)
		evrdma_listener_enable(r->listener);
}

static void close_listener(struct run *r, struct evrdma_request *request)
{
	pair_accept(r, request);
	evrdma_listener_close(r->listener);
}

static void listener_is_disabled(struct run *r)
{
	pair_init(r);
	r->on_request = close_listener;
	pair_start(r);
	if (r->finished)
		return;
	evrdma_listener_disable(r->listener);
	run_after_ms(r, 5, enable);
}

static bool limited;

static void on_limited(struct run *r)
{
	limited = true;
}

static void connect_another(struct run *r)
{
	pair_connect(r);
}

static void hear_limit(struct run *r, struct evrdma_conn *conn, const struct evrdma_error *error)
{
	if (limited && conn == r->client && error->err == ECONNREFUSED) {
		r->through = true;
		run_finish(r);
	} else {
		run_fail(r, error->err);
	}
}

static void listener_is_full(struct run *r)
{
	limited = false;
	pair_init(r);
	r->listening.max_connections = 1;
	r->on_limited = on_limited;
	r->on_up = connect_another;
	r->on_error = hear_limit;
	pair_start(r);
}

/* --- what is shared -------------------------------------------------------------------------- */

static void accept_with_nothing(struct run *r, struct evrdma_request *request)
{
	r->options.recv_pool = NULL;
	pair_accept(r, request);
}

/* They go with the last one who uses them. */
static void give_up_all(struct run *r)
{
	evrdma_srq_free(r->listening.srq);
	evrdma_domain_free(r->listening.domain);
	pair_send(r, r->client);
}

/* The listener's buffers and domain are its connections'. */
static void listener_lends(struct run *r)
{
	struct evrdma_pool_options options;

	pair_init(r);
	evrdma_pool_options_init(&options);
	options.min_bufs = 8;
	r->listening.max_connections = 1;
	r->listening.max_pending = r->listening.max_pending_per_source = 1;
	r->on_request = accept_with_nothing;
	r->on_up = give_up_all;
	r->pool = run_have(r, evrdma_pool_new_with_options(r->base, SWEEP_LEN, &options));
	if (r->pool)
		r->listening.srq = run_have(r, evrdma_srq_new(r->base, r->pool, 8));
	if (r->listening.srq)
		r->listening.domain = run_have(r, evrdma_domain_new(r->base));
	if (r->listening.domain)
		pair_start(r);
}

static void on_low(struct evrdma_srq *srq, void *arg)
{
	struct run *r = arg;

	if (!r->finished)
		run_ok(r, evrdma_srq_set_limit(srq, 0, NULL, NULL));
	r->through = true;
	run_finish(r);
}

static void keep_buffer(struct run *r, struct evrdma_conn *conn, const struct evrdma_recv *recv)
{
	if (recv->err || r->held_count == 4)
		return;
	run_hold(r, evrdma_buf_ref(recv->buf));
	if (r->client && !r->finished && r->held_count < 3)
		pair_send(r, r->client);
}

/* Messages come, and their buffers are not released. */
static void shared_queue_runs_low(struct run *r)
{
	struct evrdma_pool *few;

	pair_init(r);
	r->on_recv = keep_buffer;
	few = run_have(r, evrdma_pool_new(r->base, SWEEP_LEN, 8));
	r->pool = run_have(r, evrdma_pool_new(r->base, SWEEP_LEN, 0));
	if (!r->finished)
		r->options.srq = run_have(r, evrdma_srq_new(r->base, few, 8));
	if (!r->finished && run_ok(r, evrdma_srq_set_limit(r->options.srq, 7, on_low, r)))
		pair_start(r);
	if (!r->finished)
		evrdma_pool_free(few);
}

/* --- the connection itself ------------------------------------------------------------------- */

static void move_client(struct run *r)
{
	char text[EVRDMA_ADDR_TEXT_MAX];
	size_t len;

	if (!run_ok(r, evrdma_conn_migrate(r->client, r->listens)))
		return;
	evrdma_addr_text(evrdma_conn_get_peer_addr(r->client), text, sizeof(text));
	if (evrdma_conn_get_base(r->client) != r->base || !evrdma_conn_get_cm_id(r->client) ||
		evrdma_conn_get_local_addr(r->client)->sa_family != AF_INET ||
		evrdma_conn_get_peer_addr(r->server)->sa_family != AF_INET ||
		!evrdma_conn_get_private_data(r->server, &len) ||
		evrdma_conn_send_space(r->client) != 4)
		run_fail(r, EBADMSG);
	else
		pair_send(r, r->client);
}

static void connection_moves(struct run *r)
{
	pair_init(r);
	r->options.private_data = "hello";
	r->options.private_data_len = 6;
	r->on_up = move_client;
	r->listens = run_add_base(r, NULL);
	r->on_request = move_request;
	if (r->listens)
		pair_start(r);
}

/* --- the user's own buffers ------------------------------------------------------------------ */

static char memory[4][SWEEP_LEN];

static void on_cleanup(void *data, size_t size, void *arg)
{
	((struct run *)arg)->closed++;
}

static struct evrdma_buf *own_buf(struct run *r, int i)
{
	return run_hold(
		r, run_made(r, evrdma_buf_new_reference(memory[i], SWEEP_LEN, 0, on_cleanup, r)));
}

static void post_own(struct run *r, struct evrdma_conn *conn, int i)
{
	struct evrdma_buf *buf = own_buf(r, i);

	if (buf)
		r->asked += run_ok(r, evrdma_conn_recv(conn, buf));
}

static void accept_into_own(struct run *r, struct evrdma_request *request)
{
	pair_accept(r, request);
	if (!r->finished)
		post_own(r, r->server, 0);
}

static void send_own(struct run *r, struct evrdma_conn *conn, struct evrdma_buf *buf)
{
	const struct evrdma_seg seg = { buf, 0, evrdma_buf_size(buf) };
	const struct evrdma_work work = { .op = EVRDMA_OP_SEND, .segs = &seg, .seg_count = 1 };

	r->asked += run_ok(r, evrdma_conn_submit(conn, &work, pair_on_work, r));
}

static void got_own(struct run *r, struct evrdma_conn *conn, const struct evrdma_recv *recv)
{
	r->over++;
	if (recv->err)
		run_note(r, recv->err);
	if (recv->err || r->finished)
		return;
	if (conn == r->server) {
		send_own(r, conn, recv->buf);
		return;
	}
	r->through = true;
	evrdma_conn_close(conn);
}

static void begin_own(struct run *r)
{
	struct evrdma_buf *buf = own_buf(r, 2);

	if (buf)
		send_own(r, r->client, buf);
}

static void buffers_are_the_users(struct run *r)
{
	pair_init(r);
	r->on_request = accept_into_own;
	r->on_recv = got_own;
	r->on_up = begin_own;
	pair_listen(r);
	pair_connect(r);
	if (!r->finished)
		post_own(r, r->client, 1);
}

const struct scenario sweep_conn[] = {
	{ "client closes", client_closes },
	{ "client disconnects", client_disconnects },
	{ "server closes", server_closes },
	{ "request moves", request_moves },
	{ "request is ignored", request_is_ignored },
	{ "request is rejected", request_is_rejected },
	{ "listener is disabled", listener_is_disabled },
	{ "listener is full", listener_is_full },
	{ "listener lends", listener_lends, FAKE_SRQS },
	{ "shared queue runs low", shared_queue_runs_low, FAKE_SRQS },
	{ "connection moves", connection_moves },
	{ "buffers are the user's", buffers_are_the_users },
	{ NULL, NULL },
};
