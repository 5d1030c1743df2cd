/* The event layer on the library on the fake: an echo, and the same with each call failing. */
#include "unit/fake_main.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <evrdma/evrdma.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "schedule/clock.h"

enum { PORT = 7471, BUF = 256, DEPTH = 4, MIN_CALLS = 40, MAX_CALLS = 400, TICK_US = 1,
	LATE_US = 5000000 };

struct fixture {
	struct event_base *loop;
	struct evrdma_base *base;
	struct evrdma_listener *listener;
	struct evrdma_conn *client;
	bool echoed;
	bool closed;
	int opened; /* connections that have not had their closed event */
};

static struct sockaddr_in server_addr(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	inet_pton(AF_INET, FAKE_ROCE_IP, &in.sin_addr);
	return in;
}

static void on_closed(struct evrdma_base *base, void *arg)
{
	struct fixture *f = arg;

	f->closed = true;
}

static void finish(struct fixture *f)
{
	evrdma_base_close(f->base, on_closed, f);
}

static void on_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	struct fixture *f = arg;
	struct evrdma_buf *buf;
	struct evrdma_pool *pool;

	if (event == EVRDMA_CONN_CLOSED) {
		f->opened--;
	} else if (event == EVRDMA_CONN_CONNECTED && conn == f->client) {
		pool = evrdma_pool_new(f->base, BUF, 0);
		buf = pool ? evrdma_pool_get(pool) : NULL;
		if (buf)
			memcpy(evrdma_buf_data(buf), "hello", 5);
		if (!buf || evrdma_conn_send(conn, buf, 5, NULL, NULL))
			finish(f);
		evrdma_buf_unref(buf);
		evrdma_pool_free(pool);
	} else if (event != EVRDMA_CONN_CONNECTED && event != EVRDMA_CONN_WRITABLE) {
		finish(f);
	}
}

static void on_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	struct fixture *f = arg;

	if (recv->err)
		return;
	if (conn != f->client) {
		if (evrdma_conn_send(conn, recv->buf, recv->len, NULL, NULL))
			finish(f);
		return;
	}
	f->echoed = recv->len == 5 && !memcmp(recv->data, "hello", 5);
	evrdma_conn_close(conn);
}

static struct evrdma_conn *new_conn(struct fixture *f)
{
	struct evrdma_conn_options options;
	struct evrdma_conn *conn;

	evrdma_conn_options_init(&options);
	options.connect_timeout_ms = 50;
	options.drain_timeout_ms = 20;
	options.send_depth = options.recv_depth = DEPTH;
	options.recv_pool = evrdma_pool_new(f->base, BUF, 0);
	if (!options.recv_pool)
		return NULL;
	conn = evrdma_conn_new(f->base, &options);
	evrdma_pool_free(options.recv_pool);
	if (conn) {
		evrdma_conn_setcb(conn, on_recv, on_event, f);
		f->opened++;
	}
	return conn;
}

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct fixture *f = arg;
	struct evrdma_conn *conn = new_conn(f);

	if (conn && !evrdma_conn_accept(conn, request))
		return;
	if (conn)
		evrdma_conn_close(conn);
	evrdma_request_reject(request, NULL, 0);
	finish(f);
}

static int start(struct fixture *f)
{
	struct sockaddr_in in = server_addr();

	f->listener = evrdma_listener_new(f->base, (struct sockaddr *)&in, NULL, on_request, f);
	if (!f->listener)
		return -1;
	f->client = new_conn(f);
	if (!f->client)
		return -1;
	return evrdma_conn_connect(f->client, NULL, (struct sockaddr *)&in);
}

/* The application's own patience: a side that hears nothing of the other's end. */
static void give_up(evutil_socket_t fd, short what, void *arg)
{
	struct fixture *f = arg;

	if (!f->closed)
		finish(f);
}

/* Ends when the base is closed; at the latest, far beyond every time-out in it. */
static void run(struct fixture *f)
{
	const struct timeval patience = { .tv_usec = 200000 };
	enum clock_turn turn = CLOCK_RAN;

	event_base_once(f->loop, -1, EV_TIMEOUT, give_up, f, &patience);
	while (!f->closed && turn != CLOCK_FOREVER && turn != CLOCK_EMPTY &&
		clock_now_us() < LATE_US)
		turn = clock_turn(f->loop, true);
}

