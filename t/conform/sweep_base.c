/* Bases: how they end, what is called in their loop, and what they say of themselves. */
#include "conform/sweep.h"

#include <errno.h>
#include <string.h>

enum { POLL_MS = 1000, PATIENCE_MS = 50 };

/* --- the end --------------------------------------------------------------------------------- */

static void shut_down(struct run *r)
{
	struct evrdma_base *other = r->connects == r->base ? r->serves : r->connects;

	run_ok(r, evrdma_base_shutdown(r->base, PATIENCE_MS, run_on_base_closed, r));
	if (other != r->base)
		run_ok(r, evrdma_base_shutdown(other, PATIENCE_MS, run_on_base_closed, r));
}

/* Both ends are being disconnected: there is nothing to do but to close. */
static void close_it(struct run *r, struct evrdma_conn *conn)
{
	evrdma_conn_close(conn);
}

static void accept_with_own_pool(struct run *r, struct evrdma_request *request)
{
	r->options.recv_pool = r->pool;
	pair_accept(r, request);
}

/* Two, one of which looks at the list of devices. */
static void bases_are_shut_down(struct run *r)
{
	struct evrdma_base_options options;

	pair_init(r);
	evrdma_base_options_init(&options);
	options.device_poll_ms = POLL_MS;
	r->on_answer = shut_down;
	r->on_down = close_it;
	r->on_request = accept_with_own_pool;
	r->connects = run_add_base(r, &options);
	if (r->connects)
		r->options.recv_pool = run_have(r, evrdma_pool_new(r->connects, SWEEP_LEN, 0));
	if (r->options.recv_pool)
		pair_start(r);
}

/* A send is never over: the time is. */
static void carry_out_again(struct run *r)
{
	fake_work_by_hand(false);
}

static void send_and_shut_down(struct run *r)
{
	r->through = true;
	fake_work_by_hand(true);
	pair_send(r, r->client);
	if (!r->finished)
		shut_down(r);
}

static void note_error(struct run *r, struct evrdma_conn *conn, const struct evrdma_error *error)
{
	run_note(r, error->err);
	if (r->up < 2)
		run_finish(r);
	evrdma_conn_close(conn);
}

static void shutdown_takes_too_long(struct run *r)
{
	pair_init(r);
	r->options.drain_timeout_ms = 2 * PATIENCE_MS;
	r->awaited = ECANCELED;
	r->on_up = send_and_shut_down;
	r->on_down = close_it;
	r->on_error = note_error;
	r->after = carry_out_again;
	pair_start(r);
}

/* In the callback of a connection that is up, with all there is. */
static void close_all(struct run *r)
{
	r->through = true;
	pair_send(r, r->client);
	run_finish(r);
}

static void bases_are_closed(struct run *r)
{
	pair_init(r);
	r->on_up = close_all;
	pair_start(r);
}

/* --- calls in the loop ----------------------------------------------------------------------- */

static void start_in_loop(struct evrdma_base *base, void *arg)
{
	struct run *r = arg;

	r->over++;
	if (r->finished)
		return;
	pair_init(r);
	pair_start(r);
}

static void is_called_in_the_loop(struct run *r)
{
	r->asked += run_ok(r, evrdma_base_run_in_loop(r->base, start_in_loop, r));
}

/* --- what it says of itself ------------------------------------------------------------------ */

static void on_line(const char *text, void *arg)
{
	*(unsigned *)arg += strchr(text, ':') != NULL;
}

static bool counts_traffic(const struct run *r)
{
	struct evrdma_traffic_stats stats, all;

	evrdma_conn_get_stats(r->client, &stats);
	evrdma_base_get_traffic_stats(r->base, &all);
	return stats.sends == 1 && stats.messages_received == 1 && all.sends == 2;
}

static bool counts_objects(const struct run *r)
{
	struct evrdma_listener_stats listener;
	struct evrdma_base_stats base;
	struct evrdma_pool_stats pool;

	evrdma_base_get_stats(r->base, &base);
	evrdma_listener_get_stats(r->listener, &listener);
	evrdma_pool_get_stats(r->pool, &pool);
	return base.connections == 2 && listener.accepted == 1 && pool.bufs_out;
}

static bool knows_itself(const struct run *r)
{
	return evrdma_base_get_event_base(r->base) == r->loop &&
	       evrdma_listener_get_port(r->listener) == SWEEP_PORT &&
	       evrdma_listener_get_cm_id(r->listener) &&
	       evrdma_pool_buf_size(r->pool) == SWEEP_LEN &&
	       !strcmp(evrdma_version(), EVRDMA_VERSION) &&
	       evrdma_version_number() == EVRDMA_VERSION_NUMBER &&
	       strcmp(evrdma_step_text(EVRDMA_STEP_JOIN), evrdma_step_text(EVRDMA_STEP_NONE));
}

static void say_all(struct run *r)
{
	unsigned lines = 0;

	evrdma_base_dump(r->base, on_line, &lines);
	r->through = lines > 10 && counts_traffic(r) && counts_objects(r) && knows_itself(r);
	evrdma_conn_close(r->client);
}

/* Whatever fails, what is counted can be told at the end of it. */
static void say_at_the_end(
	struct run *r, struct evrdma_conn *conn, const struct evrdma_error *error)
{
	struct evrdma_traffic_stats stats;
	unsigned lines = 0;

	evrdma_conn_get_stats(conn, &stats);
	evrdma_base_dump(r->base, on_line, &lines);
	run_fail(r, error->err);
}

static void is_counted(struct run *r)
{
	pair_init(r);
	r->on_answer = say_all;
	r->on_error = say_at_the_end;
	pair_start(r);
}

const struct scenario sweep_base[] = {
	{ "bases are shut down", bases_are_shut_down },
	{ "shutdown takes too long", shutdown_takes_too_long },
	{ "bases are closed", bases_are_closed },
	{ "is called in the loop", is_called_in_the_loop },
	{ "is counted", is_counted },
	{ NULL, NULL },
};
