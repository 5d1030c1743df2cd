/* Several addresses of one peer, of which one is silent or slow: each has its turn. */
#include "conform/fake.h"
#include "conform/fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>

#include "schedule/clock.h"
#include "util/clock.h"

enum { PATIENCE_MS = 20000, TURN_MS = 50, MESSAGES = 16, TURNS = 2 * MESSAGES };

static const char *silent_ip(void)
{
	static const char *const ips[] = { [FAKE_ROCE] = "192.0.2.250",
		[FAKE_IWARP] = "198.51.100.250",
		[FAKE_IB] = "203.0.113.250" };

	return ips[fake_testbed_kind];
}

static struct fixture *fixture_of_turns(void)
{
	struct evrdma_base_options options;
	struct fixture *f = fixture_new();

	evrdma_base_options_init(&options);
	options.cq_budget = 1;
	options.turn_budget_us = 0;
	fixture_replace_base(f, &options);
	f->options.attempt_timeout_ms = TURN_MS;
	fixture_listen(f);
	return f;
}

static uint16_t port_of(const struct fixture *f)
{
	return evrdma_listener_get_port(f->listener);
}

static bool client_is_up(struct fixture *f)
{
	return f->client && f->client->connected;
}

static bool both_are_up(struct fixture *f)
{
	return client_is_up(f) && f->server && f->server->connected;
}

static bool tries(struct fixture *f, const char *ip)
{
	const struct rdma_cm_id *cm = evrdma_conn_get_cm_id(f->client->conn);
	struct sockaddr_in sin;

	fixture_address(&sin, ip, 0);
	return cm && cm->route.addr.dst_sin.sin_addr.s_addr == sin.sin_addr.s_addr;
}

static bool tries_the_silent_one(struct fixture *f)
{
	return tries(f, silent_ip());
}

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

/* Its answer comes when its turn is over. */
static void let_the_first_be_slow(struct fixture *f)
{
	const char *const ips[] = { testbed.ip, silent_ip() };

	fake_hold(FAKE_REP);
	fixture_connect_to_each(f, ips, 2, port_of(f));
	fixture_run_until(f, tries_the_silent_one, PATIENCE_MS);
	fake_release(FAKE_REP);
}

/* --- a silent one --------------------------------------------------------------------------- */

START_TEST(a_silent_first_address_leaves_time_for_the_next)
{
	const char *const ips[] = { silent_ip(), testbed.ip };
	struct fixture *f = fixture_of_turns();

	f->options.connect_timeout_ms = PATIENCE_MS;
	fixture_connect_to_each(f, ips, 2, port_of(f));
	fixture_run_until(f, both_are_up, PATIENCE_MS / 2);
	ck_assert_uint_eq(f->established, 2);
	fixture_free(f);
}
END_TEST

START_TEST(the_deadline_ends_a_connect_to_silent_addresses)
{
	const char *const ips[] = { silent_ip(), silent_ip() };
	struct fixture *f = fixture_of_turns();

	f->on_event = keep_open;
	f->options.connect_timeout_ms = 10 * TURN_MS;
	fixture_connect_to_each(f, ips, 2, port_of(f));
	fixture_run_until(f, fixture_client_is_down, PATIENCE_MS);
	ck_assert_int_eq(f->client->error, ETIMEDOUT);
	fixture_free(f);
}
END_TEST

START_TEST(close_ends_an_attempt_whose_turn_is_over)
{
	struct fixture *f = fixture_of_turns();

	let_the_first_be_slow(f);
	evrdma_conn_close(f->client->conn);
	fixture_run_until(f, fixture_none_live, PATIENCE_MS);
	fixture_free(f);
}
END_TEST

/* The end of the second is made in a later turn, and all its time is over before that. */
START_TEST(a_connect_that_was_closed_has_no_more_turns)
{
	const char *const ips[] = { silent_ip(), silent_ip() };
	struct fixture *f = fixture_of_turns();
	struct endpoint *first = fixture_endpoint_new(f, true);

	f->options.connect_timeout_ms = TURN_MS / 2;
	fixture_connect_to_each(f, ips, 2, port_of(f));
	fixture_run_until(f, tries_the_silent_one, PATIENCE_MS);
	clock_advance_us(2 * TURN_MS * EVR_US_PER_MS);
	evrdma_conn_close(first->conn);
	evrdma_conn_close(f->client->conn);
	fixture_run_until(f, fixture_none_live, PATIENCE_MS);
	fixture_free(f);
}
END_TEST

