/* Connections that are idle, and how they end in order. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <errno.h>

#include "util/clock.h"

enum { MANY = 60, TICK_MS = 20, TICKS = 20 };

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static bool both_are_down(struct fixture *f)
{
	return fixture_client_is_down(f) && f->server->down;
}

/* --- idle ----------------------------------------------------------------------------------- */

START_TEST(an_idle_connection_ends_with_its_timeout)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->options.idle_timeout_ms = 150;
	fixture_connect_pair(f);
	fixture_run_until(f, fixture_client_is_down, 20000);
	/* Whoever is first to notice ends both. */
	ck_assert(f->client->error == ETIMEDOUT || f->server->error == ETIMEDOUT);
	ck_assert_uint_eq(f->client->received, 0);
	fixture_free(f);
}
END_TEST

struct ticks {
	struct event *timer;
	unsigned n;
	void (*act)(struct endpoint *client); /* NULL: nothing */
	bool over;
	uint64_t last_us, longest_us; /* between two messages that came, or one and the end */
};

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct fixture *f = arg;
	struct ticks *ticks = f->tag;

	ticks->n++;
	if (ticks->act && f->client && !f->client->down)
		ticks->act(f->client);
}

static bool ticks_are_over(struct fixture *f)
{
	return ((struct ticks *)f->tag)->n >= TICKS;
}

static void measure(struct ticks *ticks)
{
	uint64_t now_us = testbed.now_us(), us = now_us - ticks->last_us;

	if (!ticks->over && us > ticks->longest_us)
		ticks->longest_us = us;
	ticks->last_us = now_us;
}

static void measure_to_the_end(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	struct ticks *ticks = endpoint->fixture->tag;

	if (!endpoint->down)
		return;
	measure(ticks);
	ticks->over = true;
}

/* Lets some time go by, in which the client does something now and then. */
static void pass_time(struct fixture *f, struct ticks *ticks)
{
	const struct timeval tick = { 0, TICK_MS * EVR_US_PER_MS };

	f->tag = ticks;
	f->on_event = measure_to_the_end;
	ticks->last_us = testbed.now_us();
	ticks->timer = event_new(f->loop, -1, EV_PERSIST, on_tick, f);
	event_add(ticks->timer, &tick);
	fixture_run_until(f, ticks_are_over, 20000);
	event_free(ticks->timer);
	f->on_event = keep_open;
}

/* Where the machine itself stands still for so long, something comes too late. */
static void check_never_idle(const struct ticks *ticks)
{
	ck_assert_msg(!ticks->over || ticks->longest_us > 9 * TICK_MS * EVR_US_PER_MS,
		"idle after %u us", (unsigned)ticks->longest_us);
}

static void on_message(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	if (!recv->err)
		measure(endpoint->fixture->tag);
}

static void send_message(struct endpoint *client)
{
	endpoint_send(client, 1, 16);
}

START_TEST(messages_keep_a_connection_from_being_idle)
{
	struct ticks ticks = { .act = send_message };
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->options.idle_timeout_ms = 10 * TICK_MS;
	fixture_connect_pair(f);
	f->on_recv = on_message;
	pass_time(f, &ticks);
	check_never_idle(&ticks);
	f->on_recv = NULL;
	fixture_free(f);
}
END_TEST

static unsigned char memory[64];
static struct evrdma_remote remote;

static void write_to_peer(struct endpoint *client)
{
	struct evrdma_buf *buf = evrdma_pool_get(client->fixture->pool);
	const struct evrdma_seg seg = { buf, 0, sizeof(memory) };
	const struct evrdma_work work = {
		.op = EVRDMA_OP_WRITE, .segs = &seg, .seg_count = 1, .remote = remote
	};

	measure(client->fixture->tag);
	ck_assert_int_eq(evrdma_conn_submit(client->conn, &work, NULL, NULL), 0);
	evrdma_buf_unref(buf);
}

static int idle_ms_of_server;

static void accept_with_a_timeout_of_its_own(struct fixture *f, struct evrdma_request *request)
{
	f->options.idle_timeout_ms = idle_ms_of_server;
	endpoint_accept(fixture_endpoint_new(f, false), request);
}

/* A pair whose client does nothing but write to the server's memory for some time. */
static struct fixture *write_for_some_time(
	struct ticks *ticks, int client_idle_ms, int server_idle_ms)
{
	struct fixture *f = fixture_new();
	struct evrdma_buf *exposed = evrdma_buf_new_reference(
		memory, sizeof(memory), EVRDMA_BUF_OPT_REMOTE_WRITE, NULL, NULL);

