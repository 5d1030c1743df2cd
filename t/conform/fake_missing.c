/* A pointer that a call needs, and that is not there: the call says so, and nothing happens. */
#include "conform/fake.h"
#include "conform/member.h"
#include "conform/fixture.h"

#include <errno.h>
#include <event2/dns.h>
#include <string.h>

#include <rdma/rdma_cma.h>

enum { PATIENCE_MS = 20000 };

static void leave_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

START_TEST(a_connection_refuses_what_is_missing)
{
	struct fixture *f = fixture_new();
	struct evrdma_remote remote;
	struct evrdma_conn *conn;

	f->on_event = leave_open;
	fixture_connect_pair(f);
	conn = f->client->conn;
	ck_assert_int_eq(evrdma_conn_send(conn, NULL, 0, NULL, NULL), -EINVAL);
	ck_assert_int_eq(evrdma_conn_submit(conn, NULL, NULL, NULL), -EINVAL);
	ck_assert_int_eq(evrdma_conn_expose(conn, NULL, &remote), -EINVAL);
	ck_assert_int_eq(evrdma_conn_connect_addrinfo(conn, NULL), -EISCONN);
	evrdma_conn_get_private_data(conn, NULL);
	fixture_free(f);
}
END_TEST

START_TEST(a_connection_takes_no_buffer_that_is_missing)
{
	struct fixture *f = fixture_new();
	struct evrdma_conn *conn = evrdma_conn_new(f->base, NULL);

	ck_assert_int_eq(evrdma_conn_recv(conn, NULL), -EINVAL);
	ck_assert_int_eq(evrdma_conn_connect(conn, NULL, NULL), -EINVAL);
	ck_assert_int_eq(evrdma_conn_connect_addrinfo(conn, NULL), -EINVAL);
	evrdma_conn_close(conn);
	fixture_free(f);
}
END_TEST

/* Without an evdns_base libevent would print, and fail. */
START_TEST(a_name_needs_somebody_to_ask)
{
	struct fixture *f = fixture_new();
	struct evdns_base *dns = evdns_base_new(f->loop, 0);
	struct evrdma_conn *conn = evrdma_conn_new(f->base, NULL);

	ck_assert_int_eq(evrdma_conn_connect_hostname(conn, NULL, AF_INET, "10.0.0.1", 1), -EINVAL);
	ck_assert_int_eq(evrdma_conn_connect_hostname(conn, dns, AF_INET, NULL, 1), -EINVAL);
	evrdma_conn_close(conn);
	evdns_base_free(dns, 0);
	fixture_free(f);
}
END_TEST

static void refuse_wrongly(struct fixture *f, struct evrdma_request *request)
{
	ck_assert_int_eq(evrdma_request_reject(request, NULL, 1), -EINVAL);
	ck_assert_int_eq(evrdma_request_move(request, f->base, NULL, NULL), -EINVAL);
	evrdma_request_get_private_data(request, NULL);
	ck_assert_int_eq(evrdma_request_reject(request, NULL, 0), 0);
}

static bool client_is_refused(struct fixture *f)
{
	return !f->client;
}

START_TEST(a_request_refuses_what_is_missing)
{
	struct fixture *f = fixture_new();

	f->on_request = refuse_wrongly;
	fixture_listen(f);
	fixture_connect(f);
	fixture_run_until(f, client_is_refused, PATIENCE_MS);
	fixture_free(f);
}
END_TEST

START_TEST(a_call_in_the_loop_needs_somebody_to_call)
{
	struct fixture *f = fixture_new();

	ck_assert_int_eq(evrdma_base_run_in_loop(f->base, NULL, NULL), -EINVAL);
	fixture_free(f);
}
END_TEST

START_TEST(no_error_has_a_text_too)
{
	char text[EVRDMA_ERROR_TEXT_MAX];

	ck_assert_str_eq(evrdma_error_text(NULL, text, sizeof(text)), "no error");
}
END_TEST

START_TEST(an_endpoint_refuses_what_is_missing)
{
	struct member m = { 0 };
	struct fixture *f = fixture_new();

	member_join(&m, f, 0, "239.1.1.1", 0);
	ck_assert_int_eq(evrdma_dgram_send(m.dgram, m.group, NULL, 0, NULL, NULL, NULL), -EINVAL);
	evrdma_dgram_close(m.dgram);
	member_run_until_closed(&m);
	fixture_free(f);
}
END_TEST

TCase *missing_case(void)
{
	TCase *tc = tcase_create("missing");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_connection_refuses_what_is_missing);
	tcase_add_test(tc, a_connection_takes_no_buffer_that_is_missing);
	tcase_add_test(tc, a_name_needs_somebody_to_ask);
	tcase_add_test(tc, a_request_refuses_what_is_missing);
	tcase_add_test(tc, a_call_in_the_loop_needs_somebody_to_call);
	tcase_add_test(tc, no_error_has_a_text_too);
	if (testbed_has(TESTBED_GROUPS))
		tcase_add_test(tc, an_endpoint_refuses_what_is_missing);
	return tc;
}
