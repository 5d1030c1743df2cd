/* Threads for the tests of the CM: workers that start together, and readers of events. */
#ifndef UNIT_CM_CREW_H
#define UNIT_CM_CREW_H

#include "unit/cm_unit.h"

#include <pthread.h>
#include <stdatomic.h>

enum { CREW_EVENT_TYPES = 20 };

/* Runs work(0) to work(n - 1), each in a thread of its own, at once; returns when all are done. */
void crew_run(unsigned n, void (*work)(unsigned number));

/* Reads a channel, which must not block, in a thread of its own and acknowledges each event. */
struct crew_reader {
	pthread_t thread;
	struct rdma_event_channel *channel;
	/* Called before the event is acknowledged, or NULL. */
	void (*on_event)(struct rdma_cm_event *event);
	atomic_bool stop;
	atomic_uint seen[CREW_EVENT_TYPES];
};

void crew_reader_start(struct crew_reader *reader, struct rdma_event_channel *channel,
	void (*on_event)(struct rdma_cm_event *event));
/* Returns when the thread has ended. */
void crew_reader_stop(struct crew_reader *reader);
/* Waits until that many events of the type have been acknowledged. */
void crew_reader_wait(struct crew_reader *reader, enum rdma_cm_event_type type, unsigned num);

#endif