/* --- a slow one ----------------------------------------------------------------------------- */

START_TEST(a_slow_address_has_another_turn_after_a_silent_one)
{
	struct fixture *f = fixture_of_turns();

	let_the_first_be_slow(f);
	fixture_run_until(f, both_are_up, PATIENCE_MS);
	fixture_free(f);
}
END_TEST

static bool an_answer_is_held(struct fixture *f)
{
	return fake_held(FAKE_REP);
}

/* The loop goes on meanwhile. */
static void let_time_pass(struct fixture *f, unsigned ms)
{
	fixture_run_a_little(f);
	clock_advance_us((uint64_t)ms * EVR_US_PER_MS);
	fixture_run_a_little(f);
}

static bool server_got_one(struct fixture *f)
{
	return f->server->received == 1;
}

static void be_slow(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	clock_advance_us(500);
}

/* Another connection has so many messages to be told of, one in each turn. */
static void keep_busy(struct fixture *f, struct endpoint *busy)
{
	fake_work_by_hand(true);
	endpoint_send(busy, MESSAGES, 64);
	fixture_run_a_little(f);
	ck_assert_uint_eq(fake_step(MESSAGES), MESSAGES);
	fake_work_by_hand(false);
}

static struct endpoint *connect_busy_pair(struct fixture *f)
{
	struct endpoint *busy;

	f->options.send_depth = f->options.recv_depth = MESSAGES;
	f->on_recv = be_slow;
	fixture_connect_pair(f);
	busy = f->client;
	f->client = f->server = NULL;
	return busy;
}

/* The answer comes so many turns of the loop after the turn of the address was over. */
static void answer_after(int turns)
{
	const char *const ips[] = { testbed.ip, silent_ip() };
	struct fixture *f = fixture_of_turns();
	struct endpoint *busy = connect_busy_pair(f);

	fake_hold(FAKE_REP);
	fixture_connect_to_each(f, ips, 2, port_of(f));
	fixture_run_until(f, an_answer_is_held, PATIENCE_MS);
	keep_busy(f, busy);
	clock_advance_us(2 * TURN_MS * EVR_US_PER_MS);
	fixture_run_turns(f, turns);
	fake_release(FAKE_REP);
	fixture_run_until(f, both_are_up, PATIENCE_MS);
	fixture_run_a_little(f);
	endpoint_send(f->client, 1, 64);
	fixture_run_until(f, server_got_one, PATIENCE_MS);
	fixture_free(f);
}

START_TEST(whenever_the_answer_comes_the_connection_is_a_whole_one)
{
	int turns;

	for (turns = 0; turns < TURNS; turns += 3)
		answer_after(turns);
}
END_TEST

/* The queue of the first attempt breaks, and the good answer to that comes so many turns later. */
static void answer_after_the_end(int turns)
{
	const char *const ips[] = { testbed.ip, testbed.ip };
	struct fixture *f = fixture_of_turns();
	struct ibv_qp *qp;
	uint32_t broken;

	f->on_event = keep_open;
	fake_hold(FAKE_REP);
	fixture_connect_to_each(f, ips, 2, port_of(f));
	fixture_run_until(f, an_answer_is_held, PATIENCE_MS);
	qp = evrdma_conn_get_cm_id(f->client->conn)->qp;
	broken = qp->qp_num;
	fake_async_qp(qp, IBV_EVENT_QP_FATAL);
	fixture_run_turns(f, turns);
	fake_release(FAKE_REP);
	fixture_run_until(f, client_is_up, PATIENCE_MS);
	/* When both came at once, the answer may be the first. */
	if (evrdma_conn_get_cm_id(f->client->conn)->qp->qp_num == broken)
		fixture_run_until(f, fixture_client_is_down, PATIENCE_MS);
	fixture_free(f);
}

