/* What a listener hands on to the connections that come of it. */
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

int main(void)
{
	const TTest *const tests[] = {
		a_connection_has_the_ack_timeout_of_its_listener,
		an_ack_timeout_of_its_own_goes_before_that_of_the_listener,
	};

	return ev_main("ev_listener", tests, sizeof(tests) / sizeof(tests[0]));
}
