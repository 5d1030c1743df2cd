/* Many connections that are closed while their link is down. */
#include "conform/timeouts.h"

enum {
	CONNS = 500,
	KEEPALIVE_MS = 1000,
	PATIENCE_S = 150, /* of the kernel, which asks the peer 16 times, 4 to 9 seconds each */
	/* rxe sends 64 frames of its CM, and when no neighbour answers the next 3 seconds later. */
	CLOSING_S = 16 * 3 * (CONNS / 64 + 1) + PATIENCE_S,
};

static const unsigned down_s[] = { 5, 30 };

static struct evrdma_conn *conns[2 * CONNS];
static unsigned num_up, num_told;

static void collect(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	if (event == EVRDMA_CONN_CONNECTED)
		conns[num_up++] = endpoint->conn;
	num_told += event == EVRDMA_CONN_ERROR || event == EVRDMA_CONN_DISCONNECTED;
}

static bool all_are_up(struct fixture *f)
{
	return num_up == 2 * CONNS;
}

static bool all_are_told(struct fixture *f)
{
	return num_told == 2 * CONNS;
}

static void connect_many(struct fixture *f)
{
	int i;

	f->on_event = collect;
	f->options.recv_depth = 4;
	fixture_listen(f);
	for (i = 0; i < CONNS; i++)
		fixture_connect(f);
	run_until(f, all_are_up);
}

static void close_all(struct fixture *f)
{
	unsigned i;

	begin();
	for (i = 0; i < num_up; i++)
		evrdma_conn_close(conns[i]);
	run_until(f, fixture_none_live);
	assert_library_took(passed_ms(), 0);
}

static void assert_none_lingers(const struct fixture *f)
{
	ck_assert_uint_eq(fixture_stats(f).ids_lingering, 0);
}

/* Nobody can answer. finish() sees that the loop went on, as a timer of 1 ms would. */
START_TEST(many_closes_while_the_link_is_down_keep_nobody)
{
	struct fixture *f = fixture_new();

	connect_many(f);
	wire_set(&no_carrier);
	run_for(f, 1);
	close_all(f);
	run_for(f, down_s[_i]);
	calm();
	run_for(f, PATIENCE_S);
	assert_none_lingers(f);
	finish(f);
}
END_TEST

START_TEST(a_base_that_is_closed_while_the_link_is_down_keeps_nobody)
{
	struct fixture *f = fixture_new();

	connect_many(f);
	wire_set(&no_carrier);
	run_for(f, 1);
	close_all(f);
	close_base(f, CLOSING_S * 1000);
}
END_TEST

/* No frame passes; without a carrier rxe would keep them, see timeouts_traffic.c. */
START_TEST(keepalive_ends_many_whose_link_is_dead_and_keeps_nobody)
{
	struct fixture *f = fixture_new();

	f->options.keepalive_ms = KEEPALIVE_MS;
	connect_many(f);
	wire_set(&no_frame);
	begin();
	run_until(f, all_are_told);
	close_all(f);
	calm();
	run_for(f, PATIENCE_S);
	assert_none_lingers(f);
	finish(f);
}
END_TEST

TCase *timeouts_link_case(void)
{
	const int times = sizeof(down_s) / sizeof(down_s[0]);
	TCase *tc = new_case("link");

	tcase_add_loop_test(tc, many_closes_while_the_link_is_down_keep_nobody, 0, times);
	tcase_add_test(tc, a_base_that_is_closed_while_the_link_is_down_keeps_nobody);
	tcase_add_test(tc, keepalive_ends_many_whose_link_is_dead_and_keeps_nobody);
	return tc;
}
