/*
 * What is true of every device, however it goes about it: where EVR_FAKE_PROFILE names one, these
 * are what its oddities would break.
 */
#include "conform/fake.h"
#include "conform/suite.h"
#include "conform/fixture.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

enum { ENTRIES = 64, PAIRS = 3, SHARED = 4, ROUNDS = 12, PATIENCE_MS = 20000 };

/* Until all of so many are up. */
enum { CONNECTS = 6, PASSES = 60 };

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

/* --- queues ---------------------------------------------------------------------------------- */

static void start_with_entries(struct fixture *f, unsigned entries)
{
	struct evrdma_base_options options;

	evrdma_base_options_init(&options);
	options.cq_entries = entries;
	fixture_replace_base(f, &options);
	f->options.send_depth = f->options.recv_depth = entries / 2;
}

static bool all_are_up(struct fixture *f)
{
	return f->established == 2 * PAIRS;
}

/* A device may have fewer entries than were asked for: 63 for 64. An overrun is a misuse. */
START_TEST(no_completion_queue_has_more_work_than_entries)
{
	struct fixture *f = fixture_new();
	struct endpoint *clients[PAIRS];
	unsigned i;

	start_with_entries(f, ENTRIES);
	fixture_listen(f);
	for (i = 0; i < PAIRS; i++)
		clients[i] = fixture_connect(f);
	fixture_run_until(f, all_are_up, PATIENCE_MS);
	fake_work_by_hand(true);
	for (i = 0; i < PAIRS; i++)
		endpoint_send(clients[i], ENTRIES / 2, 16);
	fixture_run_a_little(f);
	fake_step(PAIRS * ENTRIES);
	fake_work_by_hand(false);
	fixture_free(f);
	ck_assert_ptr_null(fake_problem());
}
END_TEST

/* Each uses one, whatever the device has of them. */
static unsigned vector_used(struct evrdma_base_options *options)
{
	unsigned before[2] = { fake_cqs_on(0), fake_cqs_on(1) };
	struct fixture *f = fixture_new();
	unsigned vector;

	if (options)
		fixture_replace_base(f, options);
	fixture_connect_pair(f);
	vector = fake_cqs_on(1) != before[1];
	ck_assert_uint_gt(fake_cqs_on(vector), before[vector]);
	ck_assert_uint_eq(fake_cqs_on(!vector), before[!vector]);
	if (evrdma_conn_get_cm_id(f->client->conn)->verbs->num_comp_vectors == 1)
		vector = 2;
	fixture_free(f);
	return vector;
}

START_TEST(bases_take_the_completion_vectors_in_turn)
{
	unsigned first = vector_used(NULL), second = vector_used(NULL);

	if (first == 2)
		return;
	ck_assert_uint_ne(first, second);
	ck_assert_uint_eq(vector_used(NULL), first);
}
END_TEST

START_TEST(a_base_uses_the_completion_vector_that_it_is_given)
{
	struct evrdma_base_options options;
	unsigned used;

	evrdma_base_options_init(&options);
	options.comp_vector = 4;
	used = vector_used(&options);
	ck_assert_uint_ne(used, 1);
	options.comp_vector = 5;
	used = vector_used(&options);
	ck_assert_uint_ne(used, 0);
}
END_TEST

/* --- inline data ----------------------------------------------------------------------------- */

enum { INLINE = 64 };

static unsigned char long_text[INLINE];

static bool came_or_ended(struct fixture *f)
{
	return fixture_client_is_down(f) || (f->server && f->server->received);
}

static bool is_up_or_down(struct fixture *f)
{
	return f->client->connected || f->client->down;
}

/* A device may give less than was asked for without a word. */
START_TEST(inline_data_has_the_room_that_was_asked_for_or_the_connection_says_no)
{
	const struct evrdma_work work = {
		.op = EVRDMA_OP_SEND, .inline_data = long_text, .inline_len = INLINE
	};
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->options.inline_bytes = INLINE;
	fixture_listen(f);
	fixture_connect(f);
	fixture_run_until(f, is_up_or_down, PATIENCE_MS);
	if (f->client->connected) {
		ck_assert_int_eq(evrdma_conn_submit(f->client->conn, &work, NULL, NULL), 0);
		fixture_run_until(f, came_or_ended, PATIENCE_MS);
		ck_assert(!f->client->down);
	} else {
		ck_assert_int_eq(f->client->step, EVRDMA_STEP_DEVICE);
	}
	fixture_free(f);
}
END_TEST

/* --- keepalive ------------------------------------------------------------------------------- */

enum { KEEPALIVE_MS = 20, PROBES = 6 };

static void on_time(evutil_socket_t fd, short what, void *arg)
{
	*(bool *)((struct fixture *)arg)->tag = true;
}

