/*
 * A timer that cannot fail. libevent may have no memory for one more; then it is kept here, and the
 * base has a timer of the kernel's for all those, which libevent watches from the start.
 */
#ifndef EVR_EV_TIMER_H
#define EVR_EV_TIMER_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct evrdma_base;

struct evr_timer {
	struct event event;
	struct evrdma_base *base;
	LIST_ENTRY(evr_timer) link; /* of those kept; le_prev is NULL in all others */
	uint64_t due_us;	    /* while it is kept */
};

LIST_HEAD(evr_timer_list, evr_timer);

/* Of a base: those that libevent had no memory for, and what comes for them. */
struct evr_timers {
	struct evr_timer_list kept;
	int fd;
	struct event readable;
};

/* 0 or -errno. */
int evr_timers_init(struct evrdma_base *base);
void evr_timers_fini(struct evrdma_base *base);

/* Not behind the data, as evr_base_set_urgent(). */
void evr_timer_assign(
	struct evr_timer *timer, struct evrdma_base *base, event_callback_fn cb, void *arg);
/* In place of what it was started with before. */
void evr_timer_start(struct evr_timer *timer, int timeout_ms);
/* As soon as every other event of the loop had its turn. */
void evr_timer_start_now(struct evr_timer *timer);
/* In this turn of the loop. */
void evr_timer_fire(struct evr_timer *timer);
/* Before its base goes, whoever it is of. */
void evr_timer_stop(struct evr_timer *timer);
/* It will come, or is about to. */
bool evr_timer_runs(const struct evr_timer *timer);

#endif
