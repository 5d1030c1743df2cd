/*
 * Every call below the event layer fails once, in a run of its own: each kernel command, each verb,
 * each allocation; and in the middle of each of the first two the device is pulled. Whatever comes
 * of it, each object is told and closed, nothing is left, and the next run goes through.
 */
#include "fake/fake.h"
#include "fake/fake_heap.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <event2/event.h>
#include <evrdma/evrdma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEN = 64, MANY_POINTS = 1000, HANG_S = 10 };

struct run {
	struct event_base *loop;
	struct evrdma_base *base, *other;
	struct evrdma_pool *pool;
	struct evrdma_srq *srq;
	struct evrdma_conn *client;
	struct evrdma_dgram *dgram;
	struct evrdma_mcast *group;
	struct evrdma_domain *domain;
	bool server_closes, moves_request, shuts_down;
	bool ignores; /* whoever listens answers nobody */
	struct evrdma_request *ignored;
	bool lends; /* the listener's buffers and domain are its connections' */
	bool through;             /* all of it went well */
	bool failed;              /* a call or a callback said that something did not */
	unsigned made, closed;    /* objects */
	unsigned sends, sent;
	unsigned bases;
	bool late;
};

/* --- what all scenarios share ---------------------------------------------------------------- */

static void on_late(evutil_socket_t fd, short what, void *arg)
{
	((struct run *)arg)->late = true;
}

static void on_base_closed(struct evrdma_base *base, void *arg)
{
	((struct run *)arg)->bases--;
}

static void finish(struct run *r)
{
	evrdma_base_close(r->base, on_base_closed, r);
	if (r->other)
		evrdma_base_close(r->other, on_base_closed, r);
}

static void give_up(struct run *r)
{
	r->failed = true;
	finish(r);
}

static void *made(struct run *r, void *object)
{
	r->made += object != NULL;
	return object;
}

static struct sockaddr *address(const char *ip, uint16_t port)
{
	static struct sockaddr_in sin;

	sin = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
	inet_pton(AF_INET, ip, &sin.sin_addr);
	return (struct sockaddr *)&sin;
}

/* --- a connection ---------------------------------------------------------------------------- */

static void on_sent(struct evrdma_conn *conn, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	((struct run *)arg)->sent++;
}

static void send_one(struct run *r, struct evrdma_conn *conn)
{
	struct evrdma_buf *buf = evrdma_pool_get(r->pool);

	if (buf)
		memset(evrdma_buf_data(buf), 0x5a, LEN);
	if (buf && !evrdma_conn_send(conn, buf, LEN, on_sent, r))
		r->sends++;
	else
		give_up(r);
	evrdma_buf_unref(buf);
}

/* The library has rejected it meanwhile. */
static void let_go(struct run *r)
{
	r->through = true;
	evrdma_request_reject(r->ignored, NULL, 0);
	finish(r);
}

static void on_conn_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	struct run *r = arg;

	switch (event) {
	case EVRDMA_CONN_CONNECTED:
		if (conn == r->client)
			send_one(r, conn);
		break;
	case EVRDMA_CONN_ERROR:
		if (r->ignored && error->err == ECONNREFUSED)
			let_go(r);
		else
			give_up(r);
		break;
	case EVRDMA_CONN_DISCONNECTED:
		if (!r->shuts_down)
			finish(r);
		break;
	case EVRDMA_CONN_CLOSED:
		r->closed++;
		break;
	case EVRDMA_CONN_WRITABLE:
		break;
	}
}

static void shut_down(struct run *r)
{
	evrdma_base_shutdown(r->base, 1000, on_base_closed, r);
	evrdma_base_shutdown(r->other, 1000, on_base_closed, r);
}

/* There and back; then one side closes, and the other learns of it. */
static void on_conn_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	struct run *r = arg;

	if (recv->err || recv->len != LEN)
		return;
	if (conn != r->client) {
		send_one(r, conn);
		return;
	}
	r->through = true;
	if (r->shuts_down)
		shut_down(r);
	else if (r->server_closes)
		r->failed |= evrdma_conn_disconnect(conn) != 0;
	else
		evrdma_conn_close(conn);
}

