/* Listeners, and requests that wait, move and are rejected. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

struct door {
	struct evrdma_request *request;
	unsigned moved, listener_closed;
};

static void no_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	ck_abort_msg("a request that nobody made");
}

static struct evrdma_listener *try_listen(struct fixture *f, const char *ip, uint16_t port,
	const struct evrdma_listener_options *options)
{
	struct sockaddr_in sin;

	fixture_address(&sin, ip, port);
	errno = 0;
	return evrdma_listener_new(f->base, (struct sockaddr *)&sin, options, no_request, f);
}

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static bool client_is_refused(struct fixture *f)
{
	return f->client->down && f->client->error == ECONNREFUSED;
}

static bool both_connected(struct fixture *f)
{
	return f->established == 2;
}

static void keep_request(struct fixture *f, struct evrdma_request *request)
{
	((struct door *)f->tag)->request = request;
}

static bool request_came(struct fixture *f)
{
	return ((struct door *)f->tag)->request;
}

static struct fixture *fixture_with_door(struct door *door)
{
	struct fixture *f = fixture_new();

	f->tag = door;
	f->on_request = keep_request;
	f->on_event = keep_open;
	fixture_listen(f);
	return f;
}

/* --- the address ---------------------------------------------------------------------------- */

START_TEST(a_port_in_use_is_refused)
{
	struct fixture *f = fixture_new();

	fixture_listen(f);
	ck_assert_uint_ne(evrdma_listener_get_port(f->listener), 0);
	ck_assert_ptr_null(try_listen(f, testbed.ip, evrdma_listener_get_port(f->listener), NULL));
	ck_assert_int_eq(errno, EADDRINUSE);
	fixture_free(f);
}
END_TEST

START_TEST(a_port_is_free_again_after_its_listener_closed)
{
	struct fixture *f = fixture_new();
	uint16_t port;

	fixture_listen(f);
	port = evrdma_listener_get_port(f->listener);
	evrdma_listener_close(f->listener);
	evrdma_listener_close(f->listener);
	fixture_add_other(f);
	fixture_close_other(f); /* some turns */
	f->listener = try_listen(f, testbed.ip, port, NULL);
	ck_assert_ptr_nonnull(f->listener);
	ck_assert_uint_eq(evrdma_listener_get_port(f->listener), port);
	fixture_free(f);
}
END_TEST

START_TEST(listening_is_refused_where_it_cannot_be)
{
	struct evrdma_listener_options options;
	struct sockaddr nothing = { .sa_family = AF_UNSPEC };
	struct sockaddr_in sin;
	struct fixture *f = fixture_new();

	fixture_address(&sin, testbed.ip, 0);
	ck_assert(!try_listen(f, "10.254.253.252", 0, NULL) && errno == EADDRNOTAVAIL);
	ck_assert_ptr_null(evrdma_listener_new(f->base, &nothing, NULL, no_request, f));
	ck_assert_int_eq(errno, EAFNOSUPPORT);
	ck_assert_ptr_null(evrdma_listener_new(f->base, NULL, NULL, no_request, f));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_null(evrdma_listener_new(f->base, (struct sockaddr *)&sin, NULL, NULL, f));
	ck_assert_int_eq(errno, EINVAL);
	evrdma_listener_options_init(&options);
	options.ack_timeout = 32;
	ck_assert(!try_listen(f, testbed.ip, 0, &options) && errno == EINVAL);
	evrdma_listener_options_init(&options);
	options.port_space = RDMA_PS_IPOIB;
	ck_assert(!try_listen(f, testbed.ip, 0, &options) && errno == EINVAL);
	fixture_free(f);
}
END_TEST

/* --- disabled ------------------------------------------------------------------------------- */

static bool request_waits(struct fixture *f)
{
	struct evrdma_listener_stats stats;

	evrdma_listener_get_stats(f->listener, &stats);
	return stats.requests == 1;
}

static void let_the_request_arrive(struct fixture *f)
{
	fixture_run_until(f, request_waits, 20000);
}

START_TEST(a_disabled_listener_keeps_requests_until_it_is_enabled)
{
	struct door door = { 0 };
	struct fixture *f = fixture_with_door(&door);

	evrdma_listener_disable(f->listener);
	fixture_connect(f);
	let_the_request_arrive(f);
	ck_assert_ptr_null(door.request);
	f->in_call = true;
	evrdma_listener_enable(f->listener);
	f->in_call = false;
	fixture_run_until(f, request_came, 20000);
	ck_assert_int_eq(evrdma_request_reject(door.request, NULL, 0), 0);
	fixture_run_until(f, client_is_refused, 20000);
	fixture_free(f);
}
END_TEST

START_TEST(a_listener_closed_with_waiting_requests_rejects_them)
{
	struct door door = { 0 };
	struct fixture *f = fixture_with_door(&door);

	evrdma_listener_disable(f->listener);
	fixture_connect(f);
	let_the_request_arrive(f);
	evrdma_listener_close(f->listener);
	fixture_run_until(f, client_is_refused, 20000);
	ck_assert_ptr_null(door.request);
	fixture_free(f);
}
END_TEST

static void count_closed(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	struct fixture *f = arg;

	ck_assert_int_eq(event, EVRDMA_LISTENER_CLOSED);
	ck_assert_ptr_null(error);
	ck_assert_ptr_null(evrdma_listener_get_cm_id(listener));
	((struct door *)f->tag)->listener_closed++;
}

