/* The device goes away under everything that uses it, and comes back. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"

enum { PAIRS = 4 };

struct removal {
	unsigned lost; /* connections that were told ENODEV or saw their peer go */
	bool listener_lost, listener_closed;
	unsigned listens_again;
	bool dgram_ready, dgram_lost, dgram_closed;
	bool group_joined, group_lost, group_closed;
	struct evrdma_dgram *dgram;
	struct sockaddr_in group;
};

static void on_event(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	struct removal *r = endpoint->fixture->tag;

	if (event == EVRDMA_CONN_CONNECTED)
		endpoint_send(endpoint, 8, 64);
	if (event == EVRDMA_CONN_ERROR || event == EVRDMA_CONN_DISCONNECTED) {
		r->lost++;
		evrdma_conn_close(endpoint->conn);
	}
}

static void on_listener_event(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	struct fixture *f = arg;
	struct removal *r = f->tag;

	if (event == EVRDMA_LISTENER_ERROR) {
		ck_assert_int_eq(error->err, ENODEV);
		r->listener_lost = true;
		evrdma_listener_close(listener);
		f->listener = NULL;
	} else {
		r->listener_closed = true;
	}
}

static void on_group_event(struct evrdma_mcast *group, enum evrdma_mcast_event event,
	const struct evrdma_error *error, void *arg)
{
	struct removal *r = arg;

	r->group_joined |= event == EVRDMA_MCAST_JOINED;
	r->group_lost |= event == EVRDMA_MCAST_ERROR;
	r->group_closed |= event == EVRDMA_MCAST_CLOSED;
}

static void on_dgram_event(struct evrdma_dgram *dgram, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg)
{
	struct removal *r = arg;

	if (event == EVRDMA_DGRAM_READY) {
		r->dgram_ready = true;
		ck_assert_ptr_nonnull(evrdma_mcast_join(
			dgram, (struct sockaddr *)&r->group, 0, on_group_event, r));
	} else if (event == EVRDMA_DGRAM_ERROR) {
		ck_assert_int_eq(error->err, ENODEV);
		r->dgram_lost = true;
		evrdma_dgram_close(dgram);
	} else if (event == EVRDMA_DGRAM_CLOSED) {
		r->dgram_closed = true;
	}
}

static void open_dgram(struct fixture *f, struct removal *r)
{
	struct sockaddr_in src;

	fixture_address(&src, testbed.ip, 0);
	fixture_address(&r->group, "239.7.7.7", 0);
	r->dgram = evrdma_dgram_new(f->base, NULL);
	evrdma_dgram_setcb(r->dgram, NULL, on_dgram_event, r);
	ck_assert_int_eq(evrdma_dgram_open(r->dgram, (struct sockaddr *)&src, NULL), 0);
}

static bool has_groups(void)
{
	return testbed_has(TESTBED_DATAGRAMS | TESTBED_GROUPS);
}

static bool all_there(struct fixture *f)
{
	struct removal *r = f->tag;

	return f->established == 2 * PAIRS && (!has_groups() || r->group_joined);
}

static bool all_told_and_closed(struct fixture *f)
{
	struct removal *r = f->tag;

	return !f->live && r->lost == 2 * PAIRS && r->listener_lost && r->listener_closed &&
	       (!has_groups() || (r->dgram_lost && r->dgram_closed && r->group_closed));
}

static bool device_is_removed(struct fixture *f)
{
	return testbed.device_is_removed();
}

static void set_up(struct fixture *f, struct removal *r)
{
	unsigned i;

	f->tag = r;
	f->on_event = on_event;
	fixture_listen(f);
	evrdma_listener_set_event_cb(f->listener, on_listener_event);
	for (i = 0; i < PAIRS; i++)
		fixture_connect(f);
	if (has_groups())
		open_dgram(f, r);
	fixture_run_until(f, all_there, 20000);
}

static bool pair_is_up(struct fixture *f)
{
	return f->established == 2 * PAIRS + 2;
}

static void use_again(struct fixture *f)
{
	fixture_listen(f);
	fixture_connect(f);
	fixture_run_until(f, pair_is_up, 20000);
}

START_TEST(every_object_is_told_of_the_removal_of_its_device)
{
	struct removal r = { 0 };
	struct fixture *f = fixture_new();

	set_up(f, &r);
	testbed.remove_device();
	fixture_run_until(f, all_told_and_closed, 20000);
	if (testbed.own_core) {
		fixture_run_until(f, device_is_removed, 60000);
		testbed.add_device();
		use_again(f);
	}
	fixture_free(f);
}
END_TEST

