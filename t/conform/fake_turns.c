/* What there is in a turn of the loop, and whose turn it is when each has time for one task. */
#include "conform/fake.h"
#include "conform/fixture.h"

#include <rdma/rdma_cma.h>

#include "schedule/clock.h"
#include "util/clock.h"

enum { PATIENCE_MS = 20000, DRAIN_MS = 1000, PAIRS = 4, MANY_PAIRS = 40 };
enum { TRIPS = 100, LONG_US = 1000000, SHORT_US = 1000, SLOW_US = 100 };

static struct {
	unsigned ended, failed;
} told;

static void note_end(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	told.ended += event == EVRDMA_CONN_DISCONNECTED || event == EVRDMA_CONN_ERROR;
	told.failed += event == EVRDMA_CONN_ERROR;
	endpoint_close_if_down(endpoint, event);
}

static struct fixture *fixture_of_short_turns(void)
{
	struct evrdma_base_options options;
	struct fixture *f = fixture_new();

	evrdma_base_options_init(&options);
	options.turn_budget_us = 0;
	fixture_replace_base(f, &options);
	f->options.drain_timeout_ms = DRAIN_MS;
	f->on_event = note_end;
	told.ended = told.failed = 0;
	return f;
}

static void connect_pairs(struct fixture *f, struct endpoint **clients, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		f->client = f->server = NULL;
		fixture_connect_pair(f);
		clients[i] = f->client;
	}
}

static bool all_have_ended(struct fixture *f)
{
	return told.ended == 2 * PAIRS;
}

START_TEST(no_time_runs_for_a_disconnect_that_waits_its_turn)
{
	struct fixture *f = fixture_of_short_turns();
	struct endpoint *clients[PAIRS];
	unsigned i;

	connect_pairs(f, clients, PAIRS);
	for (i = 0; i < PAIRS; i++)
		ck_assert_int_eq(evrdma_conn_disconnect(clients[i]->conn), 0);
	clock_advance_us(2 * DRAIN_MS * EVR_US_PER_MS);
	fixture_run_until(f, all_have_ended, PATIENCE_MS);
	ck_assert_uint_eq(told.failed, 0);
	fixture_free(f);
}
END_TEST

static bool client_is_up(struct fixture *f)
{
	return f->client->connected;
}

/* In each round of the kinds of tasks it has one turn. */
START_TEST(a_connect_does_not_wait_behind_closes)
{
	struct fixture *f = fixture_of_short_turns();
	struct endpoint *clients[MANY_PAIRS];
	uint64_t before;
	unsigned i;

	connect_pairs(f, clients, MANY_PAIRS);
	before = fixture_stats(f).turns;
	for (i = 0; i < MANY_PAIRS; i++)
		evrdma_conn_close(clients[i]->conn);
	fixture_connect(f);
	fixture_run_until(f, client_is_up, PATIENCE_MS);
	ck_assert_uint_lt(fixture_stats(f).turns - before, 2 * MANY_PAIRS);
	fixture_free(f);
}
END_TEST

/* --- of a base that spins -------------------------------------------------------------------- */

static void send_back(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	if (!recv->err && (!endpoint->is_client || endpoint->received < TRIPS))
		ck_assert_int_eq(endpoint_send_buf(endpoint, recv->buf, recv->len), 0);
}

static bool all_trips_are_made(struct fixture *f)
{
	return f->client->received == TRIPS;
}

static struct fixture *spinning_pair(unsigned cq_budget, unsigned turn_budget_us)
{
	struct evrdma_base_options options;
	struct fixture *f = fixture_new();

	evrdma_base_options_init(&options);
	options.spin_us = LONG_US;
	options.cq_budget = cq_budget;
	options.turn_budget_us = turn_budget_us;
	fixture_replace_base(f, &options);
	f->on_recv = send_back;
	fixture_connect_pair(f);
	return f;
}

/* How many completions a turn had, on the average of some trips. */
static double told_in_a_turn(unsigned cq_budget, unsigned turn_budget_us)
{
	struct fixture *f = spinning_pair(cq_budget, turn_budget_us);
	struct evrdma_base_stats before = fixture_stats(f), after;

	endpoint_send(f->client, 1, 16);
	fixture_run_until(f, all_trips_are_made, PATIENCE_MS);
	after = fixture_stats(f);
	fixture_free(f);
	return (double)(after.completions - before.completions) /
	       (double)(after.turns - before.turns);
}

START_TEST(who_answers_within_the_turn_needs_no_other)
{
	ck_assert_double_gt(told_in_a_turn(256, LONG_US), 20);
}
END_TEST

START_TEST(no_turn_of_it_tells_more_than_its_budget)
{
	ck_assert_double_le(told_in_a_turn(1, LONG_US), 1);
	ck_assert_double_le(told_in_a_turn(10, LONG_US), 10);
	ck_assert_double_gt(told_in_a_turn(10, LONG_US), 5);
}
END_TEST

