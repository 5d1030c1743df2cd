/* Several addresses of one peer, of which one is silent or slow: each has its turn. */
#include "conform/fake.h"
#include "conform/world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000, TURN_MS = 50, MESSAGES = 16, TURNS = 2 * MESSAGES };

static const char *silent_ip(void)
{
	static const char *const ips[] = { [FAKE_ROCE] = "192.0.2.250",
		[FAKE_IWARP] = "198.51.100.250", [FAKE_IB] = "203.0.113.250" };

	return ips[fake_place_kind];
}

static struct world *world_of_turns(void)
{
	struct evrdma_base_options options;
	struct world *w = world_new();

	evrdma_base_options_init(&options);
	options.cq_budget = 1;
	options.turn_budget_us = 0;
	world_replace_base(w, &options);
	w->options.attempt_timeout_ms = TURN_MS;
	world_listen(w);
	return w;
}

static uint16_t port_of(const struct world *w)
{
	return evrdma_listener_get_port(w->listener);
}

static bool client_is_up(struct world *w)
{
	return w->client && w->client->connected;
}

static bool both_are_up(struct world *w)
{
	return client_is_up(w) && w->server && w->server->connected;
}

static bool tries(struct world *w, const char *ip)
{
	const struct rdma_cm_id *cm = evrdma_conn_get_cm_id(w->client->conn);
	struct sockaddr_in sin;

	world_address(&sin, ip, 0);
	return cm && cm->route.addr.dst_sin.sin_addr.s_addr == sin.sin_addr.s_addr;
}

static bool tries_the_silent_one(struct world *w)
{
	return tries(w, silent_ip());
}

