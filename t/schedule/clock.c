#define _GNU_SOURCE
#include "schedule/clock.h"

#include <dlfcn.h>
#include <event2/event.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
	NS_PER_US = 1000,
	US_PER_MS = 1000,
	US_PER_S = 1000000,
	LONGEST_MS = 5000,
	MANY_TIMERS = 64, /* of the kernel's */
	MANY_LOOKS = 4000, /* in SPIN_US */
	SPIN_US = 10000,
	TOO_MANY_LOOKS = 150000
};

static uint64_t now_us, start_us, tick_us, woken_us, held_us;
static struct event_base *sleeper;
static bool started, may_skip, went_to_sleep, for_ever;
static atomic_uint readings;

void clock_start(unsigned us)
{
	/* After the machine's time, or a test that fails would have ended before it began. */
	if (!now_us)
		now_us = clock_real_us();
	/* It never goes back, and what was just now for one schedule is long ago for the next. */
	start_us = (now_us / US_PER_S + 3) * US_PER_S;
	now_us = start_us;
	tick_us = us;
	started = true;
}

void clock_follow(void)
{
	start_us = clock_real_us();
}

void clock_stop(void)
{
	started = false;
}

uint64_t clock_now_us(void)
{
	return (started ? now_us : clock_real_us()) - start_us;
}

uint64_t clock_held_us(void)
{
	uint64_t us = held_us;

	held_us = 0;
	return us;
}

void clock_advance_us(uint64_t us)
{
	now_us += us;
}

/* The C library's, which reads it without a system call where that can be. */
static int real_clock(clockid_t which, struct timespec *ts)
{
	static _Atomic(int (*)(clockid_t, struct timespec *)) next;

	if (!next)
		next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	return next(which, ts);
}

uint64_t clock_real_us(void)
{
	struct timespec ts;

	real_clock(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * US_PER_S + (uint64_t)ts.tv_nsec / NS_PER_US;
}

unsigned clock_readings(void)
{
	return atomic_load(&readings);
}

/* --- in place of the C library's ------------------------------------------------------------- */

/* The loop's own are of the coarse clock. */
int clock_gettime(clockid_t which, struct timespec *ts)
{
	readings += which == CLOCK_MONOTONIC;
	if (!started)
		return real_clock(which, ts);
	if (!went_to_sleep)
		now_us += tick_us;
	ts->tv_sec = (time_t)(now_us / US_PER_S);
	ts->tv_nsec = (long)(now_us % US_PER_S * NS_PER_US);
	return 0;
}

int gettimeofday(struct timeval *tv, void *zone)
{
	if (!started)
		return (int)syscall(SYS_gettimeofday, tv, zone);
	tv->tv_sec = (time_t)(now_us / US_PER_S);
	tv->tv_usec = (suseconds_t)(now_us % US_PER_S);
	return 0;
}

int usleep(useconds_t us)
{
	const struct timespec ts = { us / US_PER_S, (long)(us % US_PER_S) * NS_PER_US };

	if (!started)
		return (int)syscall(SYS_nanosleep, &ts, NULL);
	now_us += us;
	return 0;
}

/* Timers of the kernel's that are set, by their descriptors. */
static struct {
	int fd;
	uint64_t due_us; /* 0: it is free */
} timers[MANY_TIMERS];

static int real_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	return (int)syscall(SYS_timerfd_settime, fd, flags, new, old);
}

static void set_timer(int fd, uint64_t due_us)
{
	unsigned i, place = 0;

	for (i = 0; i < MANY_TIMERS; i++)
		if (timers[i].fd == fd)
			timers[i].due_us = 0;
	while (due_us && timers[place].due_us && ++place < MANY_TIMERS)
		;
	if (place == MANY_TIMERS)
		abort();
	if (due_us) {
		timers[place].fd = fd;
		timers[place].due_us = due_us;
	}
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	static const struct itimerspec never;
	uint64_t us = (uint64_t)new->it_value.tv_sec * US_PER_S +
		      (uint64_t)new->it_value.tv_nsec / NS_PER_US;

	if (!started)
		return real_settime(fd, flags, new, old);
	set_timer(fd, us ? now_us + us : 0);
	return real_settime(fd, 0, &never, old);
}