static bool time_is_over(struct fixture *f)
{
	return *(bool *)f->tag;
}

static bool both_have_heard(struct fixture *f)
{
	return f->client->received && f->server->received;
}

/* The probe carries nothing, whatever was in its place in the queue before. */
START_TEST(an_idle_connection_is_asked_and_goes_on_after_messages)
{
	const struct timeval tv = { 0, PROBES * KEEPALIVE_MS * 1000 };
	struct fixture *f = fixture_new();
	bool over = false;

	f->tag = &over;
	f->on_event = keep_open;
	f->options.keepalive_ms = KEEPALIVE_MS;
	f->options.send_depth = 1;
	fixture_connect_pair(f);
	endpoint_send(f->client, 1, 64);
	endpoint_send(f->server, 1, 64);
	fixture_run_until(f, both_have_heard, PATIENCE_MS);
	event_base_once(f->loop, -1, EV_TIMEOUT, on_time, f, &tv);
	fixture_run_until(f, time_is_over, PATIENCE_MS);
	ck_assert_msg(!f->client->down && !f->server->down, "%s", f->last_error);
	fixture_free(f);
}
END_TEST

static void send_one_more(struct endpoint *endpoint, const struct evrdma_error *error)
{
	if (endpoint->is_client && !error && evrdma_conn_send_space(endpoint->conn))
		endpoint_send(endpoint, 1, 64);
}

/* On iWARP only an answer to a question tells that the peer is there, and it needs room. */
START_TEST(a_connection_whose_queue_is_full_is_asked_nevertheless)
{
	const struct timeval tv = { 0, PROBES * KEEPALIVE_MS * 1000 };
	struct fixture *f = fixture_new();
	bool over = false;

	f->tag = &over;
	f->on_event = keep_open;
	f->on_sent = send_one_more;
	f->options.keepalive_ms = KEEPALIVE_MS;
	f->options.send_depth = 4;
	fixture_connect_pair(f);
	endpoint_send(f->client, 4, 64);
	event_base_once(f->loop, -1, EV_TIMEOUT, on_time, f, &tv);
	fixture_run_until(f, time_is_over, PATIENCE_MS);
	ck_assert_msg(!f->client->down && !f->server->down, "%s", f->last_error);
	f->on_sent = NULL;
	fixture_free(f);
}
END_TEST

/* --- shared receives ------------------------------------------------------------------------- */

static bool none_live(struct fixture *f)
{
	return !f->live;
}

static bool all_came(struct fixture *f)
{
	return f->server && f->server->received == SHARED;
}

/* What a connection had taken of them comes back, however it ended. */
START_TEST(a_shared_queue_is_as_long_after_many_connections_as_before)
{
	struct fixture *f = fixture_new();
	struct evrdma_pool *pool = evrdma_pool_new(f->base, 64, SHARED);
	struct evrdma_srq *srq = evrdma_srq_new(f->base, pool, SHARED);
	unsigned i;

	f->options.recv_pool = NULL;
	f->options.srq = srq;
	f->options.rnr_retry_count = 0;
	for (i = 0; i < ROUNDS; i++) {
		fixture_connect_pair(f);
		endpoint_send(f->client, i % 3, 16);
		fixture_run_a_little(f);
		evrdma_conn_close(i % 2 ? f->client->conn : f->server->conn);
		fixture_run_until(f, none_live, PATIENCE_MS);
	}
	f->on_event = keep_open;
	fixture_connect_pair(f);
	endpoint_send(f->client, SHARED, 16);
	fixture_run_until(f, all_came, PATIENCE_MS);
	evrdma_srq_free(srq);
	evrdma_pool_free(pool);
	fixture_free(f);
}
END_TEST

/* --- windows --------------------------------------------------------------------------------- */

enum { WINDOW = 7, ANSWERS = 200 };

static void answer(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	if (!recv->err)
		endpoint_send(endpoint, 1, 16);
}

static void connect_from_other(struct fixture *f)
{
	struct endpoint *endpoint = fixture_endpoint_new_on(f, f->other, true);
	struct sockaddr_in sin;

	fixture_address(&sin, testbed.ip, evrdma_listener_get_port(f->listener));
	ck_assert_int_eq(evrdma_conn_connect(endpoint->conn, NULL, (struct sockaddr *)&sin), 0);
}

static void accept_on_shared(struct fixture *f, struct evrdma_request *request)
{
	f->options.recv_pool = f->tag ? NULL : f->pool;
	f->options.srq = f->tag;
	endpoint_accept(fixture_endpoint_new(f, false), request);
}

static bool is_up_on_both(struct fixture *f)
{
	return f->established == 2;
}

static bool all_was_answered(struct fixture *f)
{
	return f->client->received >= ANSWERS;
}

