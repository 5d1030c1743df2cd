/* Many connections on one loop, and a timer that must not notice them. */
#include "conform/suite.h"
#include "conform/world.h"

#include <stdlib.h>

/*
 * Both ends are in this process. siw's library makes no more than some 55 QPs in one; t/interop has
 * the ends in two.
 */
enum { MANY = 500, MANY_ON_IWARP = 24 };

struct crowd {
	unsigned wanted;
	unsigned passed; /* messages that came */
	struct side **sides;
	unsigned side_count;
	struct event *tick;
	uint64_t last_tick_us, longest_gap_us;
};

static unsigned crowd_size(void)
{
	return place.is_iwarp ? MANY_ON_IWARP : MANY;
}

static void on_event(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	struct crowd *crowd = side->world->tag;

	if (event == EVRDMA_CONN_CONNECTED) {
		crowd->sides[crowd->side_count++] = side;
		side_send(side, 1, 64);
	} else if (event != EVRDMA_CONN_CLOSED) {
		evrdma_conn_close(side->conn);
	}
}

static void on_recv(struct side *side, const struct evrdma_recv *recv)
{
	struct crowd *crowd = side->world->tag;

	ck_assert_uint_eq(recv->len, 64);
	crowd->passed++;
}

static bool all_passed(struct world *w)
{
	struct crowd *crowd = w->tag;

	return crowd->side_count == 2 * crowd->wanted && crowd->passed == 2 * crowd->wanted;
}

static bool none_live(struct world *w)
{
	return !w->live;
}

static void measure_gap(struct crowd *crowd)
{
	uint64_t now = place.now_us();
	uint64_t gap = now - crowd->last_tick_us;

	if (gap > crowd->longest_gap_us)
		crowd->longest_gap_us = gap;
	crowd->last_tick_us = now;
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	measure_gap(arg);
}

static void start_ticking(struct world *w, struct crowd *crowd)
{
	static const struct timeval every = { 0, 1000 };

	crowd->last_tick_us = place.now_us();
	crowd->tick = event_new(w->loop, -1, EV_PERSIST, on_tick, crowd);
	event_add(crowd->tick, &every);
}

static void connect_crowd(struct world *w, struct crowd *crowd)
{
	unsigned i;

	crowd->wanted = crowd_size();
	crowd->sides = calloc(2 * crowd->wanted, sizeof(*crowd->sides));
	w->tag = crowd;
	w->on_event = on_event;
	w->on_recv = on_recv;
	w->options.send_depth = 4;
	w->options.recv_depth = 4;
	w->options.connect_timeout_ms = 100000;
	world_listen(w);
	for (i = 0; i < crowd->wanted; i++)
		world_connect(w);
	world_run_until(w, all_passed, 110000);
}

/*
 * Closed in one turn, their release spreads over many: no stop of the timer is as long as a tenth
 * of it all, where one turn for it would be the whole. The 20 ms are for a machine so fast that a
 * stall of its own scheduler would count.
 */
START_TEST(many_connections_closed_in_one_turn_do_not_stop_a_timer)
{
	struct crowd crowd = { 0 };
	struct world *w = world_new();
	uint64_t began, took;
	unsigned i;

	connect_crowd(w, &crowd);
	start_ticking(w, &crowd);
	began = place.now_us();
	for (i = 0; i < crowd.side_count; i++)
		evrdma_conn_close(crowd.sides[i]->conn);
	world_run_until(w, none_live, 110000);
	measure_gap(&crowd);
	took = place.now_us() - began;
	event_free(crowd.tick);
	ck_assert_uint_eq(w->closed, 2 * crowd.wanted);
	ck_assert_msg(crowd.longest_gap_us <= took / 10 || crowd.longest_gap_us <= 20000,
		"closing took %lu us, and the timer stood for %lu us of it", (unsigned long)took,
		(unsigned long)crowd.longest_gap_us);
	world_free(w);
	free(crowd.sides);
}
END_TEST

TCase *scale_case(void)
{
	TCase *tc = tcase_create("scale");

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 240);
	tcase_add_test(tc, many_connections_closed_in_one_turn_do_not_stop_a_timer);
	return tc;
}