START_TEST(what_broke_while_it_connected_is_not_up_for_ever)
{
	int turns;

	for (turns = 0; turns < 12; turns++)
		answer_after_the_end(turns);
}
END_TEST

static bool a_confirmation_is_held(struct fixture *f)
{
	return fake_held(FAKE_RTU);
}

static bool server_is_down(struct fixture *f)
{
	return f->server->down;
}

/* The queue says that it is over before the handshake is, and nobody says why. */
START_TEST(what_was_over_before_it_was_connected_ends_in_time)
{
	struct fixture *f = fixture_of_turns();

	f->on_event = keep_open;
	fake_hold(FAKE_RTU);
	fixture_connect(f);
	fixture_run_until(f, a_confirmation_is_held, PATIENCE_MS);
	fake_async_qp(evrdma_conn_get_cm_id(f->server->conn)->qp, IBV_EVENT_QP_LAST_WQE_REACHED);
	fixture_run_a_little(f);
	fake_release(FAKE_RTU);
	fixture_run_until(f, server_is_down, PATIENCE_MS);
	ck_assert(f->server->connected);
	ck_assert_int_eq(f->server->error, ECONNRESET);
	fixture_free(f);
}
END_TEST

/* Lost on its way, and the peer's disconnect is read before what it had sent. */
START_TEST(who_spoke_and_left_before_it_was_confirmed_has_left)
{
	struct fixture *f = fixture_of_turns();

	f->on_event = keep_open;
	fake_hold(FAKE_RTU);
	fixture_connect(f);
	fixture_run_until(f, client_is_up, PATIENCE_MS);
	ck_assert_int_eq(fake_inject(evrdma_conn_get_cm_id(f->server->conn),
				 RDMA_CM_EVENT_DISCONNECTED, 0),
		0);
	endpoint_send(f->client, 2, 64);
	fixture_run_until(f, server_is_down, PATIENCE_MS);
	ck_assert(f->server->connected);
	ck_assert_uint_eq(f->server->received, 2);
	ck_assert_int_eq(f->server->error, 0);
	fixture_free(f);
}
END_TEST

/*
 * Closed before its confirmation came, which comes while it ends. Once the peer is asked to
 * disconnect, the id stays until that is answered; and it is asked, unless the id went first.
 */
static void confirm_while_it_ends(int turns)
{
	struct fixture *f = fixture_of_turns();

	f->on_event = keep_open;
	fake_hold(FAKE_RTU);
	fixture_connect(f);
	fixture_run_until(f, a_confirmation_is_held, PATIENCE_MS);
	fake_hold(FAKE_DREQ);
	evrdma_conn_close(f->server->conn);
	fixture_run_turns(f, turns);
	fake_release(FAKE_RTU);
	fixture_run_a_little(f);
	if (!f->server)
		ck_assert_int_eq(fixture_none_lingers(f), !fake_held(FAKE_DREQ));
	fake_release(FAKE_DREQ);
	fixture_run_until(f, fixture_client_is_down, PATIENCE_MS);
	fixture_run_until(f, fixture_none_lingers, PATIENCE_MS);
	fixture_free(f);
}

START_TEST(a_confirmation_that_comes_while_it_ends_is_not_forgotten)
{
	int turns;

	for (turns = 0; turns < 8; turns++)
		confirm_while_it_ends(turns);
}
END_TEST

START_TEST(the_only_address_has_all_the_time)
{
	const char *const ips[] = { testbed.ip };
	struct fixture *f = fixture_of_turns();

	fake_hold(FAKE_REP);
	fixture_connect_to_each(f, ips, 1, port_of(f));
	let_time_pass(f, 4 * TURN_MS);
	fake_release(FAKE_REP);
	fixture_run_until(f, both_are_up, PATIENCE_MS);
	ck_assert_uint_eq(f->established, 2);
	fixture_free(f);
}
END_TEST

