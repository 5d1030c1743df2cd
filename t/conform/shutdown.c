/* The orderly end of a base: what is waited for, what is not, and who hears of it. */
#include "conform/member.h"
#include "conform/suite.h"
#include "conform/fixture.h"

#include <errno.h>
#include <string.h>

enum { MESSAGES = 32, PATIENCE_MS = 20000 };

/* The second base of the fixture is the one that ends. */
struct ending {
	unsigned over, calls;
	unsigned listener_closed;
	struct evrdma_request *kept;
};

static void on_over(struct evrdma_base *base, void *arg)
{
	((struct ending *)arg)->over++;
}

static bool is_over(struct fixture *f)
{
	return ((struct ending *)f->tag)->over;
}

static bool is_over_for_all(struct fixture *f)
{
	return is_over(f) && fixture_none_live(f);
}

static struct {
	unsigned received, ok, errors;
} seen;

static struct fixture *fixture_with_ending(struct ending *ending)
{
	struct fixture *f = fixture_new();

	memset(&seen, 0, sizeof(seen));
	*ending = (struct ending){ 0 };
	f->tag = ending;
	fixture_add_other(f);
	return f;
}

static void start_shutdown(struct fixture *f, int timeout_ms)
{
	f->in_call = true;
	ck_assert_int_eq(evrdma_base_shutdown(f->other, timeout_ms, on_over, f->tag), 0);
	f->in_call = false;
	f->other = NULL;
}

static void connect_from_other(struct fixture *f)
{
	struct endpoint *endpoint = fixture_endpoint_new_on(f, f->other, true);
	struct sockaddr_in sin;

	fixture_address(&sin, testbed.ip, evrdma_listener_get_port(f->listener));
	ck_assert_int_eq(evrdma_conn_connect(endpoint->conn, NULL, (struct sockaddr *)&sin), 0);
}

static bool both_up(struct fixture *f)
{
	return f->established == 2;
}

/* --- connections ---------------------------------------------------------------------------- */

static void count_received(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	seen.received += !recv->err;
}

static void count_sent(struct endpoint *endpoint, const struct evrdma_error *error)
{
	seen.ok += !error;
}

static void count_errors(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	seen.errors += error != NULL;
	/* Of the base that ends, nobody closes a connection. */
	if (!endpoint->is_client)
		endpoint_close_if_down(endpoint, event);
}

START_TEST(what_was_sent_before_a_shutdown_arrives)
{
	struct ending ending;
	struct fixture *f = fixture_with_ending(&ending);

	f->on_recv = count_received;
	f->on_sent = count_sent;
	f->on_event = count_errors;
	fixture_listen(f);
	connect_from_other(f);
	fixture_run_until(f, both_up, PATIENCE_MS);
	endpoint_send(f->client, MESSAGES, 64);
	start_shutdown(f, PATIENCE_MS);
	fixture_run_until(f, is_over_for_all, PATIENCE_MS);
	ck_assert_uint_eq(seen.received, MESSAGES);
	ck_assert_uint_eq(seen.ok, MESSAGES);
	ck_assert_uint_eq(seen.errors, 0);
	ck_assert_uint_eq(ending.over, 1);
	fixture_free(f);
}
END_TEST

static void keep_request(struct fixture *f, struct evrdma_request *request)
{
	struct ending *ending = f->tag;

	ending->calls++;
	ending->kept = request;
}

static bool request_is_there(struct fixture *f)
{
	return ((struct ending *)f->tag)->calls;
}

START_TEST(a_shutdown_cancels_what_is_not_established)
{
	struct ending ending;
	struct fixture *f = fixture_with_ending(&ending);

	f->on_request = keep_request;
	f->on_event = count_errors;
	fixture_listen(f);
	connect_from_other(f);
	fixture_endpoint_new_on(f, f->other, true);
	fixture_run_until(f, request_is_there, PATIENCE_MS);
	start_shutdown(f, PATIENCE_MS);
	/* There the kernel keeps what asks until it is answered. */
	if (testbed.is_iwarp)
		ck_assert_int_eq(evrdma_request_reject(ending.kept, NULL, 0), 0);
	fixture_run_until(f, is_over_for_all, PATIENCE_MS);
	ck_assert_uint_eq(seen.errors, 0);
	fixture_free(f);
}
END_TEST

