/* The orderly end of a base: what is waited for, what is not, and who hears of it. */
#include "conform/member.h"
#include "conform/suite.h"
#include "conform/world.h"

#include <errno.h>
#include <string.h>

enum { MESSAGES = 32, PATIENCE_MS = 20000 };

/* The second base of the world is the one that ends. */
struct ending {
	unsigned over, calls;
	unsigned listener_closed;
	struct evrdma_request *kept;
};

static void on_over(struct evrdma_base *base, void *arg)
{
	((struct ending *)arg)->over++;
}

static bool is_over(struct world *w)
{
	return ((struct ending *)w->tag)->over;
}

static bool is_over_for_all(struct world *w)
{
	return is_over(w) && world_none_live(w);
}

static struct {
	unsigned received, ok, errors;
} seen;

static struct world *world_with_ending(struct ending *ending)
{
	struct world *w = world_new();

	memset(&seen, 0, sizeof(seen));
	*ending = (struct ending){ 0 };
	w->tag = ending;
	world_add_other(w);
	return w;
}

static void start_shutdown(struct world *w, int timeout_ms)
{
	w->in_call = true;
	ck_assert_int_eq(evrdma_base_shutdown(w->other, timeout_ms, on_over, w->tag), 0);
	w->in_call = false;
	w->other = NULL;
}

static void connect_from_other(struct world *w)
{
	struct side *side = world_side_new_on(w, w->other, true);
	struct sockaddr_in sin;

	world_address(&sin, place.ip, evrdma_listener_get_port(w->listener));
	ck_assert_int_eq(evrdma_conn_connect(side->conn, NULL, (struct sockaddr *)&sin), 0);
}

static bool both_up(struct world *w)
{
	return w->established == 2;
}

/* --- connections ---------------------------------------------------------------------------- */

static void count_received(struct side *side, const struct evrdma_recv *recv)
{
	seen.received += !recv->err;
}

static void count_sent(struct side *side, const struct evrdma_error *error)
{
	seen.ok += !error;
}

static void count_errors(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	seen.errors += error != NULL;
	/* Of the base that ends, nobody closes a connection. */
	if (!side->is_client)
		side_close_if_down(side, event);
}

START_TEST(what_was_sent_before_a_shutdown_arrives)
{
	struct ending ending;
	struct world *w = world_with_ending(&ending);

	w->on_recv = count_received;
	w->on_sent = count_sent;
	w->on_event = count_errors;
	world_listen(w);
	connect_from_other(w);
	world_run_until(w, both_up, PATIENCE_MS);
	side_send(w->client, MESSAGES, 64);
	start_shutdown(w, PATIENCE_MS);
	world_run_until(w, is_over_for_all, PATIENCE_MS);
	ck_assert_uint_eq(seen.received, MESSAGES);
	ck_assert_uint_eq(seen.ok, MESSAGES);
	ck_assert_uint_eq(seen.errors, 0);
	ck_assert_uint_eq(ending.over, 1);
	world_free(w);
}
END_TEST

static void keep_request(struct world *w, struct evrdma_request *request)
{
	struct ending *ending = w->tag;

	ending->calls++;
	ending->kept = request;
}

static bool request_is_there(struct world *w)
{
	return ((struct ending *)w->tag)->calls;
}

