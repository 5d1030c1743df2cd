/* Answers that do not come, come late, or come twice. */
#include "conform/fake.h"
#include "conform/member.h"
#include "conform/fixture.h"

#include <errno.h>
#include <rdma/rdma_cma.h>

#include "schedule/clock.h"
#include "util/clock.h"

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

static uint64_t lingering(struct fixture *f)
{
	struct evrdma_base_stats stats;

	evrdma_base_get_stats(f->base, &stats);
	return stats.ids_lingering;
}

static bool none_lingers(struct fixture *f)
{
	return !lingering(f);
}

static void accept_impatiently(struct fixture *f, struct evrdma_request *request)
{
	f->options.drain_timeout_ms = 100;
	endpoint_accept(fixture_endpoint_new(f, false), request);
}

/* Closed at once, whatever the peer says, and of its objects nothing but the id is left. */
static struct fixture *close_unanswered(enum fake_message withheld, bool disconnects)
{
	struct fixture *f = fixture_new();
	unsigned queues;

	f->options.drain_timeout_ms = 20000;
	f->on_request = accept_impatiently;
	fixture_connect_pair(f);
	queues = fake_live(FAKE_QP);
	fake_hold(withheld);
	if (disconnects)
		ck_assert_int_eq(evrdma_conn_disconnect(f->client->conn), 0);
	fixture_run_a_little(f);
	evrdma_conn_close(f->client->conn);
	fixture_run_until(f, fixture_client_is_closed, 2000);
	ck_assert_uint_lt(fake_live(FAKE_QP), queues);
	ck_assert_uint_eq(lingering(f), 1);
	return f;
}

static bool server_has_heard(struct fixture *f)
{
	return !f->server || f->server->down;
}

START_TEST(an_id_that_was_closed_waits_for_the_peers_answer)
{
	static const enum fake_message answers[] = { FAKE_DREQ, FAKE_DREP };
	struct fixture *f = close_unanswered(answers[_i / 2], _i % 2);

	fake_release(answers[_i / 2]);
	fixture_run_until(f, none_lingers, 10000);
	fixture_run_until(f, server_has_heard, 10000);
	fixture_free(f);
}
END_TEST

START_TEST(an_id_that_was_closed_goes_when_the_kernel_gives_up)
{
	struct fixture *f = close_unanswered(FAKE_DREQ, false);

	ck_assert_uint_eq(fake_time_out(FAKE_DREQ), 1);
	fixture_run_until(f, none_lingers, 10000);
	fixture_free(f);
}
END_TEST

START_TEST(an_id_that_was_closed_goes_with_its_device)
{
	struct fixture *f = close_unanswered(FAKE_DREQ, false);

	testbed.remove_device();
	fixture_run_until(f, none_lingers, 10000);
	fake_release(FAKE_DREQ);
	fixture_free(f);
	testbed.add_device();
}
END_TEST

/* A second, and not the minute that the kernel would take; fixture_free() waits for the base. */
START_TEST(an_id_that_was_closed_keeps_no_base_from_closing)
{
	struct fixture *f = close_unanswered(FAKE_DREQ, false);

	fixture_free(f);
}
END_TEST

static uint64_t counted(struct fixture *f)
{
	struct evrdma_listener_stats stats;

	evrdma_listener_get_stats(f->listener, &stats);
	return stats.connections;
}

static bool none_is_counted(struct fixture *f)
{
	return !counted(f);
}

static bool server_is_closed(struct fixture *f)
{
	return !f->server;
}

static struct fixture *close_counted(int drain_timeout_ms)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->options.drain_timeout_ms = drain_timeout_ms;
	fixture_connect_pair(f);
	fake_hold(FAKE_DREQ);
	evrdma_conn_close(f->server->conn);
	fixture_run_until(f, server_is_closed, 10000);
	ck_assert_uint_eq(lingering(f), 1);
	ck_assert_uint_eq(counted(f), 1);
	return f;
}

START_TEST(an_id_that_was_closed_counts_as_a_connection_until_it_goes)
{
	struct fixture *f = close_counted(20000);

	fake_release(FAKE_DREQ);
	fixture_run_until(f, none_lingers, 10000);
	ck_assert_uint_eq(counted(f), 0);
	fixture_free(f);
}
END_TEST

/* Or many that vanish with their network would keep all others out for a minute. */
START_TEST(an_id_that_was_closed_counts_no_longer_than_a_drain)
{
	struct fixture *f = close_counted(100);

	fixture_run_until(f, none_is_counted, 10000);
	ck_assert_uint_eq(lingering(f), 1);
	fixture_free(f);
}
END_TEST