static struct evrdma_conn *new_conn(struct run *r, struct evrdma_base *base)
{
	struct evrdma_conn_options options;
	struct evrdma_conn *conn;

	evrdma_conn_options_init(&options);
	options.srq = r->lends ? NULL : r->srq;
	options.recv_pool = base == r->base && !options.srq ? r->pool : NULL;
	if (r->lends && r->client)
		options.recv_pool = NULL;
	options.recv_depth = options.send_depth = 4;
	options.connect_timeout_ms = 5000;
	options.drain_timeout_ms = 20;
	conn = made(r, evrdma_conn_new(base, &options));
	if (conn)
		evrdma_conn_setcb(conn, on_conn_recv, on_conn_event, r);
	return conn;
}

static void reject(struct run *r, struct evrdma_request *request)
{
	r->failed = true;
	evrdma_request_reject(request, NULL, 0);
}

static void serve(struct evrdma_request *request, void *arg)
{
	struct run *r = arg;
	struct evrdma_conn *conn = new_conn(r, r->base);

	if (!conn || evrdma_conn_accept(conn, request))
		reject(r, request);
}

/* From the second base, where it listens, to the first, where it is served. */
static void on_request(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct run *r = arg;

	if (r->ignores)
		r->ignored = request;
	else if (!r->moves_request)
		serve(request, r);
	else if (evrdma_request_move(request, r->base, serve, r))
		reject(r, request);
}

static void on_listener_event(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	struct run *r = arg;

	if (event == EVRDMA_LISTENER_ERROR)
		give_up(r);
	else
		r->closed++;
}

static void set_limits(struct run *r, struct evrdma_listener_options *options)
{
	evrdma_listener_options_init(options);
	options->request_timeout_ms = r->ignores ? 5 : 5000;
	if (!r->lends)
		return;
	options->max_connections = options->max_pending = options->max_pending_per_source = 1;
	options->domain = r->domain;
	options->srq = r->srq;
}

static int start_connection(struct run *r)
{
	struct evrdma_listener_options options;
	struct evrdma_listener *listener;

	r->pool = r->pool ? r->pool : evrdma_pool_new(r->base, LEN, 0);
	if (!r->pool)
		return -1;
	set_limits(r, &options);
	listener = made(r, evrdma_listener_new(r->moves_request ? r->other : r->base,
				   address(FAKE_ROCE_IP, 7471), &options, on_request, r));
	if (!listener)
		return -1;
	evrdma_listener_set_event_cb(listener, on_listener_event);
	r->client = new_conn(r, r->base);
	if (!r->client)
		return -1;
	return evrdma_conn_connect(r->client, NULL, address(FAKE_ROCE_IP, 7471));
}

static int client_closes(struct run *r)
{
	return start_connection(r);
}

static int server_closes(struct run *r)
{
	r->server_closes = true;
	return start_connection(r);
}

static int request_moves(struct run *r)
{
	r->moves_request = true;
	r->other = evrdma_base_new(r->loop, NULL);
	if (!r->other)
		return -1;
	r->bases++;
	return start_connection(r);
}

static int request_is_ignored(struct run *r)
{
	r->ignores = true;
	return start_connection(r);
}

static int listener_lends(struct run *r)
{
	struct evrdma_pool_options options;

	evrdma_pool_options_init(&options);
	options.min_bufs = 8;
	r->lends = true;
	r->pool = evrdma_pool_new_with_options(r->base, LEN, &options);
	r->srq = r->pool ? evrdma_srq_new(r->base, r->pool, 8) : NULL;
	r->domain = evrdma_domain_new(r->base);
	return r->srq && r->domain ? start_connection(r) : -1;
}

static void on_low(struct evrdma_srq *srq, void *arg)
{
}