/*
 * The server posts for one queue a turn, and the client's base, which the loop prefers, has all the
 * turns that it wants in between.
 */
static struct fixture *fixture_of_short_turns(void)
{
	struct evrdma_base_options options;
	struct fixture *f = fixture_new();

	ck_assert_int_eq(event_base_priority_init(f->loop, 2), 0);
	evrdma_base_options_init(&options);
	options.turn_budget_us = 0;
	fixture_replace_base(f, &options);
	options.data_priority = 0;
	f->other = evrdma_base_new(f->loop, &options);
	f->other_pool = evrdma_pool_new(f->other, 4096, 0);
	f->on_event = keep_open;
	f->on_recv = answer;
	f->options.recv_depth = WINDOW;
	f->on_request = accept_on_shared;
	return f;
}

static void ask_and_answer(struct fixture *f)
{
	fixture_listen(f);
	connect_from_other(f);
	fixture_run_until(f, is_up_on_both, PATIENCE_MS);
	endpoint_send(f->client, WINDOW, 16);
	fixture_run_until(f, all_was_answered, PATIENCE_MS);
	ck_assert_uint_eq(fake_not_ready(), 0);
}

/* Who has the answer may send the next message at once. */
START_TEST(no_answer_leaves_before_the_buffer_of_its_question_is_posted)
{
	struct fixture *f = fixture_of_short_turns();

	ask_and_answer(f);
	fixture_free(f);
}
END_TEST

START_TEST(nor_does_one_before_the_buffer_of_a_shared_queue_is)
{
	struct fixture *f = fixture_of_short_turns();
	struct evrdma_srq *srq = evrdma_srq_new(f->base, f->pool, WINDOW);

	f->tag = srq;
	ask_and_answer(f);
	evrdma_srq_free(srq);
	fixture_free(f);
}
END_TEST

static bool a_window_came(struct fixture *f)
{
	return f->server->received == 1 + WINDOW;
}

/* All of them wait when the library looks; some are posted again before it has told of all. */
START_TEST(a_queue_that_is_used_up_at_once_is_counted_once)
{
	struct evrdma_traffic_stats stats;
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->options.recv_depth = WINDOW;
	fixture_connect_pair(f);
	endpoint_send(f->client, 1, 16);
	fixture_run_a_little(f);
	endpoint_send(f->client, WINDOW, 16);
	fixture_run_until(f, a_window_came, PATIENCE_MS);
	evrdma_conn_get_stats(f->server->conn, &stats);
	ck_assert_uint_eq(stats.receive_queue_empty, 1);
	fixture_free(f);
}
END_TEST

/* --- reasons --------------------------------------------------------------------------------- */

static void accept_without_receives(struct fixture *f, struct evrdma_request *request)
{
	struct endpoint *endpoint;

	f->options.recv_pool = NULL;
	endpoint = fixture_endpoint_new(f, false);
	endpoint_accept(endpoint, request);
}

/* Some devices say of each failure that an access was refused, before its completion comes. */
START_TEST(the_reason_in_a_completion_is_told_though_an_event_came_first)
{
	struct evrdma_base_options options;
	struct fixture *f = fixture_new();

	ck_assert_int_eq(event_base_priority_init(f->loop, 2), 0);
	evrdma_base_options_init(&options);
	options.cm_priority = 0;
	options.data_priority = 1;
	fixture_replace_base(f, &options);
	f->on_event = keep_open;
	f->on_request = accept_without_receives;
	fixture_connect_pair(f);
	endpoint_send(f->client, 8, 64);
	fixture_run_a_little(f);
	fake_async_qp(evrdma_conn_get_cm_id(f->client->conn)->qp, IBV_EVENT_QP_ACCESS_ERR);
	ck_assert_uint_eq(fake_time_out_work(), 1);
	fixture_run_until(f, fixture_client_is_down, PATIENCE_MS);
	ck_assert_int_eq(f->client->error, ENOBUFS);
	fixture_free(f);
}
END_TEST

START_TEST(what_a_device_says_of_a_post_is_told_whatever_its_sign)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	fixture_connect_pair(f);
	fake_fail_next("ibv_post_send", ENOMEM);
	endpoint_send(f->client, 1, 64);
	fixture_run_until(f, fixture_client_is_down, PATIENCE_MS);
	ck_assert_int_eq(f->client->error, ENOMEM);
	fixture_free(f);
}
END_TEST

/* Where a queue pair is in error already a device may refuse what is posted: the CM says why. */
START_TEST(a_send_that_is_refused_because_the_peer_left_is_not_the_reason)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	fixture_connect_pair(f);
	evrdma_conn_close(f->server->conn);
	endpoint_send(f->client, 1, 64);
	fixture_run_until(f, fixture_client_is_down, PATIENCE_MS);
	ck_assert_msg(!f->client->error, "%s", f->last_error);
	fixture_free(f);
}
END_TEST

