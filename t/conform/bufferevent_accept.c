/* How bufferevents over RDMA come to be. */
#include "conform/bufferevent.h"
#include "conform/stream.h"

#include <errno.h>
#include <event2/dns.h>

static unsigned refused; /* accepts that failed */
static int refused_err;

static void on_accepted(struct bufferevent *bev, const struct evrdma_error *error, void *arg)
{
	ck_assert_int_eq(!bev, !!error);
	if (bev)
		side_begin(&bevs.server, bev);
	else
		refused_err = error->err;
	refused += !bev;
}

static int accept_result;

static void accept_it(struct fixture *f, struct evrdma_request *request)
{
	ck_assert_int_eq(
		evrdma_bufferevent_accept(request, &bevs.options, 0, NULL, NULL), -EINVAL);
	accept_result = evrdma_bufferevent_accept(
		request, &bevs.options, 0, on_accepted, NULL);
	if (accept_result)
		evrdma_request_reject(request, NULL, 0);
}

static void accept_by_hand(void)
{
	refused = 0;
	accept_result = -1;
	bevs.f->on_request = accept_it;
	fixture_listen(bevs.f);
	bevs.listener = bevs.f->listener;
}

START_TEST(a_request_is_accepted_by_hand)
{
	accept_by_hand();
	bevs_connect();
	bevs_run_until(bevs_are_up);
	ck_assert_int_eq(accept_result, 0);
}
END_TEST

START_TEST(a_peer_of_another_protocol_is_refused)
{
	accept_by_hand();
	fixture_connect(bevs.f);
	bevs_run_until(fixture_none_live);
	ck_assert_int_eq(accept_result, -EPROTO);
	ck_assert_ptr_null(bevs.server.bev);
}
END_TEST

static bool is_accepted(struct fixture *f)
{
	return !accept_result;
}

START_TEST(an_accept_that_the_base_cuts_short_is_told)
{
	accept_by_hand();
	bevs_connect();
	bevs_run_until(is_accepted);
	fixture_close_base(bevs.f);
	bevs_run_until(fixture_base_is_closed);
	ck_assert_uint_eq(refused, 1);
	ck_assert_int_eq(refused_err, ECANCELED);
}
END_TEST

START_TEST(a_listener_that_is_closed_gives_no_more)
{
	bevs_listen();
	bevs_connect();
	fixture_run_turns(bevs.f, _i);
	evrdma_listener_close(bevs.listener);
	fixture_run_a_little(bevs.f);
}
END_TEST

START_TEST(a_name_is_connected_to)
{
	struct evdns_base *dns = evdns_base_new(bevs.f->loop, 0);

	bevs_listen();
	side_begin(&bevs.client,
		evrdma_bufferevent_connect_hostname(bevs.f->base, dns, AF_INET, testbed.ip,
			evrdma_listener_get_port(bevs.listener), &bevs.options, 0));
	bevs_run_until(bevs_are_up);
	evdns_base_free(dns, 0);
}
END_TEST

static void refuses_to_connect(void)
{
	struct sockaddr_in sin;

	fixture_address(&sin, testbed.ip, 1);
	errno = 0;
	ck_assert_ptr_null(evrdma_bufferevent_connect(
		bevs.f->base, NULL, (struct sockaddr *)&sin, &bevs.options, 0));
	ck_assert_int_eq(errno, EINVAL);
}

START_TEST(options_out_of_range_are_refused)
{
	bevs.options.recv_bytes = 8191;
	refuses_to_connect();
	evrdma_bev_options_init(&bevs.options);
	bevs.options.flags = 0x80;
	refuses_to_connect();
}
END_TEST

START_TEST(options_of_the_connection_that_are_the_streams_are_refused)
{
	bevs.conn.send_depth = 19;
	refuses_to_connect();
	evrdma_conn_options_init(&bevs.conn);
	bevs.conn.recv_pool = bevs.f->pool;
	refuses_to_connect();
	evrdma_conn_options_init(&bevs.conn);
	bevs.conn.private_data = "x";
	bevs.conn.private_data_len = 1;
	refuses_to_connect();
}
END_TEST

START_TEST(what_is_missing_is_refused)
{
	struct sockaddr_in sin;
	struct sockaddr *at = (struct sockaddr *)&sin;

	fixture_address(&sin, testbed.ip, 0);
	ck_assert_ptr_null(evrdma_bufferevent_connect(bevs.f->base, NULL, NULL, NULL, 0));
	ck_assert_int_eq(errno, EINVAL);
	errno = 0;
	ck_assert_ptr_null(evrdma_bufferevent_listen(bevs.f->base, at, NULL, NULL, 0, NULL, NULL));
	ck_assert_int_eq(errno, EINVAL);
}
END_TEST

void bufferevent_add_accepts(TCase *tcase)
{
	tcase_add_test(tcase, a_request_is_accepted_by_hand);
	tcase_add_test(tcase, a_peer_of_another_protocol_is_refused);
	tcase_add_test(tcase, an_accept_that_the_base_cuts_short_is_told);
	tcase_add_loop_test(tcase, a_listener_that_is_closed_gives_no_more, 0, 12);
	tcase_add_test(tcase, a_name_is_connected_to);
	tcase_add_test(tcase, options_out_of_range_are_refused);
	tcase_add_test(tcase, options_of_the_connection_that_are_the_streams_are_refused);
	tcase_add_test(tcase, what_is_missing_is_refused);
}
