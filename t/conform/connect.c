/* How connections begin and end, and what both sides learn of each other. */
#include "conform/suite.h"
#include "conform/world.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

static const char hello[] = "hello", welcome[] = "welcome", no[] = "no";

static void set_data(struct world *w, const char *data, size_t len)
{
	w->options.private_data = data;
	w->options.private_data_len = len;
}

static void keep_open(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	bool *refused = side->world->tag;

	if (refused && event == EVRDMA_CONN_ERROR)
		*refused = error->cm_event == RDMA_CM_EVENT_REJECTED;
}

static bool both_down(struct world *w)
{
	return w->client->down && w->server->down;
}

/* What came begins with it; beyond that it may be padded. */
static void check_data(const void *data, size_t len, const char *wanted, size_t wanted_len)
{
	ck_assert_uint_ge(len, wanted_len);
	ck_assert_mem_eq(data, wanted, wanted_len);
}

/* --- private data --------------------------------------------------------------------------- */

static void welcome_hello(struct world *w, struct evrdma_request *request)
{
	size_t len;
	const void *data = evrdma_request_get_private_data(request, &len);

	check_data(data, len, hello, sizeof(hello));
	set_data(w, welcome, sizeof(welcome));
	side_accept(world_side_new(w, false), request);
}

START_TEST(connect_and_accept_carry_private_data)
{
	struct world *w = world_new();
	const void *data;
	size_t len;

	w->on_request = welcome_hello;
	set_data(w, hello, sizeof(hello));
	world_connect_pair(w);
	data = evrdma_conn_get_private_data(w->client->conn, &len);
	check_data(data, len, welcome, sizeof(welcome));
	data = evrdma_conn_get_private_data(w->server->conn, &len);
	check_data(data, len, hello, sizeof(hello));
	world_free(w);
}
END_TEST

static void say_no(struct world *w, struct evrdma_request *request)
{
	char large[149] = { 0 };

	ck_assert_int_eq(evrdma_request_reject(request, large, sizeof(large)), -EINVAL);
	ck_assert_int_eq(evrdma_request_reject(request, no, sizeof(no)), 0);
}

START_TEST(reject_delivers_private_data_to_the_connecting_side)
{
	bool refused = false;
	struct world *w = world_new();
	const void *data;
	size_t len;

	w->tag = &refused;
	w->on_request = say_no;
	w->on_event = keep_open;
	world_listen(w);
	world_connect(w);
	world_run_until(w, world_client_is_down, 20000);
	ck_assert_int_eq(w->client->error, ECONNREFUSED);
	ck_assert_int_eq(w->client->step, EVRDMA_STEP_CONNECT);
	ck_assert(refused);
	data = evrdma_conn_get_private_data(w->client->conn, &len);
	check_data(data, len, no, sizeof(no));
	world_free(w);
}
END_TEST

START_TEST(private_data_too_long_for_the_request_is_an_error)
{
	static const char large[57] = "more than fits beside the addresses";
	struct world *w = world_new();

	w->on_event = keep_open;
	set_data(w, large, sizeof(large));
	world_listen(w);
	world_connect(w);
	world_run_until(w, world_client_is_down, 20000);
	ck_assert_int_eq(w->client->error, EINVAL);
	world_free(w);
}
END_TEST

/* --- refusals ------------------------------------------------------------------------------- */

START_TEST(a_port_where_nobody_listens_refuses)
{
	struct world *w = world_new();

	w->on_event = keep_open;
	world_connect_to(w, place.ip, 9);
	world_run_until(w, world_client_is_down, 20000);
	ck_assert_int_eq(w->client->error, ECONNREFUSED);
	ck_assert_int_eq(w->client->step, EVRDMA_STEP_CONNECT);
	ck_assert(!w->client->connected);
	world_free(w);
}
END_TEST

