/* How connections begin and end, and what both sides learn of each other. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

static const char hello[] = "hello", welcome[] = "welcome", no[] = "no";

static void set_data(struct fixture *f, const char *data, size_t len)
{
	f->options.private_data = data;
	f->options.private_data_len = len;
}

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	bool *refused = endpoint->fixture->tag;

	if (refused && event == EVRDMA_CONN_ERROR)
		*refused = error->cm_event == RDMA_CM_EVENT_REJECTED;
}

static bool both_down(struct fixture *f)
{
	return f->client->down && f->server->down;
}

/* What came begins with it; beyond that it may be padded. */
static void check_data(const void *data, size_t len, const char *wanted, size_t wanted_len)
{
	ck_assert_uint_ge(len, wanted_len);
	ck_assert_mem_eq(data, wanted, wanted_len);
}

/* --- private data --------------------------------------------------------------------------- */

static void welcome_hello(struct fixture *f, struct evrdma_request *request)
{
	size_t len;
	const void *data = evrdma_request_get_private_data(request, &len);

	check_data(data, len, hello, sizeof(hello));
	set_data(f, welcome, sizeof(welcome));
	endpoint_accept(fixture_endpoint_new(f, false), request);
}

START_TEST(connect_and_accept_carry_private_data)
{
	struct fixture *f = fixture_new();
	const void *data;
	size_t len;

	f->on_request = welcome_hello;
	set_data(f, hello, sizeof(hello));
	fixture_connect_pair(f);
	data = evrdma_conn_get_private_data(f->client->conn, &len);
	check_data(data, len, welcome, sizeof(welcome));
	data = evrdma_conn_get_private_data(f->server->conn, &len);
	check_data(data, len, hello, sizeof(hello));
	fixture_free(f);
}
END_TEST

static void say_no(struct fixture *f, struct evrdma_request *request)
{
	char large[149] = { 0 };

	ck_assert_int_eq(evrdma_request_reject(request, large, sizeof(large)), -EINVAL);
	ck_assert_int_eq(evrdma_request_reject(request, no, sizeof(no)), 0);
}

START_TEST(reject_delivers_private_data_to_the_connecting_side)
{
	bool refused = false;
	struct fixture *f = fixture_new();
	const void *data;
	size_t len;

	f->tag = &refused;
	f->on_request = say_no;
	f->on_event = keep_open;
	fixture_listen(f);
	fixture_connect(f);
	fixture_run_until(f, fixture_client_is_down, 20000);
	ck_assert_int_eq(f->client->error, ECONNREFUSED);
	ck_assert_int_eq(f->client->step, EVRDMA_STEP_CONNECT);
	ck_assert(refused);
	data = evrdma_conn_get_private_data(f->client->conn, &len);
	check_data(data, len, no, sizeof(no));
	fixture_free(f);
}
END_TEST

/* The first is said no to, and the second, at the same place, is accepted without a word, or waits
   for an answer until it is too late. */
struct turns {
	unsigned requests;
	bool silent;
	struct evrdma_request *kept;
};

static void say_no_once(struct fixture *f, struct evrdma_request *request)
{
	struct turns *turns = f->tag;

	if (!turns->requests++)
		ck_assert_int_eq(evrdma_request_reject(request, no, sizeof(no)), 0);
	else if (turns->silent)
		turns->kept = request;
	else
		endpoint_accept(fixture_endpoint_new(f, false), request);
}

static void stay_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static bool client_is_up_or_down(struct fixture *f)
{
	return f->client->connected || f->client->down;
}

START_TEST(the_private_data_is_that_of_the_last_address)
{
	const char *const ips[] = { testbed.ip, testbed.ip };
	struct turns turns = { .silent = _i };
	struct fixture *f = fixture_new();
	const char *data;
	size_t len;

	f->tag = &turns;
	f->on_request = say_no_once;
	f->on_event = stay_open;
	if (turns.silent)
		f->options.connect_timeout_ms = 500;
	fixture_listen(f);
	fixture_connect_to_each(f, ips, 2, evrdma_listener_get_port(f->listener));
	fixture_run_until(f, client_is_up_or_down, 20000);
	ck_assert(f->client->connected == !turns.silent);
	ck_assert_uint_eq(turns.requests, 2);
	data = evrdma_conn_get_private_data(f->client->conn, &len);
	ck_assert(!data || memcmp(data, no, sizeof(no)));
	ck_assert(!turns.silent || !len);
	if (turns.kept)
		ck_assert_int_eq(evrdma_request_reject(turns.kept, NULL, 0), 0);
	fixture_free(f);
}
END_TEST