/* What is not closed counts, whatever its id does. */
START_TEST(a_connection_that_ended_counts_until_it_is_closed)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	fixture_connect_pair(f);
	fake_hold(FAKE_DREQ);
	inject(f->server, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	fixture_run_until(f, server_is_down, 10000);
	fixture_run_a_little(f);
	fake_release(FAKE_DREQ);
	fixture_run_until(f, none_lingers, 10000);
	ck_assert_uint_eq(counted(f), 1);
	evrdma_conn_close(f->server->conn);
	fixture_run_until(f, none_is_counted, 10000);
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

/* --- the thin layer -------------------------------------------------------------------------- */

struct result {
	unsigned done;
	int err;
	enum evrdma_step step;
};

static void on_done(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct result *result = arg;

	result->done++;
	result->err = error ? error->err : 0;
	result->step = error ? error->step : EVRDMA_STEP_NONE;
}

static bool is_done(struct fixture *f)
{
	return ((struct result *)f->tag)->done;
}

/* Waits for the operation that the call began; gives what it came to. */
static int outcome(struct fixture *f, int ret)
{
	struct result *result = f->tag;

	ck_assert_int_eq(ret, 0);
	fixture_run_until(f, is_done, 10000);
	ck_assert_uint_eq(result->done, 1);
	result->done = 0;
	return result->err;
}

static struct evrdma_id *resolve_by_id(struct fixture *f, struct result *result)
{
	struct evrdma_id *id = evrdma_id_new(f->base, RDMA_PS_TCP, NULL, NULL);
	struct ibv_qp_init_attr init = { .cap = { 2, 2, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct sockaddr_in sin;

	f->tag = result;
	fixture_address(&sin, testbed.ip, 9);
	ck_assert_int_eq(outcome(f, evrdma_id_resolve_addr(id, NULL, (struct sockaddr *)&sin, 2000,
					    on_done, result)),
		0);
	ck_assert_int_eq(outcome(f, evrdma_id_resolve_route(id, 2000, on_done, result)), 0);
	ck_assert_int_eq(rdma_create_qp(evrdma_id_get_cm_id(id), NULL, &init), 0);
	return id;
}

START_TEST(the_deadline_ends_the_connect_of_an_id)
{
	struct result result = { 0 };
	struct fixture *f = fixture_new();
	struct evrdma_id *id = resolve_by_id(f, &result);

	fake_hold(FAKE_REQ);
	ck_assert_int_eq(outcome(f, evrdma_id_connect(id, NULL, 20, on_done, &result)), ETIMEDOUT);
	ck_assert_int_eq(result.step, EVRDMA_STEP_CONNECT);
	fake_release(FAKE_REQ);
	fixture_free(f);
	ck_assert_uint_eq(result.done, 0);
}
END_TEST

START_TEST(an_id_is_told_what_the_kernel_says_of_its_address_and_route)
{
	struct result result = { 0 };
	struct fixture *f = fixture_new();
	struct evrdma_id *id = evrdma_id_new(f->base, RDMA_PS_TCP, NULL, NULL);
	struct sockaddr_in sin;

	f->tag = &result;
	fixture_address(&sin, testbed.ip, 9);
	fake_answer(FAKE_ADDR, -EHOSTUNREACH);
	ck_assert_int_eq(outcome(f, evrdma_id_resolve_addr(id, NULL, (struct sockaddr *)&sin, 9,
					    on_done, &result)),
		EHOSTUNREACH);
	ck_assert_int_eq(outcome(f, evrdma_id_resolve_addr(id, NULL, (struct sockaddr *)&sin, 9,
					    on_done, &result)),
		0);
	fake_answer(FAKE_ROUTE, -EINVAL);
	ck_assert_int_eq(outcome(f, evrdma_id_resolve_route(id, 9, on_done, &result)), EINVAL);
	ck_assert_int_eq(result.step, EVRDMA_STEP_ROUTE);
	ck_assert_int_eq(outcome(f, evrdma_id_resolve_route(id, 9, on_done, &result)), 0);
	fixture_free(f);
}
END_TEST

START_TEST(the_kernels_own_not_supported_is_the_C_librarys)
{
	enum { KERNEL_ENOTSUPP = 524 };
	struct result result = { 0 };
	struct fixture *f = fixture_new();
	struct evrdma_id *id = evrdma_id_new(f->base, RDMA_PS_UDP, NULL, NULL);
	struct sockaddr_in sin;

	f->tag = &result;
	fixture_address(&sin, testbed.ip, 0);
	ck_assert_int_eq(evrdma_id_bind(id, (struct sockaddr *)&sin), 0);
	fixture_address(&sin, GROUP_A, 0);
	fake_fail_next("JOIN_MCAST", KERNEL_ENOTSUPP);
	ck_assert_int_eq(
		evrdma_id_join(id, (struct sockaddr *)&sin, 0, on_done, &result), -EOPNOTSUPP);
	fake_answer(FAKE_JOIN, -KERNEL_ENOTSUPP);
	ck_assert_int_eq(
		outcome(f, evrdma_id_join(id, (struct sockaddr *)&sin, 0, on_done, &result)),
		EOPNOTSUPP);
	ck_assert_int_eq(result.step, EVRDMA_STEP_JOIN);
	fixture_free(f);
}
END_TEST

/* --- groups --------------------------------------------------------------------------------- */

START_TEST(a_join_that_fails_is_told_and_the_endpoint_stays)
{
	struct fixture *f = fixture_new();
	struct sockaddr_in sin;
	struct member m;

	fixture_address(&sin, GROUP_A, 0);
	member_init(&m, f, 0);
	member_open(&m);
	member_run_until_ready(&m);
	fake_answer(FAKE_JOIN, -ENETUNREACH);
	member_try_join(&m, (struct sockaddr *)&sin, 0);
	member_run_until_group_failed(&m);
	ck_assert_int_eq(m.group_err, ENETUNREACH);
	evrdma_mcast_close(m.group);
	member_run_until_group_closed(&m);
	member_join_too(&m, GROUP_A, 0);
	ck_assert_uint_eq(m.errors, 0);
	fixture_free(f);
}
END_TEST

START_TEST(the_deadline_ends_a_join_whose_answer_is_withheld)
{
	struct fixture *f = fixture_new();
	struct sockaddr_in sin;
	struct member m;

	fixture_address(&sin, GROUP_A, 0);
	member_init(&m, f, 0);
	m.join_timeout_ms = 30;
	member_reopen(&m);
	member_run_until_ready(&m);
	fake_hold(FAKE_JOIN);
	member_try_join(&m, (struct sockaddr *)&sin, 0);
	member_run_until_group_failed(&m);
	ck_assert_int_eq(m.group_err, ETIMEDOUT);
	/* An answer that is late finds nobody. */
	fake_release(FAKE_JOIN);
	fixture_run_a_little(f);
	ck_assert_uint_eq(m.joined, 0);
	evrdma_mcast_close(m.group);
	member_run_until_group_closed(&m);
	member_join_too(&m, GROUP_A, 0);
	ck_assert_uint_eq(m.errors, 0);
	fixture_free(f);
}
END_TEST

START_TEST(an_address_handle_outlives_its_group_until_the_last_send)
{
	struct fixture *f = fixture_new();
	struct member m;
	unsigned handles;
	int turn;

	member_join(&m, f, 0, GROUP_A, EVRDMA_MCAST_OPT_SENDONLY);
	handles = fake_live(FAKE_AH);
	fake_work_by_hand(true);
	ck_assert_int_eq(member_send(&m, 64, NULL), 0);
	evrdma_mcast_close(m.group);
	for (turn = 0; turn < TURNS; turn++) {
		fixture_run_turns(f, 1);
		ck_assert_uint_eq(fake_live(FAKE_AH), handles);
		ck_assert_uint_eq(m.groups_closed, 0);
	}
	ck_assert_uint_eq(fake_live(FAKE_MEMBERSHIP), 0);
	fake_work_by_hand(false);
	member_run_until_group_closed(&m);
	/* It is kept for who comes back. */
	member_join_too(&m, GROUP_A, EVRDMA_MCAST_OPT_SENDONLY);
	ck_assert_uint_eq(fake_live(FAKE_AH), handles);
	fixture_free(f);
	ck_assert_uint_eq(fake_live(FAKE_AH), 0);
	ck_assert_uint_eq(m.sent_ok, 1);
}
END_TEST

/* --- keepalive ------------------------------------------------------------------------------ */

static bool one_is_down(struct fixture *f)
{
	return f->client->down || f->server->down;
}

START_TEST(a_peer_that_answers_no_keepalive_is_gone)
{
	struct fixture *f = fixture_in_a_hurry();

	f->options.keepalive_ms = 40;
	fixture_connect_pair(f);
	fake_work_by_hand(true);
	fixture_run_until(f, one_is_down, 10000);
	ck_assert(f->client->error == ETIMEDOUT || f->server->error == ETIMEDOUT);
	fake_work_by_hand(false);
	fixture_free(f);
}
END_TEST

enum { KEEPALIVE_MS = 300 };

static struct fixture *pair_with_keepalive(void)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->options.keepalive_ms = KEEPALIVE_MS;
	fixture_connect_pair(f);
	fake_work_by_hand(true);
	return f;
}

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
	struct fixture *f = pair_with_keepalive();

	fixture_run_until(f, both_have_asked, 10000);
	ck_assert_uint_eq(fake_step(2), 2);
	hold_up(2 * KEEPALIVE_MS);
	fixture_run_a_little(f);
	expect_none_is_down(f);
}
END_TEST

START_TEST(who_is_asked_late_has_as_much_time_to_answer)
{
	struct fixture *f = pair_with_keepalive();

	hold_up(3 * KEEPALIVE_MS);
	fixture_run_until(f, both_have_asked, 10000);
	expect_none_is_down(f);
}
END_TEST

TCase *silence_case(void)
{
	static const int answers = sizeof(withheld_answers) / sizeof(withheld_answers[0]);
	TCase *tc = tcase_create("silence");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_peer_that_answers_no_keepalive_is_gone);
	tcase_add_test(tc, an_answer_that_came_while_the_loop_was_held_up_counts);
	tcase_add_test(tc, who_is_asked_late_has_as_much_time_to_answer);
	tcase_add_loop_test(tc, the_deadline_ends_a_connect_whose_answer_is_withheld, 0, answers);
	tcase_add_test(tc, the_deadline_ends_a_connect_to_a_silent_host);
	tcase_add_loop_test(tc, an_address_without_a_device_is_an_error, 0, 3);
	tcase_add_test(tc, a_disconnect_told_twice_and_late_ends_once);
	tcase_add_test(tc, events_that_only_inform_leave_a_connection_as_it_is);
	tcase_add_test(tc, a_peer_that_is_not_reached_any_more_ends_its_connection);
	tcase_add_test(tc, a_peer_that_refuses_an_established_connection_has_left_it);
	tcase_add_test(tc, the_deadline_ends_the_connect_of_an_id);
	tcase_add_test(tc, an_id_is_told_what_the_kernel_says_of_its_address_and_route);
	if (fake_testbed_kind == FAKE_IWARP)
		return tc; /* none of the rest is there */
	tcase_add_test(tc, a_peer_that_gave_up_is_told_as_that);
	tcase_add_test(tc, a_peer_that_leaves_before_its_reply_has_reset_the_connection);
	tcase_add_loop_test(tc, sends_to_a_peer_without_buffers_end_with_the_retries, 1, TURNS);
	tcase_add_test(tc, a_disconnect_tells_a_lost_send_from_a_late_answer);
	tcase_add_test(tc, the_deadline_ends_an_accept_that_is_never_confirmed);
	tcase_add_test(tc, data_that_overtakes_the_confirmation_connects);
	tcase_add_loop_test(tc, a_disconnect_that_is_not_answered_is_an_error_once, 0, 2);
	tcase_add_loop_test(tc, an_id_that_was_closed_waits_for_the_peers_answer, 0, 4);
	tcase_add_test(tc, an_id_that_was_closed_goes_when_the_kernel_gives_up);
	tcase_add_test(tc, an_id_that_was_closed_goes_with_its_device);
	tcase_add_test(tc, an_id_that_was_closed_keeps_no_base_from_closing);
	tcase_add_test(tc, an_id_that_was_closed_counts_as_a_connection_until_it_goes);
	tcase_add_test(tc, an_id_that_was_closed_counts_no_longer_than_a_drain);
	tcase_add_test(tc, a_connection_that_ended_counts_until_it_is_closed);
	tcase_add_test(tc, the_kernels_own_not_supported_is_the_C_librarys);
	tcase_add_test(tc, a_listener_without_options_keeps_only_so_many_requests);
	if (!testbed_has(TESTBED_DATAGRAMS | TESTBED_GROUPS))
		return tc;
	tcase_add_test(tc, the_deadline_ends_a_join_whose_answer_is_withheld);
	tcase_add_test(tc, a_join_that_fails_is_told_and_the_endpoint_stays);
	tcase_add_test(tc, an_address_handle_outlives_its_group_until_the_last_send);
	return tc;
}
