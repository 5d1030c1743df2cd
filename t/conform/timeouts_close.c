/* A connection that is closed while its good-bye is lost, and many that are closed in turn. */
#include <errno.h>

#include "conform/timeouts.h"

enum { MANY = 100, IWARP_MANY = 20, CLOSES = 1000, ROUNDS = 200, ROUNDS_MS = 1000, REST_S = 2 };

/* The first ports of tests, none of which the kernel itself gives to anybody. */
enum { ROUNDS_PORT = 10000, CLOSES_PORT = ROUNDS_PORT + ROUNDS + 1 };

/* --- the DREQ is lost ------------------------------------------------------------------------ */

static struct fixture *pair_without_dreq(void)
{
	struct fixture *f = noting_fixture();

	fixture_connect_pair(f);
	lose(WIRE_DREQ);
	begin();
	return f;
}

/* The answer is not waited for again. */
START_TEST(a_disconnect_that_is_not_answered_ends_with_the_drain_timeout)
{
	struct fixture *f = pair_without_dreq();

	ck_assert_int_eq(evrdma_conn_disconnect(f->client->conn), 0);
	run_until(f, client_is_told);
	assert_told(&client_end, ETIMEDOUT);
	ck_assert_int_eq(f->client->step, EVRDMA_STEP_DISCONNECT);
	assert_library_took(client_end.ms, DRAIN_MS);
	close_client(f);
	run_until(f, fixture_client_is_closed);
	assert_library_took(client_end.closed_ms, client_end.ms);
	ck_assert_uint_eq(server_end.told, 0);
	finish(f);
}
END_TEST

/* The id alone goes on asking. */
START_TEST(a_close_does_not_wait_for_the_answer)
{
	struct fixture *f = pair_without_dreq();

	close_client(f);
	run_until(f, fixture_client_is_closed);
	assert_library_took(client_end.closed_ms, 0);
	ck_assert_uint_eq(server_end.told, 0);
	finish(f);
}
END_TEST

static bool server_is_told(struct fixture *f)
{
	return server_end.told;
}

START_TEST(the_peer_of_a_closed_connection_hears_of_it_in_the_end)
{
	struct fixture *f = pair_without_dreq();

	close_client(f);
	run_until(f, fixture_client_is_closed);
	calm();
	run_until(f, server_is_told);
	assert_told(&server_end, 0);
	finish(f);
}
END_TEST

START_TEST(a_disconnect_whose_answer_is_lost_ends_with_the_drain_timeout)
{
	struct fixture *f = noting_fixture();

	fixture_connect_pair(f);
	lose(WIRE_DREP);
	begin();
	ck_assert_int_eq(evrdma_conn_disconnect(f->client->conn), 0);
	run_until(f, both_are_told);
	assert_told(&server_end, 0);
	assert_library_took(server_end.ms, 0);
	assert_told(&client_end, ETIMEDOUT);
	assert_library_took(client_end.ms, DRAIN_MS);
	finish(f);
}
END_TEST

static struct evrdma_conn *conns[2 * MANY];
static unsigned conns_up;

static void collect(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	if (event == EVRDMA_CONN_CONNECTED)
		conns[conns_up++] = endpoint->conn;
}

static bool all_are_up(struct fixture *f)
{
	return conns_up == 2 * MANY;
}

static void connect_many(struct fixture *f)
{
	int i;

	f->on_event = collect;
	f->options.recv_depth = 4;
	fixture_listen(f);
	for (i = 0; i < MANY; i++)
		fixture_connect(f);
	run_until(f, all_are_up);
}

START_TEST(many_closes_do_not_wait_for_their_answers)
{
	struct fixture *f = fixture_new();
	int i;

	connect_many(f);
	lose(WIRE_DREQ);
	begin();
	for (i = 0; i < 2 * MANY; i++)
		evrdma_conn_close(conns[i]);
	run_until(f, fixture_none_live);
	assert_library_took(passed_ms(), 0);
	finish(f);
}
END_TEST

/* --- one after another ----------------------------------------------------------------------- */

/*
 * From the next port: siw cannot connect from one whose last connection is in TIME-WAIT, and of
 * those that the kernel draws two may be the same.
 */
