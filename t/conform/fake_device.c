/*
 * What is true of every device, however it goes about it: where EVR_FAKE_PROFILE names one, these
 * are what its oddities would break.
 */
#include "conform/fake.h"
#include "conform/suite.h"
#include "conform/world.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

enum { ENTRIES = 64, PAIRS = 3, SHARED = 4, ROUNDS = 12, PATIENCE_MS = 10000 };

/* Until all of so many are up. */
enum { CONNECTS = 6, PASSES = 60 };

static void keep_open(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

/* --- queues ---------------------------------------------------------------------------------- */

static void start_with_entries(struct world *w, unsigned entries)
{
	struct evrdma_base_options options;

	evrdma_base_options_init(&options);
	options.cq_entries = entries;
	world_replace_base(w, &options);
	w->options.send_depth = w->options.recv_depth = entries / 2;
}

static bool all_are_up(struct world *w)
{
	return w->established == 2 * PAIRS;
}

/* A device may have fewer entries than were asked for: 63 for 64. An overrun is a misuse. */
START_TEST(no_completion_queue_has_more_work_than_entries)
{
	struct world *w = world_new();
	struct side *clients[PAIRS];
	unsigned i;

	start_with_entries(w, ENTRIES);
	world_listen(w);
	for (i = 0; i < PAIRS; i++)
		clients[i] = world_connect(w);
	world_run_until(w, all_are_up, PATIENCE_MS);
	fake_work_by_hand(true);
	for (i = 0; i < PAIRS; i++)
		side_send(clients[i], ENTRIES / 2, 16);
	world_run_a_little(w);
	fake_step(PAIRS * ENTRIES);
	fake_work_by_hand(false);
	world_free(w);
	ck_assert_ptr_null(fake_problem());
}
END_TEST

/* Each uses one, whatever the device has of them. */
static unsigned vector_used(struct evrdma_base_options *options)
{
	unsigned before[2] = { fake_cqs_on(0), fake_cqs_on(1) };
	struct world *w = world_new();
	unsigned vector;

	if (options)
		world_replace_base(w, options);
	world_connect_pair(w);
	vector = fake_cqs_on(1) != before[1];
	ck_assert_uint_gt(fake_cqs_on(vector), before[vector]);
	ck_assert_uint_eq(fake_cqs_on(!vector), before[!vector]);
	if (evrdma_conn_get_cm_id(w->client->conn)->verbs->num_comp_vectors == 1)
		vector = 2;
	world_free(w);
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

static bool came_or_ended(struct world *w)
{
	return world_client_is_down(w) || (w->server && w->server->received);
}

static bool is_up_or_down(struct world *w)
{
	return w->client->connected || w->client->down;
}

/* A device may give less than was asked for without a word. */
START_TEST(inline_data_has_the_room_that_was_asked_for_or_the_connection_says_no)
{
	const struct evrdma_work work = {
		.op = EVRDMA_OP_SEND, .inline_data = long_text, .inline_len = INLINE
	};
	struct world *w = world_new();

	w->on_event = keep_open;
	w->options.inline_bytes = INLINE;
	world_listen(w);
	world_connect(w);
	world_run_until(w, is_up_or_down, PATIENCE_MS);
	if (w->client->connected) {
		ck_assert_int_eq(evrdma_conn_submit(w->client->conn, &work, NULL, NULL), 0);
		world_run_until(w, came_or_ended, PATIENCE_MS);
		ck_assert(!w->client->down);
	} else {
		ck_assert_int_eq(w->client->step, EVRDMA_STEP_DEVICE);
	}
	world_free(w);
}
END_TEST

/* --- keepalive ------------------------------------------------------------------------------- */

enum { KEEPALIVE_MS = 20, PROBES = 6 };

static void on_time(evutil_socket_t fd, short what, void *arg)
{
	*(bool *)((struct world *)arg)->tag = true;
}

static bool time_is_over(struct world *w)
{
	return *(bool *)w->tag;
}

static bool both_have_heard(struct world *w)
{
	return w->client->received && w->server->received;
}

/* The probe carries nothing, whatever was in its place in the queue before. */
START_TEST(an_idle_connection_is_asked_and_goes_on_after_messages)
{
	const struct timeval tv = { 0, PROBES * KEEPALIVE_MS * 1000 };
	struct world *w = world_new();
	bool over = false;

	w->tag = &over;
	w->on_event = keep_open;
	w->options.keepalive_ms = KEEPALIVE_MS;
	w->options.send_depth = 1;
	world_connect_pair(w);
	side_send(w->client, 1, 64);
	side_send(w->server, 1, 64);
	world_run_until(w, both_have_heard, PATIENCE_MS);
	event_base_once(w->loop, -1, EV_TIMEOUT, on_time, w, &tv);
	world_run_until(w, time_is_over, PATIENCE_MS);
	ck_assert_msg(!w->client->down && !w->server->down, "%s", w->last_error);
	world_free(w);
}
END_TEST

static void send_one_more(struct side *side, const struct evrdma_error *error)
{
	if (side->is_client && !error && evrdma_conn_send_space(side->conn))
		side_send(side, 1, 64);
}

/* On iWARP only an answer to a question tells that the peer is there, and it needs room. */
START_TEST(a_connection_whose_queue_is_full_is_asked_nevertheless)
{
	const struct timeval tv = { 0, PROBES * KEEPALIVE_MS * 1000 };
	struct world *w = world_new();
	bool over = false;

	w->tag = &over;
	w->on_event = keep_open;
	w->on_sent = send_one_more;
	w->options.keepalive_ms = KEEPALIVE_MS;
	w->options.send_depth = 4;
	world_connect_pair(w);
	side_send(w->client, 4, 64);
	event_base_once(w->loop, -1, EV_TIMEOUT, on_time, w, &tv);
	world_run_until(w, time_is_over, PATIENCE_MS);
	ck_assert_msg(!w->client->down && !w->server->down, "%s", w->last_error);
	w->on_sent = NULL;
	world_free(w);
}
END_TEST

/* --- shared receives ------------------------------------------------------------------------- */

static bool none_live(struct world *w)
{
	return !w->live;
}

static bool all_came(struct world *w)
{
	return w->server && w->server->received == SHARED;
}

/* What a connection had taken of them comes back, however it ended. */
START_TEST(a_shared_queue_is_as_long_after_many_connections_as_before)
{
	struct world *w = world_new();
	struct evrdma_pool *pool = evrdma_pool_new(w->base, 64, SHARED);
	struct evrdma_srq *srq = evrdma_srq_new(w->base, pool, SHARED);
	unsigned i;

	w->options.recv_pool = NULL;
	w->options.srq = srq;
	w->options.rnr_retry_count = 0;
	for (i = 0; i < ROUNDS; i++) {
		world_connect_pair(w);
		side_send(w->client, i % 3, 16);
		world_run_a_little(w);
		evrdma_conn_close(i % 2 ? w->client->conn : w->server->conn);
		world_run_until(w, none_live, PATIENCE_MS);
	}
	w->on_event = keep_open;
	world_connect_pair(w);
	side_send(w->client, SHARED, 16);
	world_run_until(w, all_came, PATIENCE_MS);
	evrdma_srq_free(srq);
	evrdma_pool_free(pool);
	world_free(w);
}
END_TEST

/* --- windows --------------------------------------------------------------------------------- */

enum { WINDOW = 7, ANSWERS = 200 };

static void answer(struct side *side, const struct evrdma_recv *recv)
{
	if (!recv->err)
		side_send(side, 1, 16);
}

static void connect_from_other(struct world *w)
{
	struct side *side = world_side_new_on(w, w->other, true);
	struct sockaddr_in sin;

	world_address(&sin, place.ip, evrdma_listener_get_port(w->listener));
	ck_assert_int_eq(evrdma_conn_connect(side->conn, NULL, (struct sockaddr *)&sin), 0);
}

static void accept_on_shared(struct world *w, struct evrdma_request *request)
{
	w->options.recv_pool = w->tag ? NULL : w->pool;
	w->options.srq = w->tag;
	side_accept(world_side_new(w, false), request);
}

static bool is_up_on_both(struct world *w)
{
	return w->established == 2;
}

static bool all_was_answered(struct world *w)
{
	return w->client->received >= ANSWERS;
}

/*
 * The server posts for one queue a turn, and the client's base, which the loop prefers, has all the
 * turns that it wants in between.
 */
static struct world *world_of_short_turns(void)
{
	struct evrdma_base_options options;
	struct world *w = world_new();

	ck_assert_int_eq(event_base_priority_init(w->loop, 2), 0);
	evrdma_base_options_init(&options);
	options.turn_budget_us = 0;
	world_replace_base(w, &options);
	options.data_priority = 0;
	w->other = evrdma_base_new(w->loop, &options);
	w->other_pool = evrdma_pool_new(w->other, 4096, 0);
	w->on_event = keep_open;
	w->on_recv = answer;
	w->options.recv_depth = WINDOW;
	w->on_request = accept_on_shared;
	return w;
}

static void ask_and_answer(struct world *w)
{
	world_listen(w);
	connect_from_other(w);
	world_run_until(w, is_up_on_both, PATIENCE_MS);
	side_send(w->client, WINDOW, 16);
	world_run_until(w, all_was_answered, PATIENCE_MS);
	ck_assert_uint_eq(fake_not_ready(), 0);
}

/* Who has the answer may send the next message at once. */
START_TEST(no_answer_leaves_before_the_buffer_of_its_question_is_posted)
{
	struct world *w = world_of_short_turns();

	ask_and_answer(w);
	world_free(w);
}
END_TEST

START_TEST(nor_does_one_before_the_buffer_of_a_shared_queue_is)
{
	struct world *w = world_of_short_turns();
	struct evrdma_srq *srq = evrdma_srq_new(w->base, w->pool, WINDOW);

	w->tag = srq;
	ask_and_answer(w);
	evrdma_srq_free(srq);
	world_free(w);
}
END_TEST

static bool a_window_came(struct world *w)
{
	return w->server->received == 1 + WINDOW;
}

/* All of them wait when the library looks; some are posted again before it has told of all. */
START_TEST(a_queue_that_is_used_up_at_once_is_counted_once)
{
	struct evrdma_traffic_stats stats;
	struct world *w = world_new();

	w->on_event = keep_open;
	w->options.recv_depth = WINDOW;
	world_connect_pair(w);
	side_send(w->client, 1, 16);
	world_run_a_little(w);
	side_send(w->client, WINDOW, 16);
	world_run_until(w, a_window_came, PATIENCE_MS);
	evrdma_conn_get_stats(w->server->conn, &stats);
	ck_assert_uint_eq(stats.receive_queue_empty, 1);
	world_free(w);
}
END_TEST

/* --- reasons --------------------------------------------------------------------------------- */

static void accept_without_receives(struct world *w, struct evrdma_request *request)
{
	struct side *side;

	w->options.recv_pool = NULL;
	side = world_side_new(w, false);
	side_accept(side, request);
}

/* Some devices say of each failure that an access was refused, before its completion comes. */
START_TEST(the_reason_in_a_completion_is_told_though_an_event_came_first)
{
	struct evrdma_base_options options;
	struct world *w = world_new();

	ck_assert_int_eq(event_base_priority_init(w->loop, 2), 0);
	evrdma_base_options_init(&options);
	options.cm_priority = 0;
	options.data_priority = 1;
	world_replace_base(w, &options);
	w->on_event = keep_open;
	w->on_request = accept_without_receives;
	world_connect_pair(w);
	side_send(w->client, 8, 64);
	world_run_a_little(w);
	fake_async_qp(evrdma_conn_get_cm_id(w->client->conn)->qp, IBV_EVENT_QP_ACCESS_ERR);
	ck_assert_uint_eq(fake_time_out_work(), 1);
	world_run_until(w, world_client_is_down, PATIENCE_MS);
	ck_assert_int_eq(w->client->error, ENOBUFS);
	world_free(w);
}
END_TEST

/* --- removal --------------------------------------------------------------------------------- */

/* Where it went without waiting nothing is flushed any more, and nothing under way. */
START_TEST(a_close_does_not_wait_for_the_work_of_a_device_that_is_gone)
{
	struct world *w = world_new();

	w->on_event = keep_open;
	w->options.drain_timeout_ms = 10 * PATIENCE_MS;
	world_connect_pair(w);
	fake_work_by_hand(true);
	side_send(w->client, 4, 64);
	world_run_a_little(w);
	place.remove_device();
	evrdma_conn_close(w->client->conn);
	evrdma_conn_close(w->server->conn);
	world_run_until(w, none_live, PATIENCE_MS);
	fake_work_by_hand(false);
	world_free(w);
}
END_TEST

static void count_removals(struct evrdma_base *base, enum evrdma_device_event event,
	const char *device, int port_num, void *arg)
{
	*(unsigned *)arg += event == EVRDMA_DEVICE_REMOVED;
}

/* Some connections have heard of it, and others open the device once more before they do. */
static void remove_after(int turns)
{
	struct evrdma_base_options options;
	struct world *w = world_new();
	unsigned removals = 0;
	int i;

	evrdma_base_options_init(&options);
	options.turn_budget_us = 0;
	world_replace_base(w, &options);
	evrdma_base_set_device_cb(w->base, count_removals, &removals);
	world_listen(w);
	for (i = 0; i < CONNECTS; i++)
		world_connect(w);
	world_run_turns(w, turns);
	place.remove_device();
	world_run_until(w, none_live, PATIENCE_MS);
	ck_assert_msg(removals <= 1, "after %d turns: told %u times", turns, removals);
	world_free(w);
}

START_TEST(whenever_a_device_is_removed_that_is_told_once)
{
	int turns;

	for (turns = 0; turns < PASSES; turns++) {
		remove_after(turns);
		place.stop();
		place.start();
	}
}
END_TEST

TCase *device_case(void)
{
	TCase *tc = tcase_create("device");

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, no_completion_queue_has_more_work_than_entries);
	tcase_add_test(tc, bases_take_the_completion_vectors_in_turn);
	tcase_add_test(tc, a_base_uses_the_completion_vector_that_it_is_given);
	tcase_add_test(tc, inline_data_has_the_room_that_was_asked_for_or_the_connection_says_no);
	tcase_add_test(tc, an_idle_connection_is_asked_and_goes_on_after_messages);
	tcase_add_test(tc, a_connection_whose_queue_is_full_is_asked_nevertheless);
	if (fake_place_kind != FAKE_IWARP) {
		tcase_add_test(
			tc, the_reason_in_a_completion_is_told_though_an_event_came_first);
		tcase_add_test(tc, whenever_a_device_is_removed_that_is_told_once);
	}
	tcase_add_test(tc, a_close_does_not_wait_for_the_work_of_a_device_that_is_gone);
	tcase_add_test(tc, no_answer_leaves_before_the_buffer_of_its_question_is_posted);
	tcase_add_test(tc, a_queue_that_is_used_up_at_once_is_counted_once);
	if (!place_has(PLACE_SRQS))
		return tc;
	tcase_add_test(tc, a_shared_queue_is_as_long_after_many_connections_as_before);
	tcase_add_test(tc, nor_does_one_before_the_buffer_of_a_shared_queue_is);
	return tc;
}
