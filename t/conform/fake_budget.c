/* What one turn of the loop tells at most, and what goes on whatever there is to tell. */
#include "conform/fake.h"
#include "conform/fixture.h"
#include "conform/member.h"

#include <errno.h>
#include <event2/event_struct.h>
#include <rdma/rdma_cma.h>
#include <string.h>

enum {
	PATIENCE_MS = 20000,
	LEN = 64,
	BUDGET = 4,
	MESSAGES = 48,
	PAIRS = 6,
	EACH = 6,
	ENOUGH = 100000,
	ENOUGH_TURNS = 300000
};

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

static void count_recv(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	count();
	told.before_end += !told.ended && !recv->err;
}

static void count_sent(struct endpoint *endpoint, const struct evrdma_error *error)
{
	count();
}

static void note_end(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	told.ended |= event == EVRDMA_CONN_DISCONNECTED;
	told.timed_out |= event == EVRDMA_CONN_ERROR && error->err == ETIMEDOUT;
}

static struct fixture *fixture_with(const struct evrdma_base_options *options)
{
	struct fixture *f = fixture_new();

	memset(&told, 0, sizeof(told));
	ck_assert_int_eq(event_base_priority_init(f->loop, 3), 0);
	fixture_replace_base(f, options);
	f->on_recv = count_recv;
	f->on_sent = count_sent;
	f->on_event = note_end;
	return f;
}

static struct fixture *fixture_with_budget(unsigned cq_entries)
{
	struct evrdma_base_options options;

	evrdma_base_options_init(&options);
	options.cq_budget = BUDGET;
	options.cq_entries = cq_entries;
	return fixture_with(&options);
}

static bool has_ended(struct fixture *f)
{
	told.in_turn = 0;
	return told.ended;
}

static bool client_is_closed(struct fixture *f)
{
	told.in_turn = 0;
	return fixture_client_is_closed(f);
}

static bool all_is_told(struct fixture *f)
{
	told.in_turn = 0;
	return told.all == 2 * PAIRS * EACH;
}

static void accept_by_hand(struct fixture *f, struct evrdma_request *request)
{
	struct endpoint *server = fixture_endpoint_new(f, false);
	unsigned i;

	for (i = 0; i < MESSAGES; i++) {
		struct evrdma_buf *buf = evrdma_pool_get(f->pool);

		ck_assert_int_eq(evrdma_conn_recv(server->conn, buf), 0);
		evrdma_buf_unref(buf);
	}
	endpoint_accept(server, request);
}

static bool all_wait(struct fixture *f)
{
	struct evrdma_traffic_stats stats;

	evrdma_conn_get_stats(f->server->conn, &stats);
	return stats.receives_waiting == MESSAGES;
}

static bool server_is_gone(struct fixture *f)
{
	told.in_turn = 0;
	return !f->server;
}

START_TEST(the_budget_holds_when_a_connection_ends)
{
	struct fixture *f = fixture_with_budget(4096);

	f->options.send_depth = f->options.recv_depth = MESSAGES;
	fixture_connect_pair(f);
	fake_work_by_hand(true);
	endpoint_send(f->client, MESSAGES, LEN);
	fixture_run_a_little(f);
	ck_assert_uint_eq(fake_step(MESSAGES), MESSAGES);
	fake_work_by_hand(false);
	ck_assert_int_eq(
		fake_inject(evrdma_conn_get_cm_id(f->server->conn), RDMA_CM_EVENT_DISCONNECTED, 0),
		0);
	fixture_run_until(f, has_ended, PATIENCE_MS);
	ck_assert_uint_eq(told.before_end, MESSAGES);
	ck_assert_uint_le(told.most_in_turn, BUDGET);
	fixture_free(f);
}
END_TEST

