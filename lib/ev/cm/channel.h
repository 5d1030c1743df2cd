/* The base's event channel, the reader of it, and the ids whose events come on it. */
#ifndef EVR_EV_CHANNEL_H
#define EVR_EV_CHANNEL_H

#include <event2/event_struct.h>
#include <stdbool.h>

#include "ev/cm/cmid.h"
#include "ev/core/part.h"
#include "ev/core/timer.h"
#include "util/ptrmap.h"

#include <evrdma/base.h>

struct evr_channel {
	struct evr_part part;
	bool own; /* it goes with the base */
	int err; /* why it cannot be read any more; 0: it can */
	int saved_fd_flags;
	struct event readable;
	struct evr_timer pause;
	struct evr_timer look_timer;
	struct evr_cmid_list cmids;
	unsigned gone; /* of them, whose device is being removed */
	struct evr_ptrmap map; /* struct rdma_cm_id -> struct evr_cmid */
	evrdma_base_event_cb event_cb;
	void *event_arg;
	bool linger_stuck; /* to destroy an id took long: see linger.c */
};

/* Reads the base's channel from now on. */
int evr_channel_start(struct evrdma_base *base);
struct evr_channel *evr_channel_of(const struct evrdma_base *base);

/*
 * Reads the channel soon even if nobody says that an event is there: the CM looks at its devices
 * then, and the kernel says nothing of the events that an id brings along when it is moved.
 */
void evr_channel_poll(struct evrdma_base *base);
/* The same each second: of a device without ids nobody is told that it leaves, and it waits. */
void evr_channel_keep_polling(struct evrdma_base *base);

#endif
