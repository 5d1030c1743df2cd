/* Connections that are idle, and how they end in order. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <errno.h>

#include "util/clock.h"

enum { MANY = 60, TICK_MS = 20, TICKS = 20 };

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static bool both_are_down(struct fixture *f)
{
	return fixture_client_is_down(f) && f->server->down;
}

/* --- idle ----------------------------------------------------------------------------------- */

START_TEST(an_idle_connection_ends_with_its_timeout)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->options.idle_timeout_ms = 150;
	fixture_connect_pair(f);
	fixture_run_until(f, fixture_client_is_down, 20000);
	/* Whoever is first to notice ends both. */
	ck_assert(f->client->error == ETIMEDOUT || f->server->error == ETIMEDOUT);
	ck_assert_uint_eq(f->client->received, 0);
	fixture_free(f);
}
END_TEST

struct ticks {
	struct event *timer;
	unsigned n;
	bool send, over;
	uint64_t last_us, longest_us; /* between two messages that came, or one and the end */
};

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct fixture *f = arg;
	struct ticks *ticks = f->tag;

	ticks->n++;
	if (ticks->send && f->client && !f->client->down)
		endpoint_send(f->client, 1, 16);
}

static bool ticks_are_over(struct fixture *f)
{
	return ((struct ticks *)f->tag)->n >= TICKS;
}

/* Lets some time go by, with a message now and then or without. */
static void pass_time(struct fixture *f, struct ticks *ticks)
{
	const struct timeval tick = { 0, TICK_MS * EVR_US_PER_MS };

	f->tag = ticks;
	ticks->timer = event_new(f->loop, -1, EV_PERSIST, on_tick, f);
	event_add(ticks->timer, &tick);
	fixture_run_until(f, ticks_are_over, 20000);
	event_free(ticks->timer);
}

static void measure(struct ticks *ticks)
{
	uint64_t now_us = testbed.now_us(), us = now_us - ticks->last_us;

	if (!ticks->over && us > ticks->longest_us)
		ticks->longest_us = us;
	ticks->last_us = now_us;
}

static void on_message(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	if (!recv->err)
		measure(endpoint->fixture->tag);
}

static void measure_to_the_end(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	struct ticks *ticks = endpoint->fixture->tag;

	if (!endpoint->down)
		return;
	measure(ticks);
	ticks->over = true;
}

/* Where the machine itself stands still for so long, there are none. */
START_TEST(messages_keep_a_connection_from_being_idle)
{
	struct ticks ticks = { .send = true };
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->on_recv = on_message;
	f->options.idle_timeout_ms = 10 * TICK_MS;
	fixture_connect_pair(f);
	ticks.last_us = testbed.now_us();
	f->on_event = measure_to_the_end;
	pass_time(f, &ticks);
	ck_assert_msg(!ticks.over || ticks.longest_us > 9 * TICK_MS * EVR_US_PER_MS,
		"idle after %u us", (unsigned)ticks.longest_us);
	f->on_event = keep_open;
	f->on_recv = NULL;
	fixture_free(f);
}
END_TEST

START_TEST(a_peer_that_is_there_answers_a_keepalive)
{
	struct fixture *f = fixture_new();
	struct ticks ticks = { 0 };

	f->on_event = keep_open;
	f->options.keepalive_ms = 4 * TICK_MS;
	fixture_connect_pair(f);
	pass_time(f, &ticks);
	ck_assert_msg(!f->client->down && !f->server->down, "%s", f->last_error);
	ck_assert_uint_eq(f->client->received + f->server->received, 0);
	/* A probe is nobody's send. */
	ck_assert_uint_eq(f->client->sends_ok + f->server->sends_ok, 0);
	fixture_free(f);
}
END_TEST

/* --- in order ------------------------------------------------------------------------------- */

START_TEST(a_disconnect_waits_for_what_was_sent)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->options.send_depth = 8;
	f->options.send_queue = MANY;
	f->options.recv_depth = MANY;
	fixture_connect_pair(f);
	endpoint_send(f->client, MANY, 64);
	ck_assert_uint_eq(f->client->sends_taken, MANY);
	ck_assert_int_eq(evrdma_conn_disconnect(f->client->conn), 0);
	ck_assert_uint_eq(evrdma_conn_send_space(f->client->conn), 0);
	fixture_run_until(f, both_are_down, 20000);
	ck_assert_int_eq(f->client->error, 0);
	ck_assert_uint_eq(f->client->sends_ok, MANY);
	ck_assert_uint_eq(f->server->received, MANY);
	fixture_free(f);
}
END_TEST

TCase *alive_case(void)
{
	TCase *tc = tcase_create("alive");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, an_idle_connection_ends_with_its_timeout);
	tcase_add_test(tc, messages_keep_a_connection_from_being_idle);
	tcase_add_test(tc, a_peer_that_is_there_answers_a_keepalive);
	tcase_add_test(tc, a_disconnect_waits_for_what_was_sent);
	return tc;
}
