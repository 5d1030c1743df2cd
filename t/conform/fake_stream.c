/* Bufferevents on a device that refuses something. */
#include "conform/fake.h"
#include "conform/stream.h"

#include <errno.h>

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

TCase *stream_case(void)
{
	TCase *tcase = tcase_create("stream");

	tcase_add_checked_fixture(tcase, testbed.start, testbed.stop);
	bevs_add_fixture(tcase);
	tcase_add_test(tcase, what_fails_while_it_is_read_is_told);
	return tcase;
}
