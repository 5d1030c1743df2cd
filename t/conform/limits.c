/* What a server that faces strangers sets: how many, how long, and what they share. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <string.h>

enum { MANY = 8 };

/* What happened to a listener with limits. */
struct gate {
	struct evrdma_request *requests[MANY]; /* those that were kept */
	unsigned kept, limited, refused, ended;
	bool accept;
};

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct fixture *f = arg;
	struct gate *gate = f->tag;

	if (gate->accept)
		endpoint_accept(fixture_endpoint_new(f, false), request);
	else
		gate->requests[gate->kept++] = request;
}

static void on_listener_event(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	struct fixture *f = arg;

	ck_assert_ptr_null(error);
	((struct gate *)f->tag)->limited += event == EVRDMA_LISTENER_LIMITED;
}

static void on_conn_event(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	struct gate *gate = endpoint->fixture->tag;

	if (event == EVRDMA_CONN_ERROR && error->err == ECONNREFUSED)
		gate->refused++;
	gate->ended += event == EVRDMA_CONN_ERROR || event == EVRDMA_CONN_DISCONNECTED;
	endpoint_close_if_down(endpoint, event);
}

static struct fixture *fixture_with_gate(
	struct gate *gate, const struct evrdma_listener_options *options)
{
	struct fixture *f = fixture_new();
	struct sockaddr_in sin;

	f->tag = gate;
	f->on_event = on_conn_event;
	fixture_address(&sin, testbed.ip, 0);
	f->listener = evrdma_listener_new(f->base, (struct sockaddr *)&sin, options, on_request, f);
	ck_assert_msg(f->listener, "listen: %s", strerror(errno));
	evrdma_listener_set_event_cb(f->listener, on_listener_event);
	return f;
}

static struct evrdma_listener_stats stats_of(struct fixture *f)
{
	struct evrdma_listener_stats stats;

	evrdma_listener_get_stats(f->listener, &stats);
	return stats;
}

static bool one_is_refused(struct fixture *f)
{
	return ((struct gate *)f->tag)->refused == 1;
}

static bool two_are_refused(struct fixture *f)
{
	return ((struct gate *)f->tag)->refused == 2;
}

static bool one_is_kept(struct fixture *f)
{
	return ((struct gate *)f->tag)->kept == 1;
}

static bool two_are_kept(struct fixture *f)
{
	return ((struct gate *)f->tag)->kept == 2;
}

static bool two_are_up(struct fixture *f)
{
	return f->established == 2;
}

static bool four_are_up(struct fixture *f)
{
	return f->established == 4;
}

static bool none_is_counted(struct fixture *f)
{
	return !stats_of(f).connections;
}

/* --- how many ------------------------------------------------------------------------------- */

START_TEST(a_listener_has_no_more_connections_than_it_may)
{
	struct gate gate = { .accept = true };
	struct evrdma_listener_options options;
	struct fixture *f;

	evrdma_listener_options_init(&options);
	options.max_connections = 1;
	f = fixture_with_gate(&gate, &options);
	fixture_connect(f);
	fixture_run_until(f, two_are_up, 20000);
	ck_assert_uint_eq(stats_of(f).connections, 1);
	fixture_connect(f);
	fixture_connect(f);
	fixture_run_until(f, two_are_refused, 20000);
	ck_assert_uint_eq(gate.limited, 1);
	ck_assert_uint_eq(stats_of(f).refused_connections, 2);
	ck_assert_uint_eq(f->established, 2);
	evrdma_conn_close(f->server->conn);
	fixture_run_until(f, fixture_none_live, 20000);
	/* One that was closed counts until its peer has answered. */
	fixture_run_until(f, none_is_counted, 20000);
	fixture_connect(f);
	fixture_run_until(f, four_are_up, 20000);
	fixture_connect(f);
	gate.refused = 0;
	fixture_run_until(f, one_is_refused, 20000);
	ck_assert_uint_eq(gate.limited, 2);
	fixture_free(f);
}
END_TEST

