/* Waiting: for the acknowledgement of events, and on a synchronous id for the event itself. */
#include "cm/cm.h"

#include <errno.h>

enum { LAST_ERRNO = 4095 };

/* The counters may wrap. */
static bool is_behind(uint32_t done, uint32_t reported)
{
	return (int32_t)(reported - done) > 0;
}

void evr_cm_wait_events(struct evr_cm_id *id, uint32_t reported)
{
	pthread_mutex_lock(&id->lock);
	while (is_behind(id->events_done, reported))
		pthread_cond_wait(&id->event_done, &id->lock);
	pthread_mutex_unlock(&id->lock);
}

void evr_cm_wait_mc_events(struct evr_cm_mc *mc, uint32_t reported)
{
	pthread_mutex_lock(&mc->id->lock);
	while (is_behind(mc->events_done, reported))
		pthread_cond_wait(&mc->id->event_done, &mc->id->lock);
	pthread_mutex_unlock(&mc->id->lock);
}

/* In place of what was left there, which is given back. */
static void leave_event(struct evr_cm_id *id, struct rdma_cm_event *event)
{
	struct rdma_cm_event *before;

	pthread_mutex_lock(&id->lock);
	before = id->id.event;
	id->id.event = event;
	pthread_mutex_unlock(&id->lock);
	if (before)
		rdma_ack_cm_event(before);
}

void evr_cm_release_event(struct evr_cm_id *id)
{
	leave_event(id, NULL);
}

/* Reasons are positive; either may be anything that the peer or the kernel thought of. */
static int status_to_error(int status)
{
	if (status > LAST_ERRNO || status < -LAST_ERRNO)
		return -EIO;
	return status < 0 ? status : -status;
}

/* Who writes to an id that waits wants it to stop, and may say what for. */
static int end_of_user(int status)
{
	return status ? status_to_error(status) : -EINTR;
}

static int status_to_result(const struct rdma_cm_event *event)
{
	const struct evr_cm_event *evt = (const struct evr_cm_event *)event;

	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return evr_cm_result(-ENODEV);
	if (event->event == RDMA_CM_EVENT_USER)
		return evr_cm_result(end_of_user(event->status));
	if (!event->status || evt->error)
		return evr_cm_result(evt->error);
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return evr_cm_result(-ECONNREFUSED);
	return evr_cm_result(status_to_error(event->status));
}

/* What tells of something else than the answer. */
static bool is_by_the_way(const struct rdma_cm_event *event)
{
	return event->event == RDMA_CM_EVENT_ADDR_CHANGE ||
	       event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT;
}

static int read_event(struct evr_cm_id *id, struct rdma_cm_event **event)
{
	while (!rdma_get_cm_event(id->id.channel, event)) {
		if (!is_by_the_way(*event))
			return 0;
		rdma_ack_cm_event(*event);
	}
	return -1;
}

/* Who waits for the answer to a call would never look for the child. */
static bool refuse_request(struct rdma_cm_event *event)
{
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return false;
	evr_cm_id_drop(evr_cm_id(event->id));
	rdma_ack_cm_event(event);
	return true;
}

int evr_cm_complete(struct evr_cm_id *id)
{
	struct rdma_cm_event *event;

	if (!id->sync)
		return 0;
	evr_cm_release_event(id);
	do {
		if (read_event(id, &event))
			return -1;
	} while (refuse_request(event));
	leave_event(id, event);
	return status_to_result(event);
}

/* Other threads may do the same: what is left on the id may go at once. */
int evr_cm_await_request(struct evr_cm_id *id, struct rdma_cm_event **request)
{
	struct rdma_cm_event *event;
	int ret;

	evr_cm_release_event(id);
	if (read_event(id, &event))
		return -1;
	/* It brought an id, whatever its status is. */
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		*request = event;
		return 0;
	}
	ret = status_to_result(event) ? -errno : -EINVAL;
	leave_event(id, event);
	return evr_cm_result(ret);
}