START_TEST(connect_is_refused_when_it_cannot_begin)
{
	struct world *w = world_new();
	struct side *side = world_side_new(w, true);
	struct sockaddr nothing = { .sa_family = AF_UNSPEC };
	struct sockaddr_in sin;

	world_address(&sin, place.ip, 9);
	ck_assert_int_eq(evrdma_conn_connect(side->conn, NULL, NULL), -EINVAL);
	ck_assert_int_eq(evrdma_conn_connect(side->conn, NULL, &nothing), -EAFNOSUPPORT);
	ck_assert_int_eq(evrdma_conn_disconnect(side->conn), -ENOTCONN);
	ck_assert_int_eq(evrdma_conn_connect(side->conn, NULL, (struct sockaddr *)&sin), 0);
	ck_assert_int_eq(evrdma_conn_connect(side->conn, NULL, (struct sockaddr *)&sin), -EALREADY);
	evrdma_conn_close(side->conn);
	ck_assert_int_eq(evrdma_conn_connect(side->conn, NULL, (struct sockaddr *)&sin), -EPIPE);
	world_connect_pair(w);
	side = w->client;
	ck_assert_int_eq(evrdma_conn_connect(side->conn, NULL, (struct sockaddr *)&sin), -EISCONN);
	world_free(w);
}
END_TEST

static void accept_badly_then_well(struct world *w, struct evrdma_request *request)
{
	struct side *closed = world_side_new(w, false);
	struct side *foreign = world_side_new_on(w, w->other, false);
	struct side *side = world_side_new(w, false);

	evrdma_conn_close(closed->conn);
	ck_assert_int_eq(evrdma_conn_accept(closed->conn, request), -EPIPE);
	ck_assert_int_eq(evrdma_conn_accept(foreign->conn, request), -EXDEV);
	evrdma_conn_close(foreign->conn);
	side_accept(side, request);
}

START_TEST(accept_is_refused_where_it_cannot_be_and_the_request_stays)
{
	struct world *w = world_new();

	world_add_other(w);
	w->on_request = accept_badly_then_well;
	world_connect_pair(w);
	world_free(w);
}
END_TEST

/* --- what is known -------------------------------------------------------------------------- */

static void check_same_end(const struct sockaddr *a, const struct sockaddr *b)
{
	const struct sockaddr_in *x = (const struct sockaddr_in *)a;
	const struct sockaddr_in *y = (const struct sockaddr_in *)b;

	ck_assert_int_eq(x->sin_family, AF_INET);
	ck_assert_int_eq(y->sin_family, AF_INET);
	ck_assert_uint_eq(x->sin_addr.s_addr, y->sin_addr.s_addr);
	ck_assert_uint_eq(x->sin_port, y->sin_port);
}

START_TEST(both_sides_know_both_addresses)
{
	struct world *w = world_new();
	struct evrdma_conn *client = world_side_new(w, true)->conn, *server;
	struct sockaddr_in sin;

	ck_assert_int_eq(evrdma_conn_get_peer_addr(client)->sa_family, AF_UNSPEC);
	ck_assert_ptr_null(evrdma_conn_get_cm_id(client));
	evrdma_conn_close(client);
	world_connect_pair(w);
	client = w->client->conn;
	server = w->server->conn;
	world_address(&sin, place.ip, evrdma_listener_get_port(w->listener));
	check_same_end(evrdma_conn_get_peer_addr(client), (struct sockaddr *)&sin);
	check_same_end(evrdma_conn_get_local_addr(server), (struct sockaddr *)&sin);
	check_same_end(evrdma_conn_get_peer_addr(server), evrdma_conn_get_local_addr(client));
	ck_assert_ptr_eq(evrdma_conn_get_base(client), w->base);
	ck_assert_ptr_eq(evrdma_conn_get_cm_id(client)->channel, evrdma_base_get_channel(w->base));
	world_free(w);
}
END_TEST

START_TEST(connect_comes_from_the_address_it_was_given)
{
	struct world *w = world_new();
	struct sockaddr_in src, dst;
	struct side *side;

	world_listen(w);
	side = world_side_new(w, true);
	world_address(&src, place.ip, 0);
	world_address(&dst, place.ip, evrdma_listener_get_port(w->listener));
	ck_assert_int_eq(evrdma_conn_connect(
		side->conn, (struct sockaddr *)&src, (struct sockaddr *)&dst), 0);
	world_connect_pair(w);
	memcpy(&dst, evrdma_conn_get_local_addr(side->conn), sizeof(dst));
	src.sin_port = dst.sin_port;
	check_same_end((struct sockaddr *)&dst, (struct sockaddr *)&src);
	world_free(w);
}
END_TEST

