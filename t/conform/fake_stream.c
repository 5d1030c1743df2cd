/* Bufferevents on a device that refuses something. */
#include "conform/fake.h"
#include "conform/stream.h"

#include <errno.h>
#include <rdma/rdma_cma.h>

/* What reading owes the peer does not go any more, and nothing else is there to tell of that. */
START_TEST(what_fails_while_it_is_read_is_told)
{
	bevs.server.on_read = side_check;
	bevs_start();
	bufferevent_disable(bevs.server.bev, EV_READ);
	side_write(&bevs.client, MILLION);
	bevs_run_until(client_is_blocked);
	fake_hold(FAKE_DREQ);
	evrdma_conn_disconnect(evrdma_bufferevent_get_conn(bevs.server.bev));
	bufferevent_enable(bevs.server.bev, EV_READ);
	bevs_run_until(server_has_error);
	ck_assert_int_eq(bevs.server.err, ENOTCONN);
	fake_release(FAKE_DREQ);
}
END_TEST

static bool client_has_ended(struct fixture *f)
{
	return bevs.client.eof + bevs.client.errors > 0;
}

/* As where the kernel takes the queue pair when the peer is gone, and tells of that later. */
static void flush_client(void)
{
	struct evrdma_conn *conn = evrdma_bufferevent_get_conn(bevs.client.bev);
	struct ibv_qp *qp = evrdma_conn_get_cm_id(conn)->qp;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

/* What was on its way is back before the CM says why: that is not the peer's last word. */
START_TEST(a_peer_that_breaks_off_a_send_has_not_closed)
{
	bevs_start();
	fixture_run_a_little(bevs.f);
	fake_work_by_hand(true);
	side_write(&bevs.client, 1000);
	fixture_run_a_little(bevs.f);
	flush_client();
	fixture_run_a_little(bevs.f);
	evrdma_conn_close(evrdma_bufferevent_get_conn(bevs.server.bev));
	fake_work_by_hand(false);
	bevs_run_until(client_has_ended);
	ck_assert_uint_eq(bevs.client.eof, 0);
	ck_assert_uint_eq(bevs.client.read_errors, 1);
	ck_assert_int_eq(bevs.client.err, ECONNRESET);
}
END_TEST

static bool server_has_some(struct fixture *f)
{
	return side_input(&bevs.server) == 777;
}

/* What stands for the error is not the last of what was put back. */
START_TEST(what_is_put_back_before_an_error_stays_whole)
{
	struct evbuffer *input;
	char bytes[10];

	bevs_start();
	input = bufferevent_get_input(bevs.server.bev);
	side_write(&bevs.client, 777);
	bevs_run_until(server_has_some);
	bufferevent_disable(bevs.server.bev, EV_READ);
	evrdma_conn_close(evrdma_bufferevent_get_conn(bevs.client.bev));
	fixture_run_a_little(bevs.f);
	ck_assert_int_eq(evbuffer_remove(input, bytes, sizeof(bytes)), sizeof(bytes));
	ck_assert_int_eq(evbuffer_prepend(input, bytes, sizeof(bytes)), 0);
	fixture_run_a_little(bevs.f);
	ck_assert_uint_eq(evbuffer_get_length(input), 777);
	ck_assert_uint_eq(bevs.server.errors + bevs.server.eof, 0);
	bufferevent_enable(bevs.server.bev, EV_READ);
	bevs_run_until(server_has_error);
	ck_assert_uint_eq(bevs.server.errors, 1);
	ck_assert_uint_eq(bevs.server.eof, 0);
	side_check_in(&bevs.server, input);
	ck_assert_uint_eq(bevs.server.checked, 777);
}
END_TEST

TCase *stream_case(void)
{
	TCase *tcase = tcase_create("stream");

	tcase_add_checked_fixture(tcase, testbed.start, testbed.stop);
	bevs_add_fixture(tcase);
	tcase_add_test(tcase, what_is_put_back_before_an_error_stays_whole);
	tcase_add_test(tcase, what_fails_while_it_is_read_is_told);
	tcase_add_test(tcase, a_peer_that_breaks_off_a_send_has_not_closed);
	return tcase;
}