/* --- requests that move there ---------------------------------------------------------------- */

static void ends_at_once(struct fixture *f)
{
	evrdma_base_close(f->other, on_over, f->tag);
	f->other = NULL;
}

static void ends_in_order(struct fixture *f)
{
	start_shutdown(f, PATIENCE_MS);
}

static void (*const ends[])(struct fixture *) = { ends_at_once, ends_in_order };

static void not_here(struct evrdma_request *request, void *arg)
{
	ck_abort_msg("a request came to a base that ends");
}

static struct fixture *fixture_with_request(struct ending *ending)
{
	struct fixture *f = fixture_with_ending(ending);

	f->on_request = keep_request;
	f->on_event = count_errors;
	fixture_listen(f);
	fixture_connect(f);
	fixture_run_until(f, request_is_there, PATIENCE_MS);
	return f;
}

START_TEST(a_request_stays_when_the_base_that_it_shall_move_to_ends)
{
	struct ending ending;
	struct fixture *f = fixture_with_request(&ending);
	struct evrdma_base *base = f->other;

	ends[_i](f);
	ck_assert_int_eq(evrdma_request_move(ending.kept, base, not_here, NULL), -EPIPE);
	ck_assert_ptr_eq(evrdma_request_get_base(ending.kept), f->base);
	endpoint_accept(fixture_endpoint_new(f, false), ending.kept);
	fixture_run_until(f, both_up, PATIENCE_MS);
	fixture_run_until(f, is_over, PATIENCE_MS);
	fixture_free(f);
}
END_TEST

START_TEST(a_request_is_rejected_when_the_base_ends_that_it_moves_to)
{
	struct ending ending;
	struct fixture *f = fixture_with_request(&ending);

	ck_assert_int_eq(evrdma_request_move(ending.kept, f->other, not_here, NULL), 0);
	ends[_i](f);
	fixture_run_until(f, fixture_client_is_down, PATIENCE_MS);
	ck_assert_int_eq(f->client->error, ECONNREFUSED);
	fixture_run_until(f, is_over, PATIENCE_MS);
	fixture_free(f);
}
END_TEST

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	((struct ending *)arg)->calls++;
}

static void on_listener_event(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	((struct ending *)arg)->listener_closed += event == EVRDMA_LISTENER_CLOSED;
}

static void listen_on_other(struct fixture *f)
{
	struct sockaddr_in sin;

	fixture_address(&sin, testbed.ip, 0);
	f->listener =
		evrdma_listener_new(f->other, (struct sockaddr *)&sin, NULL, on_request, f->tag);
	ck_assert_ptr_nonnull(f->listener);
	evrdma_listener_set_event_cb(f->listener, on_listener_event);
}

START_TEST(a_shutdown_rejects_requests_and_closes_listeners)
{
	struct ending ending;
	struct fixture *f = fixture_with_ending(&ending);

	f->on_event = count_errors;
	listen_on_other(f);
	fixture_connect(f);
	fixture_run_until(f, request_is_there, PATIENCE_MS);
	start_shutdown(f, PATIENCE_MS);
	fixture_run_until(f, is_over, PATIENCE_MS);
	ck_assert_uint_eq(ending.listener_closed, 1);
	while (!f->client->down)
		event_base_loop(f->loop, EVLOOP_ONCE);
	ck_assert_int_eq(f->client->error, ECONNREFUSED);
	fixture_free(f);
}
END_TEST

/* --- the base itself ------------------------------------------------------------------------ */

static void count_call(struct evrdma_base *base, void *arg)
{
	((struct ending *)arg)->calls++;
}

START_TEST(a_base_that_is_shut_down_makes_no_objects_and_takes_calls)
{
	struct ending ending;
	struct fixture *f = fixture_with_ending(&ending);
	struct evrdma_base *base = f->other;

	ck_assert_int_eq(evrdma_base_shutdown(base, -1, on_over, &ending), -EINVAL);
	start_shutdown(f, PATIENCE_MS);
	ck_assert_int_eq(evrdma_base_shutdown(base, 0, NULL, NULL), -EALREADY);
	fixture_expect_closing(base);
	ck_assert_int_eq(evrdma_base_run_in_loop(base, count_call, &ending), 0);
	ck_assert_uint_eq(ending.over, 0);
	fixture_run_until(f, is_over, PATIENCE_MS);
	ck_assert_uint_eq(ending.calls, 1);
	fixture_free(f);
}
END_TEST