/* One echo from beginning to end; whatever happens, all of it is closed at the end. */
static void echo(struct fixture *f)
{
	struct evrdma_base_options options;

	memset(f, 0, sizeof(*f));
	clock_start(TICK_US);
	f->loop = event_base_new();
	evrdma_base_options_init(&options);
	options.device_idle_ms = 0;
	f->base = evrdma_base_new(f->loop, &options);
	if (f->base) {
		if (start(f))
			finish(f);
		run(f);
	}
	event_base_free(f->loop);
	clock_stop();
}

START_TEST(a_message_comes_back)
{
	struct fixture f;

	echo(&f);
	ck_assert(f.echoed);
	ck_assert(f.closed);
	ck_assert_int_eq(f.opened, 0);
}
END_TEST

static const char *survives(unsigned n)
{
	const char *failed;
	struct fixture f;

	fake_fail_nth(FAKE_ANY, n, ENOMEM);
	echo(&f);
	failed = fake_failed();
	fake_fail_nth(FAKE_ANY, 0, 0);
	ck_assert_msg(f.closed || !f.base, "call %u, %s: not over in time", n, failed);
	ck_assert_msg(f.echoed || failed, "call %u: failed without a reason", n);
	ck_assert_msg(f.opened == 0, "call %u, %s: %d connections not closed", n, failed, f.opened);
	ck_assert_msg(!fake_expect_clean(), "call %u, %s: %s", n, failed, fake_expect_clean());
	return failed;
}

START_TEST(whatever_call_fails_all_is_closed)
{
	unsigned n = 1;

	while (n < MAX_CALLS && survives(n))
		n++;
	ck_assert_uint_gt(n, MIN_CALLS);
	ck_assert_uint_lt(n, MAX_CALLS);
}
END_TEST

static void unplug(void *arg)
{
	fake_device_remove(FAKE_ROCE);
}

static const char *survives_removal(unsigned n)
{
	const char *before;
	struct fixture f;

	fake_at_nth(FAKE_ANY, n, unplug, NULL);
	echo(&f);
	before = fake_failed();
	fake_fail_nth(FAKE_ANY, 0, 0);
	if (!before)
		return NULL;
	ck_assert_msg(f.closed || !f.base, "before call %u, %s: not over in time", n, before);
	ck_assert_msg(!f.opened, "before call %u, %s: %d not closed", n, before, f.opened);
	rdma_free_devices(rdma_get_devices(NULL));
	ck_assert_msg(fake_device_gone(FAKE_ROCE), "before call %u, %s: held up", n, before);
	fake_device_add(FAKE_ROCE);
	return before;
}

START_TEST(the_device_may_go_before_any_call_and_come_back)
{
	unsigned n = 1;

	while (n < MAX_CALLS && survives_removal(n))
		n++;
	ck_assert_uint_gt(n, MIN_CALLS);
	ck_assert_uint_lt(n, MAX_CALLS);
}
END_TEST

START_TEST(a_message_that_never_comes_holds_nothing_up)
{
	static const enum fake_message kinds[] = { FAKE_ADDR, FAKE_ROUTE, FAKE_REQ, FAKE_REP,
		FAKE_RTU, FAKE_REJ, FAKE_DREQ, FAKE_DREP };
	struct fixture f;
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		fake_hold(kinds[i]);
		echo(&f);
		fake_release(kinds[i]);
		ck_assert_msg(f.closed, "message %d: not over in time", kinds[i]);
		ck_assert_msg(!f.opened, "message %d: %d not closed", kinds[i], f.opened);
		ck_assert_msg(
			!fake_expect_clean(), "message %d: %s", kinds[i], fake_expect_clean());
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_message_comes_back,
		whatever_call_fails_all_is_closed,
		the_device_may_go_before_any_call_and_come_back,
		a_message_that_never_comes_holds_nothing_up,
	};

	return fake_main("fake_ev", tests, sizeof(tests) / sizeof(tests[0]));
}