static void connect_from(struct fixture *f, uint16_t *port)
{
	struct sockaddr_in src;

	fixture_address(&src, "10.77.0.1", (*port)++);
	f->options.src = (struct sockaddr *)&src;
	fixture_connect(f);
	f->options.src = NULL;
}

static void connect_and_close(struct fixture *f, uint16_t *port)
{
	connect_from(f, port);
	run_until(f, both_are_up);
	close_client(f);
	run_until(f, fixture_none_live);
}

/* What lingers of the last one, until the peer has answered, has ended. */
static void count_at_rest(struct fixture *f, int counts[TESTBED_COUNTS])
{
	run_for(f, REST_S);
	testbed.count(counts);
}

/* TCP's TIME-WAIT is a minute, and the CM's some seconds; all of them take less together. */
START_TEST(what_is_in_time_wait_hinders_no_connection)
{
	struct fixture *f = closing_fixture();
	int before[TESTBED_COUNTS], after[TESTBED_COUNTS], i;
	uint16_t port = ROUNDS_PORT;

	f->options.recv_depth = 4;
	fixture_listen(f);
	connect_and_close(f, &port);
	count_at_rest(f, before);
	begin();
	for (i = 0; i < ROUNDS; i++)
		connect_and_close(f, &port);
	ck_assert_uint_le(passed_ms(), ROUNDS_MS);
	count_at_rest(f, after);
	ck_assert_mem_eq(before, after, sizeof(before));
	finish(f);
}
END_TEST

/* --- a tenth of all frames is lost ----------------------------------------------------------- */

static void close_clients_only(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	if (event == EVRDMA_CONN_CONNECTED && endpoint->is_client)
		conns[conns_up++] = endpoint->conn;
	endpoint_close_if_down(endpoint, event);
}

static unsigned batch(void)
{
	return testbed.is_iwarp ? IWARP_MANY : MANY;
}

static bool batch_is_up(struct fixture *f)
{
	return f->established == 2 * batch();
}

static void connect_batch(struct fixture *f, uint16_t *port)
{
	unsigned i;

	calm();
	f->established = 0;
	conns_up = 0;
	for (i = 0; i < batch(); i++)
		connect_from(f, port);
	run_until(f, batch_is_up);
}

static void close_batch(struct fixture *f)
{
	static const struct weather rough = { .loss = 100 };
	unsigned i;

	wire_set(&rough);
	for (i = 0; i < conns_up; i++)
		evrdma_conn_close(conns[i]);
	run_until(f, fixture_none_live);
}

/* Nobody but the peer ends the other side: none is left half open. */
START_TEST(the_peers_of_a_thousand_closes_hear_of_them_in_rough_weather)
{
	struct fixture *f = fixture_new();
	uint16_t port = CLOSES_PORT;
	unsigned closes = 0;

	f->on_event = close_clients_only;
	f->options.send_depth = 4;
	f->options.recv_depth = 4;
	fixture_listen(f);
	begin();
	for (; closes < CLOSES; closes += batch()) {
		connect_batch(f, &port);
		close_batch(f);
	}
	calm();
	finish(f);
}
END_TEST

/* --- cases ----------------------------------------------------------------------------------- */

TCase *timeouts_close_case(void)
{
	TCase *tc = new_case("close");

	tcase_add_test(tc, a_disconnect_that_is_not_answered_ends_with_the_drain_timeout);
	tcase_add_test(tc, a_close_does_not_wait_for_the_answer);
	tcase_add_test(tc, the_peer_of_a_closed_connection_hears_of_it_in_the_end);
	tcase_add_test(tc, a_disconnect_whose_answer_is_lost_ends_with_the_drain_timeout);
	tcase_add_test(tc, many_closes_do_not_wait_for_their_answers);
	return tc;
}

TCase *timeouts_again_case(void)
{
	TCase *tc = new_case("again");

	tcase_add_test(tc, what_is_in_time_wait_hinders_no_connection);
	tcase_add_test(tc, the_peers_of_a_thousand_closes_hear_of_them_in_rough_weather);
	return tc;
}
