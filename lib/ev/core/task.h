/*
 * Work for a later turn of the loop. A base runs its tasks under a budget of time: what the kernel
 * makes synchronous is done here, one slow call a step. There are queues, first in, first out, for
 * each kind, which take turns: what there is much of does not hold up the others.
 */
#ifndef EVR_EV_TASK_H
#define EVR_EV_TASK_H

#include <stdbool.h>

#include "util/list.h"

enum evr_task_kind {
	EVR_TASK_SETUP,
	EVR_TASK_ANSWER, /* to a peer that left, and counts the time */
	EVR_TASK_LEAVE,
	EVR_TASK_RELEASE,
	EVR_TASK_KINDS
};

struct evr_task {
	TAILQ_ENTRY(evr_task) link;
	enum evr_task_kind kind; /* not to be changed while it is queued */
	void (*run)(struct evr_task *task);
	bool queued;
};

TAILQ_HEAD(evr_task_list, evr_task);

#endif
