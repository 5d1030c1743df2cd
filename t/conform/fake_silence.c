/* Answers that do not come, come late, or come twice. */
#include "conform/fake.h"
#include "conform/fixture.h"

#include <errno.h>
#include <rdma/rdma_cma.h>

static bool server_is_down(struct fixture *f)
{
	return f->server && f->server->down;
}

static bool client_is_up(struct fixture *f)
{
	return f->client && f->client->connected;
}

static bool server_got_one(struct fixture *f)
{
	return f->server && f->server->received == 1;
}

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static struct fixture *fixture_in_a_hurry(void)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->options.connect_timeout_ms = 300;
	f->options.drain_timeout_ms = 30;
	fixture_listen(f);
	return f;
}

static void inject(struct endpoint *endpoint, enum rdma_cm_event_type event, int status)
{
	ck_assert_int_eq(fake_inject(evrdma_conn_get_cm_id(endpoint->conn), event, status), 0);
}

/* --- strangers ------------------------------------------------------------------------------ */

enum { MOST_PENDING = 8192, AT_ONCE = 64, TURNS = 8 };

static unsigned arrived, came;

static void leave_it(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	arrived++;
}

static bool enough_arrived(struct fixture *f)
{
	struct evrdma_listener_stats stats;

	evrdma_listener_get_stats(f->listener, &stats);
	return stats.requests == came;
}

static void strangers_come(struct fixture *f, unsigned n)
{
	unsigned i;

	while (came < n) {
		for (i = 0; i < AT_ONCE && came < n; i++, came++)
			ck_assert_int_eq(fake_inject(evrdma_listener_get_cm_id(f->listener),
						 RDMA_CM_EVENT_CONNECT_REQUEST, 0),
				0);
		fixture_run_until(f, enough_arrived, 20000);
	}
}

START_TEST(a_listener_without_options_keeps_only_so_many_requests)
{
	struct fixture *f = fixture_new();
	struct evrdma_listener_stats stats;
	struct sockaddr_in sin;

	fixture_address(&sin, testbed.ip, 0);
	f->listener = evrdma_listener_new(f->base, (struct sockaddr *)&sin, NULL, leave_it, NULL);
	strangers_come(f, MOST_PENDING + 3);
	evrdma_listener_get_stats(f->listener, &stats);
	ck_assert_uint_eq(arrived, MOST_PENDING);
	ck_assert_uint_eq(stats.pending, MOST_PENDING);
	ck_assert_uint_eq(stats.refused_pending, 3);
	fixture_free(f);
}
END_TEST

/* --- while it connects ---------------------------------------------------------------------- */

static const struct {
	enum fake_message withheld;
	enum evrdma_step step;
} withheld_answers[] = {
	{ FAKE_ADDR, EVRDMA_STEP_ADDR },
	{ FAKE_ROUTE, EVRDMA_STEP_ROUTE },
	{ FAKE_REQ, EVRDMA_STEP_CONNECT },
	{ FAKE_REP, EVRDMA_STEP_CONNECT },
	{ FAKE_REJ, EVRDMA_STEP_CONNECT },
};

static void reject(struct fixture *f, struct evrdma_request *request)
{
	ck_assert_int_eq(evrdma_request_reject(request, NULL, 0), 0);
}

START_TEST(the_deadline_ends_a_connect_whose_answer_is_withheld)
{
	struct fixture *f = fixture_in_a_hurry();

	if (withheld_answers[_i].withheld == FAKE_REJ)
		f->on_request = reject;
	fake_hold(withheld_answers[_i].withheld);
	fixture_connect(f);
	fixture_run_until(f, fixture_client_is_down, 10000);
	ck_assert_int_eq(f->client->error, ETIMEDOUT);
	ck_assert_int_eq(f->client->step, withheld_answers[_i].step);
	fake_release(withheld_answers[_i].withheld);
	fixture_free(f);
}
END_TEST

START_TEST(the_deadline_ends_a_connect_to_a_silent_host)
{
	struct fixture *f = fixture_in_a_hurry();
	const char *const ips[] = { [FAKE_ROCE] = "192.0.2.250",
		[FAKE_IWARP] = "198.51.100.250",
		[FAKE_IB] = "203.0.113.250" };

	fixture_connect_to(f, ips[fake_testbed_kind], 9);
	fixture_run_until(f, fixture_client_is_down, 10000);
	ck_assert_int_eq(f->client->error, ETIMEDOUT);
	ck_assert_int_eq(f->client->step, EVRDMA_STEP_CONNECT);
	/* The end of the kernel's own patience, which iWARP waits for. */
	if (fake_testbed_kind == FAKE_IWARP)
		ck_assert_uint_eq(fake_time_out(FAKE_REQ), 1);
	fixture_free(f);
}
END_TEST