static void on_coming_back(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	struct fixture *f = arg;
	struct removal *r = f->tag;

	ck_assert_int_eq(!error, event != EVRDMA_LISTENER_ERROR);
	if (event == EVRDMA_LISTENER_ERROR)
		ck_assert_int_eq(error->err, ENODEV);
	r->listener_lost |= event == EVRDMA_LISTENER_ERROR;
	r->listener_closed |= event == EVRDMA_LISTENER_CLOSED;
	r->listens_again += event == EVRDMA_LISTENER_LISTENING;
}

static void accept_it(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	endpoint_accept(fixture_endpoint_new(arg, false), request);
}

static void listen_for_ever(struct fixture *f)
{
	struct evrdma_listener_options options;
	struct sockaddr_in sin;

	evrdma_listener_options_init(&options);
	options.relisten_ms = 20;
	fixture_address(&sin, testbed.ip, 0);
	f->listener = evrdma_listener_new(f->base, (struct sockaddr *)&sin, &options, accept_it, f);
	ck_assert_ptr_nonnull(f->listener);
	evrdma_listener_set_event_cb(f->listener, on_coming_back);
}

static bool listener_is_lost(struct fixture *f)
{
	return ((struct removal *)f->tag)->listener_lost && !f->live;
}

static bool listener_is_closed(struct fixture *f)
{
	return ((struct removal *)f->tag)->listener_closed;
}

static bool listens_again(struct fixture *f)
{
	return ((struct removal *)f->tag)->listens_again;
}

static bool first_pair_is_up(struct fixture *f)
{
	return f->established == 2;
}

static bool second_pair_is_up(struct fixture *f)
{
	return f->established == 4;
}

static void remove_under_listener(struct fixture *f, struct removal *r)
{
	f->tag = r;
	f->on_event = on_event;
	listen_for_ever(f);
	fixture_connect(f);
	fixture_run_until(f, first_pair_is_up, 20000);
	testbed.remove_device();
	fixture_run_until(f, listener_is_lost, 20000);
	fixture_run_until(f, device_is_removed, 60000);
}

START_TEST(a_listener_comes_back_with_its_device_when_it_is_asked_to)
{
	struct removal r = { 0 };
	struct fixture *f = fixture_new();
	uint16_t port;

	remove_under_listener(f, &r);
	port = evrdma_listener_get_port(f->listener);
	ck_assert_uint_eq(r.listens_again, 0);
	ck_assert_ptr_null(evrdma_listener_get_cm_id(f->listener));
	testbed.add_device();
	fixture_run_until(f, listens_again, 20000);
	ck_assert_uint_eq(evrdma_listener_get_port(f->listener), port);
	fixture_connect(f);
	fixture_run_until(f, second_pair_is_up, 20000);
	ck_assert_uint_eq(r.listens_again, 1);
	fixture_free(f);
}
END_TEST

START_TEST(a_listener_can_be_closed_while_its_device_is_away)
{
	struct removal r = { 0 };
	struct fixture *f = fixture_new();

	remove_under_listener(f, &r);
	evrdma_listener_close(f->listener);
	fixture_run_until(f, listener_is_closed, 20000);
	testbed.add_device();
	fixture_run_a_little(f);
	ck_assert_uint_eq(r.listens_again, 0);
	fixture_free(f);
}
END_TEST

static bool none_live(struct fixture *f)
{
	return f->closed && !f->live;
}

static bool two_pairs_were_up(struct fixture *f)
{
	return f->established == 4;
}

static void on_event_close(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	if (event != EVRDMA_CONN_CLOSED && event != EVRDMA_CONN_WRITABLE)
		evrdma_conn_close(endpoint->conn);
}

static void listen_on_all(struct fixture *f)
{
	evrdma_listener_close(f->listener);
	fixture_listen_on(f, "0.0.0.0");
}

/* Nobody is told of it: a device that is not used must simply not be held. */
START_TEST(an_unused_device_can_leave_a_listening_process)
{
	struct fixture *f = fixture_new();

	f->on_event = on_event_close;
	listen_on_all(f);
	fixture_connect(f);
	fixture_run_until(f, none_live, 20000);
	testbed.remove_device();
	fixture_run_until(f, device_is_removed, 60000);
	testbed.add_device();
	fixture_connect(f);
	fixture_run_until(f, two_pairs_were_up, 20000);
	fixture_run_until(f, none_live, 20000);
	fixture_free(f);
}
END_TEST