	f->on_event = keep_open;
	f->on_request = accept_with_a_timeout_of_its_own;
	f->options.idle_timeout_ms = client_idle_ms;
	idle_ms_of_server = server_idle_ms;
	fixture_connect_pair(f);
	ck_assert_int_eq(evrdma_conn_expose(f->server->conn, exposed, &remote), 0);
	ticks->act = write_to_peer;
	pass_time(f, ticks);
	evrdma_buf_unref(exposed);
	return f;
}

START_TEST(RDMA_of_ones_own_keeps_a_connection_from_being_idle)
{
	struct ticks ticks = { 0 };
	struct fixture *f = write_for_some_time(&ticks, 10 * TICK_MS, 0);

	check_never_idle(&ticks);
	fixture_free(f);
}
END_TEST

/* It is between the two devices, and nobody tells the program. */
START_TEST(RDMA_of_the_peer_does_not_keep_a_connection_from_being_idle)
{
	struct ticks ticks = { 0 };
	struct fixture *f = write_for_some_time(&ticks, 0, 5 * TICK_MS);

	fixture_run_until(f, both_are_down, 20000);
	ck_assert_int_eq(f->server->error, ETIMEDOUT);
	ck_assert_int_eq(f->server->step, EVRDMA_STEP_TRANSFER);
	fixture_free(f);
}
END_TEST

START_TEST(a_keepalive_does_not_keep_a_connection_from_being_idle)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->options.idle_timeout_ms = 10 * TICK_MS;
	f->options.keepalive_ms = 2 * TICK_MS;
	fixture_connect_pair(f);
	fixture_run_until(f, fixture_client_is_down, 20000);
	ck_assert(f->client->error == ETIMEDOUT || f->server->error == ETIMEDOUT);
	fixture_free(f);
}
END_TEST

START_TEST(a_peer_that_is_there_answers_a_keepalive)
{
	struct fixture *f = fixture_new();
	struct ticks ticks = { 0 };

	f->on_event = keep_open;
	f->options.keepalive_ms = 4 * TICK_MS;
	fixture_connect_pair(f);
	pass_time(f, &ticks);
	ck_assert_msg(!f->client->down && !f->server->down, "%s", f->last_error);
	ck_assert_uint_eq(f->client->received + f->server->received, 0);
	/* A probe is nobody's send. */
	ck_assert_uint_eq(f->client->sends_ok + f->server->sends_ok, 0);
	fixture_free(f);
}
END_TEST

/* Each place of its queue has had a send by then, and some devices look at what that has left. */
START_TEST(a_peer_that_is_there_answers_a_keepalive_after_messages)
{
	struct fixture *f = fixture_new();
	struct ticks ticks = { 0 };

	f->on_event = keep_open;
	f->options.keepalive_ms = 4 * TICK_MS;
	f->options.send_depth = 8;
	f->options.send_queue = MANY;
	f->options.recv_depth = MANY;
	fixture_connect_pair(f);
	endpoint_send(f->client, MANY, 64);
	pass_time(f, &ticks);
	ck_assert_uint_eq(f->server->received, MANY);
	ck_assert_msg(!f->client->down && !f->server->down, "%s", f->last_error);
	fixture_free(f);
}
END_TEST

/* --- in order ------------------------------------------------------------------------------- */

START_TEST(a_disconnect_waits_for_what_was_sent)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->options.send_depth = 8;
	f->options.send_queue = MANY;
	f->options.recv_depth = MANY;
	fixture_connect_pair(f);
	endpoint_send(f->client, MANY, 64);
	ck_assert_uint_eq(f->client->sends_taken, MANY);
	ck_assert_int_eq(evrdma_conn_disconnect(f->client->conn), 0);
	ck_assert_uint_eq(evrdma_conn_send_space(f->client->conn), 0);
	fixture_run_until(f, both_are_down, 20000);
	ck_assert_int_eq(f->client->error, 0);
	ck_assert_uint_eq(f->client->sends_ok, MANY);
	ck_assert_uint_eq(f->server->received, MANY);
	fixture_free(f);
}
END_TEST

TCase *alive_case(void)
{
	TCase *tc = tcase_create("alive");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, an_idle_connection_ends_with_its_timeout);
	tcase_add_test(tc, messages_keep_a_connection_from_being_idle);
	tcase_add_test(tc, RDMA_of_ones_own_keeps_a_connection_from_being_idle);
	tcase_add_test(tc, RDMA_of_the_peer_does_not_keep_a_connection_from_being_idle);
	tcase_add_test(tc, a_keepalive_does_not_keep_a_connection_from_being_idle);
	tcase_add_test(tc, a_peer_that_is_there_answers_a_keepalive);
	tcase_add_test(tc, a_peer_that_is_there_answers_a_keepalive_after_messages);
	tcase_add_test(tc, a_disconnect_waits_for_what_was_sent);
	return tc;
}
