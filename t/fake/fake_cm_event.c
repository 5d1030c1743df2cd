/* The events of a file: queueing, reading, counting. */
#include "fake/fake_cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fake_event *fake_event_new(struct fake_id *owner, unsigned type, int status)
{
	struct fake_event *event = fake_alloc(sizeof(*event));

	event->owner = owner;
	event->resp.uid = owner->uid;
	event->resp.id = owner->number;
	event->resp.event = type;
	event->resp.status = (uint32_t)status;
	return event;
}

/* Until it is accepted a child has no uid, and the kernel drops its events. */
void fake_event_queue(struct fake_event *event)
{
	struct fake_file *file = event->owner->file;

	if (event->owner->closed || (!event->owner->uid && !event->mc)) {
		free(event);
		return;
	}
	TAILQ_INSERT_TAIL(&file->events, event, link);
	fake_bell_set(&file->bell, true);
}

void fake_event_post(struct fake_id *owner, unsigned type, int status)
{
	fake_event_queue(fake_event_new(owner, type, status));
}

/* Takes it off its file; a request that nobody read takes its child along. */
void fake_event_free(struct fake_event *event)
{
	struct fake_file *file = event->owner->file;
	struct fake_id *child = event->child;

	TAILQ_REMOVE(&file->events, event, link);
	fake_bell_set(&file->bell, !TAILQ_EMPTY(&file->events));
	free(event);
	if (child)
		fake_id_free(child);
}

void fake_events_drop(struct fake_id *owner, struct fake_mc *mc)
{
	struct fake_event *event, *next;

	TAILQ_FOREACH_SAFE (event, &owner->file->events, link, next)
		if (event->owner == owner && (!mc || event->mc == mc))
			fake_event_free(event);
}

void fake_events_move(struct fake_id *owner, struct fake_file *from, struct fake_file *to)
{
	struct fake_event *event, *next;

	TAILQ_FOREACH_SAFE (event, &from->events, link, next) {
		if (event->owner != owner)
			continue;
		TAILQ_REMOVE(&from->events, event, link);
		TAILQ_INSERT_TAIL(&to->events, event, link);
		if (event->child)
			event->child->file = to;
	}
	fake_bell_set(&from->bell, !TAILQ_EMPTY(&from->events));
	fake_bell_set(&to->bell, !TAILQ_EMPTY(&to->events));
}

int fake_get_event(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_get_event *cmd = in;
	struct fake_event *event = TAILQ_FIRST(&file->events);

	if (out_len < offsetof(struct rdma_ucm_event_resp, reserved))
		return -ENOSPC;
	if (!event)
		return fake_bell_empty(&file->bell);
	fake_respond(cmd->response, &event->resp, sizeof(event->resp), out_len);
	event->owner->events_reported++;
	if (event->mc)
		event->mc->events_reported++;
	if (event->child)
		event->owner->backlog++;
	event->child = NULL;
	fake_event_free(event);
	return 0;
}

static struct fake_id *id_of_uid(const void *uid)
{
	struct fake_id *id;
	uint32_t i;

	FAKE_FOREACH_ID(id, i)
	if (id->uid == (uintptr_t)uid)
		return id;
	return NULL;
}

int fake_inject_data(const void *uid, unsigned type, int status, const void *data, uint8_t len)
{
	struct fake_event *event;
	struct fake_id *id;

	FAKE_GUARD();
	id = id_of_uid(uid);
	if (!id)
		return -ENOENT;
	event = fake_event_new(id, type, status);
	if (fake_is_ud(id)) {
		memcpy(event->resp.param.ud.private_data, data, len);
		event->resp.param.ud.private_data_len = len;
	} else {
		memcpy(event->resp.param.conn.private_data, data, len);
		event->resp.param.conn.private_data_len = len;
	}
	fake_event_queue(event);
	return 0;
}

int fake_inject(const void *uid, unsigned type, int status)
{
	return fake_inject_data(uid, type, status, "", 0);
}