/* Beside a base that looks at the list of devices, and with what is told when buffers run low. */
static int base_is_shut_down(struct run *r)
{
	struct evrdma_base_options options;

	r->shuts_down = true;
	evrdma_base_options_init(&options);
	options.device_poll_ms = 1000;
	r->other = evrdma_base_new(r->loop, &options);
	if (!r->other)
		return -1;
	r->bases++;
	r->pool = evrdma_pool_new(r->base, LEN, 0);
	r->srq = r->pool ? evrdma_srq_new(r->base, r->pool, 8) : NULL;
	if (!r->srq || evrdma_srq_set_limit(r->srq, 2, on_low, r))
		return -1;
	return start_connection(r);
}

/* --- a group --------------------------------------------------------------------------------- */

static void on_dgram_sent(struct evrdma_dgram *dgram, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	((struct run *)arg)->sent++;
}

static void send_datagram(struct run *r)
{
	struct evrdma_buf *buf = evrdma_pool_get(r->pool);
	uint32_t imm = 7;

	if (buf && !evrdma_dgram_send(r->dgram, r->group, buf, LEN, &imm, on_dgram_sent, r))
		r->sends++;
	else
		give_up(r);
	evrdma_buf_unref(buf);
}

static void on_group_event(struct evrdma_mcast *group, enum evrdma_mcast_event event,
	const struct evrdma_error *error, void *arg)
{
	struct run *r = arg;

	if (event == EVRDMA_MCAST_JOINED)
		send_datagram(r);
	else if (event == EVRDMA_MCAST_ERROR)
		give_up(r);
	else
		r->closed++;
	if (event == EVRDMA_MCAST_CLOSED && r->through)
		evrdma_dgram_close(r->dgram);
}

static void on_dgram_event(struct evrdma_dgram *dgram, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg)
{
	struct run *r = arg;

	if (event == EVRDMA_DGRAM_READY) {
		r->group = made(r, evrdma_mcast_join(
					   dgram, address("239.1.2.3", 0), 0, on_group_event, r));
		if (!r->group)
			give_up(r);
	} else if (event == EVRDMA_DGRAM_ERROR) {
		give_up(r);
	} else if (event == EVRDMA_DGRAM_CLOSED) {
		r->closed++;
		finish(r);
	}
}

static void on_datagram(struct evrdma_dgram *dgram, const struct evrdma_recv *recv, void *arg)
{
	struct run *r = arg;

	r->through = !recv->err && recv->len == LEN && recv->imm == 7;
	evrdma_mcast_close(r->group);
}

static int group_is_joined(struct run *r)
{
	struct evrdma_dgram_options options;

	evrdma_dgram_options_init(&options);
	r->pool = evrdma_pool_new(r->base, LEN + EVRDMA_DGRAM_HEADER_BYTES, 0);
	options.recv_pool = r->pool;
	options.recv_depth = options.send_depth = 4;
	options.drain_timeout_ms = 20;
	if (!r->pool)
		return -1;
	r->dgram = made(r, evrdma_dgram_new(r->base, &options));
	if (!r->dgram)
		return -1;
	evrdma_dgram_setcb(r->dgram, on_datagram, on_dgram_event, r);
	return evrdma_dgram_open(r->dgram, address(FAKE_ROCE_IP, 0), NULL);
}

/* --- the sweep ------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int (*start)(struct run *r);
} scenarios[] = {
	{ "client closes", client_closes },
	{ "server closes", server_closes },
	{ "request moves", request_moves },
	{ "listener lends", listener_lends },
	{ "request is ignored", request_is_ignored },
	{ "base is shut down", base_is_shut_down },
	{ "group", group_is_joined },
};

static const struct {
	const char *name;
	enum fake_layer layer; /* 0: allocations */
	int err;               /* 0: the device is pulled in the middle of the call */
} faults[] = {
	{ "kernel ENOMEM", FAKE_KERNEL, ENOMEM },
	{ "kernel EINVAL", FAKE_KERNEL, EINVAL },
	{ "verbs ENOMEM", FAKE_VERBS, ENOMEM },
	{ "verbs EIO", FAKE_VERBS, EIO },
	{ "allocations", 0, ENOMEM },
	{ "removals", FAKE_ANY, 0 },
};