/* Whoever set it may have closed it. */
static void be_due(int fd)
{
	static const struct itimerspec soon = { .it_value = { 0, 1 } };
	struct pollfd readable = { .fd = fd, .events = POLLIN };

	if (!real_settime(fd, 0, &soon, NULL))
		poll(&readable, 1, -1);
}

static void look_at_timers(void)
{
	unsigned i;

	for (i = 0; started && i < MANY_TIMERS; i++)
		if (timers[i].due_us && timers[i].due_us <= now_us) {
			timers[i].due_us = 0;
			be_due(timers[i].fd);
		}
}

static int until_timers(int timeout_ms)
{
	unsigned i;

	for (i = 0; started && i < MANY_TIMERS; i++) {
		uint64_t us = timers[i].due_us ? timers[i].due_us - now_us : UINT64_MAX;

		if (us < (uint64_t)(unsigned)timeout_ms * US_PER_MS)
			timeout_ms = (int)(us / US_PER_MS) + 1;
	}
	return timeout_ms;
}

static int look(int epoll, struct epoll_event *events, int max, int timeout_ms)
{
	return (int)syscall(SYS_epoll_pwait, epoll, events, max, timeout_ms, NULL, (size_t)0);
}

/*
 * On the machine's time: a loop that finds work for ever never comes to where much time passes. One
 * that has a stream to carry does, however little time each look takes; hence two numbers.
 */
static void check_spinning(void)
{
	static _Thread_local uint64_t since_us;
	static _Thread_local unsigned looks, looks_before;
	uint64_t now = clock_real_us();

	if (now - since_us > SPIN_US) {
		since_us = now;
		looks = looks - looks_before < MANY_LOOKS ? 0 : looks;
		looks_before = looks;
	}
	if (++looks == TOO_MANY_LOOKS)
		abort();
}

/* Goes on at the time that was to be waited for, or sees that it is too far for that. */
static bool can_wait(int timeout_ms)
{
	if (!started)
		return may_skip && timeout_ms > 0 && timeout_ms <= LONGEST_MS;
	return timeout_ms > 0 && (may_skip || !sleeper);
}

/* What is waited for on the machine's time may be the kernel as well, which has its time-outs. */
static int wait_for_it(int epoll, struct epoll_event *events, int max, int timeout_ms)
{
	if (!started)
		return look(epoll, events, max, timeout_ms);
	now_us += (uint64_t)timeout_ms * US_PER_MS;
	return 0;
}

/*
 * Looks without waiting. What was to be waited for is a timer, or nothing. A loop that is not run
 * by clock_turn() goes on at that time.
 */
static int wait_or_tell(int epoll, struct epoll_event *events, int max, int timeout_ms)
{
	int n;

	look_at_timers();
	n = look(epoll, events, max, 0);
	if (n || !timeout_ms)
		return n;
	timeout_ms = until_timers(timeout_ms);
	if (can_wait(timeout_ms))
		return wait_for_it(epoll, events, max, timeout_ms);
	if (!started && may_skip)
		n = look(epoll, events, max, LONGEST_MS);
	if (n)
		return n;
	/* From here to the end of the turn no time passes, so that no timer is due after all. */
	went_to_sleep = true;
	for_ever = timeout_ms < 0;
	if (sleeper)
		event_base_loopbreak(sleeper);
	return 0;
}

int epoll_wait(int epoll, struct epoll_event *events, int max, int timeout_ms)
{
	int n;

	if (!started)
		check_spinning();
	if (!started && !sleeper)
		return look(epoll, events, max, timeout_ms);
	n = wait_or_tell(epoll, events, max, timeout_ms);
	woken_us = clock_now_us();
	return n;
}

/* From the look at the events to the end of the turn the loop is held by those whom it calls. */
static void measure_turn(void)
{
	uint64_t us = clock_now_us() - woken_us;

	if (us > held_us)
		held_us = us;
}

enum clock_turn clock_turn(struct event_base *loop, bool skip)
{
	bool slept;
	int ret;

	sleeper = loop;
	may_skip = skip;
	woken_us = clock_now_us();
	ret = event_base_loop(loop, EVLOOP_ONCE);
	sleeper = NULL;
	measure_turn();
	slept = went_to_sleep;
	went_to_sleep = false;
	if (ret == 1)
		return CLOCK_EMPTY;
	if (!slept)
		return CLOCK_RAN;
	return for_ever ? CLOCK_FOREVER : CLOCK_IDLE;
}