START_TEST(a_request_outlives_its_listener)
{
	struct door door = { 0 };
	struct fixture *f = fixture_with_door(&door);

	evrdma_listener_set_event_cb(f->listener, count_closed);
	fixture_connect(f);
	fixture_run_until(f, request_came, 20000);
	evrdma_listener_close(f->listener);
	fixture_add_other(f);
	fixture_close_other(f); /* some turns */
	ck_assert_uint_eq(door.listener_closed, 1);
	endpoint_accept(fixture_endpoint_new(f, false), door.request);
	f->listener = NULL;
	fixture_run_until(f, both_connected, 20000);
	fixture_free(f);
}
END_TEST

/* --- requests that move --------------------------------------------------------------------- */

static void count_moved(struct evrdma_request *request, void *arg)
{
	struct fixture *f = arg;
	struct door *door = f->tag;

	ck_assert(!f->in_call);
	ck_assert_ptr_eq(evrdma_request_get_base(request), f->other);
	door->moved++;
	door->request = request;
}

static int move(struct fixture *f, struct evrdma_request *request)
{
	int ret;

	f->in_call = true;
	ret = evrdma_request_move(request, f->other, count_moved, f);
	f->in_call = false;
	return ret;
}

static bool was_moved(struct fixture *f)
{
	return ((struct door *)f->tag)->moved;
}

static struct fixture *fixture_with_moved_request(struct door *door)
{
	struct fixture *f = fixture_with_door(door);

	fixture_add_other(f);
	fixture_connect(f);
	fixture_run_until(f, request_came, 20000);
	ck_assert_ptr_eq(evrdma_request_get_base(door->request), f->base);
	ck_assert_int_eq(evrdma_request_get_peer_addr(door->request)->sa_family, AF_INET);
	ck_assert_ptr_nonnull(evrdma_request_get_cm_id(door->request));
	ck_assert_int_eq(move(f, door->request), 0);
	return f;
}

START_TEST(a_request_is_served_on_the_base_it_was_moved_to)
{
	struct door door = { 0 };
	struct fixture *f = fixture_with_moved_request(&door);

	fixture_run_until(f, was_moved, 20000);
	endpoint_accept(fixture_endpoint_new_on(f, f->other, false), door.request);
	fixture_run_until(f, both_connected, 20000);
	ck_assert_ptr_eq(evrdma_conn_get_base(f->server->conn), f->other);
	fixture_free(f);
}
END_TEST

START_TEST(a_moved_request_can_be_rejected_where_it_is)
{
	struct door door = { 0 };
	struct fixture *f = fixture_with_moved_request(&door);

	fixture_run_until(f, was_moved, 20000);
	ck_assert_int_eq(evrdma_request_reject(door.request, NULL, 0), 0);
	fixture_run_until(f, client_is_refused, 20000);
	fixture_free(f);
}
END_TEST

START_TEST(a_request_on_its_way_to_a_base_that_closes_is_rejected)
{
	struct door door = { 0 };
	struct fixture *f = fixture_with_moved_request(&door);

	fixture_close_other(f);
	fixture_run_until(f, client_is_refused, 20000);
	ck_assert_uint_eq(door.moved, 0);
	fixture_free(f);
}
END_TEST

START_TEST(a_closing_base_takes_no_request_and_it_stays_where_it_was)
{
	struct door door = { 0 };
	struct fixture *f = fixture_with_door(&door);

	fixture_add_other(f);
	fixture_connect(f);
	fixture_run_until(f, request_came, 20000);
	evrdma_base_close(f->other, NULL, NULL);
	ck_assert_int_eq(move(f, door.request), -EPIPE);
	f->other = NULL;
	ck_assert_ptr_eq(evrdma_request_get_base(door.request), f->base);
	ck_assert_int_eq(evrdma_request_reject(door.request, NULL, 0), 0);
	fixture_run_until(f, client_is_refused, 20000);
	ck_assert_uint_eq(door.moved, 0);
	fixture_free(f);
}
END_TEST

START_TEST(a_request_pending_when_its_base_closes_is_rejected)
{
	struct door door = { 0 };
	struct fixture *f = fixture_with_moved_request(&door);

	fixture_run_until(f, was_moved, 20000);
	fixture_close_other(f);
	fixture_run_until(f, client_is_refused, 20000);
	fixture_free(f);
}
END_TEST

TCase *listener_case(void)
{
	TCase *tc = tcase_create("listener");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_port_in_use_is_refused);
	tcase_add_test(tc, a_port_is_free_again_after_its_listener_closed);
	tcase_add_test(tc, listening_is_refused_where_it_cannot_be);
	tcase_add_test(tc, a_disabled_listener_keeps_requests_until_it_is_enabled);
	tcase_add_test(tc, a_listener_closed_with_waiting_requests_rejects_them);
	tcase_add_test(tc, a_request_outlives_its_listener);
	tcase_add_test(tc, a_request_is_served_on_the_base_it_was_moved_to);
	tcase_add_test(tc, a_moved_request_can_be_rejected_where_it_is);
	tcase_add_test(tc, a_request_on_its_way_to_a_base_that_closes_is_rejected);
	tcase_add_test(tc, a_closing_base_takes_no_request_and_it_stays_where_it_was);
	tcase_add_test(tc, a_request_pending_when_its_base_closes_is_rejected);
	return tc;
}