static void wrong_callback(struct evrdma_base *base, void *arg)
{
	ck_abort_msg("the callback of the shutdown should have come");
}

START_TEST(a_close_ends_the_wait_of_a_shutdown)
{
	struct ending ending;
	struct fixture *f = fixture_with_ending(&ending);
	struct evrdma_base *base = f->other;

	f->on_event = count_errors;
	fixture_listen(f);
	connect_from_other(f);
	fixture_run_until(f, both_up, PATIENCE_MS);
	start_shutdown(f, PATIENCE_MS);
	evrdma_base_close(base, wrong_callback, NULL);
	ck_assert_int_eq(evrdma_base_shutdown(base, 0, NULL, NULL), -EALREADY);
	fixture_run_until(f, is_over, PATIENCE_MS);
	ck_assert_uint_eq(ending.over, 1);
	fixture_run_until(f, fixture_none_live, PATIENCE_MS);
	fixture_free(f);
}
END_TEST

START_TEST(a_shutdown_waits_for_a_connection_that_moved_here)
{
	struct ending ending;
	struct fixture *f = fixture_with_ending(&ending);

	f->on_recv = count_received;
	f->on_sent = count_sent;
	fixture_connect_pair(f);
	ck_assert_int_eq(evrdma_conn_migrate(f->client->conn, f->other), 0);
	endpoint_send(f->client, MESSAGES, 64);
	start_shutdown(f, PATIENCE_MS);
	fixture_run_until(f, is_over_for_all, PATIENCE_MS);
	ck_assert_uint_eq(seen.received, MESSAGES);
	ck_assert_uint_eq(seen.ok, MESSAGES);
	fixture_free(f);
}
END_TEST

/* --- endpoints ------------------------------------------------------------------------------ */

START_TEST(a_shutdown_waits_for_the_sends_of_an_endpoint)
{
	struct ending ending;
	struct fixture *f = fixture_with_ending(&ending);
	struct evrdma_base *base = f->base;
	struct member m;
	unsigned i;

	member_join(&m, f, 0, GROUP_A, 0);
	for (i = 0; i < 8; i++)
		ck_assert_int_eq(member_send(&m, 64, NULL), 0);
	ck_assert_int_eq(evrdma_base_shutdown(base, PATIENCE_MS, on_over, &ending), 0);
	ck_assert_int_eq(member_send(&m, 64, NULL), -ENOTCONN);
	fixture_run_until(f, is_over, PATIENCE_MS);
	ck_assert_uint_eq(m.closed, 1);
	ck_assert_uint_eq(m.groups_closed, 1);
	ck_assert_uint_eq(m.sent_ok, 8);
	f->base = f->other;
	f->other = NULL;
	fixture_free(f);
}
END_TEST

TCase *shutdown_case(void)
{
	TCase *tc = tcase_create("shutdown");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, what_was_sent_before_a_shutdown_arrives);
	tcase_add_test(tc, a_shutdown_cancels_what_is_not_established);
	tcase_add_test(tc, a_shutdown_rejects_requests_and_closes_listeners);
	tcase_add_loop_test(tc, a_request_stays_when_the_base_that_it_shall_move_to_ends, 0, 2);
	tcase_add_loop_test(tc, a_request_is_rejected_when_the_base_ends_that_it_moves_to, 0, 2);
	tcase_add_test(tc, a_base_that_is_shut_down_makes_no_objects_and_takes_calls);
	tcase_add_test(tc, a_close_ends_the_wait_of_a_shutdown);
	tcase_add_test(tc, a_shutdown_waits_for_a_connection_that_moved_here);
	if (testbed_has(TESTBED_DATAGRAMS | TESTBED_GROUPS))
		tcase_add_test(tc, a_shutdown_waits_for_the_sends_of_an_endpoint);
	return tc;
}
