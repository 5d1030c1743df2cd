/* Reading is disabled and enabled again: what comes meanwhile waits, in order, and is told once. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <errno.h>
#include <string.h>

enum { DEPTH = 8, SOME = 5, MANY = 20, LEN = 16, POOL = 16 };

struct reading {
	struct endpoint *other; /* a second server */
	unsigned told, cancelled, other_told;
	bool disable_in_callback;
};

static bool is_first(const struct endpoint *endpoint)
{
	return !endpoint->is_client &&
	       endpoint != ((struct reading *)endpoint->fixture->tag)->other;
}

/* In order, whoever tells them. */
static void count_told(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	struct reading *reading = endpoint->fixture->tag;

	if (recv->err) {
		ck_assert_int_eq(recv->err, ECANCELED);
		reading->cancelled++;
		return;
	}
	if (!is_first(endpoint)) {
		reading->other_told++;
		return;
	}
	ck_assert_uint_eq(recv->len, LEN);
	ck_assert_uint_eq(*(unsigned char *)recv->data, reading->told++);
	if (reading->disable_in_callback)
		ck_assert_int_eq(evrdma_conn_disable(endpoint->conn), 0);
}

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

/* Each with its number in it. */
static void send_numbered(struct endpoint *endpoint, unsigned first, unsigned n)
{
	for (; n--; first++) {
		struct evrdma_buf *buf = evrdma_pool_get(endpoint->fixture->pool);

		memset(evrdma_buf_data(buf), (int)first, LEN);
		ck_assert_int_eq(endpoint_send_buf(endpoint, buf, LEN), 0);
		evrdma_buf_unref(buf);
	}
}

static struct fixture *reading_fixture(struct reading *reading)
{
	struct fixture *f = fixture_new();

	f->tag = reading;
	f->on_recv = count_told;
	f->on_event = keep_open;
	f->options.recv_depth = DEPTH;
	return f;
}

static void disable(struct endpoint *endpoint)
{
	ck_assert_int_eq(evrdma_conn_disable(endpoint->conn), 0);
}

static void enable(struct endpoint *endpoint)
{
	endpoint->fixture->in_call = true;
	ck_assert_int_eq(evrdma_conn_enable(endpoint->conn), 0);
	endpoint->fixture->in_call = false;
}

static struct evrdma_traffic_stats server_stats(struct fixture *f)
{
	struct evrdma_traffic_stats stats;

	evrdma_conn_get_stats(f->server->conn, &stats);
	return stats;
}

static bool some_wait(struct fixture *f)
{
	return server_stats(f).receives_waiting == SOME;
}

static bool as_many_wait_as_were_posted(struct fixture *f)
{
	return server_stats(f).receives_waiting == DEPTH;
}

static bool some_told(struct fixture *f)
{
	return ((struct reading *)f->tag)->told == SOME;
}

static bool many_told(struct fixture *f)
{
	return ((struct reading *)f->tag)->told == MANY;
}

static bool server_is_down(struct fixture *f)
{
	return f->server->down;
}

static bool server_is_closed(struct fixture *f)
{
	return !f->server;
}

START_TEST(what_comes_while_reading_is_disabled_is_told_in_order_when_it_is_enabled)
{
	struct reading reading = { 0 };
	struct fixture *f = reading_fixture(&reading);
	struct evrdma_traffic_stats before;

	fixture_connect_pair(f);
	disable(f->server);
	before = server_stats(f);
	send_numbered(f->client, 0, SOME);
	fixture_run_until(f, some_wait, 20000);
	fixture_run_a_little(f);
	ck_assert_uint_eq(reading.told, 0);
	ck_assert_uint_eq(server_stats(f).receive_chains, before.receive_chains);
	enable(f->server);
	ck_assert_uint_eq(reading.told, 0);
	fixture_run_until(f, some_told, 20000);
	ck_assert_uint_eq(server_stats(f).receives_waiting, 0);
	ck_assert_uint_eq(server_stats(f).messages_received, SOME);
	fixture_free(f);
}
END_TEST

/* The server does not read, and the client has sent. */
static void connect_and_let_some_wait(struct fixture *f)
{
	fixture_connect_pair(f);
	disable(f->server);
	send_numbered(f->client, 0, SOME);
	fixture_run_until(f, some_wait, 20000);
}

START_TEST(a_peer_waits_for_one_that_does_not_read)
{
	struct reading reading = { 0 };
	struct fixture *f = reading_fixture(&reading);

	fixture_connect_pair(f);
	disable(f->server);
	send_numbered(f->client, 0, MANY);
	fixture_run_until(f, as_many_wait_as_were_posted, 20000);
	fixture_run_a_little(f);
	ck_assert_uint_eq(server_stats(f).receives_waiting, DEPTH);
	enable(f->server);
	fixture_run_until(f, many_told, 20000);
	fixture_free(f);
}
END_TEST

