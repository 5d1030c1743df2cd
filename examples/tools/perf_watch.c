#include "perf_watch.h"

#include <stdio.h>
#include <unistd.h>

#include "common.h"

enum { NS_PER_S = 1000000000, LATE_NS = NS_PER_S / 2 };

static void show(struct perf_watch *watch)
{
	if (!watch->on_terminal || !watch->goal)
		return;
	fprintf(stderr, "%3d %%\r", (int)(watch->progress * 100 / watch->goal));
	watch->shown = 1;
}

/* Which may be on another terminal. */
static void hide(struct perf_watch *watch)
{
	if (watch->shown)
		fputs("     \r", stderr);
	watch->shown = 0;
}

/* From now, so that there is a second between two looks, however late one is. */
static int wait_a_second(struct perf_watch *watch)
{
	const struct timeval second = { 1, 0 };

	watch->due_ns = tool_now_ns() + NS_PER_S;
	return event_add(watch->timer, &second);
}

/* What came while the loop was held up may not have been told yet. */
static int was_held_up(const struct perf_watch *watch)
{
	return tool_now_ns() > watch->due_ns + LATE_NS;
}

static void look(evutil_socket_t unused, short what, void *arg)
{
	struct perf_watch *watch = arg;
	int came = watch->alive || watch->progress != watch->seen;

	if (came)
		watch->quiet_s = 0;
	else if (!was_held_up(watch))
		watch->quiet_s++;
	watch->alive = 0;
	watch->seen = watch->progress;
	show(watch);
	if (watch->quiet_s < watch->patience_s && !wait_a_second(watch))
		return;
	perf_watch_stop(watch);
	watch->cb(watch->arg);
}

int perf_watch_start(struct perf_watch *watch, struct event_base *base, uint64_t goal)
{
	watch->progress = watch->seen = 0;
	watch->quiet_s = watch->alive = 0;
	watch->goal = goal;
	watch->on_terminal = isatty(STDERR_FILENO);
	if (!watch->timer)
		watch->timer = evtimer_new(base, look, watch);
	return watch->timer ? wait_a_second(watch) : -1;
}

void perf_watch_stop(struct perf_watch *watch)
{
	hide(watch);
	if (watch->timer)
		event_del(watch->timer);
}

void perf_watch_free(struct perf_watch *watch)
{
	if (watch->timer)
		event_free(watch->timer);
}
