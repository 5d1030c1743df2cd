/* A connection is closed from every callback it has, with work in flight. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>

enum { IN_FLIGHT = 64, ROUNDS = 10 };

enum point {
	AT_CONNECTED,
	AT_RECV,
	AT_SENT,
	AT_CANCELLED,
	AT_WRITABLE,
	AT_DISCONNECTED,
	AT_ERROR,
	POINTS
};

static const char *const point_names[POINTS] = { "connected", "recv", "sent", "cancelled send",
	"writable", "disconnected", "error" };

struct plan {
	enum point point;
	bool at_client;
	bool reached;
};

static void reach(struct endpoint *endpoint, enum point point)
{
	struct plan *plan = endpoint->fixture->tag;

	if (plan->point != point || plan->at_client != endpoint->is_client)
		return;
	plan->reached = true;
	evrdma_conn_close(endpoint->conn);
	evrdma_conn_close(endpoint->conn);
}

static bool is_at(const struct plan *plan, const struct endpoint *endpoint)
{
	return plan->at_client == endpoint->is_client;
}

/*
 * Both sides fill their queues, once: there is no flow control here, and iWARP ends a connection
 * that sends more than its peer has room for.
 */
static void start_traffic(struct endpoint *endpoint)
{
	struct plan *plan = endpoint->fixture->tag;

	endpoint_send(endpoint, IN_FLIGHT + 1, 64);
	if (plan->point == AT_DISCONNECTED && !is_at(plan, endpoint))
		evrdma_conn_close(endpoint->conn);
	if (plan->point == AT_CANCELLED && is_at(plan, endpoint))
		/* The library's own would wait for what was sent. */
		ck_assert_int_eq(rdma_disconnect(evrdma_conn_get_cm_id(endpoint->conn)), 0);
}

static void on_event(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	struct plan *plan = endpoint->fixture->tag;

	switch (event) {
	case EVRDMA_CONN_CONNECTED:
		reach(endpoint, AT_CONNECTED);
		start_traffic(endpoint);
		break;
	case EVRDMA_CONN_WRITABLE:
		reach(endpoint, AT_WRITABLE);
		break;
	case EVRDMA_CONN_DISCONNECTED:
	case EVRDMA_CONN_ERROR:
		reach(endpoint, event == EVRDMA_CONN_ERROR ? AT_ERROR : AT_DISCONNECTED);
		if (plan->point != AT_CANCELLED || !is_at(plan, endpoint))
			evrdma_conn_close(endpoint->conn);
		break;
	case EVRDMA_CONN_CLOSED:
	case EVRDMA_CONN_ADDR_CHANGED:
		break;
	}
}

static void on_recv(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	reach(endpoint, AT_RECV);
}

static void on_sent(struct endpoint *endpoint, const struct evrdma_error *error)
{
	reach(endpoint, error ? AT_CANCELLED : AT_SENT);
}

static bool all_closed_or_reached(struct fixture *f)
{
	struct plan *plan = f->tag;

	return plan->reached || (f->closed && !f->live);
}

static bool both_closed(struct fixture *f)
{
	return f->closed >= 2 && !f->live;
}

static void one_round(struct fixture *f, struct plan *plan)
{
	plan->reached = false;
	f->closed = 0;
	fixture_connect(f);
	fixture_run_until(f, all_closed_or_reached, 20000);
	fixture_run_until(f, both_closed, 20000);
	ck_assert_msg(plan->reached, "%s at the %s was not reached; %s", point_names[plan->point],
		plan->at_client ? "client" : "server", f->last_error);
}

/* The callbacks of a connection that gets through; a refused one has its own test. */
START_TEST(closed_in_any_callback_with_work_in_flight)
{
	struct plan plan = { .point = (enum point)(_i / 2), .at_client = _i % 2 };
	struct fixture *f = fixture_new();
	int round;

	f->tag = &plan;
	f->on_event = on_event;
	f->on_recv = on_recv;
	f->on_sent = on_sent;
	fixture_listen(f);
	for (round = 0; round < ROUNDS; round++)
		one_round(f, &plan);
	fixture_free(f);
}
END_TEST