START_TEST(an_address_without_a_device_is_an_error)
{
	static const struct {
		const char *ip;
		int error;
	} addresses[] = { { FAKE_NO_RDMA_IP, ENODEV }, { FAKE_NO_ROUTE_IP, ENETUNREACH },
		{ "192.0.2.77", ETIMEDOUT } };
	struct fixture *f = fixture_in_a_hurry();

	fixture_connect_to(f, addresses[_i].ip, 9);
	fixture_run_until(f, fixture_client_is_down, 10000);
	ck_assert_int_eq(f->client->error, addresses[_i].error);
	ck_assert_int_eq(f->client->step, EVRDMA_STEP_ADDR);
	fixture_free(f);
}
END_TEST

START_TEST(the_deadline_ends_an_accept_that_is_never_confirmed)
{
	struct fixture *f = fixture_in_a_hurry();

	fake_hold(FAKE_RTU);
	fixture_connect(f);
	fixture_run_until(f, server_is_down, 10000);
	ck_assert_int_eq(f->server->error, ETIMEDOUT);
	ck_assert_int_eq(f->server->step, EVRDMA_STEP_ACCEPT);
	ck_assert(!f->server->connected);
	fixture_free(f);
}
END_TEST

/* The fixture's callbacks check that CONNECTED is told once, and before the message. */
START_TEST(data_that_overtakes_the_confirmation_connects)
{
	struct fixture *f = fixture_new();

	fake_hold(FAKE_RTU);
	fixture_listen(f);
	fixture_connect(f);
	fixture_run_until(f, client_is_up, 10000);
	endpoint_send(f->client, 1, 64);
	fixture_run_until(f, server_got_one, 10000);
	ck_assert(f->server->connected);
	fake_release(FAKE_RTU);
	ck_assert_int_eq(evrdma_conn_disconnect(f->server->conn), 0);
	fixture_run_until(f, fixture_none_live, 10000);
	fixture_free(f);
}
END_TEST

/* --- while it disconnects ------------------------------------------------------------------- */

START_TEST(a_disconnect_that_is_not_answered_is_an_error_once)
{
	enum fake_message withheld = _i ? FAKE_DREP : FAKE_DREQ;
	struct fixture *f = fixture_in_a_hurry();

	f->options.connect_timeout_ms = 10000;
	fixture_connect_pair(f);
	fake_hold(withheld);
	ck_assert_int_eq(evrdma_conn_disconnect(f->client->conn), 0);
	fixture_run_until(f, fixture_client_is_down, 10000);
	ck_assert_int_eq(f->client->error, ETIMEDOUT);
	ck_assert_int_eq(f->client->step, EVRDMA_STEP_DISCONNECT);
	fake_release(withheld);
	fixture_run_until(f, server_is_down, 10000);
	ck_assert_int_eq(f->server->error, 0);
	fixture_free(f);
}
END_TEST

