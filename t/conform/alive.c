/* Connections that are idle, and how they end in order. */
#include "conform/suite.h"
#include "conform/world.h"

#include <errno.h>

enum { MANY = 60, TICK_MS = 20, TICKS = 20 };

static void keep_open(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static bool both_are_down(struct world *w)
{
	return world_client_is_down(w) && w->server->down;
}

/* --- idle ----------------------------------------------------------------------------------- */

START_TEST(an_idle_connection_ends_with_its_timeout)
{
	struct world *w = world_new();

	w->on_event = keep_open;
	w->options.idle_timeout_ms = 150;
	world_connect_pair(w);
	world_run_until(w, world_client_is_down, 20000);
	/* Whoever is first to notice ends both. */
	ck_assert(w->client->error == ETIMEDOUT || w->server->error == ETIMEDOUT);
	ck_assert_uint_eq(w->client->received, 0);
	world_free(w);
}
END_TEST

struct ticks {
	struct event *timer;
	unsigned n;
	bool send;
};

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct world *w = arg;
	struct ticks *ticks = w->tag;

	ticks->n++;
	if (ticks->send && w->client && !w->client->down)
		side_send(w->client, 1, 16);
}

static bool ticks_are_over(struct world *w)
{
	return ((struct ticks *)w->tag)->n >= TICKS;
}

/* Lets some time go by, with a message now and then or without. */
static void pass_time(struct world *w, bool send)
{
	const struct timeval tick = { 0, TICK_MS * 1000 };
	struct ticks ticks = { .send = send };

	w->tag = &ticks;
	ticks.timer = event_new(w->loop, -1, EV_PERSIST, on_tick, w);
	event_add(ticks.timer, &tick);
	world_run_until(w, ticks_are_over, 20000);
	event_free(ticks.timer);
}

/* Ten times as long as a tick: a machine would have to stand still to fail it. */
START_TEST(messages_keep_a_connection_from_being_idle)
{
	struct world *w = world_new();

	w->on_event = keep_open;
	w->options.idle_timeout_ms = 10 * TICK_MS;
	world_connect_pair(w);
	pass_time(w, true);
	ck_assert(!w->client->down && !w->server->down);
	world_free(w);
}
END_TEST

START_TEST(a_peer_that_is_there_answers_a_keepalive)
{
	struct world *w = world_new();

	w->on_event = keep_open;
	w->options.keepalive_ms = 4 * TICK_MS;
	world_connect_pair(w);
	pass_time(w, false);
	ck_assert_msg(!w->client->down && !w->server->down, "%s", w->last_error);
	ck_assert_uint_eq(w->client->received + w->server->received, 0);
	/* A probe is nobody's send. */
	ck_assert_uint_eq(w->client->sends_ok + w->server->sends_ok, 0);
	world_free(w);
}
END_TEST

/* --- in order ------------------------------------------------------------------------------- */

START_TEST(a_disconnect_waits_for_what_was_sent)
{
	struct world *w = world_new();

	w->on_event = keep_open;
	w->options.send_depth = 8;
	w->options.send_queue = MANY;
	w->options.recv_depth = MANY;
	world_connect_pair(w);
	side_send(w->client, MANY, 64);
	ck_assert_uint_eq(w->client->sends_taken, MANY);
	ck_assert_int_eq(evrdma_conn_disconnect(w->client->conn), 0);
	ck_assert_uint_eq(evrdma_conn_send_space(w->client->conn), 0);
	world_run_until(w, both_are_down, 20000);
	ck_assert_int_eq(w->client->error, 0);
	ck_assert_uint_eq(w->client->sends_ok, MANY);
	ck_assert_uint_eq(w->server->received, MANY);
	world_free(w);
}
END_TEST

TCase *alive_case(void)
{
	TCase *tc = tcase_create("alive");

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, an_idle_connection_ends_with_its_timeout);
	tcase_add_test(tc, messages_keep_a_connection_from_being_idle);
	tcase_add_test(tc, a_peer_that_is_there_answers_a_keepalive);
	tcase_add_test(tc, a_disconnect_waits_for_what_was_sent);
	return tc;
}
