/* The base: its turn of the loop, its task queue, and what it keeps lists of. */
#ifndef EVR_EV_BASE_H
#define EVR_EV_BASE_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

#include "ev/async.h"
#include "ev/cmid.h"
#include "ev/cq.h"
#include "ev/device.h"
#include "ev/devlist.h"
#include "ev/inbox.h"
#include "ev/lock.h"
#include "ev/obj.h"
#include "ev/pd.h"
#include "ev/pool.h"
#include "ev/qp.h"
#include "ev/srq.h"
#include "ev/stats.h"
#include "ev/task.h"
#include "util/idmap.h"
#include "util/ptrmap.h"

#include <evrdma/base.h>

struct evrdma_base {
	struct event_base *event_base;
	struct evrdma_base_options options;

	struct rdma_event_channel *channel;
	bool own_channel;
	int channel_err; /* why it cannot be read any more; 0: it can */
	int saved_fd_flags;
	struct event cm_event;
	struct event cm_pause;
	struct event look_timer;

	struct event turn_event;
	bool in_turn;
	bool kicked;
	struct evr_task_list tasks[EVR_TASK_KINDS];
	unsigned next_kind; /* whose turn it is */

	struct evr_obj_list objs;
	struct evr_ptrmap cmid_map; /* struct rdma_cm_id -> struct evr_cmid */
	struct evr_cmid_list cmids;
	struct evr_device_list devices;
	struct evr_devlist devlist;
	struct evr_async_queue async;
	struct evr_cq_list ready_cqs;
	unsigned comp_vector; /* modulo what a device has */
	int tell_budget;	    /* what this turn may still tell of what is complete */
	struct evr_task_list tells; /* who has more to tell than that */
	struct evr_task_list posts; /* what has work for the device, at the end of the turn */
	struct evr_idmap work_owners;
	struct evr_pool_list pools;
	struct evr_shared_list srqs;
	struct evr_domain_list domains;

	struct evrdma_base_stats stats;
	struct evrdma_traffic_stats traffic;

	struct event inbox_event;
	int inbox_fd;
	struct evr_lock inbox_lock;
	struct evr_inbox inbox; /* under the lock */
	bool inbox_closed;      /* under the lock */
	unsigned inbox_coming;  /* under the lock: announced, and not there yet */

	evrdma_base_event_cb event_cb;
	void *event_arg;
	evrdma_base_device_cb device_cb;
	void *device_arg;
	bool shutting_down;
	bool linger_stuck; /* to destroy an id took long: see linger.c */
	struct event shutdown_timer;
	bool closing;
	evrdma_base_cb closed_cb;
	void *closed_arg;
};

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
 * Reads the channel soon even if nobody says that an event is there: the CM looks at its devices
 * then, and the kernel says nothing of the events that an id brings along when it is moved.
 */
void evr_base_poll_cm(struct evrdma_base *base);
/* The same each second: of a device without ids nobody is told that it leaves, and it waits. */
void evr_base_keep_polling_cm(struct evrdma_base *base);

/*
 * An event that was assigned just now is not behind those of the data, nor behind the loop's
 * others: what there is of data never keeps it waiting.
 */
void evr_base_set_urgent(const struct evrdma_base *base, struct event *event);
/* An urgent one. */
void evr_base_assign_timer(
	struct evrdma_base *base, struct event *timer, event_callback_fn cb, void *arg);
void evr_base_add_timer(struct event *timer, int timeout_ms);
/* Of an event that was assigned just now; -1 leaves it. */
void evr_base_set_priority(struct event *event, int priority);

/* shutdown.c */
void evr_shutdown_init(struct evrdma_base *base);
/* Closes the base when nobody is waited for. */
void evr_shutdown_look(struct evrdma_base *base);

#endif
