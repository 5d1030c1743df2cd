/* Whose turn it is when each turn of the loop has time for one task. */
#include "conform/fake.h"
#include "conform/fixture.h"

#include "schedule/clock.h"
#include "util/clock.h"

enum { PATIENCE_MS = 20000, DRAIN_MS = 1000, PAIRS = 4, MANY_PAIRS = 40 };

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

TCase *turns_case(void)
{
	TCase *tc = tcase_create("turns");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, no_time_runs_for_a_disconnect_that_waits_its_turn);
	tcase_add_test(tc, a_connect_does_not_wait_behind_closes);
	return tc;
}
