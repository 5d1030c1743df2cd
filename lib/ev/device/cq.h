/*
 * Completion queues and the one driver for them: arm, poll again, then sleep. A CQ keeps entries
 * for every piece of work that a QP on it may have posted, so it cannot overrun.
 */
#ifndef EVR_EV_CQ_H
#define EVR_EV_CQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "ev/device/async.h"
#include "util/list.h"

struct evr_cq;
struct evr_cq_user;
struct evr_device;
struct evr_devices;

/* Who has entries on a CQ. */
struct evr_cq_user {
	TAILQ_ENTRY(evr_cq_user) link;
	/* It cannot be relied on any more. Comes once, or not at all. */
	void (*broken)(struct evr_cq_user *user);
};

TAILQ_HEAD(evr_cq_user_list, evr_cq_user);

/* Somebody waits until all is told that a CQ held when the wait began. */
struct evr_cq_wait {
	TAILQ_ENTRY(evr_cq_wait) link;
	void (*over)(struct evr_cq_wait *wait); /* from the loop's turn, like what is told */
	struct evr_cq *cq;			/* NULL: nobody waits */
	uint64_t last; /* the number of the last completion that can have been there */
};

TAILQ_HEAD(evr_cq_wait_list, evr_cq_wait);

enum { EVR_CQ_BATCH = 16 }; /* completions taken at once, at most */

struct evr_cq {
	TAILQ_ENTRY(evr_cq) link;
	TAILQ_ENTRY(evr_cq) ready_link;
	struct evr_device *device;
	struct ibv_cq *cq;
	uint32_t reserved;
	uint32_t released; /* given back, but old entries may still be in the queue */
	uint64_t taken;    /* completions, so far */
	struct evr_cq_user_list users;
	struct evr_cq_wait_list waits; /* the oldest first */
	unsigned unacked;
	unsigned times_empty; /* that it was seen so */
	uint64_t last_us; /* when something was complete, for a base that spins */
	bool armed;
	bool ready;
	bool polling;
	bool broken; /* not to be relied on: no QP is added, and those on it end */
	bool told;   /* they were */
	bool has_lost; /* completions, with a poll that failed */
	struct evr_async_subject async;
	struct ibv_wc wc[EVR_CQ_BATCH]; /* zeroes outside of a poll: not all devices fill in all */
};

TAILQ_HEAD(evr_cq_list, evr_cq);

/* Reserves entries on a CQ that has them, or on a new one, which is slow. */
int evr_cq_reserve(struct evr_device *device, uint32_t entries, struct evr_cq_user *user,
	struct evr_cq **cq);
void evr_cq_unreserve(struct evr_cq *cq, uint32_t entries, struct evr_cq_user *user);
/* One of several that nobody has entries on. Returns whether there was one. */
bool evr_cq_drop_spare(struct evr_cq_list *cqs);
void evr_cq_destroy_all(struct evr_cq_list *cqs);

/* Nothing completes there any more: whoever uses the device is told, and nobody comes to it. */
void evr_cq_break_all(struct evr_device *device);
/* The completion channel is readable, or at its end. */
void evr_cq_read_channel(struct evr_device *device);
/*
 * Takes and tells what is complete, as far as the budget of this turn goes. Nowhere else is a
 * completion told: not within a call of the user's, and not before those that came earlier.
 */
void evr_cq_service_ready(struct evr_devices *devices);

/* The next turn polls it, whether it has raised an event or not. */
void evr_cq_look(struct evr_cq *cq);
/* What comes to a busy CQ later does not make the wait any longer. */
void evr_cq_wait(struct evr_cq *cq, struct evr_cq_wait *wait);
void evr_cq_stop_waiting(struct evr_cq_wait *wait);

#endif
