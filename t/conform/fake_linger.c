/* An id that was closed stays until its peer has answered, or the kernel gives up. */
#include "conform/fake.h"
#include "conform/fixture.h"

#include <errno.h>
#include <rdma/rdma_cma.h>

static bool server_is_down(struct fixture *f)
{
	return f->server && f->server->down;
}

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static uint64_t lingering(struct fixture *f)
{
	return fixture_stats(f).ids_lingering;
}

static void accept_impatiently(struct fixture *f, struct evrdma_request *request)
{
	f->options.drain_timeout_ms = 100;
	endpoint_accept(fixture_endpoint_new(f, false), request);
}

/* Closed at once, whatever the peer says, and of its objects nothing but the id is left. */
static struct fixture *close_unanswered(enum fake_message withheld, bool disconnects)
{
	struct fixture *f = fixture_new();
	unsigned queues;

	f->options.drain_timeout_ms = 20000;
	f->on_request = accept_impatiently;
	fixture_connect_pair(f);
	queues = fake_live(FAKE_QP);
	fake_hold(withheld);
	if (disconnects)
		ck_assert_int_eq(evrdma_conn_disconnect(f->client->conn), 0);
	fixture_run_a_little(f);
	evrdma_conn_close(f->client->conn);
	fixture_run_until(f, fixture_client_is_closed, 2000);
	ck_assert_uint_lt(fake_live(FAKE_QP), queues);
	ck_assert_uint_eq(lingering(f), 1);
	return f;
}

static bool server_has_heard(struct fixture *f)
{
	return !f->server || f->server->down;
}

START_TEST(an_id_that_was_closed_waits_for_the_peers_answer)
{
	static const enum fake_message answers[] = { FAKE_DREQ, FAKE_DREP };
	struct fixture *f = close_unanswered(answers[_i / 2], _i % 2);

	fake_release(answers[_i / 2]);
	fixture_run_until(f, fixture_none_lingers, 10000);
	fixture_run_until(f, server_has_heard, 10000);
	fixture_free(f);
}
END_TEST

START_TEST(an_id_that_was_closed_goes_when_the_kernel_gives_up)
{
	struct fixture *f = close_unanswered(FAKE_DREQ, false);

	ck_assert_uint_eq(fake_time_out(FAKE_DREQ), 1);
	fixture_run_until(f, fixture_none_lingers, 10000);
	fixture_free(f);
}
END_TEST

START_TEST(an_id_that_was_closed_goes_with_its_device)
{
	struct fixture *f = close_unanswered(FAKE_DREQ, false);

	testbed.remove_device();
	fixture_run_until(f, fixture_none_lingers, 10000);
	fake_release(FAKE_DREQ);
	fixture_free(f);
	testbed.add_device();
}
END_TEST

static bool device_is_gone(struct fixture *f)
{
	return testbed.device_is_removed();
}

/* That stays long without connections, but not when it has to go: only the ids are told. */
START_TEST(ids_that_were_closed_keep_no_device_that_is_kept_for_the_next)
{
	struct fixture *f = fixture_new();
	struct evrdma_base_options options;

	evrdma_base_options_init(&options);
	options.device_idle_ms = 3600000;
	fixture_replace_base(f, &options);
	fixture_connect_pair(f);
	fake_hold(FAKE_DREQ);
	evrdma_listener_close(f->listener);
	f->listener = NULL;
	evrdma_conn_close(f->client->conn);
	evrdma_conn_close(f->server->conn);
	fixture_run_until(f, fixture_none_live, 10000);
	ck_assert_uint_eq(lingering(f), 2);
	testbed.remove_device();
	fixture_run_until(f, device_is_gone, 10000);
	fake_release(FAKE_DREQ);
	fixture_free(f);
	testbed.add_device();
}
END_TEST

/* A second, and not the minute that the kernel would take; fixture_free() waits for the base. */
START_TEST(an_id_that_was_closed_keeps_no_base_from_closing)
{
	struct fixture *f = close_unanswered(FAKE_DREQ, false);

	fixture_free(f);
}
END_TEST

static uint64_t counted(struct fixture *f)
{
	struct evrdma_listener_stats stats;

	evrdma_listener_get_stats(f->listener, &stats);
	return stats.connections;
}

static bool none_is_counted(struct fixture *f)
{
	return !counted(f);
}

static bool server_is_closed(struct fixture *f)
{
	return !f->server;
}

static struct fixture *close_counted(int drain_timeout_ms)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->options.drain_timeout_ms = drain_timeout_ms;
	fixture_connect_pair(f);
	fake_hold(FAKE_DREQ);
	evrdma_conn_close(f->server->conn);
	fixture_run_until(f, server_is_closed, 10000);
	ck_assert_uint_eq(lingering(f), 1);
	ck_assert_uint_eq(counted(f), 1);
	return f;
}

START_TEST(an_id_that_was_closed_counts_as_a_connection_until_it_goes)
{
	struct fixture *f = close_counted(20000);

	fake_release(FAKE_DREQ);
	fixture_run_until(f, fixture_none_lingers, 10000);
	ck_assert_uint_eq(counted(f), 0);
	fixture_free(f);
}
END_TEST

/* Or many that vanish with their network would keep all others out for a minute. */
START_TEST(an_id_that_was_closed_counts_no_longer_than_a_drain)
{
	struct fixture *f = close_counted(100);

	fixture_run_until(f, none_is_counted, 10000);
	ck_assert_uint_eq(lingering(f), 1);
	fixture_free(f);
}
END_TEST

/* What is not closed counts, whatever its id does. */
START_TEST(a_connection_that_ended_counts_until_it_is_closed)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	fixture_connect_pair(f);
	fake_hold(FAKE_DREQ);
	ck_assert_int_eq(fake_inject(evrdma_conn_get_cm_id(f->server->conn),
				 RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT),
		0);
	fixture_run_until(f, server_is_down, 10000);
	fixture_run_a_little(f);
	fake_release(FAKE_DREQ);
	fixture_run_until(f, fixture_none_lingers, 10000);
	ck_assert_uint_eq(counted(f), 1);
	evrdma_conn_close(f->server->conn);
	fixture_run_until(f, none_is_counted, 10000);
	fixture_free(f);
}
END_TEST

TCase *linger_case(void)
{
	TCase *tc = tcase_create("linger");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	if (fake_testbed_kind == FAKE_IWARP)
		return tc;
	tcase_add_loop_test(tc, an_id_that_was_closed_waits_for_the_peers_answer, 0, 4);
	tcase_add_test(tc, an_id_that_was_closed_goes_when_the_kernel_gives_up);
	tcase_add_test(tc, an_id_that_was_closed_goes_with_its_device);
	tcase_add_test(tc, ids_that_were_closed_keep_no_device_that_is_kept_for_the_next);
	tcase_add_test(tc, an_id_that_was_closed_keeps_no_base_from_closing);
	tcase_add_test(tc, an_id_that_was_closed_counts_as_a_connection_until_it_goes);
	tcase_add_test(tc, an_id_that_was_closed_counts_no_longer_than_a_drain);
	tcase_add_test(tc, a_connection_that_ended_counts_until_it_is_closed);
	return tc;
}
