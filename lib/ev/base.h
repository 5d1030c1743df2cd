/* The base: its turn of the loop, its task queue, and what it keeps lists of. */
#ifndef EVR_EV_BASE_H
#define EVR_EV_BASE_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

#include "ev/async.h"
#include "ev/cmid.h"
#include "ev/cq.h"
#include "ev/device.h"
#include "ev/devlist.h"
#include "ev/inbox.h"
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
	int saved_fd_flags;
	struct event cm_event;
	struct event cm_pause;

	struct event turn_event;
	bool in_turn;
	bool kicked;
	struct evr_task_list tasks;

	struct evr_obj_list objs;
	struct evr_ptrmap cmid_map; /* struct rdma_cm_id -> struct evr_cmid */
	struct evr_cmid_list cmids;
	struct evr_device_list devices;
	struct evr_devlist devlist;
	struct evr_async_queue async;
	struct evr_cq_list ready_cqs;
	struct evr_task_list posts; /* what has work for the device, at the end of the turn */
	struct evr_idmap work_owners;
	struct evr_pool_list pools;
	struct evr_shared_list srqs;
	struct evr_domain_list domains;

	struct evrdma_base_stats stats;
	struct evrdma_traffic_stats traffic;

	struct event inbox_event;
	int inbox_fd;
	pthread_mutex_t inbox_lock;
	struct evr_inbox inbox; /* under the lock */
	bool inbox_closed;      /* under the lock */

	evrdma_base_event_cb event_cb;
	void *event_arg;
	evrdma_base_device_cb device_cb;
	void *device_arg;
	bool shutting_down;
	struct event shutdown_timer;
	bool closing;
	evrdma_base_cb closed_cb;
	void *closed_arg;
};

/* No object is made any more. */
bool evr_base_closing(const struct evrdma_base *base);

/* Makes sure that a turn comes soon. */
void evr_base_kick(struct evrdma_base *base);
void evr_base_kick_if_closing(struct evrdma_base *base);

/* Queues a task for a coming turn, if it is not queued, and takes it back. */
void evr_base_queue(struct evrdma_base *base, struct evr_task *task);
void evr_base_cancel(struct evrdma_base *base, struct evr_task *task);
/* The same for the end of this turn, after all tasks of it. */
void evr_base_queue_post(struct evrdma_base *base, struct evr_task *task);
void evr_base_cancel_post(struct evrdma_base *base, struct evr_task *task);

/* Reads the channel in this turn even if no event is there: the CM looks at its devices then. */
void evr_base_poll_cm(struct evrdma_base *base);

void evr_base_add_timer(struct event *timer, int timeout_ms);
/* Of an event that was assigned just now; -1 leaves it. */
void evr_base_set_priority(struct event *event, int priority);

/* shutdown.c */
void evr_shutdown_init(struct evrdma_base *base);
/* Closes the base when nobody is waited for. */
void evr_shutdown_look(struct evrdma_base *base);

#endif