static void send_when_connected(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	if (event == EVRDMA_CONN_CONNECTED && endpoint->is_client)
		endpoint_send(endpoint, IN_FLIGHT, 64);
	endpoint_close_if_down(endpoint, event);
}

static void disconnect_on_recv(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	int ret = evrdma_conn_disconnect(endpoint->conn);

	ck_assert(!ret || ret == -ENOTCONN);
}

/* Receives are posted again after the callback, when the QP may be in error already. */
START_TEST(a_disconnect_in_the_receive_callback_takes_no_drain_timeout)
{
	enum { DISCONNECTS = 100, DRAIN_MS = 3000, QUICK_MS = 500 };
	struct fixture *f = fixture_new();
	int round;

	f->on_event = send_when_connected;
	f->on_recv = disconnect_on_recv;
	f->options.drain_timeout_ms = DRAIN_MS;
	fixture_listen(f);
	for (round = 0; round < DISCONNECTS; round++) {
		f->closed = 0;
		fixture_connect(f);
		fixture_run_until(f, both_closed, QUICK_MS);
	}
	fixture_free(f);
}
END_TEST

static bool client_closed(struct fixture *f)
{
	return f->closed == 1;
}

START_TEST(closed_in_the_error_callback_of_a_refused_connect)
{
	struct plan plan = { .point = AT_ERROR, .at_client = true };
	struct fixture *f = fixture_new();

	f->tag = &plan;
	f->on_event = on_event;
	fixture_connect_to(f, testbed.ip, 9);
	fixture_run_until(f, client_closed, 20000);
	ck_assert(plan.reached);
	fixture_free(f);
}
END_TEST

static void close_listener(struct fixture *f, struct evrdma_request *request)
{
	struct plan *plan = f->tag;

	plan->reached = true;
	evrdma_listener_close(f->listener);
	ck_assert_int_eq(evrdma_request_reject(request, "no", 3), 0);
}

START_TEST(listener_closed_in_its_request_callback)
{
	struct plan plan = { .point = AT_ERROR, .at_client = true };
	struct fixture *f = fixture_new();

	f->tag = &plan;
	f->on_event = on_event;
	f->on_request = close_listener;
	fixture_listen(f);
	fixture_connect(f);
	fixture_run_until(f, client_closed, 20000);
	ck_assert(plan.reached);
	fixture_free(f);
}
END_TEST

static void close_base(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	if (event == EVRDMA_CONN_CONNECTED) {
		endpoint_send(endpoint, IN_FLIGHT, 64);
		endpoint->fixture->on_event = NULL;
		evrdma_base_close(
			endpoint->fixture->base, endpoint->fixture->tag, endpoint->fixture);
	}
}

static void on_base_closed(struct evrdma_base *base, void *arg)
{
	((struct fixture *)arg)->base_closed = true;
}

static bool fixture_is_over(struct fixture *f)
{
	return f->base_closed;
}

START_TEST(base_closed_in_a_callback_closes_everything_first)
{
	struct fixture *f = fixture_new();

	f->tag = (void *)on_base_closed;
	f->on_event = close_base;
	fixture_listen(f);
	fixture_connect(f);
	fixture_run_until(f, fixture_is_over, 20000);
	ck_assert_uint_eq(f->live, 0);
	event_base_free(f->loop);
	if (testbed.watch)
		testbed.watch(false);
	free(f);
}
END_TEST

TCase *close_case(void)
{
	TCase *tc = tcase_create("close");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, closed_in_any_callback_with_work_in_flight, 0, 2 * AT_ERROR);
	tcase_add_test(tc, a_disconnect_in_the_receive_callback_takes_no_drain_timeout);
	tcase_add_test(tc, closed_in_the_error_callback_of_a_refused_connect);
	tcase_add_test(tc, listener_closed_in_its_request_callback);
	tcase_add_test(tc, base_closed_in_a_callback_closes_everything_first);
	return tc;
}
