/* The events of a file: queueing, reading, counting. */
#include "fake/fake_cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fake_event *fake_event_new(struct fake_id *owner, unsigned type, int status)
{
	struct fake_event *event = fake_alloc(sizeof(*event));

	event->file = owner->file;
	event->owner = owner;
	event->resp.uid = owner->uid;
	event->resp.id = owner->number;
	event->resp.event = type;
	event->resp.status = (uint32_t)status;
	return event;
}

void fake_event_force(struct fake_event *event)
{
	fake_happens_before(event);
	TAILQ_INSERT_TAIL(&event->file->events, event, link);
	fake_bell_set(&event->file->bell, true);
}

/* Until it is accepted a child has no uid, and the kernel drops its events. */
void fake_event_queue(struct fake_event *event)
{
	if (event->owner->closed || (!event->owner->uid && !event->mc))
		free(event);
	else
		fake_event_force(event);
}

void fake_event_post(struct fake_id *owner, unsigned type, int status)
{
	fake_event_queue(fake_event_new(owner, type, status));
}

/* Takes it off its file; a request that nobody read takes its child along. */
void fake_event_free(struct fake_event *event)
{
	struct fake_file *file = event->file;
	struct fake_id *child = event->child;

	TAILQ_REMOVE(&file->events, event, link);
	fake_bell_set(&file->bell, !TAILQ_EMPTY(&file->events));
	free(event);
	if (child)
		fake_id_free(child);
}

static struct fake_event *event_of(const struct fake_id *owner, const struct fake_mc *mc)
{
	struct fake_event *event;

	TAILQ_FOREACH (event, &owner->file->events, link)
		if (event->owner == owner && (!mc || event->mc == mc))
			return event;
	return NULL;
}

/* From the start each time: with a request go the events of its child. */
void fake_events_drop(struct fake_id *owner, struct fake_mc *mc)
{
	struct fake_event *event;

	while ((event = event_of(owner, mc)))
		fake_event_free(event);
}

/*
 * Who polls the new file is not woken, as in the kernel: he finds them when he looks, or with the
 * next event.
 */
void fake_events_move(struct fake_id *owner, struct fake_file *from, struct fake_file *to)
{
	struct fake_event *event, *next;

	TAILQ_FOREACH_SAFE (event, &from->events, link, next) {
		if (event->owner != owner)
			continue;
		TAILQ_REMOVE(&from->events, event, link);
		TAILQ_INSERT_TAIL(&to->events, event, link);
		event->file = to;
		fake_happens_before(event);
		if (event->child)
			event->child->file = to;
	}
	fake_bell_set(&from->bell, !TAILQ_EMPTY(&from->events));
}

int fake_get_event(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_get_event *cmd = in;
	struct fake_event *event = TAILQ_FIRST(&file->events);

	if (out_len < offsetof(struct rdma_ucm_event_resp, reserved))
		return -ENOSPC;
	if (!event)
		return fake_bell_empty(&file->bell);
	fake_happens_after(event);
	fake_happens_after(event->owner);
	fake_respond(cmd->response, &event->resp, sizeof(event->resp), out_len);
	if (event->owner)
		event->owner->events_reported++;
	if (event->mc)
		event->mc->events_reported++;
	if (event->child)
		event->owner->backlog++;
	event->child = NULL;
	fake_event_free(event);
	return 0;
}
