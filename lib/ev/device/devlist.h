/* The devices of the machine, looked at from time to time, and who has come and gone since. */
#ifndef EVR_EV_DEVLIST_H
#define EVR_EV_DEVLIST_H

#include <stdbool.h>

#include "ev/core/task.h"
#include "ev/core/timer.h"
#include "util/list.h"

#include <evrdma/base.h>

struct evr_devices;
struct evr_known_device;

TAILQ_HEAD(evr_known_device_list, evr_known_device);

struct evr_devlist {
	struct evr_timer timer;
	struct evr_task task;
	struct evr_known_device_list known;
	bool on;
	bool unreadable; /* and it was told */
};

/* Reads the list for the first time, when the options say so. 0 or -errno. */
int evr_devlist_init(struct evr_devices *devices);
void evr_devlist_fini(struct evr_devices *devices);
void evr_devlist_tell(struct evr_devices *devices, enum evrdma_device_event event,
	const char *device, unsigned port_num);
/* The CM was first to say that a device goes: tells it, unless it is known already. */
void evr_devlist_set_removed(struct evr_devices *devices, const char *name);

#endif
