/* Where a listener listens, and what it hands on to the connections that come of it. */
#include "unit/ev_loop.h"

#include <rdma/rdma_cma.h>

enum { PORT = 7471, LISTENERS = 9, OWN = 11 };

static struct evrdma_conn *client, *server;
static int own_ack_timeout;
static bool connected;

static void on_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	ck_assert_int_ne(event, EVRDMA_CONN_ERROR);
	connected |= event == EVRDMA_CONN_CONNECTED && conn == server;
}

static struct evrdma_conn *new_conn(int ack_timeout)
{
	struct evrdma_conn_options options;
	struct evrdma_conn *conn;

	evrdma_conn_options_init(&options);
	options.ack_timeout = ack_timeout;
	conn = evrdma_conn_new(ev_base, &options);
	ck_assert_ptr_nonnull(conn);
	evrdma_conn_setcb(conn, NULL, on_event, NULL);
	return conn;
}

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	server = new_conn(own_ack_timeout);
	ck_assert_int_eq(evrdma_conn_accept(server, request), 0);
}

static void connect_to(int listeners_ack_timeout)
{
	struct evrdma_listener_options options;
	struct sockaddr *addr = ev_addr(FAKE_ROCE_IP, PORT);

	evrdma_listener_options_init(&options);
	options.ack_timeout = listeners_ack_timeout;
	ck_assert_ptr_nonnull(evrdma_listener_new(ev_base, addr, &options, on_request, NULL));
	client = new_conn(-1);
	ck_assert_int_eq(evrdma_conn_connect(client, NULL, addr), 0);
	ev_run_until(&connected);
}

static uint8_t ack_timeout(const struct evrdma_conn *conn)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp = evrdma_conn_get_cm_id(conn)->qp;

	ck_assert_int_eq(ibv_query_qp(qp, &attr, IBV_QP_TIMEOUT, &init), 0);
	return attr.timeout;
}

START_TEST(a_connection_has_the_ack_timeout_of_its_listener)
{
	own_ack_timeout = -1;
	connect_to(LISTENERS);
	ck_assert_uint_eq(ack_timeout(server), LISTENERS);
	ck_assert_uint_ne(ack_timeout(client), LISTENERS);
}
END_TEST

START_TEST(an_ack_timeout_of_its_own_goes_before_that_of_the_listener)
{
	own_ack_timeout = OWN;
	connect_to(LISTENERS);
	ck_assert_uint_eq(ack_timeout(server), OWN);
}
END_TEST

/* --- ports that are taken -------------------------------------------------------------------- */

enum { PORTS = 10 };

static void take_port(void)
{
	fake_fail_next("LISTEN", EADDRINUSE);
}

static struct evrdma_listener *listen_at(const char *ip, uint16_t port)
{
	return evrdma_listener_new(ev_base, ev_addr(ip, port), NULL, on_request, NULL);
}

/* The port that it tells is that of the last of its ids, and the others are gone. */
static void expect_another_port(const struct evrdma_listener *listener)
{
	ck_assert_ptr_nonnull(listener);
	ck_assert_uint_eq(fake_calls("LISTEN"), 2);
	ck_assert_uint_eq(fake_live(FAKE_ID), 1);
	ck_assert_uint_ne(evrdma_listener_get_port(listener), 0);
	ck_assert_uint_eq(evrdma_listener_get_port(listener),
		ntohs(rdma_get_src_port(evrdma_listener_get_cm_id(listener))));
}

START_TEST(a_port_that_the_cm_chose_and_is_taken_is_followed_by_another)
{
	take_port();
	expect_another_port(listen_at(FAKE_ROCE_IP, 0));
}
END_TEST

START_TEST(a_port_of_all_devices_is_followed_by_another)
{
	take_port();
	expect_another_port(listen_at("0.0.0.0", 0));
}
END_TEST

static void on_bev(struct evrdma_listener *listener, struct bufferevent *bev,
	const struct sockaddr *peer, void *arg)
{
}

START_TEST(a_listener_of_bufferevents_does_the_same)
{
	take_port();
	expect_another_port(evrdma_bufferevent_listen(
		ev_base, ev_addr(FAKE_ROCE_IP, 0), NULL, NULL, 0, on_bev, NULL));
}
END_TEST

START_TEST(a_port_that_was_given_is_the_only_one)
{
	take_port();
	ck_assert_ptr_null(listen_at(FAKE_ROCE_IP, PORT));
	ck_assert_int_eq(errno, EADDRINUSE);
	ck_assert_uint_eq(fake_calls("LISTEN"), 1);
}
END_TEST

START_TEST(what_another_port_does_not_mend_is_told_at_once)
{
	fake_fail_next("LISTEN", ENOMEM);
	ck_assert_ptr_null(listen_at(FAKE_ROCE_IP, 0));
	ck_assert_int_eq(errno, ENOMEM);
	ck_assert_uint_eq(fake_calls("LISTEN"), 1);
}
END_TEST

START_TEST(the_end_of_ports_is_told)
{
	fake_each_call(take_port);
	ck_assert_ptr_null(listen_at(FAKE_ROCE_IP, 0));
	ck_assert_int_eq(errno, EADDRINUSE);
	fake_each_call(NULL);
	ck_assert_uint_eq(fake_calls("LISTEN"), PORTS);
	ck_assert_uint_eq(fake_live(FAKE_ID), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_port_that_the_cm_chose_and_is_taken_is_followed_by_another,
		a_port_of_all_devices_is_followed_by_another,
		a_listener_of_bufferevents_does_the_same,
		a_port_that_was_given_is_the_only_one,
		what_another_port_does_not_mend_is_told_at_once,
		the_end_of_ports_is_told,
		a_connection_has_the_ack_timeout_of_its_listener,
		an_ack_timeout_of_its_own_goes_before_that_of_the_listener,
	};

	return ev_main("ev_listener", tests, sizeof(tests) / sizeof(tests[0]));
}