enum { SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]),
	FAULTS = sizeof(faults) / sizeof(faults[0]) };

static void pull_device(void *arg)
{
	fake_device_remove(FAKE_ROCE);
}

static void arm(int fault, unsigned n)
{
	if (!faults[fault].err)
		fake_at_nth(faults[fault].layer, n, pull_device, NULL);
	else if (faults[fault].layer)
		fake_fail_nth(faults[fault].layer, n, faults[fault].err);
	else
		fake_heap_fail_nth(n);
}

static const char *disarm(int fault)
{
	const char *failed = fake_failed();

	if (!faults[fault].layer)
		failed = fake_heap_failed() ? "an allocation" : NULL;
	fake_heap_fail_nth(0);
	fake_fail_nth(FAKE_ANY, 0, 0);
	return failed;
}

static void run_loop(struct run *r)
{
	static const struct timeval patience = { HANG_S, 0 };
	struct event *timer = evtimer_new(r->loop, on_late, r);

	evtimer_add(timer, &patience);
	while (r->bases && !r->late)
		event_base_loop(r->loop, EVLOOP_ONCE);
	event_free(timer);
}

static void run_scenario(int scenario, struct run *r)
{
	*r = (struct run){ .loop = event_base_new() };
	r->base = evrdma_base_new(r->loop, NULL);
	if (r->base) {
		r->bases++;
		if (scenarios[scenario].start(r))
			give_up(r);
		run_loop(r);
	}
	event_base_free(r->loop);
}

/* Not before the fault is disarmed: what checks allocates as well. */
static void check_run(const struct run *r, const char *what)
{
	const char *left = fake_expect_clean();

	ck_assert_msg(!r->late, "%s: hangs, %u objects made, %u closed", what, r->made, r->closed);
	ck_assert_msg(r->closed == r->made, "%s: %u made, %u closed", what, r->made, r->closed);
	ck_assert_msg(r->sends == r->sent, "%s: %u sends, %u ended", what, r->sends, r->sent);
	ck_assert_msg(!r->base || r->through || r->failed, "%s: nobody was told", what);
	ck_assert_msg(!left, "%s: %s", what, left);
}

static void put_device_back(const char *what)
{
	ck_assert_msg(fake_device_gone(FAKE_ROCE), "%s: the device is held", what);
	fake_device_add(FAKE_ROCE);
}

/* One point: with the fault, and after it. False when the fault was not reached. */
static bool sweep_point(int scenario, int fault, unsigned n)
{
	const char *failed;
	struct run r;
	char what[96];

	arm(fault, n);
	run_scenario(scenario, &r);
	failed = disarm(fault);
	snprintf(what, sizeof(what), "%s, %s %u (%s)", scenarios[scenario].name,
		faults[fault].name, n, failed ? failed : "not reached");
	check_run(&r, what);
	if (failed && !faults[fault].err)
		put_device_back(what);
	run_scenario(scenario, &r);
	check_run(&r, what);
	ck_assert_msg(r.through, "%s: the next run does not go through", what);
	return failed;
}

START_TEST(every_call_fails_once_and_all_is_told_and_released)
{
	int scenario = _i / FAULTS, fault = _i % FAULTS;
	unsigned n = 1;

	fake_install();
	while (sweep_point(scenario, fault, n) && n < MANY_POINTS)
		n++;
	ck_assert_uint_gt(n, 5);
	ck_assert_uint_lt(n, MANY_POINTS);
	printf("# %s: %u points of %s\n", scenarios[scenario].name, n - 1, faults[fault].name);
	fake_reset();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sweep");
	TCase *tc = tcase_create("sweep");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(
		tc, every_call_fails_once_and_all_is_told_and_released, 0, SCENARIOS * FAULTS);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