START_TEST(a_listener_has_no_more_pending_requests_than_it_may)
{
	struct gate gate = { 0 };
	struct evrdma_listener_options options;
	struct fixture *f;

	evrdma_listener_options_init(&options);
	options.max_pending = 1;
	f = fixture_with_gate(&gate, &options);
	fixture_connect(f);
	fixture_run_until(f, one_is_kept, 20000);
	fixture_connect(f);
	fixture_run_until(f, one_is_refused, 20000);
	ck_assert_uint_eq(stats_of(f).refused_pending, 1);
	ck_assert_uint_eq(stats_of(f).pending, 1);
	ck_assert_int_eq(evrdma_request_reject(gate.requests[0], NULL, 0), 0);
	ck_assert_uint_eq(stats_of(f).pending, 0);
	ck_assert_uint_eq(stats_of(f).rejected, 1);
	fixture_connect(f);
	fixture_run_until(f, two_are_kept, 20000);
	fixture_free(f);
}
END_TEST

START_TEST(one_source_has_no_more_pending_requests_than_it_may)
{
	struct gate gate = { 0 };
	struct evrdma_listener_options options;
	struct fixture *f;

	evrdma_listener_options_init(&options);
	options.max_pending_per_source = 2;
	f = fixture_with_gate(&gate, &options);
	evrdma_listener_disable(f->listener);
	fixture_connect(f);
	fixture_connect(f);
	fixture_connect(f);
	fixture_run_until(f, one_is_refused, 20000);
	ck_assert_uint_eq(stats_of(f).refused_source, 1);
	ck_assert_uint_eq(stats_of(f).pending, 2);
	evrdma_listener_enable(f->listener);
	fixture_run_until(f, two_are_kept, 20000);
	ck_assert_uint_eq(stats_of(f).pending, 2);
	fixture_free(f);
}
END_TEST

static void take_over(struct evrdma_request *request, void *arg)
{
	struct fixture *f = arg;
	struct gate *gate = f->tag;

	gate->requests[gate->kept++] = request;
}

START_TEST(a_request_that_moves_keeps_its_place_among_the_connections)
{
	struct gate gate = { 0 };
	struct evrdma_listener_options options;
	struct fixture *f;

	evrdma_listener_options_init(&options);
	options.max_connections = 1;
	f = fixture_with_gate(&gate, &options);
	fixture_add_other(f);
	fixture_connect(f);
	fixture_run_until(f, one_is_kept, 20000);
	ck_assert_int_eq(evrdma_request_move(gate.requests[0], f->other, take_over, f), 0);
	fixture_run_until(f, two_are_kept, 20000);
	ck_assert_uint_eq(stats_of(f).pending, 0);
	ck_assert_uint_eq(stats_of(f).moved, 1);
	ck_assert_uint_eq(stats_of(f).connections, 1);
	fixture_connect(f);
	fixture_run_until(f, one_is_refused, 20000);
	endpoint_accept(fixture_endpoint_new_on(f, f->other, false), gate.requests[1]);
	fixture_run_until(f, two_are_up, 20000);
	ck_assert_uint_eq(stats_of(f).connections, 1);
	fixture_close_other(f);
	ck_assert_uint_eq(stats_of(f).connections, 0);
	fixture_free(f);
}
END_TEST

/* --- how long ------------------------------------------------------------------------------- */

START_TEST(a_request_that_nobody_answers_is_rejected)
{
	struct gate gate = { 0 };
	struct evrdma_listener_options options;
	struct endpoint *server;
	struct fixture *f;

	evrdma_listener_options_init(&options);
	options.request_timeout_ms = 50;
	f = fixture_with_gate(&gate, &options);
	fixture_connect(f);
	fixture_run_until(f, one_is_refused, 20000);
	ck_assert_uint_eq(gate.kept, 1);
	ck_assert_uint_eq(stats_of(f).timed_out, 1);
	ck_assert_uint_eq(stats_of(f).pending, 0);
	ck_assert_uint_eq(stats_of(f).connections, 0);
	/* It is still there for whoever has it. */
	ck_assert_ptr_null(evrdma_request_get_cm_id(gate.requests[0]));
	fixture_add_other(f);
	ck_assert_int_eq(evrdma_request_move(gate.requests[0], f->other, take_over, f), -ETIMEDOUT);
	server = fixture_endpoint_new(f, false);
	ck_assert_int_eq(evrdma_conn_accept(server->conn, gate.requests[0]), -ETIMEDOUT);
	evrdma_conn_close(server->conn);
	ck_assert_int_eq(evrdma_request_reject(gate.requests[0], NULL, 0), 0);
	ck_assert_uint_eq(stats_of(f).rejected, 0);
	fixture_free(f);
}
END_TEST