START_TEST(private_data_too_long_for_the_request_is_an_error)
{
	static const char large[57] = "more than fits beside the addresses";
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	set_data(f, large, sizeof(large));
	fixture_listen(f);
	fixture_connect(f);
	fixture_run_until(f, fixture_client_is_down, 20000);
	ck_assert_int_eq(f->client->error, EINVAL);
	fixture_free(f);
}
END_TEST

/* --- refusals ------------------------------------------------------------------------------- */

START_TEST(a_port_where_nobody_listens_refuses)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	fixture_connect_to(f, testbed.ip, 9);
	fixture_run_until(f, fixture_client_is_down, 20000);
	ck_assert_int_eq(f->client->error, ECONNREFUSED);
	ck_assert_int_eq(f->client->step, EVRDMA_STEP_CONNECT);
	ck_assert(!f->client->connected);
	fixture_free(f);
}
END_TEST

START_TEST(connect_is_refused_when_it_cannot_begin)
{
	struct fixture *f = fixture_new();
	struct endpoint *endpoint = fixture_endpoint_new(f, true);
	struct sockaddr nothing = { .sa_family = AF_UNSPEC };
	struct sockaddr_in sin;

	fixture_address(&sin, testbed.ip, 9);
	ck_assert_int_eq(evrdma_conn_connect(endpoint->conn, NULL, NULL), -EINVAL);
	ck_assert_int_eq(evrdma_conn_connect(endpoint->conn, NULL, &nothing), -EAFNOSUPPORT);
	ck_assert_int_eq(evrdma_conn_disconnect(endpoint->conn), -ENOTCONN);
	ck_assert_int_eq(evrdma_conn_connect(endpoint->conn, NULL, (struct sockaddr *)&sin), 0);
	ck_assert_int_eq(
		evrdma_conn_connect(endpoint->conn, NULL, (struct sockaddr *)&sin), -EALREADY);
	evrdma_conn_close(endpoint->conn);
	ck_assert_int_eq(
		evrdma_conn_connect(endpoint->conn, NULL, (struct sockaddr *)&sin), -EPIPE);
	fixture_connect_pair(f);
	endpoint = f->client;
	ck_assert_int_eq(
		evrdma_conn_connect(endpoint->conn, NULL, (struct sockaddr *)&sin), -EISCONN);
	fixture_free(f);
}
END_TEST

static void accept_badly_then_well(struct fixture *f, struct evrdma_request *request)
{
	struct endpoint *closed = fixture_endpoint_new(f, false);
	struct endpoint *foreign = fixture_endpoint_new_on(f, f->other, false);
	struct endpoint *endpoint = fixture_endpoint_new(f, false);

	evrdma_conn_close(closed->conn);
	ck_assert_int_eq(evrdma_conn_accept(closed->conn, request), -EPIPE);
	ck_assert_int_eq(evrdma_conn_accept(foreign->conn, request), -EXDEV);
	evrdma_conn_close(foreign->conn);
	endpoint_accept(endpoint, request);
}

START_TEST(accept_is_refused_where_it_cannot_be_and_the_request_stays)
{
	struct fixture *f = fixture_new();

	fixture_add_other(f);
	f->on_request = accept_badly_then_well;
	fixture_connect_pair(f);
	fixture_free(f);
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
	struct fixture *f = fixture_new();
	struct evrdma_conn *client = fixture_endpoint_new(f, true)->conn, *server;
	struct sockaddr_in sin;

	ck_assert_int_eq(evrdma_conn_get_peer_addr(client)->sa_family, AF_UNSPEC);
	ck_assert_ptr_null(evrdma_conn_get_cm_id(client));
	evrdma_conn_close(client);
	fixture_connect_pair(f);
	client = f->client->conn;
	server = f->server->conn;
	fixture_address(&sin, testbed.ip, evrdma_listener_get_port(f->listener));
	check_same_end(evrdma_conn_get_peer_addr(client), (struct sockaddr *)&sin);
	check_same_end(evrdma_conn_get_local_addr(server), (struct sockaddr *)&sin);
	check_same_end(evrdma_conn_get_peer_addr(server), evrdma_conn_get_local_addr(client));
	ck_assert_ptr_eq(evrdma_conn_get_base(client), f->base);
	ck_assert_ptr_eq(evrdma_conn_get_cm_id(client)->channel, evrdma_base_get_channel(f->base));
	fixture_free(f);
}
END_TEST

