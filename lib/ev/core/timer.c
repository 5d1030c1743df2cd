#include "ev/core/timer.h"

#include <errno.h>
#include <stddef.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "ev/core/base.h"
#include "util/clock.h"

enum { US_PER_S = 1000000, NS_PER_US = 1000 };

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

void evr_timer_fire(struct evr_timer *timer)
{
	let_go(timer);
	event_active(&timer->event, EV_TIMEOUT, 0);
}

static void fire_until(struct evr_timers *timers, uint64_t us)
{
	struct evr_timer *first;

	while ((first = LIST_FIRST(&timers->kept)) && first->due_us <= us)
		evr_timer_fire(first);
}

static uint64_t left_us(const struct evr_timer *timer, uint64_t now_us)
{
	return timer->due_us > now_us ? timer->due_us - now_us : 1;
}

/* Of the first, or never: a time of none stops a timer of the kernel's. */
static struct itimerspec until_next(const struct evr_timers *timers, uint64_t now_us)
{
	const struct evr_timer *first = LIST_FIRST(&timers->kept);
	uint64_t us = first ? left_us(first, now_us) : 0;

	return (struct itimerspec){ .it_value = { (time_t)(us / US_PER_S),
					    (long)(us % US_PER_S) * NS_PER_US } };
}

static void wait_for_next(struct evr_timers *timers)
{
	struct itimerspec next = until_next(timers, evr_clock_now_us());

	timerfd_settime(timers->fd, 0, &next, NULL);
}

/* Set anew, it is not readable until the next of them is due. */
static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct evr_timers *timers = arg;

	fire_until(timers, evr_clock_now_us());
	wait_for_next(timers);
}

int evr_timers_init(struct evrdma_base *base)
{
	struct evr_timers *timers = &base->timers;

	LIST_INIT(&timers->kept);
	timers->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (timers->fd < 0)
		return -errno;
	event_assign(&timers->readable, base->event_base, timers->fd, EV_READ | EV_PERSIST,
		on_readable, timers);
	evr_base_set_urgent(base, &timers->readable);
	if (!event_add(&timers->readable, NULL))
		return 0;
	close(timers->fd);
	return -ENOMEM;
}

void evr_timers_fini(struct evrdma_base *base)
{
	event_del(&base->timers.readable);
	close(base->timers.fd);
}

void evr_timer_assign(
	struct evr_timer *timer, struct evrdma_base *base, event_callback_fn cb, void *arg)
{
	evtimer_assign(&timer->event, base->event_base, cb, arg);
	evr_base_set_urgent(base, &timer->event);
	timer->base = base;
	timer->link.le_prev = NULL;
}

/* In the order in which they are due. */
static void insert(struct evr_timers *timers, struct evr_timer *timer)
{
	struct evr_timer *other, *before = NULL;

	LIST_FOREACH (other, &timers->kept, link) {
		if (other->due_us > timer->due_us)
			break;
		before = other;
	}
	if (before)
		LIST_INSERT_AFTER(before, timer, link);
	else
		LIST_INSERT_HEAD(&timers->kept, timer, link);
}

static void keep(struct evr_timer *timer, int timeout_ms)
{
	struct evr_timers *timers = &timer->base->timers;

	event_del(&timer->event); /* it may have come, and wait for its turn */
	timer->due_us = evr_clock_now_us() + (uint64_t)timeout_ms * EVR_US_PER_MS;
	insert(timers, timer);
	if (timer == LIST_FIRST(&timers->kept))
		wait_for_next(timers);
}

static inline void start(struct evr_timer *timer, const struct timeval *tv, int timeout_ms)
{
	let_go(timer);
	if (event_add(&timer->event, tv))
		keep(timer, timeout_ms);
}

void evr_timer_start(struct evr_timer *timer, int timeout_ms)
{
	struct timeval tv = { timeout_ms / 1000, timeout_ms % 1000 * 1000 };

	start(timer, &tv, timeout_ms);
}

void evr_timer_start_now(struct evr_timer *timer)
{
	static const struct timeval now = { 0, 0 };

	start(timer, &now, 0);
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