/* --- the end -------------------------------------------------------------------------------- */

START_TEST(disconnect_ends_both_sides_in_an_orderly_way)
{
	struct world *w = world_new();

	w->on_event = keep_open;
	world_connect_pair(w);
	w->in_call = true;
	ck_assert_int_eq(evrdma_conn_disconnect(w->client->conn), 0);
	ck_assert_int_eq(evrdma_conn_disconnect(w->client->conn), 0);
	w->in_call = false;
	world_run_until(w, both_down, 20000);
	ck_assert_int_eq(w->client->error, 0);
	ck_assert_int_eq(w->server->error, 0);
	ck_assert_int_eq(evrdma_conn_disconnect(w->client->conn), -ENOTCONN);
	world_free(w);
}
END_TEST

/* The world's callbacks check that each end is told once. */
START_TEST(both_sides_may_disconnect_at_once)
{
	struct world *w = world_new();

	world_connect_pair(w);
	ck_assert_int_eq(evrdma_conn_disconnect(w->client->conn), 0);
	ck_assert_int_eq(evrdma_conn_disconnect(w->server->conn), 0);
	world_run_until(w, world_none_live, 20000);
	ck_assert_uint_eq(w->closed, 2);
	world_free(w);
}
END_TEST

START_TEST(a_closed_connection_ends_its_peer)
{
	struct world *w = world_new();

	w->on_event = keep_open;
	world_connect_pair(w);
	evrdma_conn_close(w->server->conn);
	world_run_until(w, world_client_is_down, 20000);
	ck_assert_int_eq(w->client->error, 0);
	world_free(w);
}
END_TEST

START_TEST(an_address_has_a_text)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(7) };
	char text[EVRDMA_ADDR_TEXT_MAX], small[6];
	struct world *w = world_new();
	struct sockaddr_in sin;

	world_address(&sin, "10.0.0.1", 4711);
	ck_assert_str_eq(evrdma_addr_text((struct sockaddr *)&sin, text, sizeof(text)),
		"10.0.0.1:4711");
	ck_assert_str_eq(evrdma_addr_text((struct sockaddr *)&sin, small, sizeof(small)), "10.0.");
	memset(&in6.sin6_addr, 0xfe, sizeof(in6.sin6_addr));
	in6.sin6_scope_id = UINT32_MAX;
	in6.sin6_port = htons(65535);
	ck_assert_str_eq(evrdma_addr_text((struct sockaddr *)&in6, text, sizeof(text)),
		"[fefe:fefe:fefe:fefe:fefe:fefe:fefe:fefe%4294967295]:65535");
	ck_assert_str_eq(evrdma_addr_text(NULL, text, sizeof(text)), "-");
	world_side_new(w, true);
	ck_assert_str_eq(evrdma_addr_text(evrdma_conn_get_peer_addr(w->client->conn), text,
				 sizeof(text)), "-");
	world_free(w);
}
END_TEST

TCase *connect_case(void)
{
	TCase *tc = tcase_create("connect");

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, an_address_has_a_text);
	tcase_add_test(tc, connect_and_accept_carry_private_data);
	tcase_add_test(tc, reject_delivers_private_data_to_the_connecting_side);
	/* iWARP's requests have more room. */
	if (!place.is_iwarp)
		tcase_add_test(tc, private_data_too_long_for_the_request_is_an_error);
	tcase_add_test(tc, a_port_where_nobody_listens_refuses);
	tcase_add_test(tc, connect_is_refused_when_it_cannot_begin);
	tcase_add_test(tc, accept_is_refused_where_it_cannot_be_and_the_request_stays);
	tcase_add_test(tc, both_sides_know_both_addresses);
	tcase_add_test(tc, connect_comes_from_the_address_it_was_given);
	tcase_add_test(tc, disconnect_ends_both_sides_in_an_orderly_way);
	tcase_add_test(tc, both_sides_may_disconnect_at_once);
	tcase_add_test(tc, a_closed_connection_ends_its_peer);
	return tc;
}