START_TEST(the_budget_holds_for_work_that_is_cancelled)
{
	struct fixture *f = fixture_with_budget(4096);

	f->options.send_depth = 1;
	f->options.send_queue = MESSAGES;
	fixture_connect_pair(f);
	fake_work_by_hand(true);
	endpoint_send(f->client, MESSAGES, LEN);
	fixture_run_a_little(f);
	evrdma_conn_close(f->client->conn);
	fixture_run_until(f, client_is_closed, PATIENCE_MS);
	fake_work_by_hand(false);
	ck_assert_uint_ge(told.all, MESSAGES);
	ck_assert_uint_le(told.most_in_turn, BUDGET);
	fixture_free(f);
}
END_TEST

/* The server does not read, and all that it was sent waits. */
static struct fixture *fixture_with_kept_messages(void)
{
	struct fixture *f = fixture_with_budget(4096);

	f->options.send_depth = f->options.recv_depth = MESSAGES;
	f->options.recv_pool = NULL;
	f->on_request = accept_by_hand;
	fixture_connect_pair(f);
	ck_assert_int_eq(evrdma_conn_disable(f->server->conn), 0);
	endpoint_send(f->client, MESSAGES, LEN);
	fixture_run_until(f, all_wait, PATIENCE_MS);
	told.all = told.in_turn = told.most_in_turn = 0;
	f->on_sent = NULL;
	return f;
}

START_TEST(the_budget_holds_for_messages_that_a_close_cancels)
{
	struct fixture *f = fixture_with_kept_messages();

	evrdma_conn_close(f->server->conn);
	fixture_run_until(f, server_is_gone, PATIENCE_MS);
	ck_assert_uint_eq(told.all, MESSAGES);
	ck_assert_uint_le(told.most_in_turn, BUDGET);
	fixture_free(f);
}
END_TEST

/* They are told before the end. */
START_TEST(the_budget_holds_for_messages_that_waited_for_the_end)
{
	struct fixture *f = fixture_with_kept_messages();

	ck_assert_int_eq(
		fake_inject(evrdma_conn_get_cm_id(f->server->conn), RDMA_CM_EVENT_DISCONNECTED, 0),
		0);
	ck_assert_int_eq(evrdma_conn_enable(f->server->conn), 0);
	fixture_run_until(f, has_ended, PATIENCE_MS);
	ck_assert_uint_eq(told.before_end, MESSAGES);
	ck_assert_uint_le(told.most_in_turn, BUDGET);
	fixture_free(f);
}
END_TEST

START_TEST(the_budget_is_that_of_all_queues)
{
	struct fixture *f = fixture_with_budget(1);
	struct endpoint *clients[PAIRS];
	unsigned i;

	f->options.send_depth = f->options.recv_depth = EACH;
	for (i = 0; i < PAIRS; i++) {
		f->client = f->server = NULL;
		fixture_connect_pair(f);
		clients[i] = f->client;
	}
	for (i = 0; i < PAIRS; i++)
		endpoint_send(clients[i], EACH, LEN);
	fixture_run_until(f, all_is_told, PATIENCE_MS);
	ck_assert_uint_le(told.most_in_turn, BUDGET);
	fixture_free(f);
}
END_TEST

/* --- priorities ----------------------------------------------------------------------------- */

/* There is always something to tell, until all that waits has come, or never will. */
static void answer(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	bool done = told.ran && told.timed_out;

	if (!recv->err && !done && told.all++ < ENOUGH)
		endpoint_send(endpoint, 1, LEN);
}

static void note_run(struct evrdma_base *base, void *arg)
{
	told.ran = true;
}

static bool is_quiet(struct fixture *f)
{
	return (told.ran && told.timed_out) || told.all >= ENOUGH;
}

START_TEST(data_of_a_high_priority_starves_neither_deadlines_nor_calls)
{
	struct evrdma_base_options options;
	struct fixture *f;

	evrdma_base_options_init(&options);
	options.data_priority = 0;
	f = fixture_with(&options);
	f->on_recv = answer;
	f->options.send_depth = f->options.recv_depth = 8;
	fixture_connect_pair(f);
	endpoint_send(f->client, 4, LEN);
	f->options.connect_timeout_ms = 100;
	fake_hold(FAKE_ADDR);
	fixture_connect(f);
	ck_assert_int_eq(evrdma_base_run_in_loop(f->base, note_run, NULL), 0);
	fixture_run_until(f, is_quiet, PATIENCE_MS);
	ck_assert(told.ran && told.timed_out && told.all < ENOUGH);
	fake_release(FAKE_ADDR);
	fixture_free(f);
}
END_TEST

