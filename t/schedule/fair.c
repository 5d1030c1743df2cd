/*
 * Slow work of many kinds in one loop: each kind has its share, and no time runs for what has not
 * begun. The time is the clock's; each look at it takes longer than a turn's budget, so that a turn
 * does one step.
 */
#include "fake/fake.h"
#include "schedule/clock.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include <evrdma/evrdma.h>

enum {
	READING_US = 600,
	US_PER_MS = 1000,
	MANY = 10000, /* pairs */
	SOME = 64,
	BATCH = 100,
	CONNECT_MS = 2000,
	DRAIN_MS = 100,
	TURNS = 400000,
};

static struct {
	struct event_base *loop;
	struct evrdma_base *base;
	struct evrdma_listener *listener;
	struct evrdma_conn *clients[MANY];
	struct evrdma_conn_options options;
	unsigned made, connected, disconnected, failed, closed, live;
	int error;
	bool base_closed;
} crowd;

static void on_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	switch (event) {
	case EVRDMA_CONN_CONNECTED:
		crowd.connected++;
		break;
	case EVRDMA_CONN_DISCONNECTED:
		crowd.disconnected++;
		evrdma_conn_close(conn);
		break;
	case EVRDMA_CONN_ERROR:
		crowd.failed++;
		crowd.error = error->err;
		evrdma_conn_close(conn);
		break;
	case EVRDMA_CONN_CLOSED:
		crowd.closed++;
		crowd.live--;
		break;
	default:
		break;
	}
}

static struct evrdma_conn *new_conn(void)
{
	struct evrdma_conn *conn = evrdma_conn_new(crowd.base, &crowd.options);

	ck_assert_ptr_nonnull(conn);
	evrdma_conn_setcb(conn, NULL, on_event, NULL);
	crowd.live++;
	return conn;
}

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	ck_assert_int_eq(evrdma_conn_accept(new_conn(), request), 0);
}

static struct evrdma_conn *connect_one(void)
{
	struct evrdma_conn *conn = new_conn();
	struct sockaddr_in sin = { .sin_family = AF_INET,
		.sin_port = htons(evrdma_listener_get_port(crowd.listener)) };

	inet_pton(AF_INET, FAKE_ROCE_IP, &sin.sin_addr);
	ck_assert_int_eq(evrdma_conn_connect(conn, NULL, (struct sockaddr *)&sin), 0);
	return conn;
}

static void listen_for_all(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };

	inet_pton(AF_INET, FAKE_ROCE_IP, &sin.sin_addr);
	crowd.listener =
		evrdma_listener_new(crowd.base, (struct sockaddr *)&sin, NULL, on_request, NULL);
	ck_assert_ptr_nonnull(crowd.listener);
}

static void start(void)
{
	memset(&crowd, 0, sizeof(crowd));
	fake_install();
	fake_device_attr(FAKE_ROCE)->max_qp = 3 * MANY;
	clock_start(0);
	crowd.loop = event_base_new();
	crowd.base = evrdma_base_new(crowd.loop, NULL);
	ck_assert_ptr_nonnull(crowd.base);
	listen_for_all();
	evrdma_conn_options_init(&crowd.options);
	crowd.options.send_depth = 1;
	crowd.options.recv_depth = 0;
	crowd.options.drain_timeout_ms = DRAIN_MS;
}

static void run_until(const unsigned *count, unsigned n)
{
	unsigned turns = 0;

	while (*count < n) {
		clock_turn(crowd.loop, true);
		ck_assert_msg(turns++ < TURNS, "%u of %u", *count, n);
	}
}

/* So many pairs, made while no time passes. */
static void connect_crowd(unsigned n)
{
	for (crowd.made = 0; crowd.made < n;) {
		crowd.clients[crowd.made++] = connect_one();
		if (!(crowd.made % BATCH) || crowd.made == n)
			run_until(&crowd.connected, 2 * crowd.made);
	}
	clock_start(READING_US);
}

static void on_base_closed(struct evrdma_base *base, void *arg)
{
	crowd.base_closed = true;
}

static void stop(void)
{
	clock_start(0);
	evrdma_base_close(crowd.base, on_base_closed, NULL);
	while (!crowd.base_closed)
		clock_turn(crowd.loop, true);
	event_base_free(crowd.loop);
	ck_assert_uint_eq(crowd.live, 0);
	fake_reset();
}

START_TEST(a_connect_ends_in_time_beside_thousands_of_closes)
{
	uint64_t began_us;
	unsigned i;

	connect_crowd(MANY);
	crowd.options.connect_timeout_ms = CONNECT_MS;
	began_us = clock_now_us();
	/* Their peers are disconnected, and close as well. */
	for (i = 0; i < MANY; i++)
		evrdma_conn_close(crowd.clients[i]);
	connect_one();
	run_until(&crowd.connected, 2 * MANY + 2);
	ck_assert_uint_lt(clock_now_us() - began_us, CONNECT_MS / 4 * US_PER_MS);
	ck_assert_uint_eq(crowd.failed, 0);
	ck_assert_uint_gt(crowd.live, MANY);
}
END_TEST

START_TEST(no_time_runs_for_a_disconnect_that_waits_its_turn)
{
	uint64_t began_us;
	unsigned i;

	connect_crowd(SOME);
	began_us = clock_now_us();
	for (i = 0; i < SOME; i++)
		connect_one();
	for (i = 0; i < SOME; i++)
		ck_assert_int_eq(evrdma_conn_disconnect(crowd.clients[i]), 0);
	run_until(&crowd.closed, 2 * SOME);
	ck_assert_uint_gt(clock_now_us() - began_us, DRAIN_MS * US_PER_MS);
	ck_assert_msg(!crowd.failed, "%u failed, with %d", crowd.failed, crowd.error);
	ck_assert_uint_eq(crowd.disconnected, 2 * SOME);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fair");
	TCase *tc = tcase_create("fair");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, start, stop);
	tcase_set_timeout(tc, 240);
	tcase_add_test(tc, a_connect_ends_in_time_beside_thousands_of_closes);
	tcase_add_test(tc, no_time_runs_for_a_disconnect_that_waits_its_turn);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
