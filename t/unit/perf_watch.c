/* When a run of evrdma-perf has waited for long enough. */
#include "unit/unit.h"

#include <event2/event.h>
#include <string.h>
#include <unistd.h>

#include "perf_watch.h"

enum { PATIENCE_S = 1, MS = 1000, OFTEN_MS = 400 };
enum { ONE_LOOK_MS = 1300, TWO_LOOKS_MS = 2300, HELD_UP_MS = 1700 };

static struct perf_watch watch;
static struct event_base *base;
static int silences;

static void silent(void *arg)
{
	ck_assert_ptr_eq(arg, &watch);
	silences++;
	event_base_loopbreak(base);
}

static void start(void)
{
	base = event_base_new();
	memset(&watch, 0, sizeof(watch));
	watch.patience_s = PATIENCE_S;
	watch.cb = silent;
	watch.arg = &watch;
	silences = 0;
}

static void stop(void)
{
	perf_watch_free(&watch);
	event_base_free(base);
}

static void count(evutil_socket_t unused, short what, void *arg)
{
	watch.progress++;
}

static void live(evutil_socket_t unused, short what, void *arg)
{
	watch.alive = 1;
}

static void leave(evutil_socket_t unused, short what, void *arg)
{
	event_base_loopbreak(base);
}

static void hold_up(evutil_socket_t unused, short what, void *arg)
{
	usleep(HELD_UP_MS * MS);
}

static struct timeval ms(int ms)
{
	return (struct timeval){ ms / MS, (suseconds_t)(ms % MS) * MS };
}

/*
 * A sign is due before each look, which is a second after the one before, and the loop runs what is
 * due in its order: so it does not matter how late the machine is.
 */
static void run_with(event_callback_fn sign, int for_ms)
{
	const struct timeval often = ms(OFTEN_MS), enough = ms(for_ms);
	struct event *signs = event_new(base, -1, EV_PERSIST, sign, NULL);

	event_add(signs, &often);
	ck_assert_int_eq(perf_watch_start(&watch, base, 0), 0);
	event_base_once(base, -1, EV_TIMEOUT, leave, NULL, &enough);
	event_base_dispatch(base);
	event_free(signs);
}

START_TEST(who_hears_nothing_is_told_once_and_again_when_it_begins_anew)
{
	int i;

	for (i = 1; i <= 2; i++) {
		ck_assert_int_eq(perf_watch_start(&watch, base, 0), 0);
		event_base_dispatch(base);
		ck_assert_int_eq(silences, i);
		ck_assert_int_eq(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED), 0);
	}
}
END_TEST

START_TEST(messages_are_something)
{
	run_with(count, TWO_LOOKS_MS);
	ck_assert_int_eq(silences, 0);
}
END_TEST

START_TEST(so_is_whatever_else_comes)
{
	run_with(live, TWO_LOOKS_MS);
	ck_assert_int_eq(silences, 0);
}
END_TEST

START_TEST(what_came_once_counts_once)
{
	run_with(live, ONE_LOOK_MS);
	event_base_dispatch(base);
	ck_assert_int_eq(silences, 1);
}
END_TEST

/* It is not the other side that was late. */
START_TEST(a_loop_that_is_held_up_looks_again)
{
	const struct timeval at_once = ms(0);

	ck_assert_int_eq(perf_watch_start(&watch, base, 0), 0);
	event_base_once(base, -1, EV_TIMEOUT, hold_up, NULL, &at_once);
	event_base_loop(base, EVLOOP_ONCE);
	event_base_loop(base, EVLOOP_ONCE);
	ck_assert_int_eq(silences, 0);
	event_base_dispatch(base);
	ck_assert_int_eq(silences, 1);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		who_hears_nothing_is_told_once_and_again_when_it_begins_anew,
		messages_are_something,
		so_is_whatever_else_comes,
		what_came_once_counts_once,
		a_loop_that_is_held_up_looks_again,
	};

	return unit_main("perf_watch", tests, sizeof(tests) / sizeof(tests[0]), start, stop);
}