/* --- removal --------------------------------------------------------------------------------- */

/* Where it went without waiting nothing is flushed any more, and nothing under way. */
START_TEST(a_close_does_not_wait_for_the_work_of_a_device_that_is_gone)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->options.drain_timeout_ms = 10 * PATIENCE_MS;
	fixture_connect_pair(f);
	fake_work_by_hand(true);
	endpoint_send(f->client, 4, 64);
	fixture_run_a_little(f);
	testbed.remove_device();
	evrdma_conn_close(f->client->conn);
	evrdma_conn_close(f->server->conn);
	fixture_run_until(f, none_live, PATIENCE_MS);
	fake_work_by_hand(false);
	fixture_free(f);
}
END_TEST

/* Its end is told for ever, and here before what the CM says. */
START_TEST(the_channel_of_a_device_that_is_gone_keeps_nobody_from_hearing_of_it)
{
	struct evrdma_base_options options;
	struct fixture *f = fixture_new();

	ck_assert_int_eq(event_base_priority_init(f->loop, 2), 0);
	evrdma_base_options_init(&options);
	options.cm_priority = 1;
	options.data_priority = 0;
	fixture_replace_base(f, &options);
	f->on_event = keep_open;
	fixture_connect_pair(f);
	testbed.remove_device();
	fixture_run_until(f, fixture_client_is_down, PATIENCE_MS);
	ck_assert_int_eq(f->client->error, ENODEV);
	fixture_free(f);
}
END_TEST

static void count_removals(struct evrdma_base *base, enum evrdma_device_event event,
	const char *device, int port_num, void *arg)
{
	*(unsigned *)arg += event == EVRDMA_DEVICE_REMOVED;
}

/*
 * Some connections have heard of it, and others open the device once more before they do. Those
 * whose peers have not answered on iWARP hear nothing any more, and wait as long as the kernel.
 */
static void remove_after(int turns)
{
	struct evrdma_base_options options;
	struct fixture *f = fixture_new();
	unsigned removals = 0;
	int i;

	evrdma_base_options_init(&options);
	options.turn_budget_us = 0;
	fixture_replace_base(f, &options);
	evrdma_base_set_device_cb(f->base, count_removals, &removals);
	fixture_listen(f);
	for (i = 0; i < CONNECTS; i++)
		fixture_connect(f);
	fixture_run_turns(f, turns);
	testbed.remove_device();
	fixture_run_until(f, none_live, PATIENCE_MS);
	ck_assert_msg(removals <= 1, "after %d turns: told %u times", turns, removals);
	ck_assert_msg(!fake_waits(), "after %d turns: the loop was held", turns);
	fixture_free(f);
}

START_TEST(whenever_a_device_is_removed_that_is_told_once)
{
	int turns;

	for (turns = 0; turns < PASSES; turns++) {
		remove_after(turns);
		testbed.stop();
		testbed.start();
	}
}
END_TEST

TCase *device_case(void)
{
	TCase *tc = tcase_create("device");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, no_completion_queue_has_more_work_than_entries);
	tcase_add_test(tc, bases_take_the_completion_vectors_in_turn);
	tcase_add_test(tc, a_base_uses_the_completion_vector_that_it_is_given);
	tcase_add_test(tc, inline_data_has_the_room_that_was_asked_for_or_the_connection_says_no);
	tcase_add_test(tc, an_idle_connection_is_asked_and_goes_on_after_messages);
	tcase_add_test(tc, a_connection_whose_queue_is_full_is_asked_nevertheless);
	if (fake_testbed_kind != FAKE_IWARP)
		tcase_add_test(tc, the_reason_in_a_completion_is_told_though_an_event_came_first);
	tcase_add_test(tc, whenever_a_device_is_removed_that_is_told_once);
	tcase_add_test(tc, what_a_device_says_of_a_post_is_told_whatever_its_sign);
	tcase_add_test(tc, a_send_that_is_refused_because_the_peer_left_is_not_the_reason);
	tcase_add_test(tc, a_close_does_not_wait_for_the_work_of_a_device_that_is_gone);
	tcase_add_test(tc, the_channel_of_a_device_that_is_gone_keeps_nobody_from_hearing_of_it);
	tcase_add_test(tc, no_answer_leaves_before_the_buffer_of_its_question_is_posted);
	tcase_add_test(tc, a_queue_that_is_used_up_at_once_is_counted_once);
	if (!testbed_has(TESTBED_SRQS))
		return tc;
	tcase_add_test(tc, a_shared_queue_is_as_long_after_many_connections_as_before);
	tcase_add_test(tc, nor_does_one_before_the_buffer_of_a_shared_queue_is);
	return tc;
}