static void move_later(struct evrdma_request *request, void *arg);

static void move_to_its_own_base(evutil_socket_t fd, short what, void *arg)
{
	struct fixture *f = arg;
	struct gate *gate = f->tag;
	int ret = evrdma_request_move(gate->requests[0], f->base, move_later, f);

	gate->kept += !ret;
	if (ret) {
		ck_assert_int_eq(ret, -ETIMEDOUT);
		ck_assert_int_eq(evrdma_request_reject(gate->requests[0], NULL, 0), 0);
		gate->requests[0] = NULL;
	}
}

static bool it_was_late(struct fixture *f)
{
	return !((struct gate *)f->tag)->requests[0];
}

static void move_later(struct evrdma_request *request, void *arg)
{
	static const struct timeval soon = { 0, 10000 };
	struct fixture *f = arg;

	((struct gate *)f->tag)->requests[0] = request;
	event_base_once(f->loop, -1, EV_TIMEOUT, move_to_its_own_base, f, &soon);
}

/* Sooner than it is late, and all the time. */
START_TEST(a_request_has_its_time_from_its_arrival_wherever_it_moves)
{
	struct gate gate = { 0 };
	struct evrdma_listener_options options;
	struct fixture *f;

	evrdma_listener_options_init(&options);
	options.request_timeout_ms = 100;
	f = fixture_with_gate(&gate, &options);
	fixture_connect(f);
	fixture_run_until(f, one_is_kept, 20000);
	move_later(gate.requests[0], f);
	fixture_run_until(f, it_was_late, 60000);
	fixture_run_until(f, one_is_refused, 20000);
	ck_assert_uint_gt(gate.kept, 1);
	fixture_free(f);
}
END_TEST

START_TEST(a_request_that_is_late_when_it_arrives_is_rejected)
{
	static const struct timeval too_long = { 0, 100000 };
	struct gate gate = { 0 };
	struct evrdma_listener_options options;
	struct event_base *loop, *busy = event_base_new();
	struct fixture *f;

	evrdma_listener_options_init(&options);
	options.request_timeout_ms = 50;
	f = fixture_with_gate(&gate, &options);
	loop = f->loop;
	f->loop = busy;
	fixture_add_other(f);
	f->loop = loop;
	fixture_connect(f);
	fixture_run_until(f, one_is_kept, 20000);
	ck_assert_int_eq(evrdma_request_move(gate.requests[0], f->other, take_over, f), 0);
	event_base_loopexit(loop, &too_long);
	event_base_dispatch(loop);
	f->loop = busy;
	fixture_run_until(f, two_are_kept, 20000);
	ck_assert_int_eq(
		evrdma_request_move(gate.requests[1], f->other, take_over, f), -ETIMEDOUT);
	ck_assert_int_eq(evrdma_request_reject(gate.requests[1], NULL, 0), 0);
	fixture_close_other(f);
	event_base_free(busy);
	f->loop = loop;
	fixture_run_until(f, one_is_refused, 20000);
	fixture_free(f);
}
END_TEST

START_TEST(a_request_that_waits_for_too_long_is_never_seen)
{
	struct gate gate = { 0 };
	struct evrdma_listener_options options;
	struct fixture *f;

	evrdma_listener_options_init(&options);
	options.request_timeout_ms = 50;
	f = fixture_with_gate(&gate, &options);
	evrdma_listener_disable(f->listener);
	fixture_connect(f);
	fixture_run_until(f, one_is_refused, 20000);
	evrdma_listener_enable(f->listener);
	fixture_add_other(f);
	fixture_close_other(f); /* some turns */
	ck_assert_uint_eq(gate.kept, 0);
	ck_assert_uint_eq(stats_of(f).timed_out, 1);
	fixture_free(f);
}
END_TEST

START_TEST(a_request_that_was_answered_is_not_late)
{
	struct gate gate = { .accept = true };
	struct evrdma_listener_options options;
	struct fixture *f;

	evrdma_listener_options_init(&options);
	options.request_timeout_ms = 1;
	f = fixture_with_gate(&gate, &options);
	fixture_connect(f);
	fixture_run_until(f, two_are_up, 20000);
	fixture_add_other(f);
	fixture_close_other(f); /* some turns */
	ck_assert_uint_eq(stats_of(f).timed_out, 0);
	ck_assert_uint_eq(gate.ended, 0);
	fixture_free(f);
}
END_TEST