START_TEST(connect_comes_from_the_address_it_was_given)
{
	struct fixture *f = fixture_new();
	struct sockaddr_in src, dst;
	struct endpoint *endpoint;

	fixture_listen(f);
	endpoint = fixture_endpoint_new(f, true);
	fixture_address(&src, testbed.ip, 0);
	fixture_address(&dst, testbed.ip, evrdma_listener_get_port(f->listener));
	ck_assert_int_eq(evrdma_conn_connect(
				 endpoint->conn, (struct sockaddr *)&src, (struct sockaddr *)&dst),
		0);
	fixture_connect_pair(f);
	memcpy(&dst, evrdma_conn_get_local_addr(endpoint->conn), sizeof(dst));
	src.sin_port = dst.sin_port;
	check_same_end((struct sockaddr *)&dst, (struct sockaddr *)&src);
	fixture_free(f);
}
END_TEST

/* --- the end -------------------------------------------------------------------------------- */

START_TEST(disconnect_ends_both_sides_in_an_orderly_way)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	fixture_connect_pair(f);
	f->in_call = true;
	ck_assert_int_eq(evrdma_conn_disconnect(f->client->conn), 0);
	ck_assert_int_eq(evrdma_conn_disconnect(f->client->conn), 0);
	f->in_call = false;
	fixture_run_until(f, both_down, 20000);
	ck_assert_int_eq(f->client->error, 0);
	ck_assert_int_eq(f->server->error, 0);
	ck_assert_int_eq(evrdma_conn_disconnect(f->client->conn), -ENOTCONN);
	fixture_free(f);
}
END_TEST

/* The fixture's callbacks check that each end is told once. */
START_TEST(both_sides_may_disconnect_at_once)
{
	struct fixture *f = fixture_new();

	fixture_connect_pair(f);
	ck_assert_int_eq(evrdma_conn_disconnect(f->client->conn), 0);
	ck_assert_int_eq(evrdma_conn_disconnect(f->server->conn), 0);
	fixture_run_until(f, fixture_none_live, 20000);
	ck_assert_uint_eq(f->closed, 2);
	fixture_free(f);
}
END_TEST

START_TEST(a_closed_connection_ends_its_peer)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	fixture_connect_pair(f);
	evrdma_conn_close(f->server->conn);
	fixture_run_until(f, fixture_client_is_down, 20000);
	ck_assert_int_eq(f->client->error, 0);
	fixture_free(f);
}
END_TEST

START_TEST(an_address_has_a_text)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(7) };
	char text[EVRDMA_ADDR_TEXT_MAX], small[6];
	struct fixture *f = fixture_new();
	struct sockaddr_in sin;

	fixture_address(&sin, "10.0.0.1", 4711);
	ck_assert_str_eq(
		evrdma_addr_text((struct sockaddr *)&sin, text, sizeof(text)), "10.0.0.1:4711");
	ck_assert_str_eq(evrdma_addr_text((struct sockaddr *)&sin, small, sizeof(small)), "10.0.");
	memset(&in6.sin6_addr, 0xfe, sizeof(in6.sin6_addr));
	in6.sin6_scope_id = UINT32_MAX;
	in6.sin6_port = htons(65535);
	ck_assert_str_eq(evrdma_addr_text((struct sockaddr *)&in6, text, sizeof(text)),
		"[fefe:fefe:fefe:fefe:fefe:fefe:fefe:fefe%4294967295]:65535");
	ck_assert_str_eq(evrdma_addr_text(NULL, text, sizeof(text)), "-");
	fixture_endpoint_new(f, true);
	ck_assert_str_eq(
		evrdma_addr_text(evrdma_conn_get_peer_addr(f->client->conn), text, sizeof(text)),
		"-");
	fixture_free(f);
}
END_TEST

