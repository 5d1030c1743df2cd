/* What there is in a turn of the loop, and whose turn it is when each has time for one task. */
#include "conform/fake.h"
#include "conform/fixture.h"

#include "schedule/clock.h"
#include "util/clock.h"

enum { PATIENCE_MS = 20000, DRAIN_MS = 1000, PAIRS = 4, MANY_PAIRS = 40, TRIPS = 100 };

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

static uint64_t turns_of(struct fixture *f)
{
	struct evrdma_base_stats stats;

	evrdma_base_get_stats(f->base, &stats);
	return stats.turns;
}

/* In each round of the kinds of tasks it has one turn. */
START_TEST(a_connect_does_not_wait_behind_closes)
{
	struct fixture *f = fixture_of_short_turns();
	struct endpoint *clients[MANY_PAIRS];
	uint64_t before;
	unsigned i;

	connect_pairs(f, clients, MANY_PAIRS);
	before = turns_of(f);
	for (i = 0; i < MANY_PAIRS; i++)
		evrdma_conn_close(clients[i]->conn);
	fixture_connect(f);
	fixture_run_until(f, client_is_up, PATIENCE_MS);
	ck_assert_uint_lt(turns_of(f) - before, 2 * MANY_PAIRS);
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

/* How many turns so many trips took, with so much of a turn to tell and to take. */
static uint64_t turns_of_trips(unsigned cq_budget, unsigned turn_budget_us)
{
	struct evrdma_base_options options;
	struct fixture *f = fixture_new();
	uint64_t turns;

	evrdma_base_options_init(&options);
	options.spin_us = (unsigned)EVR_US_PER_MS;
	options.cq_budget = cq_budget;
	options.turn_budget_us = turn_budget_us;
	fixture_replace_base(f, &options);
	f->on_recv = send_back;
	fixture_connect_pair(f);
	turns = turns_of(f);
	endpoint_send(f->client, 1, 16);
	fixture_run_until(f, all_trips_are_made, PATIENCE_MS);
	turns = turns_of(f) - turns;
	fixture_free(f);
	return turns;
}

START_TEST(who_answers_within_the_turn_needs_no_other)
{
	ck_assert_uint_lt(turns_of_trips(256, 1000000), TRIPS / 10);
}
END_TEST

START_TEST(no_turn_of_it_tells_more_than_its_budget)
{
	ck_assert_uint_ge(turns_of_trips(1, 1000000), 2 * TRIPS);
	ck_assert_uint_ge(turns_of_trips(10, 1000000), 2 * TRIPS / 10);
}
END_TEST

START_TEST(nor_does_one_go_on_when_its_time_is_over)
{
	ck_assert_uint_ge(turns_of_trips(256, 0), TRIPS);
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
	return tc;
}
