/* A connection is closed from every callback it has, with work in flight. */
#include "conform/suite.h"
#include "conform/world.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>

enum { IN_FLIGHT = 64, ROUNDS = 10 };

enum moment {
	AT_CONNECTED,
	AT_RECV,
	AT_SENT,
	AT_CANCELLED,
	AT_WRITABLE,
	AT_DISCONNECTED,
	AT_ERROR,
	MOMENTS
};

static const char *const moment_names[MOMENTS] = { "connected", "recv", "sent", "cancelled send",
	"writable", "disconnected", "error" };

struct plan {
	enum moment moment;
	bool at_client;
	bool reached;
};

static void reach(struct side *side, enum moment moment)
{
	struct plan *plan = side->world->tag;

	if (plan->moment != moment || plan->at_client != side->is_client)
		return;
	plan->reached = true;
	evrdma_conn_close(side->conn);
	evrdma_conn_close(side->conn);
}

static bool is_at(const struct plan *plan, const struct side *side)
{
	return plan->at_client == side->is_client;
}

/*
 * Both sides fill their queues, once: there is no flow control here, and iWARP ends a connection
 * that sends more than its peer has room for.
 */
static void start_traffic(struct side *side)
{
	struct plan *plan = side->world->tag;

	side_send(side, IN_FLIGHT + 1, 64);
	if (plan->moment == AT_DISCONNECTED && !is_at(plan, side))
		evrdma_conn_close(side->conn);
	if (plan->moment == AT_CANCELLED && is_at(plan, side))
		/* The library's own would wait for what was sent. */
		ck_assert_int_eq(rdma_disconnect(evrdma_conn_get_cm_id(side->conn)), 0);
}

static void on_event(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	struct plan *plan = side->world->tag;

	switch (event) {
	case EVRDMA_CONN_CONNECTED:
		reach(side, AT_CONNECTED);
		start_traffic(side);
		break;
	case EVRDMA_CONN_WRITABLE:
		reach(side, AT_WRITABLE);
		break;
	case EVRDMA_CONN_DISCONNECTED:
	case EVRDMA_CONN_ERROR:
		reach(side, event == EVRDMA_CONN_ERROR ? AT_ERROR : AT_DISCONNECTED);
		if (plan->moment != AT_CANCELLED || !is_at(plan, side))
			evrdma_conn_close(side->conn);
		break;
	case EVRDMA_CONN_CLOSED:
	case EVRDMA_CONN_ADDR_CHANGED:
		break;
	}
}

static void on_recv(struct side *side, const struct evrdma_recv *recv)
{
	reach(side, AT_RECV);
}

static void on_sent(struct side *side, const struct evrdma_error *error)
{
	reach(side, error ? AT_CANCELLED : AT_SENT);
}

static bool all_closed_or_reached(struct world *w)
{
	struct plan *plan = w->tag;

	return plan->reached || (w->closed && !w->live);
}

static bool both_closed(struct world *w)
{
	return w->closed >= 2 && !w->live;
}

static void one_round(struct world *w, struct plan *plan)
{
	plan->reached = false;
	w->closed = 0;
	world_connect(w);
	world_run_until(w, all_closed_or_reached, 20000);
	world_run_until(w, both_closed, 20000);
	ck_assert_msg(plan->reached, "%s at the %s was not reached; %s",
		moment_names[plan->moment], plan->at_client ? "client" : "server", w->last_error);
}

/* The moments of a connection that gets through; a refused one has its own test. */
START_TEST(closed_in_any_callback_with_work_in_flight)
{
	struct plan plan = { .moment = (enum moment)(_i / 2), .at_client = _i % 2 };
	struct world *w = world_new();
	int round;

	w->tag = &plan;
	w->on_event = on_event;
	w->on_recv = on_recv;
	w->on_sent = on_sent;
	world_listen(w);
	for (round = 0; round < ROUNDS; round++)
		one_round(w, &plan);
	world_free(w);
}
END_TEST

static void send_when_connected(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	if (event == EVRDMA_CONN_CONNECTED && side->is_client)
		side_send(side, IN_FLIGHT, 64);
	side_close_if_down(side, event);
}

static void disconnect_on_recv(struct side *side, const struct evrdma_recv *recv)
{
	int ret = evrdma_conn_disconnect(side->conn);

	ck_assert(!ret || ret == -ENOTCONN);
}

/* Receives are posted again after the callback, when the QP may be in error already. */
START_TEST(a_disconnect_in_the_receive_callback_takes_no_drain_timeout)
{
	enum { DISCONNECTS = 100, DRAIN_MS = 3000, QUICK_MS = 500 };
	struct world *w = world_new();
	int round;

	w->on_event = send_when_connected;
	w->on_recv = disconnect_on_recv;
	w->options.drain_timeout_ms = DRAIN_MS;
	world_listen(w);
	for (round = 0; round < DISCONNECTS; round++) {
		w->closed = 0;
		world_connect(w);
		world_run_until(w, both_closed, QUICK_MS);
	}
	world_free(w);
}
END_TEST

static bool client_closed(struct world *w)
{
	return w->closed == 1;
}

START_TEST(closed_in_the_error_callback_of_a_refused_connect)
{
	struct plan plan = { .moment = AT_ERROR, .at_client = true };
	struct world *w = world_new();

	w->tag = &plan;
	w->on_event = on_event;
	world_connect_to(w, place.ip, 9);
	world_run_until(w, client_closed, 20000);
	ck_assert(plan.reached);
	world_free(w);
}
END_TEST

static void close_listener(struct world *w, struct evrdma_request *request)
{
	struct plan *plan = w->tag;

	plan->reached = true;
	evrdma_listener_close(w->listener);
	ck_assert_int_eq(evrdma_request_reject(request, "no", 3), 0);
}

START_TEST(listener_closed_in_its_request_callback)
{
	struct plan plan = { .moment = AT_ERROR, .at_client = true };
	struct world *w = world_new();

	w->tag = &plan;
	w->on_event = on_event;
	w->on_request = close_listener;
	world_listen(w);
	world_connect(w);
	world_run_until(w, client_closed, 20000);
	ck_assert(plan.reached);
	world_free(w);
}
END_TEST

static void close_base(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	if (event == EVRDMA_CONN_CONNECTED) {
		side_send(side, IN_FLIGHT, 64);
		side->world->on_event = NULL;
		evrdma_base_close(side->world->base, side->world->tag, side->world);
	}
}

static void on_base_closed(struct evrdma_base *base, void *arg)
{
	((struct world *)arg)->base_closed = true;
}

static bool world_is_over(struct world *w)
{
	return w->base_closed;
}

START_TEST(base_closed_in_a_callback_closes_everything_first)
{
	struct world *w = world_new();

	w->tag = (void *)on_base_closed;
	w->on_event = close_base;
	world_listen(w);
	world_connect(w);
	world_run_until(w, world_is_over, 20000);
	ck_assert_uint_eq(w->live, 0);
	event_base_free(w->loop);
	if (place.watch)
		place.watch(false);
	free(w);
}
END_TEST

TCase *close_case(void)
{
	TCase *tc = tcase_create("close");

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, closed_in_any_callback_with_work_in_flight, 0, 2 * AT_ERROR);
	tcase_add_test(tc, a_disconnect_in_the_receive_callback_takes_no_drain_timeout);
	tcase_add_test(tc, closed_in_the_error_callback_of_a_refused_connect);
	tcase_add_test(tc, listener_closed_in_its_request_callback);
	tcase_add_test(tc, base_closed_in_a_callback_closes_everything_first);
	return tc;
}