START_TEST(reading_may_be_disabled_again_after_each_message)
{
	struct reading reading = { .disable_in_callback = true };
	struct fixture *f = reading_fixture(&reading);
	unsigned i;

	connect_and_let_some_wait(f);
	for (i = 1; i <= SOME; i++) {
		enable(f->server);
		fixture_run_a_little(f);
		ck_assert_uint_eq(reading.told, i);
		ck_assert_uint_eq(server_stats(f).receives_waiting, SOME - i);
	}
	fixture_free(f);
}
END_TEST

/* A peer that never has more unanswered than there are buffers always meets one. */
START_TEST(what_was_told_is_replaced_though_reading_is_disabled_again)
{
	struct reading reading = { .disable_in_callback = true };
	struct fixture *f = reading_fixture(&reading);
	unsigned sent;

	fixture_connect_pair(f);
	disable(f->server);
	send_numbered(f->client, 0, DEPTH);
	fixture_run_until(f, as_many_wait_as_were_posted, 20000);
	for (sent = DEPTH; sent < MANY; sent++) {
		enable(f->server);
		fixture_run_a_little(f);
		ck_assert_uint_eq(reading.told, sent - DEPTH + 1);
		send_numbered(f->client, sent, 1);
		fixture_run_until(f, as_many_wait_as_were_posted, 20000);
	}
	ck_assert_msg(!f->client->down && !f->server->down, "%s", f->last_error);
	fixture_free(f);
}
END_TEST

START_TEST(the_end_is_told_to_one_that_does_not_read_and_what_came_before_waits)
{
	struct reading reading = { 0 };
	struct fixture *f = reading_fixture(&reading);

	connect_and_let_some_wait(f);
	evrdma_conn_close(f->client->conn);
	fixture_run_until(f, server_is_down, 20000);
	ck_assert_uint_eq(reading.told, 0);
	enable(f->server);
	fixture_run_until(f, some_told, 20000);
	fixture_free(f);
}
END_TEST

static bool nothing_waits(struct fixture *f)
{
	return !server_stats(f).receives_waiting;
}

START_TEST(what_is_enabled_before_the_end_is_told_before_it)
{
	struct reading reading = { 0 };
	struct fixture *f = reading_fixture(&reading);

	connect_and_let_some_wait(f);
	enable(f->server);
	evrdma_conn_close(f->client->conn);
	fixture_run_until(f, server_is_down, 20000);
	ck_assert_uint_eq(reading.told, SOME);
	ck_assert(nothing_waits(f));
	fixture_free(f);
}
END_TEST

START_TEST(closing_ends_what_waits_to_be_read)
{
	struct reading reading = { 0 };
	struct fixture *f = reading_fixture(&reading);
	struct evrdma_traffic_stats stats;

	connect_and_let_some_wait(f);
	evrdma_conn_close(f->server->conn);
	ck_assert_int_eq(evrdma_conn_enable(f->server->conn), -ENOTCONN);
	ck_assert_int_eq(evrdma_conn_disable(f->server->conn), -ENOTCONN);
	fixture_run_until(f, server_is_closed, 20000);
	ck_assert_uint_eq(reading.told, 0);
	evrdma_base_get_traffic_stats(f->base, &stats);
	ck_assert_uint_eq(stats.receives_waiting, 0);
	fixture_free(f);
}
END_TEST

static void recv_by_hand(struct endpoint *endpoint, unsigned n)
{
	while (n--) {
		struct evrdma_buf *buf = evrdma_pool_get(endpoint->fixture->pool);

		ck_assert_int_eq(evrdma_conn_recv(endpoint->conn, buf), 0);
		evrdma_buf_unref(buf);
	}
}

START_TEST(buffers_given_while_reading_is_disabled_are_posted_when_it_is_enabled)
{
	struct reading reading = { 0 };
	struct fixture *f = reading_fixture(&reading);
	struct evrdma_buf *buf;

	f->options.recv_pool = NULL;
	fixture_connect_pair(f);
	recv_by_hand(f->server, SOME);
	fixture_run_a_little(f);
	disable(f->server);
	send_numbered(f->client, 0, SOME);
	fixture_run_until(f, some_wait, 20000);
	/* Those that are filled count as well. */
	recv_by_hand(f->server, DEPTH - SOME);
	buf = evrdma_pool_get(f->pool);
	ck_assert_int_eq(evrdma_conn_recv(f->server->conn, buf), -EAGAIN);
	evrdma_buf_unref(buf);
	fixture_run_a_little(f);
	enable(f->server);
	fixture_run_until(f, some_told, 20000);
	send_numbered(f->client, SOME, 1);
	while (reading.told == SOME)
		event_base_loop(f->loop, EVLOOP_ONCE);
	evrdma_conn_close(f->server->conn);
	fixture_run_until(f, server_is_closed, 20000);
	ck_assert_uint_eq(reading.told + reading.cancelled, DEPTH);
	fixture_free(f);
}
END_TEST