/* --- requests that nobody has answered -------------------------------------------------------- */

struct asked {
	struct evrdma_request *request;
	bool waits; /* at a listener that is disabled */
	bool alone; /* on its base: all that hear of the removal have moved to another */
	unsigned removals;
};

static void keep_second(struct fixture *f, struct evrdma_request *request)
{
	struct asked *asked = f->tag;

	if (!f->server)
		endpoint_accept(fixture_endpoint_new(f, false), request);
	else
		asked->request = request;
}

static bool is_asked(struct fixture *f)
{
	struct evrdma_listener_stats stats;

	evrdma_listener_get_stats(f->listener, &stats);
	return stats.pending == 1 && stats.requests == 2;
}

static void leave_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	if (event == EVRDMA_CONN_ERROR || event == EVRDMA_CONN_DISCONNECTED)
		evrdma_conn_close(endpoint->conn);
}

/* The listener's address is no device's; the first connection tells the base. */
/* Some drivers let the device go at once, before anybody has heard of it. */
static bool request_is_gone(struct fixture *f)
{
	struct evrdma_listener_stats stats;

	evrdma_listener_get_stats(f->listener, &stats);
	return device_is_removed(f) && !stats.pending;
}

static void move_all(struct fixture *f, struct endpoint *first)
{
	fixture_add_other(f);
	ck_assert_int_eq(evrdma_conn_migrate(first->conn, f->other), 0);
	ck_assert_int_eq(evrdma_conn_migrate(f->server->conn, f->other), 0);
	ck_assert_int_eq(evrdma_conn_migrate(f->client->conn, f->other), 0);
}

START_TEST(a_request_that_nobody_has_answered_does_not_hold_its_device)
{
	struct asked asked = { .waits = _i == 1, .alone = _i == 2 };
	struct fixture *f = fixture_new();
	struct endpoint *first, *late;

	f->tag = &asked;
	f->on_request = keep_second;
	f->on_event = leave_open;
	fixture_listen_on(f, "0.0.0.0");
	first = fixture_connect(f);
	fixture_run_until(f, first_pair_is_up, 20000);
	if (asked.waits)
		evrdma_listener_disable(f->listener);
	fixture_connect(f);
	fixture_run_until(f, is_asked, 20000);
	if (asked.alone)
		move_all(f, first);
	testbed.remove_device();
	/* On iWARP the client waits for an answer that cannot come, and holds its device too. */
	fixture_run_until(f, request_is_gone, 60000);
	if (!asked.waits) {
		late = fixture_endpoint_new(f, false);
		ck_assert_int_eq(evrdma_conn_accept(late->conn, asked.request), -ENODEV);
		ck_assert_int_eq(evrdma_request_reject(asked.request, NULL, 0), 0);
		evrdma_conn_close(late->conn);
	}
	fixture_run_until(f, none_live, 20000);
	testbed.add_device();
	fixture_free(f);
}
END_TEST

/* --- while connects are under way ------------------------------------------------------------ */

/* siw's library makes no more than 55 QPs in a process with a CQ as small as the usual. */
enum { UNDER_WAY = 50, UNDER_WAY_ON_IWARP = 20 };

/* How many ends are up when the device goes. */
static const unsigned ends_up[] = { 0, 1, 10, 30 };

struct rush {
	unsigned told, wanted_up, begun;
	bool listener_lost;
	struct evrdma_request *late;
};

static void on_device(struct evrdma_base *base, enum evrdma_device_event event, const char *device,
	int port_num, void *arg)
{
	struct rush *rush = arg;

	rush->told += event == EVRDMA_DEVICE_REMOVED;
}

static void on_rush_listener(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	struct fixture *f = arg;
	struct rush *rush = f->tag;

	if (event == EVRDMA_LISTENER_ERROR) {
		rush->listener_lost = true;
		evrdma_listener_close(listener);
		f->listener = NULL;
	}
}

/* In small turns, between which others have theirs. */
static struct fixture *rushing_fixture(struct rush *rush)
{
	struct evrdma_base_options options;
	struct fixture *f = fixture_new();

