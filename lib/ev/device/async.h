/*
 * Asynchronous events of devices. A device has one descriptor for them in a process, so that one
 * base reads it for all that use the device: each event is acknowledged where it is read, noted for
 * whom it concerns, and told on the thread of that one's base, by its inbox.
 */
#ifndef EVR_EV_ASYNC_H
#define EVR_EV_ASYNC_H

#include <event2/event_struct.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "ev/core/inbox.h"
#include "util/list.h"

struct evrdma_base;
struct evr_async;
struct evr_async_context;

/* Who wants to hear of a QP, a CQ, an SRQ or a port. */
struct evr_async_subject {
	/* On the thread of the base; a bit 1 << enum ibv_event_type for each that came. */
	void (*happened)(struct evr_async_subject *subject, uint32_t events);

	struct evr_async *async;
	TAILQ_ENTRY(evr_async_subject) link; /* of those with events; under async.c's lock */
	uint32_t events;		     /* under the lock */
};

TAILQ_HEAD(evr_async_subject_list, evr_async_subject);

/* What a base has been told and has not yet passed on; all under the lock. */
struct evr_async_queue {
	struct evr_inbox_item item;
	bool queued;
	struct evr_async_subject_list subjects;
};

/* A base's part in one device. */
struct evr_async {
	TAILQ_ENTRY(evr_async) link; /* of the context's; under the lock */
	struct evrdma_base *base;
	struct evr_async_queue *queue; /* of that base */
	struct evr_async_context *context;
	struct event event;
	bool reading;
	struct evr_async_subject *ports; /* 0 is the device as a whole */
	unsigned port_count;
};

void evr_async_queue_init(struct evr_async_queue *queue);

/*
 * Joins those who are told of a device: 0 or -errno. port_happened is told of the events of each
 * port from 1 to port_count, and of the device.
 */
int evr_async_start(struct evr_async *async, struct evrdma_base *base, struct ibv_context *verbs,
	unsigned port_count,
	void (*port_happened)(struct evr_async_subject *subject, uint32_t events));
void evr_async_stop(struct evr_async *async);
/* The number of the port that a subject stands for. */
unsigned evr_async_port_of(const struct evr_async_subject *subject);

/*
 * From now on the subject, with happened set, is told of the events of a QP, a CQ or an SRQ: 0 or
 * -ENOMEM. Without is for before it is destroyed, and for one that was never watched too.
 */
int evr_async_watch(struct evr_async *async, const void *object, struct evr_async_subject *subject);
void evr_async_unwatch(const void *object, struct evr_async_subject *subject);

#endif