/* Something that is always due, as data may be, until what is waited for has come or never will. */
static struct event data;
static const unsigned *awaited;
static unsigned turns;

static void be_due(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval now;

	if (!*awaited && turns++ < ENOUGH_TURNS)
		event_add(&data, &now);
}

static struct fixture *fixture_with_urgent_data(void)
{
	struct evrdma_base_options options;

	evrdma_base_options_init(&options);
	options.data_priority = 0;
	return fixture_with(&options);
}

static void start_data(struct fixture *f, const unsigned *until)
{
	awaited = until;
	turns = 0;
	event_assign(&data, f->loop, -1, 0, be_due, NULL);
	event_priority_set(&data, 0);
	event_active(&data, EV_TIMEOUT, 0);
}

static void stop_data(void)
{
	ck_assert_uint_lt(turns, ENOUGH_TURNS);
	event_del(&data);
}

START_TEST(data_of_a_high_priority_does_not_keep_the_deadline_of_a_join_waiting)
{
	struct fixture *f = fixture_with_urgent_data();
	struct sockaddr_in group;
	struct member m;

	fixture_address(&group, GROUP_A, 0);
	member_init(&m, f, 0);
	m.join_timeout_ms = 50;
	member_reopen(&m);
	member_run_until_ready(&m);
	fake_hold(FAKE_JOIN);
	member_try_join(&m, (struct sockaddr *)&group, 0);
	start_data(f, &m.group_errors);
	member_run_until_group_failed(&m);
	stop_data();
	ck_assert_int_eq(m.group_err, ETIMEDOUT);
	fake_release(FAKE_JOIN);
	fixture_free(f);
}
END_TEST

static void note_listener(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	told.ended |= event == EVRDMA_LISTENER_ERROR;
	told.all += event == EVRDMA_LISTENER_LISTENING;
}

static void refuse(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	evrdma_request_reject(request, NULL, 0);
}

static bool is_away(struct fixture *f)
{
	return told.ended && testbed.device_is_removed();
}

static bool listens_again(struct fixture *f)
{
	return told.all;
}

START_TEST(data_of_a_high_priority_does_not_keep_a_listener_away)
{
	struct fixture *f = fixture_with_urgent_data();
	struct evrdma_listener_options options;
	struct sockaddr_in sin;

	evrdma_listener_options_init(&options);
	options.relisten_ms = 50;
	fixture_address(&sin, testbed.ip, 0);
	f->listener = evrdma_listener_new(f->base, (struct sockaddr *)&sin, &options, refuse, f);
	ck_assert_ptr_nonnull(f->listener);
	evrdma_listener_set_event_cb(f->listener, note_listener);
	testbed.remove_device();
	fixture_run_until(f, is_away, PATIENCE_MS);
	testbed.add_device();
	start_data(f, &told.all);
	fixture_run_until(f, listens_again, PATIENCE_MS);
	stop_data();
	fixture_free(f);
}
END_TEST

TCase *budget_case(void)
{
	TCase *tc = tcase_create("budget");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, the_budget_holds_when_a_connection_ends);
	tcase_add_test(tc, the_budget_holds_for_work_that_is_cancelled);
	tcase_add_test(tc, the_budget_holds_for_messages_that_a_close_cancels);
	tcase_add_test(tc, the_budget_holds_for_messages_that_waited_for_the_end);
	tcase_add_test(tc, the_budget_is_that_of_all_queues);
	tcase_add_test(tc, data_of_a_high_priority_starves_neither_deadlines_nor_calls);
	if (testbed_has(TESTBED_DATAGRAMS | TESTBED_GROUPS))
		tcase_add_test(tc,
			data_of_a_high_priority_does_not_keep_the_deadline_of_a_join_waiting);
	tcase_add_test(tc, data_of_a_high_priority_does_not_keep_a_listener_away);
	return tc;
}
