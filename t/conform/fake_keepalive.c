/* Peers that answer no keepalive, and loops that are late to see the answer. */
#include "conform/fake.h"
#include "conform/fixture.h"

#include <errno.h>

#include "schedule/clock.h"
#include "util/clock.h"

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static bool one_is_down(struct fixture *f)
{
	return f->client->down || f->server->down;
}

enum { KEEPALIVE_MS = 300 };

static struct fixture *pair_with_keepalive(unsigned keepalive_ms)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->options.keepalive_ms = keepalive_ms;
	fixture_connect_pair(f);
	fake_work_by_hand(true);
	return f;
}

START_TEST(a_peer_that_answers_no_keepalive_is_gone)
{
	struct fixture *f = pair_with_keepalive(40);

	fixture_run_until(f, one_is_down, 10000);
	ck_assert(f->client->error == ETIMEDOUT || f->server->error == ETIMEDOUT);
	fake_work_by_hand(false);
	fixture_free(f);
}
END_TEST

static bool both_have_asked(struct fixture *f)
{
	return fake_calls("ibv_post_send") == 2;
}

/* So long nothing of the loop runs. */
static void hold_up(unsigned ms)
{
	clock_advance_us((uint64_t)ms * EVR_US_PER_MS);
}

static void expect_none_is_down(struct fixture *f)
{
	hold_up(KEEPALIVE_MS / 10);
	fixture_run_a_little(f);
	fixture_run_a_little(f);
	ck_assert(!f->client->down && !f->server->down);
	fake_work_by_hand(false);
	fixture_free(f);
}

START_TEST(an_answer_that_came_while_the_loop_was_held_up_counts)
{
	struct fixture *f = pair_with_keepalive(KEEPALIVE_MS);

	fixture_run_until(f, both_have_asked, 10000);
	ck_assert_uint_eq(fake_step(2), 2);
	hold_up(2 * KEEPALIVE_MS);
	fixture_run_a_little(f);
	expect_none_is_down(f);
}
END_TEST

START_TEST(who_is_asked_late_has_as_much_time_to_answer)
{
	struct fixture *f = pair_with_keepalive(KEEPALIVE_MS);

	hold_up(3 * KEEPALIVE_MS);
	fixture_run_until(f, both_have_asked, 10000);
	expect_none_is_down(f);
}
END_TEST

static bool writable;

static void note_writable(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	writable |= endpoint->is_client && event == EVRDMA_CONN_WRITABLE;
}

static bool is_writable(struct fixture *f)
{
	return writable;
}

START_TEST(a_question_is_one_of_the_sends_under_way_and_gives_its_place_back)
{
	struct fixture *f = fixture_new();
	struct evrdma_buf *buf;

	writable = false;
	f->on_event = note_writable;
	f->options.keepalive_ms = KEEPALIVE_MS;
	f->options.send_depth = 1;
	fixture_connect_pair(f);
	fake_work_by_hand(true);
	fixture_run_until(f, both_have_asked, 10000);
	buf = evrdma_pool_get(f->pool);
	ck_assert_int_eq(evrdma_conn_send(f->client->conn, buf, 1, NULL, NULL), -EAGAIN);
	fake_work_by_hand(false);
	fixture_run_until(f, is_writable, 10000);
	ck_assert_int_eq(evrdma_conn_send(f->client->conn, buf, 1, NULL, NULL), 0);
	evrdma_buf_unref(buf);
	fixture_free(f);
}
END_TEST

enum { DRAIN_MS = 2000 };

/* Its program says nothing, and its machine is asked no more: there is a time for that. */
START_TEST(who_has_said_goodbye_waits_for_the_answer_as_long_as_ever)
{
	struct fixture *f = fixture_new();
	uint64_t begin_us;

	f->on_event = keep_open;
	*(_i ? &f->options.idle_timeout_ms : &f->options.keepalive_ms) = DRAIN_MS / 10;
	f->options.drain_timeout_ms = DRAIN_MS;
	fixture_connect_pair(f);
	fake_hold(FAKE_DREQ);
	begin_us = evr_clock_now_us();
	ck_assert_int_eq(evrdma_conn_disconnect(f->client->conn), 0);
	fixture_run_until(f, fixture_client_is_down, 10000);
	ck_assert_int_eq(f->client->error, ETIMEDOUT);
	ck_assert_int_eq(f->client->step, EVRDMA_STEP_DISCONNECT);
	ck_assert_uint_ge(evr_clock_now_us() - begin_us, DRAIN_MS * EVR_US_PER_MS);
	fake_release(FAKE_DREQ);
	fixture_free(f);
}
END_TEST

TCase *keepalive_case(void)
{
	TCase *tc = tcase_create("keepalive");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_peer_that_answers_no_keepalive_is_gone);
	tcase_add_test(tc, an_answer_that_came_while_the_loop_was_held_up_counts);
	tcase_add_test(tc, who_is_asked_late_has_as_much_time_to_answer);
	tcase_add_test(tc, a_question_is_one_of_the_sends_under_way_and_gives_its_place_back);
	tcase_add_loop_test(
		tc, who_has_said_goodbye_waits_for_the_answer_as_long_as_ever, 0, 2);
	return tc;
}
