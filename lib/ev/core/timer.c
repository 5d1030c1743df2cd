#include "ev/core/timer.h"

#include <errno.h>
#include <stddef.h>

#include "ev/core/base.h"
#include "util/clock.h"

enum { FAR_OFF_MS = 24 * 3600 * 1000, US_PER_S = 1000000 };

static bool is_kept(const struct evr_timer *timer)
{
	return timer->link.le_prev;
}

static void let_go(struct evr_timer *timer)
{
	if (!is_kept(timer))
		return;
	LIST_REMOVE(timer, link);
	timer->link.le_prev = NULL;
}

static void fire(struct evr_timer *timer)
{
	let_go(timer);
	event_active(&timer->event, EV_TIMEOUT, 0);
}

/* Those that are due by then. */
static void fire_until(struct evr_timers *timers, uint64_t us)
{
	struct evr_timer *timer, *next;

	for (timer = LIST_FIRST(&timers->kept); timer; timer = next) {
		next = LIST_NEXT(timer, link);
		if (timer->due_us <= us)
			fire(timer);
	}
}

/* At least a microsecond: libevent has a persistent event again after that, but after none. */
static struct timeval until_next(const struct evr_timers *timers, uint64_t now_us)
{
	uint64_t left_us = (uint64_t)FAR_OFF_MS * EVR_US_PER_MS;
	const struct evr_timer *timer;

	LIST_FOREACH (timer, &timers->kept, link)
		if (timer->due_us < now_us + left_us)
			left_us = timer->due_us > now_us ? timer->due_us - now_us : 1;
	return (struct timeval){ (time_t)(left_us / US_PER_S), (suseconds_t)(left_us % US_PER_S) };
}

/*
 * Its place in libevent's heap is kept while it is pending there, and it is before each call of its
 * callback. Should somebody have taken it just before that, better at once than never.
 */
static void wait_for_next(struct evr_timers *timers)
{
	struct timeval tv = until_next(timers, evr_clock_now_us());

	if (event_add(&timers->place, &tv))
		fire_until(timers, UINT64_MAX);
}

static void on_place(evutil_socket_t fd, short what, void *arg)
{
	struct evr_timers *timers = arg;

	fire_until(timers, evr_clock_now_us());
	wait_for_next(timers);
}

int evr_timers_init(struct evrdma_base *base)
{
	struct evr_timers *timers = &base->timers;
	struct timeval tv;

	LIST_INIT(&timers->kept);
	tv = until_next(timers, 0);
	event_assign(&timers->place, base->event_base, -1, EV_PERSIST, on_place, timers);
	evr_base_set_urgent(base, &timers->place);
	return event_add(&timers->place, &tv) ? -ENOMEM : 0;
}

void evr_timers_fini(struct evrdma_base *base)
{
	event_del(&base->timers.place);
}

void evr_timer_assign(
	struct evr_timer *timer, struct evrdma_base *base, event_callback_fn cb, void *arg)
{
	evtimer_assign(&timer->event, base->event_base, cb, arg);
	evr_base_set_urgent(base, &timer->event);
	timer->base = base;
	timer->link.le_prev = NULL;
}

static void keep(struct evr_timer *timer, int timeout_ms)
{
	struct evr_timers *timers = &timer->base->timers;

	event_del(&timer->event); /* it may have come, and wait for its turn */
	timer->due_us = evr_clock_now_us() + (uint64_t)timeout_ms * EVR_US_PER_MS;
	LIST_INSERT_HEAD(&timers->kept, timer, link);
	wait_for_next(timers);
}

void evr_timer_start(struct evr_timer *timer, int timeout_ms)
{
	struct timeval tv = { timeout_ms / 1000, timeout_ms % 1000 * 1000 };

	let_go(timer);
	if (event_add(&timer->event, &tv))
		keep(timer, timeout_ms);
}

void evr_timer_start_now(struct evr_timer *timer)
{
	static const struct timeval now = { 0, 0 };

	let_go(timer);
	if (event_add(&timer->event, &now))
		keep(timer, 0);
}

void evr_timer_stop(struct evr_timer *timer)
{
	let_go(timer);
	event_del(&timer->event);
}

bool evr_timer_runs(const struct evr_timer *timer)
{
	return is_kept(timer) || evtimer_pending(&timer->event, NULL);
}
