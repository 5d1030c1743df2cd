/* Many connections on one loop, and a timer that must not notice them. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <stdlib.h>

/*
 * Both ends are in this process. siw's library makes no more than 55 QPs in one with a CQ as small
 * as the usual; t/interop has the ends in two.
 */
enum { MANY = 500, MANY_ON_IWARP = 24, STALL_US = 20000 };

struct crowd {
	unsigned wanted;
	unsigned passed; /* messages that came */
	struct endpoint **endpoints;
	unsigned endpoint_count;
	struct event *tick;
	struct fixture *fixture;
	uint64_t last_tick_us;
	unsigned closed_at_tick;
	unsigned closed_in_a_stall; /* of the timer, at most */
};

static unsigned crowd_size(void)
{
	return testbed.is_iwarp ? MANY_ON_IWARP : MANY;
}

static void on_event(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	struct crowd *crowd = endpoint->fixture->tag;

	if (event == EVRDMA_CONN_CONNECTED) {
		crowd->endpoints[crowd->endpoint_count++] = endpoint;
		endpoint_send(endpoint, 1, 64);
	} else if (event != EVRDMA_CONN_CLOSED) {
		evrdma_conn_close(endpoint->conn);
	}
}

static void on_recv(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	struct crowd *crowd = endpoint->fixture->tag;

	ck_assert_uint_eq(recv->len, 64);
	crowd->passed++;
}

static bool all_passed(struct fixture *f)
{
	struct crowd *crowd = f->tag;

	return crowd->endpoint_count == 2 * crowd->wanted && crowd->passed == 2 * crowd->wanted;
}

static bool none_live(struct fixture *f)
{
	return !f->live;
}

/* Of a stop of the timer, see below. */
static void count_closed(struct crowd *crowd)
{
	uint64_t now = testbed.now_us();
	unsigned closed = crowd->fixture->closed - crowd->closed_at_tick;

	if (now - crowd->last_tick_us > STALL_US && closed > crowd->closed_in_a_stall)
		crowd->closed_in_a_stall = closed;
	crowd->last_tick_us = now;
	crowd->closed_at_tick = crowd->fixture->closed;
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	count_closed(arg);
}

static void start_ticking(struct fixture *f, struct crowd *crowd)
{
	static const struct timeval every = { 0, 1000 };

	crowd->fixture = f;
	crowd->last_tick_us = testbed.now_us();
	crowd->closed_at_tick = f->closed;
	crowd->tick = event_new(f->loop, -1, EV_PERSIST, on_tick, crowd);
	event_add(crowd->tick, &every);
}

static void connect_crowd(struct fixture *f, struct crowd *crowd)
{
	unsigned i;

	crowd->wanted = crowd_size();
	crowd->endpoints = calloc(2 * crowd->wanted, sizeof(*crowd->endpoints));
	f->tag = crowd;
	f->on_event = on_event;
	f->on_recv = on_recv;
	f->options.send_depth = 4;
	f->options.recv_depth = 4;
	f->options.connect_timeout_ms = 100000;
	fixture_listen(f);
	for (i = 0; i < crowd->wanted; i++)
		fixture_connect(f);
	fixture_run_until(f, all_passed, 110000);
}

/*
 * Closed in one turn, their release spreads over many: no stop of the timer has half of them in it.
 * A stop alone may be the machine's own, and many that are released between two ticks were quick.
 */
START_TEST(many_connections_closed_in_one_turn_do_not_stop_a_timer)
{
	struct crowd crowd = { 0 };
	struct fixture *f = fixture_new();
	unsigned i;

	connect_crowd(f, &crowd);
	start_ticking(f, &crowd);
	for (i = 0; i < crowd.endpoint_count; i++)
		evrdma_conn_close(crowd.endpoints[i]->conn);
	fixture_run_until(f, none_live, 110000);
	count_closed(&crowd);
	event_free(crowd.tick);
	ck_assert_uint_eq(f->closed, 2 * crowd.wanted);
	ck_assert_msg(crowd.closed_in_a_stall <= crowd.endpoint_count / 2,
		"of %u that were closed %u were released while the timer stood",
		crowd.endpoint_count, crowd.closed_in_a_stall);
	fixture_free(f);
	free(crowd.endpoints);
}
END_TEST

/*
 * More shallow queues than libsiw makes in a process whose CQ is a small one: what it would map at
 * 576 KiB it takes for nothing, and the first CQ reaches beyond that.
 */
enum { SHALLOW = 80, DEEP_CQ = 16385 };

static bool shallow_are_up(struct fixture *f)
{
	return f->established == 2 * SHALLOW;
}

START_TEST(a_large_completion_queue_lets_many_shallow_queues_be_made)
{
	struct evrdma_base_options options;
	struct fixture *f = fixture_new();
	unsigned i;

	evrdma_base_options_init(&options);
	options.cq_entries = DEEP_CQ;
	fixture_replace_base(f, &options);
	f->options.send_depth = f->options.recv_depth = 4;
	fixture_listen(f);
	for (i = 0; i < SHALLOW; i++)
		fixture_connect(f);
	fixture_run_until(f, shallow_are_up, 60000);
	fixture_free(f);
}
END_TEST

TCase *scale_case(void)
{
	TCase *tc = tcase_create("scale");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 240);
	tcase_add_test(tc, many_connections_closed_in_one_turn_do_not_stop_a_timer);
	tcase_add_test(tc, a_large_completion_queue_lets_many_shallow_queues_be_made);
	return tc;
}