/* --- what they share ------------------------------------------------------------------------ */

START_TEST(connections_take_their_listeners_domain)
{
	struct gate gate = { .accept = true };
	struct evrdma_listener_options options;
	struct fixture *f = fixture_new();
	struct evrdma_domain *domain = evrdma_domain_new(f->base);
	struct sockaddr_in sin;

	evrdma_listener_options_init(&options);
	options.domain = domain;
	f->tag = &gate;
	f->on_event = on_conn_event;
	fixture_address(&sin, testbed.ip, 0);
	f->listener =
		evrdma_listener_new(f->base, (struct sockaddr *)&sin, &options, on_request, f);
	evrdma_domain_free(domain);
	fixture_connect(f);
	fixture_run_until(f, two_are_up, 20000);
	ck_assert_ptr_ne(evrdma_conn_get_cm_id(f->server->conn)->qp->pd,
		evrdma_conn_get_cm_id(f->client->conn)->qp->pd);
	fixture_free(f);
}
END_TEST

START_TEST(connections_take_their_listeners_shared_queue)
{
	struct gate gate = { .accept = true };
	struct evrdma_listener_options options;
	struct fixture *f = fixture_new();
	struct evrdma_pool *pool = evrdma_pool_new(f->base, 64, 0);
	struct evrdma_srq *srq = evrdma_srq_new(f->base, pool, 8);
	struct evrdma_buf *buf = evrdma_pool_get(pool);
	struct sockaddr_in sin;

	evrdma_listener_options_init(&options);
	options.srq = srq;
	f->tag = &gate;
	f->on_event = on_conn_event;
	f->options.recv_pool = NULL;
	fixture_address(&sin, testbed.ip, 0);
	f->listener =
		evrdma_listener_new(f->base, (struct sockaddr *)&sin, &options, on_request, f);
	fixture_connect(f);
	fixture_run_until(f, two_are_up, 20000);
	ck_assert_ptr_nonnull(evrdma_conn_get_cm_id(f->server->conn)->qp->srq);
	ck_assert_ptr_null(evrdma_conn_get_cm_id(f->client->conn)->qp->srq);
	ck_assert_int_eq(evrdma_conn_recv(f->server->conn, buf), -EINVAL);
	evrdma_buf_unref(buf);
	evrdma_srq_free(srq);
	evrdma_pool_free(pool);
	fixture_free(f);
}
END_TEST

START_TEST(what_is_of_another_base_is_refused)
{
	struct evrdma_listener_options options;
	struct fixture *f = fixture_new();
	struct evrdma_domain *domain;
	struct sockaddr_in sin;

	fixture_add_other(f);
	domain = evrdma_domain_new(f->other);
	fixture_address(&sin, testbed.ip, 0);
	evrdma_listener_options_init(&options);
	options.domain = domain;
	ck_assert_ptr_null(
		evrdma_listener_new(f->base, (struct sockaddr *)&sin, &options, on_request, f));
	ck_assert_int_eq(errno, EINVAL);
	evrdma_domain_free(domain);
	fixture_free(f);
}
END_TEST

TCase *limits_case(void)
{
	TCase *tc = tcase_create("limits");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_listener_has_no_more_connections_than_it_may);
	tcase_add_test(tc, a_listener_has_no_more_pending_requests_than_it_may);
	tcase_add_test(tc, one_source_has_no_more_pending_requests_than_it_may);
	tcase_add_test(tc, a_request_that_moves_keeps_its_place_among_the_connections);
	tcase_add_test(tc, a_request_that_nobody_answers_is_rejected);
	tcase_add_test(tc, a_request_has_its_time_from_its_arrival_wherever_it_moves);
	tcase_add_test(tc, a_request_that_is_late_when_it_arrives_is_rejected);
	tcase_add_test(tc, a_request_that_waits_for_too_long_is_never_seen);
	tcase_add_test(tc, a_request_that_was_answered_is_not_late);
	tcase_add_test(tc, connections_take_their_listeners_domain);
	if (testbed_has(TESTBED_SRQS))
		tcase_add_test(tc, connections_take_their_listeners_shared_queue);
	tcase_add_test(tc, what_is_of_another_base_is_refused);
	return tc;
}