static void keep_open(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

/* Its answer comes when its turn is over. */
static void let_the_first_be_slow(struct world *w)
{
	const char *const ips[] = { place.ip, silent_ip() };

	fake_hold(FAKE_REP);
	world_connect_to_each(w, ips, 2, port_of(w));
	world_run_until(w, tries_the_silent_one, PATIENCE_MS);
	fake_release(FAKE_REP);
}

/* --- a silent one --------------------------------------------------------------------------- */

START_TEST(a_silent_first_address_leaves_time_for_the_next)
{
	const char *const ips[] = { silent_ip(), place.ip };
	struct world *w = world_of_turns();

	w->options.connect_timeout_ms = PATIENCE_MS;
	world_connect_to_each(w, ips, 2, port_of(w));
	world_run_until(w, both_are_up, PATIENCE_MS / 2);
	ck_assert_uint_eq(w->established, 2);
	world_free(w);
}
END_TEST

START_TEST(the_deadline_ends_a_connect_to_silent_addresses)
{
	const char *const ips[] = { silent_ip(), silent_ip() };
	struct world *w = world_of_turns();

	w->on_event = keep_open;
	w->options.connect_timeout_ms = 10 * TURN_MS;
	world_connect_to_each(w, ips, 2, port_of(w));
	world_run_until(w, world_client_is_down, PATIENCE_MS);
	ck_assert_int_eq(w->client->error, ETIMEDOUT);
	world_free(w);
}
END_TEST

START_TEST(close_ends_an_attempt_whose_turn_is_over)
{
	struct world *w = world_of_turns();

	let_the_first_be_slow(w);
	evrdma_conn_close(w->client->conn);
	world_run_until(w, world_none_live, PATIENCE_MS);
	world_free(w);
}
END_TEST

/* The end of the second is made in a later turn, and all its time is over before that. */
START_TEST(a_connect_that_was_closed_has_no_more_turns)
{
	const char *const ips[] = { silent_ip(), silent_ip() };
	struct world *w = world_of_turns();
	struct side *first = world_side_new(w, true);

	w->options.connect_timeout_ms = TURN_MS / 2;
	world_connect_to_each(w, ips, 2, port_of(w));
	world_run_until(w, tries_the_silent_one, PATIENCE_MS);
	usleep(2 * TURN_MS * 1000);
	evrdma_conn_close(first->conn);
	evrdma_conn_close(w->client->conn);
	world_run_until(w, world_none_live, PATIENCE_MS);
	world_free(w);
}
END_TEST

/* --- a slow one ----------------------------------------------------------------------------- */

START_TEST(a_slow_address_has_another_turn_after_a_silent_one)
{
	struct world *w = world_of_turns();

	let_the_first_be_slow(w);
	world_run_until(w, both_are_up, PATIENCE_MS);
	world_free(w);
}
END_TEST

static bool an_answer_is_held(struct world *w)
{
	return fake_held(FAKE_REP);
}

static bool server_got_one(struct world *w)
{
	return w->server->received == 1;
}

static void be_slow(struct side *side, const struct evrdma_recv *recv)
{
	usleep(500);
}

/* Another connection has so many messages to be told of, one in each turn. */
static void keep_busy(struct world *w, struct side *busy)
{
	fake_work_by_hand(true);
	side_send(busy, MESSAGES, 64);
	world_run_a_little(w);
	ck_assert_uint_eq(fake_step(MESSAGES), MESSAGES);
	fake_work_by_hand(false);
}

static struct side *connect_busy_pair(struct world *w)
{
	struct side *busy;

	w->options.send_depth = w->options.recv_depth = MESSAGES;
	w->on_recv = be_slow;
	world_connect_pair(w);
	busy = w->client;
	w->client = w->server = NULL;
	return busy;
}

/* The answer comes so many turns of the loop after the turn of the address was over. */
static void answer_after(int turns)
{
	const char *const ips[] = { place.ip, silent_ip() };
	struct world *w = world_of_turns();
	struct side *busy = connect_busy_pair(w);

	fake_hold(FAKE_REP);
	world_connect_to_each(w, ips, 2, port_of(w));
	world_run_until(w, an_answer_is_held, PATIENCE_MS);
	keep_busy(w, busy);
	usleep(2 * TURN_MS * 1000);
	world_run_turns(w, turns);
	fake_release(FAKE_REP);
	world_run_until(w, both_are_up, PATIENCE_MS);
	world_run_a_little(w);
	side_send(w->client, 1, 64);
	world_run_until(w, server_got_one, PATIENCE_MS);
	world_free(w);
}

START_TEST(whenever_the_answer_comes_the_connection_is_a_whole_one)
{
	int turns;

	for (turns = 0; turns < TURNS; turns += 3)
		answer_after(turns);
}
END_TEST

START_TEST(the_only_address_has_all_the_time)
{
	const char *const ips[] = { place.ip };
	struct world *w = world_of_turns();
	uint64_t begun_us = place.now_us();

	fake_hold(FAKE_REP);
	world_connect_to_each(w, ips, 1, port_of(w));
	while (place.now_us() - begun_us < 4 * TURN_MS * 1000)
		world_run_a_little(w);
	fake_release(FAKE_REP);
	world_run_until(w, both_are_up, PATIENCE_MS);
	ck_assert_uint_eq(w->established, 2);
	world_free(w);
}
END_TEST

/* An iWARP device does not let go of a connect before it was answered: the answer counts. */
START_TEST(an_answer_after_its_turn_connects_where_the_device_waits_for_it)
{
	const char *const ips[] = { place.ip, silent_ip() };
	struct world *w = world_of_turns();
	uint64_t begun_us = place.now_us();

	fake_hold(FAKE_REP);
	world_connect_to_each(w, ips, 2, port_of(w));
	while (place.now_us() - begun_us < 4 * TURN_MS * 1000)
		world_run_a_little(w);
	ck_assert(tries(w, place.ip));
	fake_release(FAKE_REP);
	world_run_until(w, both_are_up, PATIENCE_MS);
	ck_assert_uint_eq(w->established, 2);
	world_free(w);
}
END_TEST

TCase *attempt_case(void)
{
	TCase *tc = tcase_create("attempt");

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, the_only_address_has_all_the_time);
	tcase_add_test(tc, whenever_the_answer_comes_the_connection_is_a_whole_one);
	if (fake_place_kind == FAKE_IWARP) {
		tcase_add_test(
			tc, an_answer_after_its_turn_connects_where_the_device_waits_for_it);
		return tc;
	}
	tcase_add_test(tc, a_silent_first_address_leaves_time_for_the_next);
	tcase_add_test(tc, the_deadline_ends_a_connect_to_silent_addresses);
	tcase_add_test(tc, close_ends_an_attempt_whose_turn_is_over);
	tcase_add_test(tc, a_connect_that_was_closed_has_no_more_turns);
	tcase_add_test(tc, a_slow_address_has_another_turn_after_a_silent_one);
	return tc;
}