/* A message and the end of the one before it, of each side. */
START_TEST(nor_does_one_go_on_when_its_time_is_over)
{
	ck_assert_double_le(told_in_a_turn(256, 0), 4);
}
END_TEST

static uint64_t worst_us, began_us;

/* As the posts of one of many connections. */
static void take_long(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	clock_advance_us(SLOW_US);
	send_back(endpoint, recv);
}

/* Another event of the loop, at each of its turns. */
static void look_at_the_clock(evutil_socket_t unused, short what, void *arg)
{
	const struct timeval at_once = { 0, 0 };
	uint64_t now = evr_clock_now_us();

	if (began_us && now - began_us > worst_us)
		worst_us = now - began_us;
	began_us = now;
	event_add(arg, &at_once);
}

START_TEST(others_of_the_loop_wait_no_longer_for_it)
{
	const struct timeval at_once = { 0, 0 };
	struct fixture *f = spinning_pair(256, SHORT_US);
	struct event *other = evtimer_new(f->loop, look_at_the_clock, event_self_cbarg());

	f->on_recv = take_long;
	event_add(other, &at_once);
	worst_us = began_us = 0;
	endpoint_send(f->client, 1, 16);
	fixture_run_until(f, all_trips_are_made, PATIENCE_MS);
	event_free(other);
	ck_assert_uint_le(worst_us, SHORT_US + 4 * SLOW_US);
	fixture_free(f);
}
END_TEST

enum { IDLE_TURNS = 100 };

static bool one_has_come(struct fixture *f)
{
	return f->server->received == 1;
}

/* How often it looks into its CQs in a turn in which nothing comes: it spins, after a message. */
static double polls_in_an_idle_turn(struct fixture *f)
{
	struct evrdma_base_stats before, after;

	endpoint_send(f->client, 1, 16);
	fixture_run_until(f, one_has_come, PATIENCE_MS);
	fixture_run_turns(f, IDLE_TURNS);
	before = fixture_stats(f);
	fixture_run_turns(f, IDLE_TURNS);
	after = fixture_stats(f);
	ck_assert_uint_eq(after.completions, before.completions);
	return (double)(after.polls - before.polls) / (double)(after.turns - before.turns);
}

/* The library has it open before the fixture counts what is open. */
static void open_another_device(void)
{
	fake_device_add(fake_another_kind());
	rdma_free_devices(rdma_get_devices(NULL));
}

static void connect_on_another_device(struct fixture *f)
{
	const char *ip = fake_ip(fake_another_kind());

	evrdma_listener_close(f->listener);
	f->client = f->server = NULL;
	fixture_listen_on(f, ip);
	fixture_connect_to(f, ip, evrdma_listener_get_port(f->listener));
	fixture_run_until(f, fixture_pair_is_up, PATIENCE_MS);
}

/*
 * A CQ that stays with itself would let the other's completions wait. One of a device with small
 * ones is never alone: each connection has its own.
 */
START_TEST(no_CQ_spins_alone_while_there_is_one_of_another_device)
{
	struct fixture *f;

	open_another_device();
	f = spinning_pair(256, LONG_US);
	f->on_recv = NULL;
	if (testbed_has(TESTBED_DEEP_QUEUES))
		ck_assert_double_gt(polls_in_an_idle_turn(f), 20);
	connect_on_another_device(f);
	ck_assert_double_le(polls_in_an_idle_turn(f), 3);
	fixture_free(f);
}
END_TEST

static unsigned heard;

static void close_both(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	struct fixture *f = endpoint->fixture;

	send_back(endpoint, recv);
	if (++heard < TRIPS / 2)
		return;
	evrdma_conn_close(f->client->conn);
	evrdma_conn_close(f->server->conn);
}

static bool both_are_closed(struct fixture *f)
{
	return !f->client && !f->server;
}

START_TEST(who_is_closed_late_in_its_turn_hears_no_more)
{
	struct fixture *f = spinning_pair(256, LONG_US);

	f->on_recv = close_both;
	heard = 0;
	endpoint_send(f->client, 1, 16);
	fixture_run_until(f, both_are_closed, PATIENCE_MS);
	ck_assert_uint_eq(heard, TRIPS / 2);
	fixture_free(f);
}
END_TEST

TCase *turns_case(void)
{
	TCase *tc = tcase_create("turns");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, no_time_runs_for_a_disconnect_that_waits_its_turn);
	tcase_add_test(tc, a_connect_does_not_wait_behind_closes);
	tcase_add_test(tc, who_answers_within_the_turn_needs_no_other);
	tcase_add_test(tc, no_turn_of_it_tells_more_than_its_budget);
	tcase_add_test(tc, nor_does_one_go_on_when_its_time_is_over);
	tcase_add_test(tc, others_of_the_loop_wait_no_longer_for_it);
	tcase_add_test(tc, no_CQ_spins_alone_while_there_is_one_of_another_device);
	tcase_add_test(tc, who_is_closed_late_in_its_turn_hears_no_more);
	return tc;
}
