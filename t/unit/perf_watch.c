/* When a run of evrdma-perf has waited for long enough. */
#include "unit/unit.h"

#include <event2/event.h>
#include <string.h>

#include "perf_watch.h"

enum { PATIENCE_S = 1, MS = 1000, LIFE_MS = 400, ENOUGH_MS = 3300 };

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
	ck_assert_int_eq(perf_watch_start(&watch, base, 0), 0);
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

/* What comes in time is before each look, however late the loop is. */
static void run_with(event_callback_fn sign)
{
	const struct timeval often = { 0, (suseconds_t)LIFE_MS * MS };
	const struct timeval enough = { ENOUGH_MS / MS, (suseconds_t)(ENOUGH_MS % MS) * MS };
	struct event *signs = event_new(base, -1, EV_PERSIST, sign, NULL);

	event_add(signs, &often);
	event_base_once(base, -1, EV_TIMEOUT, leave, NULL, &enough);
	event_base_dispatch(base);
	event_free(signs);
}

START_TEST(who_hears_nothing_is_told_once)
{
	event_base_dispatch(base);
	ck_assert_int_eq(silences, 1);
	ck_assert_int_eq(event_base_loop(base, EVLOOP_NONBLOCK), 1); /* nothing is left in it */
}
END_TEST

START_TEST(messages_are_something)
{
	run_with(count);
	ck_assert_int_eq(silences, 0);
}
END_TEST

START_TEST(so_is_whatever_else_comes)
{
	run_with(live);
	ck_assert_int_eq(silences, 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		who_hears_nothing_is_told_once,
		messages_are_something,
		so_is_whatever_else_comes,
	};

	return unit_main("perf_watch", tests, sizeof(tests) / sizeof(tests[0]), start, stop);
}
