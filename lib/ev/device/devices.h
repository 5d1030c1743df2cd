/* What a base has of the devices: those it uses, and who waits for what completes on them. */
#ifndef EVR_EV_DEVICES_H
#define EVR_EV_DEVICES_H

#include "ev/core/part.h"
#include "ev/device/async.h"
#include "ev/device/cq.h"
#include "ev/device/device.h"
#include "ev/device/devlist.h"
#include "ev/device/pd.h"
#include "util/idmap.h"

#include <evrdma/base.h>

struct evr_devices {
	struct evr_part part;
	struct evr_device_list list;
	struct evr_devlist devlist;
	struct evr_async_queue async;
	struct evr_cq_list ready_cqs;
	struct evr_idmap work_owners;
	struct evr_domain_list domains;
	unsigned comp_vector; /* modulo what a device has */
	evrdma_base_device_cb cb;
	void *arg;
};

int evr_devices_start(struct evrdma_base *base);
struct evr_devices *evr_devices_of(const struct evrdma_base *base);

#endif
