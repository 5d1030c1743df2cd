/* Connections that time ends, or does not, and those that are ended with work under way. */
#include "conform/sweep.h"

#include <errno.h>

enum { KEEPALIVE_MS = 10, IDLE_MS = 30, LONG_MS = 60 };

/* --- idle ------------------------------------------------------------------------------------ */

static void expect_both(evutil_socket_t fd, short what, void *arg)
{
	struct run *r = arg;

	r->through |= r->client && r->server && !r->finished;
	run_finish(r);
}

static void wait_long(struct run *r)
{
	run_after_ms(r, LONG_MS, expect_both);
}

static void peer_is_asked(struct run *r)
{
	pair_init(r);
	r->options.keepalive_ms = KEEPALIVE_MS;
	r->on_up = wait_long;
	pair_start(r);
}

static void expect_idle(struct run *r, struct evrdma_conn *conn, const struct evrdma_error *error)
{
	r->through = error->err == ETIMEDOUT && r->up == 2;
	run_fail(r, error->err);
}

static void do_nothing(struct run *r)
{
}

static void nobody_talks(struct run *r)
{
	pair_init(r);
	r->options.idle_timeout_ms = IDLE_MS;
	r->on_up = do_nothing;
	r->on_error = expect_idle;
	r->awaited = ETIMEDOUT;
	pair_start(r);
}

/* --- with work under way --------------------------------------------------------------------- */

static void carry_out_again(struct run *r)
{
	fake_work_by_hand(false);
}

static void close_client(evutil_socket_t fd, short what, void *arg)
{
	struct run *r = arg;

	if (r->client)
		evrdma_conn_close(r->client);
}

static void send_and_close(struct run *r)
{
	fake_work_by_hand(true);
	pair_send(r, r->client);
	run_after_ms(r, 5, close_client);
}

static void expect_cancelled(struct run *r, struct evrdma_conn *conn)
{
	if (conn == r->server)
		return;
	r->through = r->asked == 1 && r->over == 1;
	run_finish(r);
}

static void close_server(struct run *r, struct evrdma_conn *conn)
{
	evrdma_conn_close(conn);
}

static void connection_is_aborted(struct run *r)
{
	pair_init(r);
	r->on_up = send_and_close;
	r->on_down = close_server;
	r->on_closed = expect_cancelled;
	r->awaited = ECANCELED;
	r->after = carry_out_again;
	pair_start(r);
}

static void send_and_disconnect(struct run *r)
{
	fake_work_by_hand(true);
	pair_send(r, r->client);
	if (!r->finished)
		run_ok(r, evrdma_conn_disconnect(r->client));
}

/* The send is never over, and the disconnect does not wait for it for ever. */
static void drain_takes_too_long(struct run *r)
{
	pair_init(r);
	r->on_up = send_and_disconnect;
	r->on_error = expect_idle;
	r->awaited = ETIMEDOUT;
	r->after = carry_out_again;
	pair_start(r);
}

const struct scenario sweep_alive[] = {
	{ "peer is asked", peer_is_asked },
	{ "nobody talks", nobody_talks },
	{ "connection is aborted", connection_is_aborted },
	{ "drain takes too long", drain_takes_too_long },
	{ NULL, NULL },
};