/* --- an end before the beginning ------------------------------------------------------------ */

enum { ON_THE_WAY_MS = 20 };

static void keep_request(struct fixture *f, struct evrdma_request *request)
{
	f->tag = request;
}

/* What needs no more than the way to the other side is done. */
static void run_for_the_way(struct event_base *loop)
{
	static const struct timeval way = { 0, ON_THE_WAY_MS * 1000 };

	event_base_loopexit(loop, &way);
	event_base_dispatch(loop);
}

static bool server_is_closed(struct fixture *f)
{
	return !f->server;
}

/* iWARP's server is connected then, and its device may say nothing of its queue pair. */
static bool server_has_replied(struct fixture *f)
{
	const struct rdma_cm_id *id = evrdma_conn_get_cm_id(f->server->conn);
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	if (f->server->connected)
		return true;
	return id && id->qp && !ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init) &&
	       attr.qp_state == IBV_QPS_RTS;
}

/* The reply has come to the client, and so has its end, before the client's loop runs. */
static void end_before_the_reply_is_read(struct fixture *f, struct event_base *clients)
{
	struct event_base *loop = f->loop;
	struct sockaddr_in sin;

	f->loop = clients;
	fixture_add_other(f);
	f->loop = loop;
	f->on_request = keep_request;
	fixture_listen(f);
	fixture_endpoint_new_on(f, f->other, true);
	fixture_address(&sin, testbed.ip, evrdma_listener_get_port(f->listener));
	ck_assert_int_eq(evrdma_conn_connect(f->client->conn, NULL, (struct sockaddr *)&sin), 0);
	while (!f->tag) {
		run_for_the_way(clients);
		run_for_the_way(f->loop);
	}
	endpoint_accept(fixture_endpoint_new(f, false), f->tag);
	f->tag = NULL;
	fixture_run_until(f, server_has_replied, 20000);
	evrdma_conn_close(f->server->conn);
	fixture_run_until(f, server_is_closed, 20000);
	run_for_the_way(f->loop);
}

/* On InfiniBand the kernel takes the client's confirmation no more; iWARP has none. */
START_TEST(a_server_that_ends_before_its_reply_is_read_has_reset_the_connection)
{
	struct fixture *f = fixture_new();
	struct event_base *loop = f->loop, *clients = event_base_new();

	f->on_event = keep_open;
	end_before_the_reply_is_read(f, clients);
	f->loop = clients;
	fixture_run_until(f, fixture_client_is_down, 20000);
	ck_assert_int_eq(f->client->connected, testbed.is_iwarp);
	ck_assert_int_eq(f->client->error, testbed.is_iwarp ? 0 : ECONNRESET);
	ck_assert_int_eq(
		f->client->step, testbed.is_iwarp ? EVRDMA_STEP_NONE : EVRDMA_STEP_CONNECT);
	fixture_close_other(f);
	event_base_free(clients);
	f->loop = loop;
	fixture_free(f);
}
END_TEST

TCase *connect_case(void)
{
	TCase *tc = tcase_create("connect");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, an_address_has_a_text);
	tcase_add_test(tc, connect_and_accept_carry_private_data);
	tcase_add_test(tc, reject_delivers_private_data_to_the_connecting_side);
	tcase_add_loop_test(tc, the_private_data_is_that_of_the_last_address, 0, 2);
	/* iWARP's requests have more room. */
	if (!testbed.is_iwarp)
		tcase_add_test(tc, private_data_too_long_for_the_request_is_an_error);
	tcase_add_test(tc, a_port_where_nobody_listens_refuses);
	tcase_add_test(tc, connect_is_refused_when_it_cannot_begin);
	tcase_add_test(tc, accept_is_refused_where_it_cannot_be_and_the_request_stays);
	tcase_add_test(tc, both_sides_know_both_addresses);
	tcase_add_test(tc, connect_comes_from_the_address_it_was_given);
	tcase_add_test(tc, disconnect_ends_both_sides_in_an_orderly_way);
	tcase_add_test(tc, both_sides_may_disconnect_at_once);
	tcase_add_test(tc, a_closed_connection_ends_its_peer);
	tcase_add_test(tc, a_server_that_ends_before_its_reply_is_read_has_reset_the_connection);
	return tc;
}
