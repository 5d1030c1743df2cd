/* An event channel that cannot be read any more, and how the queues are driven. */
#include "conform/fake.h"
#include "conform/member.h"
#include "conform/fixture.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

static int listener_error;

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static void on_listener_event(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	if (event == EVRDMA_LISTENER_ERROR)
		listener_error = error->err;
}

static bool all_told(struct fixture *f)
{
	return f->client->down && f->server->down && listener_error;
}

static void on_joined(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	*(int *)arg = error ? error->err : 0;
}

static void break_channel(struct fixture *f, int err)
{
	struct rdma_cm_id *cm = evrdma_listener_get_cm_id(f->listener);

	fake_fail_next("GET_EVENT", err);
	ck_assert_int_eq(fake_inject(cm, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
}

START_TEST(every_object_is_told_when_the_channel_cannot_be_read)
{
	static const int errors[] = { EACCES, EIO };
	struct fixture *f = fixture_new();
	int operation_error = 0;
	struct sockaddr_in sin;
	struct evrdma_id *id;

	listener_error = 0;
	f->on_event = keep_open;
	fixture_connect_pair(f);
	evrdma_listener_set_event_cb(f->listener, on_listener_event);
	fake_hold(FAKE_ADDR);
	id = evrdma_id_new(f->base, RDMA_PS_TCP, NULL, NULL);
	fixture_address(&sin, testbed.ip, 9);
	ck_assert_int_eq(evrdma_id_resolve_addr(id, NULL, (struct sockaddr *)&sin, 2000, on_joined,
				 &operation_error),
		0);
	break_channel(f, errors[_i]);
	fixture_run_until(f, all_told, 10000);
	ck_assert_int_eq(f->client->error, errors[_i]);
	ck_assert_int_eq(f->server->error, errors[_i]);
	ck_assert_int_eq(listener_error, errors[_i]);
	ck_assert_int_eq(operation_error, errors[_i]);
	ck_assert_int_eq(f->client->step, EVRDMA_STEP_CHANNEL);
	fixture_connect(f);
	fixture_run_until(f, fixture_client_is_down, 100);
	ck_assert_int_eq(f->client->error, errors[_i]);
	ck_assert_int_eq(f->client->step, EVRDMA_STEP_CHANNEL);
	fixture_free(f);
}
END_TEST

START_TEST(an_endpoint_and_its_groups_are_told_when_the_channel_cannot_be_read)
{
	struct fixture *f = fixture_new();
	struct member m;

	member_join(&m, f, 0, GROUP_A, 0);
	fixture_listen(f);
	break_channel(f, EACCES);
	member_run_until_group_failed(&m);
	ck_assert_int_eq(m.err, EACCES);
	ck_assert_int_eq(m.step, EVRDMA_STEP_CHANNEL);
	ck_assert_int_eq(m.group_err, ENETDOWN);
	fixture_free(f);
}
END_TEST

START_TEST(an_endpoint_that_is_opened_on_a_lost_channel_is_told_of_that)
{
	struct fixture *f = fixture_new();
	struct member m;

	member_init(&m, f, 0);
	fixture_listen(f);
	break_channel(f, EACCES);
	fixture_run_a_little(f);
	member_open(&m);
	member_run_until_failed(&m);
	ck_assert_int_eq(m.err, EACCES);
	ck_assert_int_eq(m.step, EVRDMA_STEP_CHANNEL);
	fixture_free(f);
}
END_TEST

/* --- events that waited when their id moved: the kernel wakes nobody for them ---------------- */

START_TEST(an_event_that_waits_when_a_connection_moves_is_told)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	fixture_connect_pair(f);
	fixture_add_other(f);
	fixture_run_a_little(f);
	ck_assert_int_eq(
		fake_inject(evrdma_conn_get_cm_id(f->client->conn), RDMA_CM_EVENT_DISCONNECTED, 0),
		0);
	ck_assert_int_eq(evrdma_conn_migrate(f->client->conn, f->other), 0);
	fixture_run_until(f, fixture_client_is_down, 10000);
	fixture_free(f);
}
END_TEST

static void on_id_event(struct evrdma_id *id, const struct rdma_cm_event *event, void *arg)
{
	*(bool *)arg |= event && event->event == RDMA_CM_EVENT_ADDR_CHANGE;
}

static void note_argument(struct evrdma_id *id, const struct rdma_cm_event *event, void *arg)
{
	if (event && event->event == RDMA_CM_EVENT_USER)
		*(uint64_t *)arg = event->param.arg;
}

static bool is_told(struct fixture *f)
{
	return *(bool *)f->tag;
}

START_TEST(an_event_that_waits_when_an_id_is_adopted_is_told)
{
	struct fixture *f = fixture_new();
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *cm;
	bool told = false;

	f->tag = &told;
	ck_assert_int_eq(rdma_create_id(channel, &cm, NULL, RDMA_PS_TCP), 0);
	fixture_run_a_little(f);
	ck_assert_int_eq(fake_inject(cm, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	ck_assert_ptr_nonnull(evrdma_id_adopt(f->base, cm, on_id_event, &told));
	fixture_run_until(f, is_told, 10000);
	rdma_destroy_event_channel(channel);
	fixture_free(f);
}
END_TEST

static bool has_argument(struct fixture *f)
{
	return *(uint64_t *)f->tag;
}

/* It lies where others have a pointer to private data. */
START_TEST(an_event_of_the_users_own_keeps_its_argument)
{
	struct fixture *f = fixture_new();
	uint64_t told = 0;
	struct evrdma_id *id = evrdma_id_new(f->base, RDMA_PS_TCP, note_argument, &told);

	f->tag = &told;
	fake_newer_kernel(true);
	ck_assert_int_eq(
		rdma_write_cm_event(evrdma_id_get_cm_id(id), RDMA_CM_EVENT_USER, 0, 0x1234567), 0);
	fixture_run_until(f, has_argument, 10000);
	ck_assert_uint_eq(told, 0x1234567);
	evrdma_id_close(id);
	fixture_free(f);
}
END_TEST

START_TEST(a_lost_channel_is_not_read_again)
{
	struct fixture *f = fixture_new();
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *cm;
	unsigned reads;
	bool told = false;

	listener_error = 0;
	f->on_event = keep_open;
	fixture_connect_pair(f);
	evrdma_listener_set_event_cb(f->listener, on_listener_event);
	ck_assert_int_eq(rdma_create_id(channel, &cm, NULL, RDMA_PS_TCP), 0);
	break_channel(f, EIO);
	fixture_run_until(f, all_told, 10000);
	reads = fake_calls("GET_EVENT");
	/* Moved, its events would have to be looked for. */
	ck_assert_ptr_null(evrdma_id_adopt(f->base, cm, on_id_event, &told));
	ck_assert_int_eq(errno, EIO);
	fixture_run_a_little(f);
	ck_assert_uint_eq(fake_calls("GET_EVENT"), reads);
	rdma_destroy_id(cm);
	rdma_destroy_event_channel(channel);
	fixture_free(f);
}
END_TEST

static unsigned losses, told_after;

static void count_loss(enum evrdma_log_level level, const char *text, void *arg)
{
	losses += !!strstr(text, "cannot be read any more");
}

static void break_after_the_first(
	struct evrdma_id *id, const struct rdma_cm_event *event, void *arg)
{
	told_after += event && losses;
	if (event && !losses)
		fake_fail_next("GET_EVENT", EACCES);
}

/* One event in a turn: when the channel is lost it is to be read again at once, for the others. */
START_TEST(a_channel_lost_over_budget_is_not_read_again)
{
	struct evrdma_base_options options;
	struct fixture *f = fixture_new();
	struct evrdma_id *id;
	int i;

	losses = told_after = 0;
	evrdma_base_options_init(&options);
	options.turn_budget_us = 0;
	fixture_replace_base(f, &options);
	evrdma_set_log_cb(count_loss, NULL);
	id = evrdma_id_new(f->base, RDMA_PS_TCP, break_after_the_first, NULL);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(
			fake_inject(evrdma_id_get_cm_id(id), RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	fixture_run_a_little(f);
	fixture_run_a_little(f);
	ck_assert_uint_eq(losses, 1);
	ck_assert_uint_eq(told_after, 0);
	evrdma_set_log_cb(NULL, NULL);
	fixture_free(f);
}
END_TEST

/* --- who comes to a channel that is lost, or waits on it -------------------------------------- */

static void keep_request(struct fixture *f, struct evrdma_request *request)
{
	f->tag = request;
}

static bool request_came(struct fixture *f)
{
	return f->tag;
}

static bool listener_is_told(struct fixture *f)
{
	return listener_error;
}

static struct fixture *fixture_with_request(void)
{
	struct fixture *f = fixture_new();

	listener_error = 0;
	f->on_event = keep_open;
	f->on_request = keep_request;
	fixture_listen(f);
	evrdma_listener_set_event_cb(f->listener, on_listener_event);
	fixture_connect(f);
	fixture_run_until(f, request_came, 10000);
	return f;
}

START_TEST(a_request_ends_with_its_channel)
{
	struct fixture *f = fixture_with_request();

	break_channel(f, EACCES);
	fixture_run_until(f, listener_is_told, 10000);
	ck_assert_int_eq(
		evrdma_conn_accept(fixture_endpoint_new(f, false)->conn, f->tag), -EACCES);
	ck_assert_ptr_null(evrdma_request_get_cm_id(f->tag));
	ck_assert_int_eq(evrdma_request_reject(f->tag, NULL, 0), 0);
	fixture_free(f);
}
END_TEST

static void accept_in_callback(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	struct fixture *f = endpoint->fixture;

	if (event != EVRDMA_CONN_ERROR || !f->tag)
		return;
	ck_assert_int_eq(
		evrdma_conn_accept(fixture_endpoint_new(f, false)->conn, f->tag), -EACCES);
	ck_assert_int_eq(evrdma_request_reject(f->tag, NULL, 0), 0);
	f->tag = NULL;
}

static bool request_is_answered(struct fixture *f)
{
	return !f->tag;
}

START_TEST(a_request_is_not_accepted_while_the_loss_of_its_channel_is_told)
{
	struct fixture *f = fixture_with_request();

	f->on_event = accept_in_callback;
	break_channel(f, EACCES);
	fixture_run_until(f, request_is_answered, 10000);
	fixture_free(f);
}
END_TEST

/* The other base's listener is there to break its channel. */
START_TEST(nothing_moves_to_a_channel_that_is_lost)
{
	struct fixture *f = fixture_new();
	struct evrdma_id *id = evrdma_id_new(f->base, RDMA_PS_TCP, NULL, NULL);
	struct evrdma_id *there;

	f->on_event = keep_open;
	fixture_connect_pair(f);
	fixture_add_other(f);
	there = evrdma_id_new(f->other, RDMA_PS_TCP, NULL, NULL);
	fake_fail_next("GET_EVENT", EACCES);
	ck_assert_int_eq(
		fake_inject(evrdma_id_get_cm_id(there), RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	fixture_run_a_little(f);
	ck_assert_int_eq(evrdma_conn_migrate(f->client->conn, f->other), -EACCES);
	ck_assert_int_eq(evrdma_id_migrate(id, f->other), -EACCES);
	ck_assert_int_eq(evrdma_id_listen(there, 1), -EACCES);
	evrdma_id_close(id);
	evrdma_id_close(there);
	fixture_close_other(f);
	fixture_free(f);
}
END_TEST

static void no_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
}

static bool is_away(struct fixture *f)
{
	return listener_error == ENODEV;
}

static bool is_lost(struct fixture *f)
{
	return listener_error == EACCES;
}

START_TEST(a_listener_that_is_away_is_told_of_the_loss_of_its_channel)
{
	struct evrdma_listener_options options;
	struct fixture *f = fixture_new();
	struct evrdma_id *id = evrdma_id_new(f->base, RDMA_PS_TCP, NULL, NULL);
	struct sockaddr_in sin;

	listener_error = 0;
	evrdma_listener_options_init(&options);
	options.relisten_ms = 10;
	fixture_address(&sin, testbed.ip, 0);
	f->listener =
		evrdma_listener_new(f->base, (struct sockaddr *)&sin, &options, no_request, f);
	evrdma_listener_set_event_cb(f->listener, on_listener_event);
	testbed.remove_device();
	fixture_run_until(f, is_away, 10000);
	fake_fail_next("GET_EVENT", EACCES);
	ck_assert_int_eq(fake_inject(evrdma_id_get_cm_id(id), RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	fixture_run_until(f, is_lost, 10000);
	evrdma_id_close(id);
	testbed.add_device();
	fixture_free(f);
}
END_TEST

/* --- the queues ----------------------------------------------------------------------------- */

enum { MESSAGES = 40 };

static bool all_arrived(struct fixture *f)
{
	return f->server->received == MESSAGES && f->client->sends_ok == MESSAGES;
}

START_TEST(sends_are_posted_at_the_end_of_their_turn)
{
	struct fixture *f = fixture_new();
	unsigned calls;

	fixture_connect_pair(f);
	calls = fake_calls("ibv_post_send");
	endpoint_send(f->client, MESSAGES, 64);
	ck_assert_uint_eq(fake_calls("ibv_post_send"), calls);
	fixture_run_until(f, all_arrived, 10000);
	ck_assert_uint_eq(fake_calls("ibv_post_send"), calls + MESSAGES);
	fixture_free(f);
}
END_TEST

static void carry_out(void *arg)
{
	fake_step(MESSAGES);
}

/* The first completions wake the driver; the others come inside the n-th verb that it calls. */
static bool complete_inside_call(unsigned n, bool *before_arming)
{
	struct fixture *f = fixture_new();
	const char *chosen;

	fixture_connect_pair(f);
	fake_work_by_hand(true);
	endpoint_send(f->client, MESSAGES, 64);
	fixture_run_a_little(f);
	fake_step(16);
	fake_at_nth(FAKE_VERBS, n, carry_out, NULL);
	fixture_run_a_little(f);
	chosen = fake_failed();
	if (chosen)
		fixture_run_until(f, all_arrived, 10000);
	*before_arming |= chosen && !strcmp(chosen, "ibv_req_notify_cq");
	fake_fail_nth(FAKE_VERBS, 0, 0);
	fake_work_by_hand(false);
	fixture_free(f);
	return chosen;
}

/* What completes between a poll and the arming after it raises no event. */
START_TEST(completions_are_found_whenever_they_come)
{
	bool before_arming = false;
	unsigned n = 1;

	while (complete_inside_call(n, &before_arming))
		n++;
	ck_assert_uint_gt(n, 2);
	ck_assert(before_arming);
}
END_TEST

static struct {
	unsigned in_turn, most_in_turn;
} budget;

static void count_sent(struct endpoint *endpoint, const struct evrdma_error *error)
{
	if (++budget.in_turn > budget.most_in_turn)
		budget.most_in_turn = budget.in_turn;
}

static bool all_arrived_next_turn(struct fixture *f)
{
	budget.in_turn = 0;
	return all_arrived(f);
}

static struct fixture *fixture_with_cq_budget(unsigned completions)
{
	struct evrdma_base_options options;
	struct fixture *f = fixture_new();

	evrdma_base_options_init(&options);
	options.cq_budget = completions;
	fixture_replace_base(f, &options);
	return f;
}

/* Each of the signalled completions speaks for up to 16 sends. */
START_TEST(a_budget_spent_goes_on_in_the_next_turn)
{
	struct fixture *f = fixture_with_cq_budget(1);

	/* Room for both sides on one queue, however small a device's are. */
	f->options.send_depth = f->options.recv_depth = MESSAGES;
	f->on_sent = count_sent;
	fixture_connect_pair(f);
	endpoint_send(f->client, MESSAGES, 64);
	fixture_run_until(f, all_arrived_next_turn, 10000);
	ck_assert_uint_le(budget.most_in_turn, 16);
	fixture_free(f);
}
END_TEST

/* What is posted on a queue that was flushed would be flushed again. */
START_TEST(a_disconnect_without_an_answer_does_not_keep_the_loop_busy)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->options.drain_timeout_ms = 20000;
	fixture_connect_pair(f);
	fake_hold(FAKE_DREQ);
	ck_assert_int_eq(evrdma_conn_disconnect(f->client->conn), 0);
	fixture_run_a_little(f);
	ck_assert(!f->client->down);
	fake_release(FAKE_DREQ);
	fixture_free(f);
}
END_TEST

/* --- what a flush says of the sends before it ----------------------------------------------- */

struct tally {
	unsigned ok, cancelled;
};

static void tally_sent(struct endpoint *endpoint, const struct evrdma_error *error)
{
	struct tally *tally = endpoint->fixture->tag;

	tally->ok += !error;
	tally->cancelled += error != NULL;
}

/* Of so many sends some are carried out before the close. */
static struct tally close_after(unsigned carried_out, unsigned sends)
{
	struct fixture *f = fixture_new();
	struct tally tally = { 0 };

	f->tag = &tally;
	f->on_sent = tally_sent;
	fixture_connect_pair(f);
	fake_work_by_hand(true);
	endpoint_send(f->client, sends, 64);
	fixture_run_a_little(f);
	ck_assert_uint_eq(fake_step(carried_out), carried_out);
	evrdma_conn_close(f->client->conn);
	fixture_run_until(f, fixture_client_is_closed, 10000);
	fixture_free(f);
	return tally;
}

/* Of the ten only the last is signalled, so nothing is known of the four that were carried out. */
START_TEST(a_flushed_send_does_not_speak_for_those_before_it)
{
	const struct tally tally = close_after(4, 10);

	ck_assert_uint_eq(tally.cancelled, 10);
	ck_assert_uint_eq(tally.ok, 0);
}
END_TEST

START_TEST(a_good_completion_speaks_for_those_before_it)
{
	const struct tally tally = close_after(16, 20);

	ck_assert_uint_eq(tally.ok, 16);
	ck_assert_uint_eq(tally.cancelled, 4);
}
END_TEST

TCase *channel_case(void)
{
	TCase *tc = tcase_create("channel");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, every_object_is_told_when_the_channel_cannot_be_read, 0, 2);
	if (testbed_has(TESTBED_DATAGRAMS | TESTBED_GROUPS))
		tcase_add_test(
			tc, an_endpoint_and_its_groups_are_told_when_the_channel_cannot_be_read);
	if (testbed_has(TESTBED_DATAGRAMS))
		tcase_add_test(tc, an_endpoint_that_is_opened_on_a_lost_channel_is_told_of_that);
	tcase_add_test(tc, an_event_that_waits_when_a_connection_moves_is_told);
	tcase_add_test(tc, an_event_that_waits_when_an_id_is_adopted_is_told);
	tcase_add_test(tc, a_lost_channel_is_not_read_again);
	tcase_add_test(tc, a_channel_lost_over_budget_is_not_read_again);
	tcase_add_test(tc, a_request_ends_with_its_channel);
	tcase_add_test(tc, a_request_is_not_accepted_while_the_loss_of_its_channel_is_told);
	tcase_add_test(tc, nothing_moves_to_a_channel_that_is_lost);
	tcase_add_test(tc, a_listener_that_is_away_is_told_of_the_loss_of_its_channel);
	tcase_add_test(tc, an_event_of_the_users_own_keeps_its_argument);
	tcase_add_test(tc, sends_are_posted_at_the_end_of_their_turn);
	tcase_add_test(tc, completions_are_found_whenever_they_come);
	tcase_add_test(tc, a_budget_spent_goes_on_in_the_next_turn);
	tcase_add_test(tc, a_disconnect_without_an_answer_does_not_keep_the_loop_busy);
	tcase_add_test(tc, a_flushed_send_does_not_speak_for_those_before_it);
	tcase_add_test(tc, a_good_completion_speaks_for_those_before_it);
	return tc;
}