/* An iWARP device does not let go of a connect before it was answered: the answer counts. */
START_TEST(an_answer_after_its_turn_connects_where_the_device_waits_for_it)
{
	const char *const ips[] = { testbed.ip, silent_ip() };
	struct fixture *f = fixture_of_turns();

	fake_hold(FAKE_REP);
	fixture_connect_to_each(f, ips, 2, port_of(f));
	let_time_pass(f, 4 * TURN_MS);
	ck_assert(tries(f, testbed.ip));
	fake_release(FAKE_REP);
	fixture_run_until(f, both_are_up, PATIENCE_MS);
	ck_assert_uint_eq(f->established, 2);
	fixture_free(f);
}
END_TEST

/* --- ports ---------------------------------------------------------------------------------- */

/* The CM's choice on iWARP, where it does not know what TCP has. */
START_TEST(a_port_that_is_taken_is_followed_by_another)
{
	struct fixture *f = fixture_of_turns();

	fake_fail_next("CONNECT", EADDRINUSE);
	fixture_connect(f);
	fixture_run_until(f, both_are_up, PATIENCE_MS);
	ck_assert_uint_eq(fake_calls("CONNECT"), 2);
	fixture_free(f);
}
END_TEST

static void take_each_port(void)
{
	fake_fail_next("CONNECT", EADDRINUSE);
}

START_TEST(the_end_of_ports_ends_the_attempt)
{
	struct fixture *f = fixture_of_turns();

	f->on_event = keep_open;
	fake_each_call(take_each_port);
	fixture_connect(f);
	fixture_run_until(f, fixture_client_is_down, PATIENCE_MS);
	fake_each_call(NULL);
	fake_fail_later("CONNECT", 0, 0);
	ck_assert_int_eq(f->client->error, EADDRINUSE);
	ck_assert_uint_eq(fake_calls("CONNECT"), 10);
	fixture_free(f);
}
END_TEST

START_TEST(a_port_that_was_given_is_the_only_one)
{
	struct fixture *f = fixture_of_turns();
	struct endpoint *client = fixture_endpoint_new(f, true);
	struct sockaddr_in src, dst;

	f->on_event = keep_open;
	fixture_address(&src, testbed.ip, 1234);
	fixture_address(&dst, testbed.ip, port_of(f));
	fake_fail_next("CONNECT", EADDRINUSE);
	ck_assert_int_eq(evrdma_conn_connect(client->conn, (struct sockaddr *)&src,
				 (struct sockaddr *)&dst),
		0);
	fixture_run_until(f, fixture_client_is_down, PATIENCE_MS);
	ck_assert_int_eq(f->client->error, EADDRINUSE);
	ck_assert_uint_eq(fake_calls("CONNECT"), 1);
	fixture_free(f);
}
END_TEST

TCase *attempt_case(void)
{
	TCase *tc = tcase_create("attempt");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, the_only_address_has_all_the_time);
	tcase_add_test(tc, a_port_that_is_taken_is_followed_by_another);
	tcase_add_test(tc, the_end_of_ports_ends_the_attempt);
	tcase_add_test(tc, a_port_that_was_given_is_the_only_one);
	tcase_add_test(tc, whenever_the_answer_comes_the_connection_is_a_whole_one);
	tcase_add_test(tc, what_broke_while_it_connected_is_not_up_for_ever);
	if (fake_testbed_kind == FAKE_IWARP) {
		tcase_add_test(tc, an_answer_after_its_turn_connects_where_the_device_waits_for_it);
		return tc;
	}
	tcase_add_test(tc, what_was_over_before_it_was_connected_ends_in_time);
	tcase_add_test(tc, who_spoke_and_left_before_it_was_confirmed_has_left);
	tcase_add_test(tc, a_confirmation_that_comes_while_it_ends_is_not_forgotten);
	tcase_add_test(tc, a_silent_first_address_leaves_time_for_the_next);
	tcase_add_test(tc, the_deadline_ends_a_connect_to_silent_addresses);
	tcase_add_test(tc, close_ends_an_attempt_whose_turn_is_over);
	tcase_add_test(tc, a_connect_that_was_closed_has_no_more_turns);
	tcase_add_test(tc, a_slow_address_has_another_turn_after_a_silent_one);
	return tc;
}
