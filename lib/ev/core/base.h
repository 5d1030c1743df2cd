/* The base: its turn of the loop, its queues of tasks, its objects, and its parts. */
#ifndef EVR_EV_BASE_H
#define EVR_EV_BASE_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

#include "ev/core/inbox.h"
#include "ev/core/lock.h"
#include "ev/core/obj.h"
#include "ev/core/part.h"
#include "ev/core/task.h"
#include "ev/core/timer.h"

#include <evrdma/base.h>
#include <evrdma/stats.h>

struct evrdma_base {
	struct event_base *event_base;
	struct evrdma_base_options options;

	struct rdma_event_channel *channel;

	struct evr_timer turn;
	struct evr_timers timers;
	bool in_turn;
	bool kicked;
	struct evr_task_list tasks[EVR_TASK_KINDS];
	unsigned task_count; /* of all kinds */
	unsigned next_kind; /* whose turn it is */

	struct evr_task_list tells; /* what goes on at the beginning of the next one */
	struct evr_task_list posts; /* what has work for the device, at the end of it */
	int tell_budget; /* what this turn may still tell of what is complete */
	unsigned turn_budget_us; /* of each kind of work; in a turn that goes on, the rest */

	struct evr_obj_list objs;
	struct evr_part_list parts;
	struct evr_part *teller; /* the one of them whose class has tell; NULL: none */

	struct evrdma_base_stats stats;
	struct evrdma_traffic_stats traffic;

	struct event inbox_event;
	int inbox_fd;
	struct evr_lock inbox_lock;
	struct evr_inbox inbox; /* under the lock */
	bool inbox_closed;      /* under the lock */
	bool inbox_for_calls;   /* under the lock: no objects come any more */
	unsigned inbox_coming;  /* under the lock: announced, and not there yet */

	bool shutting_down;
	struct evr_timer shutdown_timer;
	uint64_t shutdown_end_us;
	bool closing;
	evrdma_base_cb closed_cb;
	void *closed_arg;
};

/* Without a channel and a part. 0 or -errno; and undone, before anybody has seen it. */
int evr_base_make(struct event_base *event_base, const struct evrdma_base_options *options,
	struct evrdma_base **made);
void evr_base_unmake(struct evrdma_base *base);

/* Tasks or posts, this turn or the next. */
bool evr_base_has_to_do(const struct evrdma_base *base);

/*
 * Asks about each object that the base waits for, its own and the guests, until the answer is true.
 */
bool evr_base_any_obj(const struct evrdma_base *base, bool (*is)(struct evr_obj *obj));

/* No object is made any more. */
bool evr_base_closing(const struct evrdma_base *base);

/* When a piece of work that begins now is to let the others of the loop go on. */
uint64_t evr_base_turn_deadline(const struct evrdma_base *base);

/* Makes sure that a turn comes soon. */
void evr_base_kick(struct evrdma_base *base);
void evr_base_kick_if_closing(struct evrdma_base *base);

/* Queues a task for a coming turn, if it is not queued, and takes it back. */
void evr_base_queue(struct evrdma_base *base, struct evr_task *task);
void evr_base_cancel(struct evrdma_base *base, struct evr_task *task);
/* The same for the end of this turn, after all tasks of it. */
void evr_base_queue_post(struct evrdma_base *base, struct evr_task *task);
/* The same ahead of all those: buffers that many share are there before any of them answers. */
void evr_base_queue_post_first(struct evrdma_base *base, struct evr_task *task);
void evr_base_cancel_post(struct evrdma_base *base, struct evr_task *task);

/* The same for its beginning, before what completed later. */
void evr_base_queue_tell(struct evrdma_base *base, struct evr_task *task);
void evr_base_cancel_tell(struct evrdma_base *base, struct evr_task *task);

/*
 * An event that was assigned just now is not behind those of the data, nor behind the loop's
 * others: what there is of data never keeps it waiting.
 */
void evr_base_set_urgent(const struct evrdma_base *base, struct event *event);
/* Of an event that was assigned just now; -1 leaves it. */
void evr_base_set_priority(struct event *event, int priority);

/* shutdown.c */
void evr_shutdown_init(struct evrdma_base *base);
/* Closes the base when nobody is waited for. */
void evr_shutdown_look(struct evrdma_base *base);
/* What is left of its time; of a base that is not shut down there is no end to it. */
uint64_t evr_shutdown_left_us(const struct evrdma_base *base);

#endif
