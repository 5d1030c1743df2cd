/* Reading is disabled and enabled again: what comes meanwhile waits, in order, and is told once. */
#include "conform/suite.h"
#include "conform/world.h"

#include <errno.h>
#include <string.h>

enum { DEPTH = 8, SOME = 5, MANY = 20, LEN = 16, POOL = 16 };

struct reading {
	struct side *other; /* a second server */
	unsigned told, cancelled, other_told;
	bool disable_in_callback;
};

static bool is_first(const struct side *side)
{
	return !side->is_client && side != ((struct reading *)side->world->tag)->other;
}

/* In order, whoever tells them. */
static void count_told(struct side *side, const struct evrdma_recv *recv)
{
	struct reading *reading = side->world->tag;

	if (recv->err) {
		ck_assert_int_eq(recv->err, ECANCELED);
		reading->cancelled++;
		return;
	}
	if (!is_first(side)) {
		reading->other_told++;
		return;
	}
	ck_assert_uint_eq(recv->len, LEN);
	ck_assert_uint_eq(*(unsigned char *)recv->data, reading->told++);
	if (reading->disable_in_callback)
		ck_assert_int_eq(evrdma_conn_disable(side->conn), 0);
}

static void keep_open(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

/* Each with its number in it. */
static void send_numbered(struct side *side, unsigned first, unsigned n)
{
	for (; n--; first++) {
		struct evrdma_buf *buf = evrdma_pool_get(side->world->pool);

		memset(evrdma_buf_data(buf), (int)first, LEN);
		ck_assert_int_eq(side_send_buf(side, buf, LEN), 0);
		evrdma_buf_unref(buf);
	}
}

static struct world *reading_world(struct reading *reading)
{
	struct world *w = world_new();

	w->tag = reading;
	w->on_recv = count_told;
	w->on_event = keep_open;
	w->options.recv_depth = DEPTH;
	return w;
}

static void disable(struct side *side)
{
	ck_assert_int_eq(evrdma_conn_disable(side->conn), 0);
}

static void enable(struct side *side)
{
	side->world->in_call = true;
	ck_assert_int_eq(evrdma_conn_enable(side->conn), 0);
	side->world->in_call = false;
}

static struct evrdma_traffic_stats server_stats(struct world *w)
{
	struct evrdma_traffic_stats stats;

	evrdma_conn_get_stats(w->server->conn, &stats);
	return stats;
}

static bool some_wait(struct world *w)
{
	return server_stats(w).receives_waiting == SOME;
}

static bool as_many_wait_as_were_posted(struct world *w)
{
	return server_stats(w).receives_waiting == DEPTH;
}

static bool some_told(struct world *w)
{
	return ((struct reading *)w->tag)->told == SOME;
}

static bool many_told(struct world *w)
{
	return ((struct reading *)w->tag)->told == MANY;
}

static bool server_is_down(struct world *w)
{
	return w->server->down;
}

static bool server_is_closed(struct world *w)
{
	return !w->server;
}

START_TEST(what_comes_while_reading_is_disabled_is_told_in_order_when_it_is_enabled)
{
	struct reading reading = { 0 };
	struct world *w = reading_world(&reading);
	struct evrdma_traffic_stats before;

	world_connect_pair(w);
	disable(w->server);
	before = server_stats(w);
	send_numbered(w->client, 0, SOME);
	world_run_until(w, some_wait, 20000);
	world_run_a_little(w);
	ck_assert_uint_eq(reading.told, 0);
	ck_assert_uint_eq(server_stats(w).receive_chains, before.receive_chains);
	enable(w->server);
	ck_assert_uint_eq(reading.told, 0);
	world_run_until(w, some_told, 20000);
	ck_assert_uint_eq(server_stats(w).receives_waiting, 0);
	ck_assert_uint_eq(server_stats(w).messages_received, SOME);
	world_free(w);
}
END_TEST

/* The server does not read, and the client has sent. */
static void connect_and_let_some_wait(struct world *w)
{
	world_connect_pair(w);
	disable(w->server);
	send_numbered(w->client, 0, SOME);
	world_run_until(w, some_wait, 20000);
}

START_TEST(a_peer_waits_for_one_that_does_not_read)
{
	struct reading reading = { 0 };
	struct world *w = reading_world(&reading);

	world_connect_pair(w);
	disable(w->server);
	send_numbered(w->client, 0, MANY);
	world_run_until(w, as_many_wait_as_were_posted, 20000);
	world_run_a_little(w);
	ck_assert_uint_eq(server_stats(w).receives_waiting, DEPTH);
	enable(w->server);
	world_run_until(w, many_told, 20000);
	world_free(w);
}
END_TEST

START_TEST(reading_may_be_disabled_again_after_each_message)
{
	struct reading reading = { .disable_in_callback = true };
	struct world *w = reading_world(&reading);
	unsigned i;

	connect_and_let_some_wait(w);
	for (i = 1; i <= SOME; i++) {
		enable(w->server);
		world_run_a_little(w);
		ck_assert_uint_eq(reading.told, i);
		ck_assert_uint_eq(server_stats(w).receives_waiting, SOME - i);
	}
	world_free(w);
}
END_TEST

START_TEST(the_end_is_told_to_one_that_does_not_read_and_what_came_before_waits)
{
	struct reading reading = { 0 };
	struct world *w = reading_world(&reading);

	connect_and_let_some_wait(w);
	evrdma_conn_close(w->client->conn);
	world_run_until(w, server_is_down, 20000);
	ck_assert_uint_eq(reading.told, 0);
	enable(w->server);
	world_run_until(w, some_told, 20000);
	world_free(w);
}
END_TEST

static bool nothing_waits(struct world *w)
{
	return !server_stats(w).receives_waiting;
}

START_TEST(what_is_enabled_before_the_end_is_told_before_it)
{
	struct reading reading = { 0 };
	struct world *w = reading_world(&reading);

	connect_and_let_some_wait(w);
	enable(w->server);
	evrdma_conn_close(w->client->conn);
	world_run_until(w, server_is_down, 20000);
	ck_assert_uint_eq(reading.told, SOME);
	ck_assert(nothing_waits(w));
	world_free(w);
}
END_TEST

START_TEST(closing_ends_what_waits_to_be_read)
{
	struct reading reading = { 0 };
	struct world *w = reading_world(&reading);
	struct evrdma_traffic_stats stats;

	connect_and_let_some_wait(w);
	evrdma_conn_close(w->server->conn);
	ck_assert_int_eq(evrdma_conn_enable(w->server->conn), -ENOTCONN);
	ck_assert_int_eq(evrdma_conn_disable(w->server->conn), -ENOTCONN);
	world_run_until(w, server_is_closed, 20000);
	ck_assert_uint_eq(reading.told, 0);
	evrdma_base_get_traffic_stats(w->base, &stats);
	ck_assert_uint_eq(stats.receives_waiting, 0);
	world_free(w);
}
END_TEST

static void recv_by_hand(struct side *side, unsigned n)
{
	while (n--) {
		struct evrdma_buf *buf = evrdma_pool_get(side->world->pool);

		ck_assert_int_eq(evrdma_conn_recv(side->conn, buf), 0);
		evrdma_buf_unref(buf);
	}
}

START_TEST(buffers_given_while_reading_is_disabled_are_posted_when_it_is_enabled)
{
	struct reading reading = { 0 };
	struct world *w = reading_world(&reading);
	struct evrdma_buf *buf;

	w->options.recv_pool = NULL;
	world_connect_pair(w);
	recv_by_hand(w->server, SOME);
	world_run_a_little(w);
	disable(w->server);
	send_numbered(w->client, 0, SOME);
	world_run_until(w, some_wait, 20000);
	/* Those that are filled count as well. */
	recv_by_hand(w->server, DEPTH - SOME);
	buf = evrdma_pool_get(w->pool);
	ck_assert_int_eq(evrdma_conn_recv(w->server->conn, buf), -EAGAIN);
	evrdma_buf_unref(buf);
	world_run_a_little(w);
	enable(w->server);
	world_run_until(w, some_told, 20000);
	send_numbered(w->client, SOME, 1);
	while (reading.told == SOME)
		event_base_loop(w->loop, EVLOOP_ONCE);
	evrdma_conn_close(w->server->conn);
	world_run_until(w, server_is_closed, 20000);
	ck_assert_uint_eq(reading.told + reading.cancelled, DEPTH);
	world_free(w);
}
END_TEST

START_TEST(buffers_given_by_hand_come_back_when_one_that_does_not_read_is_closed)
{
	struct reading reading = { 0 };
	struct world *w = reading_world(&reading);

	w->options.recv_pool = NULL;
	world_connect_pair(w);
	recv_by_hand(w->server, SOME);
	world_run_a_little(w);
	disable(w->server);
	send_numbered(w->client, 0, SOME);
	world_run_until(w, some_wait, 20000);
	recv_by_hand(w->server, DEPTH - SOME);
	evrdma_conn_close(w->server->conn);
	ck_assert_uint_eq(reading.cancelled, 0);
	world_run_until(w, server_is_closed, 20000);
	ck_assert_uint_eq(reading.cancelled, DEPTH);
	ck_assert_uint_eq(reading.told, 0);
	world_free(w);
}
END_TEST

static bool other_is_told(struct world *w)
{
	return ((struct reading *)w->tag)->other_told == SOME;
}

START_TEST(on_a_shared_queue_the_others_go_on)
{
	struct reading reading = { 0 };
	struct world *w = reading_world(&reading);
	struct evrdma_pool *pool = evrdma_pool_new(w->base, 64, POOL);
	struct evrdma_srq *srq = evrdma_srq_new(w->base, pool, DEPTH);
	struct side *client, *server;

	w->options.recv_pool = NULL;
	w->options.srq = srq;
	world_connect_pair(w);
	client = w->client;
	server = w->server;
	w->client = w->server = NULL;
	world_connect_pair(w);
	reading.other = w->server;
	disable(server);
	send_numbered(client, 0, SOME);
	w->server = server;
	world_run_until(w, some_wait, 20000);
	send_numbered(w->client, 0, SOME);
	world_run_until(w, other_is_told, 20000);
	ck_assert_uint_eq(reading.told, 0);
	enable(server);
	world_run_until(w, some_told, 20000);
	evrdma_srq_free(srq);
	evrdma_pool_free(pool);
	world_free(w);
}
END_TEST

static bool server_is_connected(struct world *w)
{
	return w->server && w->server->connected;
}

static void accept_disabled(struct world *w, struct evrdma_request *request)
{
	struct side *server = world_side_new(w, false);

	disable(server);
	side_accept(server, request);
}

START_TEST(a_connection_that_never_read_is_connected_all_the_same)
{
	struct reading reading = { 0 };
	struct world *w = reading_world(&reading);

	w->on_request = accept_disabled;
	world_connect_pair(w);
	ck_assert(server_is_connected(w));
	send_numbered(w->client, 0, SOME);
	world_run_until(w, some_wait, 20000);
	enable(w->server);
	world_run_until(w, some_told, 20000);
	world_free(w);
}
END_TEST

TCase *read_case(void)
{
	TCase *tc = tcase_create("read");

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc,
		what_comes_while_reading_is_disabled_is_told_in_order_when_it_is_enabled);
	/* iWARP has no way to tell a sender to wait for a buffer. */
	if (!place.is_iwarp)
		tcase_add_test(tc, a_peer_waits_for_one_that_does_not_read);
	tcase_add_test(tc, reading_may_be_disabled_again_after_each_message);
	tcase_add_test(tc, the_end_is_told_to_one_that_does_not_read_and_what_came_before_waits);
	tcase_add_test(tc, what_is_enabled_before_the_end_is_told_before_it);
	tcase_add_test(tc, closing_ends_what_waits_to_be_read);
	tcase_add_test(tc, buffers_given_while_reading_is_disabled_are_posted_when_it_is_enabled);
	tcase_add_test(tc, buffers_given_by_hand_come_back_when_one_that_does_not_read_is_closed);
	if (place_has(PLACE_SRQS))
		tcase_add_test(tc, on_a_shared_queue_the_others_go_on);
	tcase_add_test(tc, a_connection_that_never_read_is_connected_all_the_same);
	return tc;
}
