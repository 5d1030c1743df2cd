/* The device goes away under everything that uses it, and comes back. */
#include "conform/suite.h"
#include "conform/world.h"

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
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	struct removal *r = side->world->tag;

	if (event == EVRDMA_CONN_CONNECTED)
		side_send(side, 8, 64);
	if (event == EVRDMA_CONN_ERROR || event == EVRDMA_CONN_DISCONNECTED) {
		r->lost++;
		evrdma_conn_close(side->conn);
	}
}

static void on_listener_event(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	struct world *w = arg;
	struct removal *r = w->tag;

	if (event == EVRDMA_LISTENER_ERROR) {
		ck_assert_int_eq(error->err, ENODEV);
		r->listener_lost = true;
		evrdma_listener_close(listener);
		w->listener = NULL;
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

static void open_dgram(struct world *w, struct removal *r)
{
	struct sockaddr_in src;

	world_address(&src, place.ip, 0);
	world_address(&r->group, "239.7.7.7", 0);
	r->dgram = evrdma_dgram_new(w->base, NULL);
	evrdma_dgram_setcb(r->dgram, NULL, on_dgram_event, r);
	ck_assert_int_eq(evrdma_dgram_open(r->dgram, (struct sockaddr *)&src, NULL), 0);
}

static bool has_groups(void)
{
	return place_has(PLACE_DATAGRAMS | PLACE_GROUPS);
}

static bool all_there(struct world *w)
{
	struct removal *r = w->tag;

	return w->established == 2 * PAIRS && (!has_groups() || r->group_joined);
}

static bool all_told_and_closed(struct world *w)
{
	struct removal *r = w->tag;

	return !w->live && r->lost == 2 * PAIRS && r->listener_lost && r->listener_closed &&
		(!has_groups() || (r->dgram_lost && r->dgram_closed && r->group_closed));
}

static bool device_is_removed(struct world *w)
{
	return place.device_is_removed();
}

static void set_up(struct world *w, struct removal *r)
{
	unsigned i;

	w->tag = r;
	w->on_event = on_event;
	world_listen(w);
	evrdma_listener_set_event_cb(w->listener, on_listener_event);
	for (i = 0; i < PAIRS; i++)
		world_connect(w);
	if (has_groups())
		open_dgram(w, r);
	world_run_until(w, all_there, 20000);
}

static bool pair_is_up(struct world *w)
{
	return w->established == 2 * PAIRS + 2;
}

static void use_again(struct world *w)
{
	world_listen(w);
	world_connect(w);
	world_run_until(w, pair_is_up, 20000);
}

START_TEST(every_object_is_told_of_the_removal_of_its_device)
{
	struct removal r = { 0 };
	struct world *w = world_new();

	set_up(w, &r);
	place.remove_device();
	world_run_until(w, all_told_and_closed, 20000);
	if (place.own_core) {
		world_run_until(w, device_is_removed, 5000);
		place.add_device();
		use_again(w);
	}
	world_free(w);
}
END_TEST

static void on_coming_back(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	struct world *w = arg;
	struct removal *r = w->tag;

	ck_assert_int_eq(!error, event != EVRDMA_LISTENER_ERROR);
	if (event == EVRDMA_LISTENER_ERROR)
		ck_assert_int_eq(error->err, ENODEV);
	r->listener_lost |= event == EVRDMA_LISTENER_ERROR;
	r->listener_closed |= event == EVRDMA_LISTENER_CLOSED;
	r->listens_again += event == EVRDMA_LISTENER_LISTENING;
}

static void accept_it(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	side_accept(world_side_new(arg, false), request);
}

static void listen_for_ever(struct world *w)
{
	struct evrdma_listener_options options;
	struct sockaddr_in sin;

	evrdma_listener_options_init(&options);
	options.relisten_ms = 20;
	world_address(&sin, place.ip, 0);
	w->listener = evrdma_listener_new(
		w->base, (struct sockaddr *)&sin, &options, accept_it, w);
	ck_assert_ptr_nonnull(w->listener);
	evrdma_listener_set_event_cb(w->listener, on_coming_back);
}

static bool listener_is_lost(struct world *w)
{
	return ((struct removal *)w->tag)->listener_lost && !w->live;
}

static bool listener_is_closed(struct world *w)
{
	return ((struct removal *)w->tag)->listener_closed;
}

static bool listens_again(struct world *w)
{
	return ((struct removal *)w->tag)->listens_again;
}

static bool first_pair_is_up(struct world *w)
{
	return w->established == 2;
}

static bool second_pair_is_up(struct world *w)
{
	return w->established == 4;
}

static void remove_under_listener(struct world *w, struct removal *r)
{
	w->tag = r;
	w->on_event = on_event;
	listen_for_ever(w);
	world_connect(w);
	world_run_until(w, first_pair_is_up, 20000);
	place.remove_device();
	world_run_until(w, listener_is_lost, 20000);
	world_run_until(w, device_is_removed, 5000);
}

START_TEST(a_listener_comes_back_with_its_device_when_it_is_asked_to)
{
	struct removal r = { 0 };
	struct world *w = world_new();
	uint16_t port;

	remove_under_listener(w, &r);
	port = evrdma_listener_get_port(w->listener);
	ck_assert_uint_eq(r.listens_again, 0);
	ck_assert_ptr_null(evrdma_listener_get_cm_id(w->listener));
	place.add_device();
	world_run_until(w, listens_again, 20000);
	ck_assert_uint_eq(evrdma_listener_get_port(w->listener), port);
	world_connect(w);
	world_run_until(w, second_pair_is_up, 20000);
	ck_assert_uint_eq(r.listens_again, 1);
	world_free(w);
}
END_TEST

START_TEST(a_listener_can_be_closed_while_its_device_is_away)
{
	struct removal r = { 0 };
	struct world *w = world_new();

	remove_under_listener(w, &r);
	evrdma_listener_close(w->listener);
	world_run_until(w, listener_is_closed, 20000);
	place.add_device();
	world_run_a_little(w);
	ck_assert_uint_eq(r.listens_again, 0);
	world_free(w);
}
END_TEST

static bool none_live(struct world *w)
{
	return w->closed && !w->live;
}

static bool two_pairs_were_up(struct world *w)
{
	return w->established == 4;
}

static void on_event_close(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	if (event != EVRDMA_CONN_CLOSED && event != EVRDMA_CONN_WRITABLE)
		evrdma_conn_close(side->conn);
}

static void listen_on_all(struct world *w)
{
	evrdma_listener_close(w->listener);
	world_listen_on(w, "0.0.0.0");
}

/* Nobody is told of it: a device that is not used must simply not be held. */
START_TEST(an_unused_device_can_leave_a_listening_process)
{
	struct world *w = world_new();

	w->on_event = on_event_close;
	listen_on_all(w);
	world_connect(w);
	world_run_until(w, none_live, 20000);
	place.remove_device();
	world_run_until(w, device_is_removed, 5000);
	place.add_device();
	world_connect(w);
	world_run_until(w, two_pairs_were_up, 20000);
	world_run_until(w, none_live, 20000);
	world_free(w);
}
END_TEST

/* --- while connects are under way ------------------------------------------------------------ */

/* siw's library makes no more than some 55 QPs in a process. */
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
	struct world *w = arg;
	struct rush *rush = w->tag;

	if (event == EVRDMA_LISTENER_ERROR) {
		rush->listener_lost = true;
		evrdma_listener_close(listener);
		w->listener = NULL;
	}
}

/* In small turns, between which others have theirs. */
static struct world *rushing_world(struct rush *rush)
{
	struct evrdma_base_options options;
	struct world *w = world_new();

	evrdma_base_options_init(&options);
	options.turn_budget_us = 1;
	world_replace_base(w, &options);
	w->tag = rush;
	w->options.send_depth = 4;
	w->options.recv_depth = 4;
	evrdma_base_set_device_cb(w->base, on_device, rush);
	world_listen(w);
	evrdma_listener_set_event_cb(w->listener, on_rush_listener);
	return w;
}

static void rush_in(struct world *w, struct rush *rush)
{
	rush->begun = place.is_iwarp ? UNDER_WAY_ON_IWARP : UNDER_WAY;
	while (w->live < rush->begun)
		world_connect(w);
}

static bool enough_are_up(struct world *w)
{
	const struct rush *rush = w->tag;

	return w->established >= rush->wanted_up && w->live > rush->begun;
}

static bool the_rush_is_over(struct world *w)
{
	return !w->live && ((struct rush *)w->tag)->listener_lost;
}

static void use_once_more(struct world *w)
{
	w->established = 0;
	world_listen(w);
	world_connect(w);
	world_run_until(w, first_pair_is_up, 20000);
}

static void end_rush(struct world *w)
{
	if (place.own_core) {
		world_run_until(w, device_is_removed, 5000);
		place.add_device();
		use_once_more(w);
	}
	ck_assert_uint_eq(((struct rush *)w->tag)->told, 1);
	world_free(w);
}

START_TEST(a_removal_while_connects_are_under_way_is_told_once)
{
	struct rush rush = { .wanted_up = ends_up[_i] };
	struct world *w = rushing_world(&rush);

	rush_in(w, &rush);
	world_run_until(w, enough_are_up, 20000);
	place.remove_device();
	world_run_until(w, the_rush_is_over, 40000);
	end_rush(w);
}
END_TEST

static void keep_the_second(struct world *w, struct evrdma_request *request)
{
	struct rush *rush = w->tag;

	if (w->established)
		rush->late = request;
	else
		side_accept(world_side_new(w, false), request);
}

static void accept_the_late_one(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	struct rush *rush = side->world->tag;
	struct evrdma_request *late = rush->late;

	side_close_if_down(side, event);
	if (!side->down || !late)
		return;
	rush->late = NULL;
	side_accept(world_side_new(side->world, false), late);
}

static bool one_is_late(struct world *w)
{
	return ((struct rush *)w->tag)->late;
}

/* Between the first who is told that the device goes, and the last. */
START_TEST(a_device_that_goes_is_not_opened_for_a_late_accept)
{
	struct rush rush = { 0 };
	struct world *w = rushing_world(&rush);

	w->on_request = keep_the_second;
	w->on_event = accept_the_late_one;
	world_connect_pair(w);
	world_connect(w);
	world_run_until(w, one_is_late, 20000);
	place.remove_device();
	world_run_until(w, the_rush_is_over, 40000);
	ck_assert_ptr_null(rush.late);
	w->on_request = NULL;
	end_rush(w);
}
END_TEST

TCase *removal_case(void)
{
	TCase *tc = tcase_create("removal");

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, every_object_is_told_of_the_removal_of_its_device);
	tcase_add_loop_test(tc, a_removal_while_connects_are_under_way_is_told_once, 0,
		sizeof(ends_up) / sizeof(ends_up[0]));
	tcase_add_test(tc, a_device_that_goes_is_not_opened_for_a_late_accept);
	/* The stock CM never closes a device. */
	if (place.own_core) {
		tcase_add_test(tc, a_listener_comes_back_with_its_device_when_it_is_asked_to);
		tcase_add_test(tc, a_listener_can_be_closed_while_its_device_is_away);
		tcase_add_test(tc, an_unused_device_can_leave_a_listening_process);
	}
	return tc;
}
