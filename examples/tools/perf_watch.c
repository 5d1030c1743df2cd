#include "perf_watch.h"

#include <stdio.h>
#include <unistd.h>

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

static void look(evutil_socket_t unused, short what, void *arg)
{
	struct perf_watch *watch = arg;
	int came = watch->alive || watch->progress != watch->seen;

	watch->quiet_s = came ? 0 : watch->quiet_s + 1;
	watch->alive = 0;
	watch->seen = watch->progress;
	show(watch);
	if (watch->quiet_s < watch->patience_s)
		return;
	perf_watch_stop(watch);
	watch->cb(watch->arg);
}

int perf_watch_start(struct perf_watch *watch, struct event_base *base, uint64_t goal)
{
	const struct timeval second = { 1, 0 };

	watch->progress = watch->seen = 0;
	watch->quiet_s = watch->alive = 0;
	watch->goal = goal;
	watch->on_terminal = isatty(STDERR_FILENO);
	if (!watch->timer)
		watch->timer = event_new(base, -1, EV_PERSIST, look, watch);
	return watch->timer && !event_add(watch->timer, &second) ? 0 : -1;
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