START_TEST(buffers_given_by_hand_come_back_when_one_that_does_not_read_is_closed)
{
	struct reading reading = { 0 };
	struct fixture *f = reading_fixture(&reading);

	f->options.recv_pool = NULL;
	fixture_connect_pair(f);
	recv_by_hand(f->server, SOME);
	fixture_run_a_little(f);
	disable(f->server);
	send_numbered(f->client, 0, SOME);
	fixture_run_until(f, some_wait, 20000);
	recv_by_hand(f->server, DEPTH - SOME);
	evrdma_conn_close(f->server->conn);
	ck_assert_uint_eq(reading.cancelled, 0);
	fixture_run_until(f, server_is_closed, 20000);
	ck_assert_uint_eq(reading.cancelled, DEPTH);
	ck_assert_uint_eq(reading.told, 0);
	fixture_free(f);
}
END_TEST

static bool other_is_told(struct fixture *f)
{
	return ((struct reading *)f->tag)->other_told == SOME;
}

START_TEST(on_a_shared_queue_the_others_go_on)
{
	struct reading reading = { 0 };
	struct fixture *f = reading_fixture(&reading);
	struct evrdma_pool *pool = evrdma_pool_new(f->base, 64, POOL);
	struct evrdma_srq *srq = evrdma_srq_new(f->base, pool, DEPTH);
	struct endpoint *client, *server;

	f->options.recv_pool = NULL;
	f->options.srq = srq;
	fixture_connect_pair(f);
	client = f->client;
	server = f->server;
	f->client = f->server = NULL;
	fixture_connect_pair(f);
	reading.other = f->server;
	disable(server);
	send_numbered(client, 0, SOME);
	f->server = server;
	fixture_run_until(f, some_wait, 20000);
	send_numbered(f->client, 0, SOME);
	fixture_run_until(f, other_is_told, 20000);
	ck_assert_uint_eq(reading.told, 0);
	enable(server);
	fixture_run_until(f, some_told, 20000);
	evrdma_srq_free(srq);
	evrdma_pool_free(pool);
	fixture_free(f);
}
END_TEST

static bool server_is_connected(struct fixture *f)
{
	return f->server && f->server->connected;
}

static void accept_disabled(struct fixture *f, struct evrdma_request *request)
{
	struct endpoint *server = fixture_endpoint_new(f, false);

	disable(server);
	endpoint_accept(server, request);
}

START_TEST(a_connection_that_never_read_is_connected_all_the_same)
{
	struct reading reading = { 0 };
	struct fixture *f = reading_fixture(&reading);

	f->on_request = accept_disabled;
	fixture_connect_pair(f);
	ck_assert(server_is_connected(f));
	send_numbered(f->client, 0, SOME);
	fixture_run_until(f, some_wait, 20000);
	enable(f->server);
	fixture_run_until(f, some_told, 20000);
	fixture_free(f);
}
END_TEST

TCase *read_case(void)
{
	TCase *tc = tcase_create("read");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(
		tc, what_comes_while_reading_is_disabled_is_told_in_order_when_it_is_enabled);
	/* iWARP has no way to tell a sender to wait for a buffer. */
	if (!testbed.is_iwarp)
		tcase_add_test(tc, a_peer_waits_for_one_that_does_not_read);
	tcase_add_test(tc, reading_may_be_disabled_again_after_each_message);
	tcase_add_test(tc, what_was_told_is_replaced_though_reading_is_disabled_again);
	tcase_add_test(tc, the_end_is_told_to_one_that_does_not_read_and_what_came_before_waits);
	tcase_add_test(tc, what_is_enabled_before_the_end_is_told_before_it);
	tcase_add_test(tc, closing_ends_what_waits_to_be_read);
	tcase_add_test(tc, buffers_given_while_reading_is_disabled_are_posted_when_it_is_enabled);
	tcase_add_test(tc, buffers_given_by_hand_come_back_when_one_that_does_not_read_is_closed);
	if (testbed_has(TESTBED_SRQS))
		tcase_add_test(tc, on_a_shared_queue_the_others_go_on);
	tcase_add_test(tc, a_connection_that_never_read_is_connected_all_the_same);
	return tc;
}
