/* What one turn of the loop tells at most, and what goes on whatever there is to tell. */
#include "conform/fake.h"
#include "conform/world.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

enum { PATIENCE_MS = 20000, LEN = 64, BUDGET = 4, MESSAGES = 48, PAIRS = 6, EACH = 6,
	ENOUGH = 3000000 };

static struct {
	unsigned in_turn, most_in_turn, all;
	unsigned before_end; /* messages */
	bool ended, timed_out, ran;
} told;

static void count(void)
{
	told.all++;
	if (++told.in_turn > told.most_in_turn)
		told.most_in_turn = told.in_turn;
}

static void count_recv(struct side *side, const struct evrdma_recv *recv)
{
	count();
	told.before_end += !told.ended && !recv->err;
}

static void count_sent(struct side *side, const struct evrdma_error *error)
{
	count();
}

static void note_end(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	told.ended |= event == EVRDMA_CONN_DISCONNECTED;
	told.timed_out |= event == EVRDMA_CONN_ERROR && error->err == ETIMEDOUT;
}

static struct world *world_with(const struct evrdma_base_options *options)
{
	struct world *w = world_new();

	memset(&told, 0, sizeof(told));
	ck_assert_int_eq(event_base_priority_init(w->loop, 3), 0);
	world_replace_base(w, options);
	w->on_recv = count_recv;
	w->on_sent = count_sent;
	w->on_event = note_end;
	return w;
}

static struct world *world_with_budget(unsigned cq_entries)
{
	struct evrdma_base_options options;

	evrdma_base_options_init(&options);
	options.cq_budget = BUDGET;
	options.cq_entries = cq_entries;
	return world_with(&options);
}

static bool has_ended(struct world *w)
{
	told.in_turn = 0;
	return told.ended;
}

static bool client_is_closed(struct world *w)
{
	told.in_turn = 0;
	return world_client_is_closed(w);
}

static bool all_is_told(struct world *w)
{
	told.in_turn = 0;
	return told.all == 2 * PAIRS * EACH;
}

START_TEST(the_budget_holds_when_a_connection_ends)
{
	struct world *w = world_with_budget(4096);

	w->options.send_depth = w->options.recv_depth = MESSAGES;
	world_connect_pair(w);
	fake_work_by_hand(true);
	side_send(w->client, MESSAGES, LEN);
	world_run_a_little(w);
	ck_assert_uint_eq(fake_step(MESSAGES), MESSAGES);
	fake_work_by_hand(false);
	ck_assert_int_eq(fake_inject(evrdma_conn_get_cm_id(w->server->conn),
				 RDMA_CM_EVENT_DISCONNECTED, 0),
		0);
	world_run_until(w, has_ended, PATIENCE_MS);
	ck_assert_uint_eq(told.before_end, MESSAGES);
	ck_assert_uint_le(told.most_in_turn, BUDGET);
	world_free(w);
}
END_TEST

START_TEST(the_budget_holds_for_work_that_is_cancelled)
{
	struct world *w = world_with_budget(4096);

	w->options.send_depth = 1;
	w->options.send_queue = MESSAGES;
	world_connect_pair(w);
	fake_work_by_hand(true);
	side_send(w->client, MESSAGES, LEN);
	world_run_a_little(w);
	evrdma_conn_close(w->client->conn);
	world_run_until(w, client_is_closed, PATIENCE_MS);
	fake_work_by_hand(false);
	ck_assert_uint_ge(told.all, MESSAGES);
	ck_assert_uint_le(told.most_in_turn, BUDGET);
	world_free(w);
}
END_TEST

START_TEST(the_budget_is_that_of_all_queues)
{
	struct world *w = world_with_budget(1);
	struct side *clients[PAIRS];
	unsigned i;

	w->options.send_depth = w->options.recv_depth = EACH;
	for (i = 0; i < PAIRS; i++) {
		w->client = w->server = NULL;
		world_connect_pair(w);
		clients[i] = w->client;
	}
	for (i = 0; i < PAIRS; i++)
		side_send(clients[i], EACH, LEN);
	world_run_until(w, all_is_told, PATIENCE_MS);
	ck_assert_uint_le(told.most_in_turn, BUDGET);
	world_free(w);
}
END_TEST

/* --- priorities ----------------------------------------------------------------------------- */

/* There is always something to tell, until all that waits has come, or never will. */
static void answer(struct side *side, const struct evrdma_recv *recv)
{
	bool done = told.ran && told.timed_out;

	if (!recv->err && !done && told.all++ < ENOUGH)
		side_send(side, 1, LEN);
}

static void note_run(struct evrdma_base *base, void *arg)
{
	told.ran = true;
}

static bool is_quiet(struct world *w)
{
	return (told.ran && told.timed_out) || told.all >= ENOUGH;
}

START_TEST(data_of_a_high_priority_starves_neither_deadlines_nor_calls)
{
	struct evrdma_base_options options;
	struct world *w;

	evrdma_base_options_init(&options);
	options.data_priority = 0;
	w = world_with(&options);
	w->on_recv = answer;
	w->options.send_depth = w->options.recv_depth = 8;
	world_connect_pair(w);
	side_send(w->client, 4, LEN);
	w->options.connect_timeout_ms = 100;
	fake_hold(FAKE_ADDR);
	world_connect(w);
	ck_assert_int_eq(evrdma_base_run_in_loop(w->base, note_run, NULL), 0);
	world_run_until(w, is_quiet, PATIENCE_MS);
	ck_assert(told.ran && told.timed_out && told.all < ENOUGH);
	fake_release(FAKE_ADDR);
	world_free(w);
}
END_TEST


TCase *budget_case(void)
{
	TCase *tc = tcase_create("budget");

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, the_budget_holds_when_a_connection_ends);
	tcase_add_test(tc, the_budget_holds_for_work_that_is_cancelled);
	tcase_add_test(tc, the_budget_is_that_of_all_queues);
	tcase_add_test(tc, data_of_a_high_priority_starves_neither_deadlines_nor_calls);
	return tc;
}
