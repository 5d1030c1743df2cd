/*
 * Completion queues and the one driver for them: arm, poll again, then sleep. A CQ keeps entries
 * for every piece of work that a QP on it may have posted, so it cannot overrun.
 */
#ifndef EVR_EV_CQ_H
#define EVR_EV_CQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "ev/async.h"
#include "util/list.h"

struct evrdma_base;
struct evr_device;

struct evr_cq {
	TAILQ_ENTRY(evr_cq) link;
	TAILQ_ENTRY(evr_cq) ready_link;
	struct evr_device *device;
	struct ibv_cq *cq;
	uint32_t reserved;
	uint32_t released; /* given back, but old entries may still be in the queue */
	unsigned unacked;
	bool armed;
	bool ready;
	bool polling;
	bool broken; /* the device said so: no QP is added */
	struct evr_async_subject async;
};

TAILQ_HEAD(evr_cq_list, evr_cq);

/* Reserves entries on a CQ that has them, or on a new one, which is slow. */
int evr_cq_reserve(struct evr_device *device, uint32_t entries, struct evr_cq **cq);
void evr_cq_unreserve(struct evr_cq *cq, uint32_t entries);
void evr_cq_destroy_all(struct evr_cq_list *cqs);

/* The completion channel is readable. */
void evr_cq_read_channel(struct evr_device *device);
/* Goes on with the CQs that had more than a turn's budget. */
void evr_cq_service_ready(struct evrdma_base *base);
/*
 * Takes all completions that are there, whatever the budget. From within one of the CQ's
 * callbacks it does nothing: what is taken must be told in order.
 */
void evr_cq_drain(struct evr_cq *cq);

#endif
