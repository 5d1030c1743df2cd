/*
 * Work for a later turn of the loop. A base runs its tasks first in, first out, under a budget of
 * time: what the kernel makes synchronous is done here, one slow call a step.
 */
#ifndef EVR_EV_TASK_H
#define EVR_EV_TASK_H

#include <stdbool.h>

#include "util/list.h"

struct evr_task {
	TAILQ_ENTRY(evr_task) link;
	void (*run)(struct evr_task *task);
	bool queued;
};

TAILQ_HEAD(evr_task_list, evr_task);

#endif