START_TEST(a_shutdown_cancels_what_is_not_established)
{
	struct ending ending;
	struct world *w = world_with_ending(&ending);

	w->on_request = keep_request;
	w->on_event = count_errors;
	world_listen(w);
	connect_from_other(w);
	world_side_new_on(w, w->other, true);
	world_run_until(w, request_is_there, PATIENCE_MS);
	start_shutdown(w, PATIENCE_MS);
	/* There the kernel keeps what asks until it is answered. */
	if (place.is_iwarp)
		ck_assert_int_eq(evrdma_request_reject(ending.kept, NULL, 0), 0);
	world_run_until(w, is_over_for_all, PATIENCE_MS);
	ck_assert_uint_eq(seen.errors, 0);
	world_free(w);
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

static void listen_on_other(struct world *w)
{
	struct sockaddr_in sin;

	world_address(&sin, place.ip, 0);
	w->listener =
		evrdma_listener_new(w->other, (struct sockaddr *)&sin, NULL, on_request, w->tag);
	ck_assert_ptr_nonnull(w->listener);
	evrdma_listener_set_event_cb(w->listener, on_listener_event);
}

START_TEST(a_shutdown_rejects_requests_and_closes_listeners)
{
	struct ending ending;
	struct world *w = world_with_ending(&ending);

	w->on_event = count_errors;
	listen_on_other(w);
	world_connect(w);
	world_run_until(w, request_is_there, PATIENCE_MS);
	start_shutdown(w, PATIENCE_MS);
	world_run_until(w, is_over, PATIENCE_MS);
	ck_assert_uint_eq(ending.listener_closed, 1);
	while (!w->client->down)
		event_base_loop(w->loop, EVLOOP_ONCE);
	ck_assert_int_eq(w->client->error, ECONNREFUSED);
	world_free(w);
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
	struct world *w = world_with_ending(&ending);
	struct evrdma_base *base = w->other;

	ck_assert_int_eq(evrdma_base_shutdown(base, -1, on_over, &ending), -EINVAL);
	start_shutdown(w, PATIENCE_MS);
	ck_assert_int_eq(evrdma_base_shutdown(base, 0, NULL, NULL), -EALREADY);
	ck_assert(!evrdma_conn_new(base, NULL) && errno == EPIPE);
	ck_assert_int_eq(evrdma_base_run_in_loop(base, count_call, &ending), 0);
	ck_assert_uint_eq(ending.over, 0);
	world_run_until(w, is_over, PATIENCE_MS);
	ck_assert_uint_eq(ending.calls, 1);
	world_free(w);
}
END_TEST

static void wrong_callback(struct evrdma_base *base, void *arg)
{
	ck_abort_msg("the callback of the shutdown should have come");
}

START_TEST(a_close_ends_the_wait_of_a_shutdown)
{
	struct ending ending;
	struct world *w = world_with_ending(&ending);
	struct evrdma_base *base = w->other;

	w->on_event = count_errors;
	world_listen(w);
	connect_from_other(w);
	world_run_until(w, both_up, PATIENCE_MS);
	start_shutdown(w, PATIENCE_MS);
	evrdma_base_close(base, wrong_callback, NULL);
	ck_assert_int_eq(evrdma_base_shutdown(base, 0, NULL, NULL), -EALREADY);
	world_run_until(w, is_over, PATIENCE_MS);
	ck_assert_uint_eq(ending.over, 1);
	world_run_until(w, world_none_live, PATIENCE_MS);
	world_free(w);
}
END_TEST

START_TEST(a_shutdown_waits_for_a_connection_that_moved_here)
{
	struct ending ending;
	struct world *w = world_with_ending(&ending);

	w->on_recv = count_received;
	w->on_sent = count_sent;
	world_connect_pair(w);
	ck_assert_int_eq(evrdma_conn_migrate(w->client->conn, w->other), 0);
	side_send(w->client, MESSAGES, 64);
	start_shutdown(w, PATIENCE_MS);
	world_run_until(w, is_over_for_all, PATIENCE_MS);
	ck_assert_uint_eq(seen.received, MESSAGES);
	ck_assert_uint_eq(seen.ok, MESSAGES);
	world_free(w);
}
END_TEST

/* --- endpoints ------------------------------------------------------------------------------ */

START_TEST(a_shutdown_waits_for_the_sends_of_an_endpoint)
{
	struct ending ending;
	struct world *w = world_with_ending(&ending);
	struct evrdma_base *base = w->base;
	struct member m;
	unsigned i;

	member_join(&m, w, 0, GROUP_A, 0);
	for (i = 0; i < 8; i++)
		ck_assert_int_eq(member_send(&m, 64, NULL), 0);
	ck_assert_int_eq(evrdma_base_shutdown(base, PATIENCE_MS, on_over, &ending), 0);
	ck_assert_int_eq(member_send(&m, 64, NULL), -ENOTCONN);
	world_run_until(w, is_over, PATIENCE_MS);
	ck_assert_uint_eq(m.closed, 1);
	ck_assert_uint_eq(m.groups_closed, 1);
	ck_assert_uint_eq(m.sent_ok, 8);
	w->base = w->other;
	w->other = NULL;
	world_free(w);
}
END_TEST

TCase *shutdown_case(void)
{
	TCase *tc = tcase_create("shutdown");

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, what_was_sent_before_a_shutdown_arrives);
	tcase_add_test(tc, a_shutdown_cancels_what_is_not_established);
	tcase_add_test(tc, a_shutdown_rejects_requests_and_closes_listeners);
	tcase_add_test(tc, a_base_that_is_shut_down_makes_no_objects_and_takes_calls);
	tcase_add_test(tc, a_close_ends_the_wait_of_a_shutdown);
	tcase_add_test(tc, a_shutdown_waits_for_a_connection_that_moved_here);
	if (place_has(PLACE_DATAGRAMS | PLACE_GROUPS))
		tcase_add_test(tc, a_shutdown_waits_for_the_sends_of_an_endpoint);
	return tc;
}
