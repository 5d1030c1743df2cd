/*
 * What a message and its answer cost the end that answers, in polls, arms, wake-ups and turns. The
 * other end has a base, and so a completion queue, of its own, and sends the next when all is at
 * rest: what completes late is not taken along with what came meanwhile.
 */
#include "conform/fake.h"
#include "conform/fixture.h"

#include <stdio.h>
#include <string.h>

#include "schedule/clock.h"

enum { PATIENCE_MS = 60000, WARM_UP = 5, ROUNDS = 50, LEN = 64, MOST_WINDOW = 24 };

/* Those after the turns are of both ends. */
enum item { POLLS, ARMS, WAKE_UPS, TURNS, EVENT_READS, READINGS, ITEMS };

static const char *const names[ITEMS] = { "polls", "arms", "wake-ups", "turns",
	"reads of events by both ends", "readings of the clock by both ends" };

struct cost {
	unsigned of[ITEMS];
};

static struct cost so_far(struct fixture *f)
{
	struct evrdma_base_stats stats;

	evrdma_base_get_stats(f->base, &stats);
	return (struct cost){ .of = { [POLLS] = (unsigned)stats.polls,
				      [ARMS] = (unsigned)stats.arms,
				      [WAKE_UPS] = (unsigned)stats.cq_events,
				      [TURNS] = (unsigned)stats.turns,
				      [EVENT_READS] = fake_calls("ibv_get_cq_event"),
				      [READINGS] = clock_readings() } };
}

static void answer(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	if (!recv->err && !endpoint->is_client)
		ck_assert_int_eq(endpoint_send_buf(endpoint, recv->buf, recv->len), 0);
}

static void connect_from_other(struct fixture *f)
{
	struct sockaddr_in sin;

	fixture_add_other(f);
	fixture_listen(f);
	fixture_endpoint_new_on(f, f->other, true);
	fixture_address(&sin, testbed.ip, evrdma_listener_get_port(f->listener));
	ck_assert_int_eq(evrdma_conn_connect(f->client->conn, NULL, (struct sockaddr *)&sin), 0);
	fixture_run_until(f, fixture_pair_is_up, PATIENCE_MS);
}

static bool all_are_answered(struct fixture *f)
{
	return f->client->received == *(unsigned *)f->tag;
}

static void pass(struct fixture *f, unsigned rounds, unsigned window)
{
	struct evrdma_buf *buf = evrdma_pool_get(f->other_pool);
	unsigned i;

	memset(evrdma_buf_data(buf), 0, LEN);
	while (rounds--) {
		for (i = 0; i < window; i++)
			ck_assert_int_eq(endpoint_send_buf(f->client, buf, LEN), 0);
		*(unsigned *)f->tag += window;
		fixture_run_until(f, all_are_answered, PATIENCE_MS);
		fixture_run_a_little(f);
	}
	evrdma_buf_unref(buf);
}

/* To the nearest whole. */
static struct cost cost_of_a_round(unsigned window)
{
	struct fixture *f = fixture_new();
	struct cost before, cost;
	unsigned sent = 0;
	int i;

	f->tag = &sent;
	f->on_recv = answer;
	f->options.send_depth = f->options.recv_depth = 2 * MOST_WINDOW;
	connect_from_other(f);
	pass(f, WARM_UP, window);
	before = so_far(f);
	pass(f, ROUNDS, window);
	cost = so_far(f);
	fixture_close_other(f);
	fixture_free(f);
	for (i = 0; i < ITEMS; i++)
		cost.of[i] = (cost.of[i] - before.of[i] + ROUNDS / 2) / ROUNDS;
	return cost;
}

static void costs_at_most(unsigned window, const struct cost *most)
{
	struct cost cost = cost_of_a_round(window);
	int i;

	for (i = 0; i < ITEMS; i++)
		printf("# a window of %u: %u %s\n", window, cost.of[i], names[i]);
	fflush(stdout);
	for (i = 0; i < ITEMS; i++)
		ck_assert_msg(cost.of[i] <= most->of[i], "%u %s, not %u, with a window of %u",
			cost.of[i], names[i], most->of[i], window);
}

START_TEST(a_message_and_its_answer_cost_an_end_little)
{
	const struct cost most = { .of = { [POLLS] = 4, [ARMS] = 2, [WAKE_UPS] = 2, [TURNS] = 2,
					   [EVENT_READS] = 6, [READINGS] = 10 } };

	costs_at_most(1, &most);
}
END_TEST

START_TEST(a_full_window_costs_an_end_little)
{
	const struct cost most = { .of = { [POLLS] = 5, [ARMS] = 2, [WAKE_UPS] = 2, [TURNS] = 2,
					   [EVENT_READS] = 6, [READINGS] = 10 } };

	costs_at_most(MOST_WINDOW, &most);
}
END_TEST

/* --- completion queues ------------------------------------------------------------------------ */

enum { CROWD = 20, OF_A_QUEUE = 64, EACH = 4, SPARE_MS = 20 };

static bool crowd_is_up(struct fixture *f)
{
	return f->established == 2 + 2 * CROWD;
}

static bool one_pair_is_left(struct fixture *f)
{
	return f->live == 2;
}

static unsigned first_queues;

static bool first_queues_are_left(struct fixture *f)
{
	return fake_live(FAKE_CQ) == first_queues;
}

static struct evrdma_conn *crowd[CROWD];

START_TEST(completion_queues_that_a_crowd_needed_go_after_it)
{
	struct evrdma_base_options options;
	struct fixture *f = fixture_new();
	unsigned i;

	evrdma_base_options_init(&options);
	options.cq_entries = OF_A_QUEUE;
	options.device_idle_ms = SPARE_MS;
	fixture_replace_base(f, &options);
	f->options.send_depth = f->options.recv_depth = EACH;
	fixture_connect_pair(f);
	first_queues = fake_live(FAKE_CQ);
	for (i = 0; i < CROWD; i++)
		crowd[i] = fixture_connect(f)->conn;
	fixture_run_until(f, crowd_is_up, PATIENCE_MS);
	ck_assert_uint_gt(fake_live(FAKE_CQ), first_queues);
	for (i = 0; i < CROWD; i++)
		evrdma_conn_close(crowd[i]);
	fixture_run_until(f, one_pair_is_left, PATIENCE_MS);
	ck_assert_uint_gt(fake_live(FAKE_CQ), first_queues);
	fixture_run_until(f, first_queues_are_left, PATIENCE_MS);
	fixture_free(f);
}
END_TEST

TCase *cost_case(void)
{
	TCase *tc = tcase_create("cost");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_message_and_its_answer_cost_an_end_little);
	tcase_add_test(tc, a_full_window_costs_an_end_little);
	tcase_add_test(tc, completion_queues_that_a_crowd_needed_go_after_it);
	return tc;
}
