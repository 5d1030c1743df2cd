/*
 * What a base shares on one device: the PDs, the completion channel, the CQs. It exists while a QP
 * uses it and a little longer, so that the next connection finds it; with a listener on an address
 * of the device, as long as that listens. A device that was removed is
 * let go with its last QP, and is never found again: when it comes back it is another one.
 */
#ifndef EVR_EV_DEVICE_H
#define EVR_EV_DEVICE_H

#include <event2/event_struct.h>
#include <infiniband/verbs.h>
#include <stdbool.h>

#include "ev/core/task.h"
#include "ev/core/timer.h"
#include "ev/device/async.h"
#include "ev/device/cq.h"
#include "ev/device/pd.h"
#include "util/list.h"

struct evr_cmid;
struct evr_devices;
struct evrdma_base;

struct evr_device {
	TAILQ_ENTRY(evr_device) link;
	struct evrdma_base *base;
	struct evr_devices *devices; /* all of that base */
	struct ibv_context *verbs;
	struct ibv_comp_channel *channel;
	struct event channel_event;
	struct evr_timer idle_timer;
	struct evr_timer fatal_timer;
	struct evr_timer spare_timer; /* of CQs that nobody has entries on any more */
	struct evr_task release; /* once it is idle, in steps */
	struct evr_cq_list cqs;
	struct evr_pd_list pds;
	struct evr_async async;
	unsigned users;
	struct ibv_device_attr attr;
	bool tells_last_receive; /* of a QP on a shared queue: it did */
	bool keeps_last_receive; /* it did not, when it should have */
	bool proven; /* a QP was made on it; else it may be gone, unknown to us, and is not kept */
	bool removed;
	bool deaf; /* its channel cannot be read: nobody comes to it any more */
};

TAILQ_HEAD(evr_device_list, evr_device);

/*
 * Finds the id's, or opens it, which is slow, for a base: that of the data, which need not be the
 * one that the CM's events come on. 0, -ENODEV when it is being removed, or -errno of the verb that
 * failed.
 */
int evr_device_get(
	struct evrdma_base *base, const struct evr_cmid *cmid, struct evr_device **device);
/* Slow when it is the last user of a device that was removed. NULL is fine. */
void evr_device_put(struct evr_device *device);
/* One of its CQs has nobody left on it. */
void evr_device_has_spare(struct evr_device *device);
/* The completion channel cannot be read any more. */
void evr_device_set_deaf(struct evr_device *device);
/* The CM said that the device is being removed. */
void evr_device_set_removed(struct evr_devices *devices, const struct ibv_context *verbs);
/*
 * With no user left anywhere: first its registrations, in the time that is left, false when they
 * are gone; then the rest.
 */
bool evr_device_shed_all(struct evr_devices *devices, uint64_t deadline_us);
void evr_device_release_all(struct evr_devices *devices);

#endif