START_TEST(a_disconnect_told_twice_and_late_ends_once)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	fixture_connect_pair(f);
	inject(f->client, RDMA_CM_EVENT_DISCONNECTED, 0);
	inject(f->client, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
	inject(f->client, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	fixture_run_until(f, fixture_client_is_down, 10000);
	ck_assert_int_eq(f->client->error, 0);
	fixture_run_until(f, server_is_down, 10000);
	fixture_free(f);
}
END_TEST

static bool server_got_ten(struct fixture *f)
{
	return f->server->received == 10;
}

static void count_changes(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	*(unsigned *)endpoint->fixture->tag += event == EVRDMA_CONN_ADDR_CHANGED;
}

START_TEST(events_that_only_inform_leave_a_connection_as_it_is)
{
	struct fixture *f = fixture_new();
	unsigned changes = 0;

	f->tag = &changes;
	f->on_event = count_changes;
	fixture_connect_pair(f);
	inject(f->client, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	inject(f->client, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	endpoint_send(f->client, 10, 64);
	fixture_run_until(f, server_got_ten, 10000);
	ck_assert(!f->client->down);
	ck_assert_uint_eq(changes, 1);
	fixture_free(f);
}
END_TEST

/* --- requests that wait too long ------------------------------------------------------------ */

static struct evrdma_request *waiting;

static void let_wait(struct fixture *f, struct evrdma_request *request)
{
	waiting = request;
}

static bool one_waits(struct fixture *f)
{
	return waiting;
}

START_TEST(a_peer_that_gave_up_is_told_as_that)
{
	struct fixture *f = fixture_new();
	struct endpoint *server;

	waiting = NULL;
	f->on_request = let_wait;
	f->on_event = keep_open;
	fixture_listen(f);
	f->options.connect_timeout_ms = 50;
	fixture_connect(f);
	fixture_run_until(f, one_waits, 10000);
	fixture_run_until(f, fixture_client_is_down, 10000);
	evrdma_conn_close(f->client->conn);
	fixture_run_a_little(f);
	server = fixture_endpoint_new(f, false);
	ck_assert_int_eq(evrdma_conn_accept(server->conn, waiting), 0);
	fixture_run_until(f, server_is_down, 10000);
	ck_assert_int_eq(server->error, ECONNRESET);
	ck_assert_int_eq(server->step, EVRDMA_STEP_ACCEPT);
	fixture_free(f);
}
END_TEST

static bool reply_is_sent(struct fixture *f)
{
	return fake_held(FAKE_REP);
}

START_TEST(a_peer_that_leaves_before_its_reply_has_reset_the_connection)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	fixture_listen(f);
	fake_hold(FAKE_REP);
	fixture_connect(f);
	fixture_run_until(f, reply_is_sent, 10000);
	evrdma_conn_close(f->client->conn);
	fixture_run_until(f, server_is_down, 10000);
	ck_assert_int_eq(f->server->error, ECONNRESET);
	ck_assert_int_eq(f->server->step, EVRDMA_STEP_ACCEPT);
	fake_release(FAKE_REP);
	fixture_free(f);
}
END_TEST

/* The kernel says so when the peer's address leads elsewhere, or its handshake had no end. */
START_TEST(a_peer_that_is_not_reached_any_more_ends_its_connection)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	fixture_connect_pair(f);
	inject(f->client, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	fixture_run_until(f, fixture_client_is_down, 10000);
	ck_assert_int_eq(f->client->error, ETIMEDOUT);
	fixture_free(f);
}
END_TEST

/* The kernel of a peer that destroyed its id before the handshake had ended refuses it so late. */
START_TEST(a_peer_that_refuses_an_established_connection_has_left_it)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	fixture_connect_pair(f);
	inject(f->client, RDMA_CM_EVENT_REJECTED, 28);
	fixture_run_until(f, fixture_client_is_down, 10000);
	ck_assert_int_eq(f->client->error, 0);
	fixture_free(f);
}
END_TEST

/* --- a peer that no longer takes data ------------------------------------------------------- */

static void accept_without_receives(struct fixture *f, struct evrdma_request *request)
{
	f->options.recv_pool = NULL;
	endpoint_accept(fixture_endpoint_new(f, false), request);
}

START_TEST(sends_to_a_peer_without_buffers_end_with_the_retries)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->on_request = accept_without_receives;
	fixture_connect_pair(f);
	endpoint_send(f->client, 8, 64);
	fixture_run_turns(f, _i);
	ck_assert_uint_eq(fake_time_out_work(), 1);
	fixture_run_until(f, fixture_client_is_down, 10000);
	ck_assert_int_eq(f->client->error, ENOBUFS);
	ck_assert_int_eq(f->client->step, EVRDMA_STEP_TRANSFER);
	evrdma_conn_close(f->client->conn);
	fixture_free(f);
}
END_TEST

START_TEST(a_disconnect_tells_a_lost_send_from_a_late_answer)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->on_request = accept_without_receives;
	f->options.drain_timeout_ms = 30;
	fixture_connect_pair(f);
	endpoint_send(f->client, 1, 64);
	ck_assert_int_eq(evrdma_conn_disconnect(f->client->conn), 0);
	fixture_run_until(f, fixture_client_is_down, 10000);
	ck_assert_int_eq(f->client->error, ETIMEDOUT);
	ck_assert_int_eq(f->client->step, EVRDMA_STEP_DELIVER);
	fixture_free(f);
}
END_TEST

TCase *silence_case(void)
{
	static const int answers = sizeof(withheld_answers) / sizeof(withheld_answers[0]);
	TCase *tc = tcase_create("silence");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, the_deadline_ends_a_connect_whose_answer_is_withheld, 0, answers);
	tcase_add_test(tc, the_deadline_ends_a_connect_to_a_silent_host);
	tcase_add_loop_test(tc, an_address_without_a_device_is_an_error, 0, 3);
	tcase_add_test(tc, a_disconnect_told_twice_and_late_ends_once);
	tcase_add_test(tc, events_that_only_inform_leave_a_connection_as_it_is);
	tcase_add_test(tc, a_peer_that_is_not_reached_any_more_ends_its_connection);
	tcase_add_test(tc, a_peer_that_refuses_an_established_connection_has_left_it);
	if (fake_testbed_kind == FAKE_IWARP)
		return tc; /* none of the rest is there */
	tcase_add_test(tc, a_peer_that_gave_up_is_told_as_that);
	tcase_add_test(tc, a_peer_that_leaves_before_its_reply_has_reset_the_connection);
	tcase_add_loop_test(tc, sends_to_a_peer_without_buffers_end_with_the_retries, 1, TURNS);
	tcase_add_test(tc, a_disconnect_tells_a_lost_send_from_a_late_answer);
	tcase_add_test(tc, the_deadline_ends_an_accept_that_is_never_confirmed);
	tcase_add_test(tc, data_that_overtakes_the_confirmation_connects);
	tcase_add_loop_test(tc, a_disconnect_that_is_not_answered_is_an_error_once, 0, 2);
	tcase_add_test(tc, a_listener_without_options_keeps_only_so_many_requests);
	return tc;
}
