/* An event channel that cannot be read any more, and how the queues are driven. */
#include "conform/fake.h"
#include "conform/member.h"
#include "conform/world.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

static int listener_error;

static void keep_open(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static void on_listener_event(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	if (event == EVRDMA_LISTENER_ERROR)
		listener_error = error->err;
}

static bool all_told(struct world *w)
{
	return w->client->down && w->server->down && listener_error;
}

static void on_joined(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	*(int *)arg = error ? error->err : 0;
}

static void break_channel(struct world *w, int err)
{
	struct rdma_cm_id *cm = evrdma_listener_get_cm_id(w->listener);

	fake_fail_next("GET_EVENT", err);
	ck_assert_int_eq(fake_inject(cm, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
}

START_TEST(every_object_is_told_when_the_channel_cannot_be_read)
{
	static const int errors[] = { EACCES, EIO };
	struct world *w = world_new();
	int operation_error = 0;
	struct sockaddr_in sin;
	struct evrdma_id *id;

	listener_error = 0;
	w->on_event = keep_open;
	world_connect_pair(w);
	evrdma_listener_set_event_cb(w->listener, on_listener_event);
	fake_hold(FAKE_ADDR);
	id = evrdma_id_new(w->base, RDMA_PS_TCP, NULL, NULL);
	world_address(&sin, place.ip, 9);
	ck_assert_int_eq(evrdma_id_resolve_addr(
		id, NULL, (struct sockaddr *)&sin, 2000, on_joined, &operation_error), 0);
	break_channel(w, errors[_i]);
	world_run_until(w, all_told, 10000);
	ck_assert_int_eq(w->client->error, errors[_i]);
	ck_assert_int_eq(w->server->error, errors[_i]);
	ck_assert_int_eq(listener_error, errors[_i]);
	ck_assert_int_eq(operation_error, errors[_i]);
	ck_assert_int_eq(w->client->step, EVRDMA_STEP_CHANNEL);
	world_connect(w);
	world_run_until(w, world_client_is_down, 100);
	ck_assert_int_eq(w->client->error, errors[_i]);
	ck_assert_int_eq(w->client->step, EVRDMA_STEP_CHANNEL);
	world_free(w);
}
END_TEST

START_TEST(an_endpoint_and_its_groups_are_told_when_the_channel_cannot_be_read)
{
	struct world *w = world_new();
	struct member m;

	member_join(&m, w, 0, GROUP_A, 0);
	world_listen(w);
	break_channel(w, EACCES);
	member_run_until_group_failed(&m);
	ck_assert_int_eq(m.err, EACCES);
	ck_assert_int_eq(m.group_err, ENETDOWN);
	world_free(w);
}
END_TEST

/* --- events that waited when their id moved: the kernel wakes nobody for them ---------------- */

START_TEST(an_event_that_waits_when_a_connection_moves_is_told)
{
	struct world *w = world_new();

	w->on_event = keep_open;
	world_connect_pair(w);
	world_add_other(w);
	world_run_a_little(w);
	ck_assert_int_eq(fake_inject(evrdma_conn_get_cm_id(w->client->conn),
				 RDMA_CM_EVENT_DISCONNECTED, 0),
		0);
	ck_assert_int_eq(evrdma_conn_migrate(w->client->conn, w->other), 0);
	world_run_until(w, world_client_is_down, 10000);
	world_free(w);
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

static bool is_told(struct world *w)
{
	return *(bool *)w->tag;
}

START_TEST(an_event_that_waits_when_an_id_is_adopted_is_told)
{
	struct world *w = world_new();
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *cm;
	bool told = false;

	w->tag = &told;
	ck_assert_int_eq(rdma_create_id(channel, &cm, NULL, RDMA_PS_TCP), 0);
	world_run_a_little(w);
	ck_assert_int_eq(fake_inject(cm, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	ck_assert_ptr_nonnull(evrdma_id_adopt(w->base, cm, on_id_event, &told));
	world_run_until(w, is_told, 10000);
	rdma_destroy_event_channel(channel);
	world_free(w);
}
END_TEST

static bool has_argument(struct world *w)
{
	return *(uint64_t *)w->tag;
}

/* It lies where others have a pointer to private data. */
START_TEST(an_event_of_the_users_own_keeps_its_argument)
{
	struct world *w = world_new();
	uint64_t told = 0;
	struct evrdma_id *id = evrdma_id_new(w->base, RDMA_PS_TCP, note_argument, &told);

	w->tag = &told;
	fake_newer_kernel(true);
	ck_assert_int_eq(rdma_write_cm_event(
		evrdma_id_get_cm_id(id), RDMA_CM_EVENT_USER, 0, 0x1234567), 0);
	world_run_until(w, has_argument, 10000);
	ck_assert_uint_eq(told, 0x1234567);
	evrdma_id_close(id);
	world_free(w);
}
END_TEST

START_TEST(a_lost_channel_is_not_read_again)
{
	struct world *w = world_new();
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *cm;
	unsigned reads;
	bool told = false;

	listener_error = 0;
	w->on_event = keep_open;
	world_connect_pair(w);
	evrdma_listener_set_event_cb(w->listener, on_listener_event);
	ck_assert_int_eq(rdma_create_id(channel, &cm, NULL, RDMA_PS_TCP), 0);
	break_channel(w, EIO);
	world_run_until(w, all_told, 10000);
	reads = fake_calls("GET_EVENT");
	/* Moved, its events would have to be looked for. */
	ck_assert_ptr_nonnull(evrdma_id_adopt(w->base, cm, on_id_event, &told));
	world_run_a_little(w);
	ck_assert_uint_eq(fake_calls("GET_EVENT"), reads);
	rdma_destroy_event_channel(channel);
	world_free(w);
}
END_TEST

/* --- the queues ----------------------------------------------------------------------------- */

enum { MESSAGES = 40 };

static bool all_arrived(struct world *w)
{
	return w->server->received == MESSAGES && w->client->sends_ok == MESSAGES;
}

START_TEST(sends_are_posted_at_the_end_of_their_turn)
{
	struct world *w = world_new();
	unsigned calls;

	world_connect_pair(w);
	calls = fake_calls("ibv_post_send");
	side_send(w->client, MESSAGES, 64);
	ck_assert_uint_eq(fake_calls("ibv_post_send"), calls);
	world_run_until(w, all_arrived, 10000);
	ck_assert_uint_eq(fake_calls("ibv_post_send"), calls + MESSAGES);
	world_free(w);
}
END_TEST

static void carry_out(void *arg)
{
	fake_step(MESSAGES);
}

/* The first completions wake the driver; the others come inside the n-th verb that it calls. */
static bool complete_inside_call(unsigned n, bool *before_arming)
{
	struct world *w = world_new();
	const char *chosen;

	world_connect_pair(w);
	fake_work_by_hand(true);
	side_send(w->client, MESSAGES, 64);
	world_run_a_little(w);
	fake_step(16);
	fake_at_nth(FAKE_VERBS, n, carry_out, NULL);
	world_run_a_little(w);
	chosen = fake_failed();
	if (chosen)
		world_run_until(w, all_arrived, 10000);
	*before_arming |= chosen && !strcmp(chosen, "ibv_req_notify_cq");
	fake_fail_nth(FAKE_VERBS, 0, 0);
	fake_work_by_hand(false);
	world_free(w);
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

static void count_sent(struct side *side, const struct evrdma_error *error)
{
	if (++budget.in_turn > budget.most_in_turn)
		budget.most_in_turn = budget.in_turn;
}

static bool all_arrived_next_turn(struct world *w)
{
	budget.in_turn = 0;
	return all_arrived(w);
}

static struct world *world_with_cq_budget(unsigned completions)
{
	struct evrdma_base_options options;
	struct world *w = world_new();

	evrdma_base_options_init(&options);
	options.cq_budget = completions;
	world_replace_base(w, &options);
	return w;
}

/* Each of the signalled completions speaks for up to 16 sends. */
START_TEST(a_budget_spent_goes_on_in_the_next_turn)
{
	struct world *w = world_with_cq_budget(1);

	/* Room for both sides on one queue, however small a device's are. */
	w->options.send_depth = w->options.recv_depth = MESSAGES;
	w->on_sent = count_sent;
	world_connect_pair(w);
	side_send(w->client, MESSAGES, 64);
	world_run_until(w, all_arrived_next_turn, 10000);
	ck_assert_uint_le(budget.most_in_turn, 16);
	world_free(w);
}
END_TEST

/* What is posted on a queue that was flushed would be flushed again. */
START_TEST(a_disconnect_without_an_answer_does_not_keep_the_loop_busy)
{
	struct world *w = world_new();

	w->on_event = keep_open;
	w->options.drain_timeout_ms = 20000;
	world_connect_pair(w);
	fake_hold(FAKE_DREQ);
	ck_assert_int_eq(evrdma_conn_disconnect(w->client->conn), 0);
	world_run_a_little(w);
	ck_assert(!w->client->down);
	fake_release(FAKE_DREQ);
	world_free(w);
}
END_TEST

/* --- what a flush says of the sends before it ----------------------------------------------- */

struct tally {
	unsigned ok, cancelled;
};

static void tally_sent(struct side *side, const struct evrdma_error *error)
{
	struct tally *tally = side->world->tag;

	tally->ok += !error;
	tally->cancelled += error != NULL;
}

/* Of so many sends some are carried out before the close. */
static struct tally close_after(unsigned carried_out, unsigned sends)
{
	struct world *w = world_new();
	struct tally tally = { 0 };

	w->tag = &tally;
	w->on_sent = tally_sent;
	world_connect_pair(w);
	fake_work_by_hand(true);
	side_send(w->client, sends, 64);
	world_run_a_little(w);
	ck_assert_uint_eq(fake_step(carried_out), carried_out);
	evrdma_conn_close(w->client->conn);
	world_run_until(w, world_client_is_closed, 10000);
	world_free(w);
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

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, every_object_is_told_when_the_channel_cannot_be_read, 0, 2);
	if (place_has(PLACE_DATAGRAMS | PLACE_GROUPS))
		tcase_add_test(tc,
			an_endpoint_and_its_groups_are_told_when_the_channel_cannot_be_read);
	tcase_add_test(tc, an_event_that_waits_when_a_connection_moves_is_told);
	tcase_add_test(tc, an_event_that_waits_when_an_id_is_adopted_is_told);
	tcase_add_test(tc, a_lost_channel_is_not_read_again);
	tcase_add_test(tc, an_event_of_the_users_own_keeps_its_argument);
	tcase_add_test(tc, sends_are_posted_at_the_end_of_their_turn);
	tcase_add_test(tc, completions_are_found_whenever_they_come);
	tcase_add_test(tc, a_budget_spent_goes_on_in_the_next_turn);
	tcase_add_test(tc, a_disconnect_without_an_answer_does_not_keep_the_loop_busy);
	tcase_add_test(tc, a_flushed_send_does_not_speak_for_those_before_it);
	tcase_add_test(tc, a_good_completion_speaks_for_those_before_it);
	return tc;
}
