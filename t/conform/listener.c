/* Listeners, and requests that wait, move and are rejected. */
#include "conform/suite.h"
#include "conform/world.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

struct door {
	struct evrdma_request *request;
	unsigned moved, listener_closed;
};

static void no_request(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	ck_abort_msg("a request that nobody made");
}

static struct evrdma_listener *try_listen(struct world *w, const char *ip, uint16_t port,
	const struct evrdma_listener_options *options)
{
	struct sockaddr_in sin;

	world_address(&sin, ip, port);
	errno = 0;
	return evrdma_listener_new(w->base, (struct sockaddr *)&sin, options, no_request, w);
}

static void keep_open(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static bool client_is_refused(struct world *w)
{
	return w->client->down && w->client->error == ECONNREFUSED;
}

static bool both_connected(struct world *w)
{
	return w->established == 2;
}

static void keep_request(struct world *w, struct evrdma_request *request)
{
	((struct door *)w->tag)->request = request;
}

static bool request_came(struct world *w)
{
	return ((struct door *)w->tag)->request;
}

static struct world *world_with_door(struct door *door)
{
	struct world *w = world_new();

	w->tag = door;
	w->on_request = keep_request;
	w->on_event = keep_open;
	world_listen(w);
	return w;
}

/* --- the address ---------------------------------------------------------------------------- */

START_TEST(a_port_in_use_is_refused)
{
	struct world *w = world_new();

	world_listen(w);
	ck_assert_uint_ne(evrdma_listener_get_port(w->listener), 0);
	ck_assert_ptr_null(
		try_listen(w, place.ip, evrdma_listener_get_port(w->listener), NULL));
	ck_assert_int_eq(errno, EADDRINUSE);
	world_free(w);
}
END_TEST

START_TEST(a_port_is_free_again_after_its_listener_closed)
{
	struct world *w = world_new();
	uint16_t port;

	world_listen(w);
	port = evrdma_listener_get_port(w->listener);
	evrdma_listener_close(w->listener);
	evrdma_listener_close(w->listener);
	world_add_other(w);
	world_close_other(w); /* some turns */
	w->listener = try_listen(w, place.ip, port, NULL);
	ck_assert_ptr_nonnull(w->listener);
	ck_assert_uint_eq(evrdma_listener_get_port(w->listener), port);
	world_free(w);
}
END_TEST

START_TEST(listening_is_refused_where_it_cannot_be)
{
	struct evrdma_listener_options options;
	struct sockaddr nothing = { .sa_family = AF_UNSPEC };
	struct sockaddr_in sin;
	struct world *w = world_new();

	world_address(&sin, place.ip, 0);
	ck_assert(!try_listen(w, "10.254.253.252", 0, NULL) && errno == EADDRNOTAVAIL);
	ck_assert_ptr_null(evrdma_listener_new(w->base, &nothing, NULL, no_request, w));
	ck_assert_int_eq(errno, EAFNOSUPPORT);
	ck_assert_ptr_null(evrdma_listener_new(w->base, NULL, NULL, no_request, w));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_null(evrdma_listener_new(w->base, (struct sockaddr *)&sin, NULL, NULL, w));
	ck_assert_int_eq(errno, EINVAL);
	evrdma_listener_options_init(&options);
	options.ack_timeout = 32;
	ck_assert(!try_listen(w, place.ip, 0, &options) && errno == EINVAL);
	evrdma_listener_options_init(&options);
	options.port_space = RDMA_PS_IPOIB;
	ck_assert(!try_listen(w, place.ip, 0, &options) && errno == EINVAL);
	world_free(w);
}
END_TEST

/* --- disabled ------------------------------------------------------------------------------- */

static bool request_waits(struct world *w)
{
	struct evrdma_listener_stats stats;

	evrdma_listener_get_stats(w->listener, &stats);
	return stats.requests == 1;
}

static void let_the_request_arrive(struct world *w)
{
	world_run_until(w, request_waits, 20000);
}

START_TEST(a_disabled_listener_keeps_requests_until_it_is_enabled)
{
	struct door door = { 0 };
	struct world *w = world_with_door(&door);

	evrdma_listener_disable(w->listener);
	world_connect(w);
	let_the_request_arrive(w);
	ck_assert_ptr_null(door.request);
	w->in_call = true;
	evrdma_listener_enable(w->listener);
	w->in_call = false;
	world_run_until(w, request_came, 20000);
	ck_assert_int_eq(evrdma_request_reject(door.request, NULL, 0), 0);
	world_run_until(w, client_is_refused, 20000);
	world_free(w);
}
END_TEST

START_TEST(a_listener_closed_with_waiting_requests_rejects_them)
{
	struct door door = { 0 };
	struct world *w = world_with_door(&door);

	evrdma_listener_disable(w->listener);
	world_connect(w);
	let_the_request_arrive(w);
	evrdma_listener_close(w->listener);
	world_run_until(w, client_is_refused, 20000);
	ck_assert_ptr_null(door.request);
	world_free(w);
}
END_TEST

static void count_closed(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	struct world *w = arg;

	ck_assert_int_eq(event, EVRDMA_LISTENER_CLOSED);
	ck_assert_ptr_null(error);
	ck_assert_ptr_null(evrdma_listener_get_cm_id(listener));
	((struct door *)w->tag)->listener_closed++;
}

START_TEST(a_request_outlives_its_listener)
{
	struct door door = { 0 };
	struct world *w = world_with_door(&door);

	evrdma_listener_set_event_cb(w->listener, count_closed);
	world_connect(w);
	world_run_until(w, request_came, 20000);
	evrdma_listener_close(w->listener);
	world_add_other(w);
	world_close_other(w); /* some turns */
	ck_assert_uint_eq(door.listener_closed, 1);
	side_accept(world_side_new(w, false), door.request);
	w->listener = NULL;
	world_run_until(w, both_connected, 20000);
	world_free(w);
}
END_TEST

/* --- requests that move --------------------------------------------------------------------- */

static void count_moved(struct evrdma_request *request, void *arg)
{
	struct world *w = arg;
	struct door *door = w->tag;

	ck_assert(!w->in_call);
	ck_assert_ptr_eq(evrdma_request_get_base(request), w->other);
	door->moved++;
	door->request = request;
}

static int move(struct world *w, struct evrdma_request *request)
{
	int ret;

	w->in_call = true;
	ret = evrdma_request_move(request, w->other, count_moved, w);
	w->in_call = false;
	return ret;
}

static bool was_moved(struct world *w)
{
	return ((struct door *)w->tag)->moved;
}

static struct world *world_with_moved_request(struct door *door)
{
	struct world *w = world_with_door(door);

	world_add_other(w);
	world_connect(w);
	world_run_until(w, request_came, 20000);
	ck_assert_ptr_eq(evrdma_request_get_base(door->request), w->base);
	ck_assert_int_eq(evrdma_request_get_peer_addr(door->request)->sa_family, AF_INET);
	ck_assert_ptr_nonnull(evrdma_request_get_cm_id(door->request));
	ck_assert_int_eq(move(w, door->request), 0);
	return w;
}

START_TEST(a_request_is_served_on_the_base_it_was_moved_to)
{
	struct door door = { 0 };
	struct world *w = world_with_moved_request(&door);

	world_run_until(w, was_moved, 20000);
	side_accept(world_side_new_on(w, w->other, false), door.request);
	world_run_until(w, both_connected, 20000);
	ck_assert_ptr_eq(evrdma_conn_get_base(w->server->conn), w->other);
	world_free(w);
}
END_TEST

START_TEST(a_moved_request_can_be_rejected_where_it_is)
{
	struct door door = { 0 };
	struct world *w = world_with_moved_request(&door);

	world_run_until(w, was_moved, 20000);
	ck_assert_int_eq(evrdma_request_reject(door.request, NULL, 0), 0);
	world_run_until(w, client_is_refused, 20000);
	world_free(w);
}
END_TEST

START_TEST(a_request_on_its_way_to_a_base_that_closes_is_rejected)
{
	struct door door = { 0 };
	struct world *w = world_with_moved_request(&door);

	world_close_other(w);
	world_run_until(w, client_is_refused, 20000);
	ck_assert_uint_eq(door.moved, 0);
	world_free(w);
}
END_TEST

START_TEST(a_closing_base_takes_no_request_and_it_stays_where_it_was)
{
	struct door door = { 0 };
	struct world *w = world_with_door(&door);

	world_add_other(w);
	world_connect(w);
	world_run_until(w, request_came, 20000);
	evrdma_base_close(w->other, NULL, NULL);
	ck_assert_int_eq(move(w, door.request), -EPIPE);
	w->other = NULL;
	ck_assert_ptr_eq(evrdma_request_get_base(door.request), w->base);
	ck_assert_int_eq(evrdma_request_reject(door.request, NULL, 0), 0);
	world_run_until(w, client_is_refused, 20000);
	ck_assert_uint_eq(door.moved, 0);
	world_free(w);
}
END_TEST

START_TEST(a_request_pending_when_its_base_closes_is_rejected)
{
	struct door door = { 0 };
	struct world *w = world_with_moved_request(&door);

	world_run_until(w, was_moved, 20000);
	world_close_other(w);
	world_run_until(w, client_is_refused, 20000);
	world_free(w);
}
END_TEST

TCase *listener_case(void)
{
	TCase *tc = tcase_create("listener");

	tcase_add_checked_fixture(tc, place.start, place.stop);
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
