/*
 * Requests whose peers gave up before the server came to them: its loop does not run before their
 * deadlines are over. What each costs is one question and the end of its id, and no verb; who asks
 * behind them all gets the only queue pair.
 */
#include "conform/apart.h"
#include "conform/fake.h"
#include "conform/fixture.h"

#include <errno.h>

#include "schedule/clock.h"

enum {
	PATIENCE_MS = 20000,
	ROUNDS = 2,
	BATCHES = 10, /* a round: the kernel keeps 1024 for a listener */
	BATCH = 100,
	EACH = BATCHES * BATCH,
	QUESTIONS = 6,
	COST_US = 140, /* six calls, of 20 each, and some looks at the clock */
};

static unsigned stale;

static void note_stale(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	if (event == EVRDMA_CONN_ERROR && !endpoint->is_client) {
		ck_assert_int_eq(error->err, ECONNRESET);
		ck_assert_int_eq(error->step, EVRDMA_STEP_ACCEPT);
		stale++;
	}
	endpoint_close_if_down(endpoint, event);
}

static struct fixture *server_new(void)
{
	struct fixture *f = fixture_new();

	stale = 0;
	apart_start();
	f->on_event = note_stale;
	f->options.recv_pool = NULL;
	fixture_listen(f);
	return f;
}

/* Each gives up when its deadline is over. */
static void ask_and_give_up(struct fixture *f)
{
	unsigned i;

	for (i = 0; i < BATCH; i++)
		apart_connect(f);
	apart_run_until(f, fixture_none_live);
}

static bool a_round_is_told(struct fixture *f)
{
	return stale >= EACH && !f->live;
}

static void go_on(struct fixture *f)
{
	unsigned questions = fake_calls("INIT_QP_ATTR"), ids = fake_calls("DESTROY_ID");
	uint64_t begun_us = clock_now_us();

	stale = 0;
	fake_fail_nth(FAKE_VERBS, 1, EIO);
	fixture_run_until(f, a_round_is_told, PATIENCE_MS);
	ck_assert_ptr_null(fake_failed());
	fake_fail_nth(FAKE_VERBS, 0, 0);
	ck_assert_uint_eq(stale, EACH);
	ck_assert_uint_eq(fake_calls("INIT_QP_ATTR"), questions + EACH);
	ck_assert_uint_eq(fake_calls("DESTROY_ID"), ids + EACH);
	ck_assert_uint_le(clock_now_us() - begun_us, EACH * COST_US);
}

START_TEST(a_request_whose_peer_gave_up_costs_one_question_and_no_verb)
{
	struct fixture *f = server_new();
	int i, j;

	for (i = 0; i < ROUNDS; i++) {
		for (j = 0; j < BATCHES; j++)
			ask_and_give_up(f);
		go_on(f);
	}
	apart_end();
	fixture_free(f);
}
END_TEST

/* --- one behind them that waits -------------------------------------------------------------- */

static bool one_has_asked(struct fixture *f)
{
	return fake_calls("CONNECT") == BATCH + 1;
}

static bool one_is_answered(struct fixture *f)
{
	return fake_calls("ACCEPT") == 1;
}

static bool client_is_up(struct fixture *f)
{
	return f->client->connected;
}

static bool both_are_up(struct fixture *f)
{
	return f->established == 2;
}

static unsigned qps_made(void)
{
	return fake_calls("ibv_create_qp") + fake_calls("ibv_create_qp_ex");
}

START_TEST(who_asks_behind_those_that_gave_up_gets_the_only_queue_pair)
{
	struct fixture *f = server_new();
	unsigned qps;

	ask_and_give_up(f);
	apart_connect(f);
	apart_run_until(f, one_has_asked);
	qps = qps_made();
	fixture_run_until(f, one_is_answered, PATIENCE_MS);
	ck_assert_uint_eq(stale, BATCH);
	ck_assert_uint_eq(qps_made(), qps + 1);
	apart_run_until(f, client_is_up);
	fixture_run_until(f, both_are_up, PATIENCE_MS);
	apart_end();
	fixture_run_until(f, fixture_none_live, PATIENCE_MS);
	fixture_free(f);
}
END_TEST

/* --- one that gives up when it was asked for ------------------------------------------------- */

/* The kernel refuses the accept, and has nothing to say of the id from then on. */
static void give_up_at_the_accept(void)
{
	if (fake_calls("ACCEPT"))
		fake_fail_next("INIT_QP_ATTR", EINVAL);
}

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static struct fixture *refuse_the_accept(struct fixture *f)
{
	f->on_event = keep_open;
	fixture_listen(f);
	fake_fail_next("ACCEPT", EINVAL);
	fixture_connect(f);
	return f;
}

static bool server_is_down(struct fixture *f)
{
	return f->server && f->server->down;
}

START_TEST(who_gives_up_as_it_is_accepted_is_told_as_that)
{
	struct fixture *f = fixture_new();

	fake_each_call(give_up_at_the_accept);
	refuse_the_accept(f);
	fixture_run_until(f, server_is_down, PATIENCE_MS);
	fake_each_call(NULL);
	ck_assert_int_eq(f->server->error, ECONNRESET);
	ck_assert_int_eq(f->server->step, EVRDMA_STEP_ACCEPT);
	fixture_free(f);
}
END_TEST

/* It gives up at any of the server's questions, and each one after that is refused. */
static unsigned question, asked_before;

static void give_up_at_the_question(void)
{
	if (!fake_calls("CONNECT"))
		asked_before = fake_calls("INIT_QP_ATTR");
	else if (!fake_calls("ACCEPT") && fake_calls("INIT_QP_ATTR") - asked_before >= question)
		fake_fail_next("INIT_QP_ATTR", EINVAL);
}

static bool server_has_an_end(struct fixture *f)
{
	return f->server && (f->server->down || f->server->connected);
}

START_TEST(who_gives_up_while_it_is_served_is_told_as_that)
{
	struct fixture *f = fixture_new();

	question = (unsigned)_i;
	fake_each_call(give_up_at_the_question);
	f->on_event = keep_open;
	fixture_listen(f);
	fixture_connect(f);
	fixture_run_until(f, server_has_an_end, PATIENCE_MS);
	fake_each_call(NULL);
	fake_fail_later("INIT_QP_ATTR", 0, 0);
	if (f->server->down) {
		ck_assert_int_eq(f->server->error, ECONNRESET);
		ck_assert_int_eq(f->server->step, EVRDMA_STEP_ACCEPT);
	}
	ck_assert(_i || f->server->down);
	fixture_free(f);
}
END_TEST

START_TEST(an_accept_that_the_kernel_refuses_is_told_as_that)
{
	struct fixture *f = refuse_the_accept(fixture_new());

	fixture_run_until(f, server_is_down, PATIENCE_MS);
	ck_assert_int_eq(f->server->error, EINVAL);
	fixture_free(f);
}
END_TEST

TCase *stale_case(void)
{
	TCase *tc = tcase_create("stale");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, who_gives_up_as_it_is_accepted_is_told_as_that);
	tcase_add_loop_test(tc, who_gives_up_while_it_is_served_is_told_as_that, 0, QUESTIONS);
	tcase_add_test(tc, an_accept_that_the_kernel_refuses_is_told_as_that);
	/* An iWARP client that gives up waits for the driver's answer: the fake's gives none. */
	if (!testbed.is_iwarp) {
		tcase_add_test(tc, a_request_whose_peer_gave_up_costs_one_question_and_no_verb);
		tcase_add_test(tc, who_asks_behind_those_that_gave_up_gets_the_only_queue_pair);
	}
	return tc;
}