	evrdma_base_options_init(&options);
	options.turn_budget_us = 1;
	fixture_replace_base(f, &options);
	f->tag = rush;
	f->options.send_depth = 4;
	f->options.recv_depth = 4;
	evrdma_base_set_device_cb(f->base, on_device, rush);
	fixture_listen(f);
	evrdma_listener_set_event_cb(f->listener, on_rush_listener);
	return f;
}

static void rush_in(struct fixture *f, struct rush *rush)
{
	rush->begun = testbed.is_iwarp ? UNDER_WAY_ON_IWARP : UNDER_WAY;
	while (f->live < rush->begun)
		fixture_connect(f);
}

static bool enough_are_up(struct fixture *f)
{
	const struct rush *rush = f->tag;

	return f->established >= rush->wanted_up && f->live > rush->begun;
}

static bool the_rush_is_over(struct fixture *f)
{
	return !f->live && ((struct rush *)f->tag)->listener_lost;
}

static void use_once_more(struct fixture *f)
{
	f->established = 0;
	fixture_listen(f);
	fixture_connect(f);
	fixture_run_until(f, first_pair_is_up, 20000);
}

static void end_rush(struct fixture *f)
{
	if (testbed.own_core) {
		fixture_run_until(f, device_is_removed, 60000);
		testbed.add_device();
		use_once_more(f);
	}
	ck_assert_uint_eq(((struct rush *)f->tag)->told, 1);
	fixture_free(f);
}

START_TEST(a_removal_while_connects_are_under_way_is_told_once)
{
	struct rush rush = { .wanted_up = ends_up[_i] };
	struct fixture *f = rushing_fixture(&rush);

	rush_in(f, &rush);
	fixture_run_until(f, enough_are_up, 20000);
	testbed.remove_device();
	fixture_run_until(f, the_rush_is_over, 40000);
	end_rush(f);
}
END_TEST

static void keep_the_second(struct fixture *f, struct evrdma_request *request)
{
	struct rush *rush = f->tag;

	if (f->established)
		rush->late = request;
	else
		endpoint_accept(fixture_endpoint_new(f, false), request);
}

static void accept_the_late_one(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	struct rush *rush = endpoint->fixture->tag;
	struct evrdma_request *late = rush->late;
	struct endpoint *fresh;

	endpoint_close_if_down(endpoint, event);
	if (!endpoint->down || !late)
		return;
	rush->late = NULL;
	fresh = fixture_endpoint_new(endpoint->fixture, false);
	ck_assert_int_eq(evrdma_conn_accept(fresh->conn, late), -ENODEV);
	ck_assert_int_eq(evrdma_request_reject(late, NULL, 0), 0);
	evrdma_conn_close(fresh->conn);
}

static bool one_is_late(struct fixture *f)
{
	return ((struct rush *)f->tag)->late;
}

/* Between the first who is told that the device goes, and the last. */
START_TEST(a_device_that_goes_is_not_opened_for_a_late_accept)
{
	struct rush rush = { 0 };
	struct fixture *f = rushing_fixture(&rush);

	f->on_request = keep_the_second;
	f->on_event = accept_the_late_one;
	fixture_connect_pair(f);
	fixture_connect(f);
	fixture_run_until(f, one_is_late, 20000);
	testbed.remove_device();
	fixture_run_until(f, the_rush_is_over, 40000);
	ck_assert_ptr_null(rush.late);
	f->on_request = NULL;
	end_rush(f);
}
END_TEST

TCase *removal_case(void)
{
	TCase *tc = tcase_create("removal");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, every_object_is_told_of_the_removal_of_its_device);
	tcase_add_loop_test(tc, a_removal_while_connects_are_under_way_is_told_once, 0,
		sizeof(ends_up) / sizeof(ends_up[0]));
	tcase_add_test(tc, a_device_that_goes_is_not_opened_for_a_late_accept);
	/* The stock CM never closes a device. */
	if (testbed.own_core) {
		tcase_add_test(tc, a_listener_comes_back_with_its_device_when_it_is_asked_to);
		tcase_add_test(tc, a_listener_can_be_closed_while_its_device_is_away);
		tcase_add_test(tc, an_unused_device_can_leave_a_listening_process);
		tcase_add_loop_test(tc,
			a_request_that_nobody_has_answered_does_not_hold_its_device, 0, 3);
	}
	return tc;
}
