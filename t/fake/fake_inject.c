/* Events that nothing caused, and what becomes of those that wait: their order, their number. */
#include "fake/fake_cm.h"
#include "kern/ucma_abi.h"

#include <errno.h>
#include <string.h>

_Static_assert(sizeof(struct evr_ucma_resp_event) == sizeof(struct rdma_ucm_event_resp),
	"an event of the library's ABI is not one of the kernel's");

/* The last one wins, which makes no difference but for ids without a uid. */
static struct fake_id *id_of_uid(const void *uid)
{
	struct fake_id *id, *found = NULL;
	uint32_t i;

	FAKE_FOREACH_ID(id, i)
	if (id->uid == (uintptr_t)uid)
		found = id;
	return found;
}

static struct fake_mc *membership(struct fake_id *id, unsigned group)
{
	struct fake_mc *mc;

	TAILQ_FOREACH (mc, &id->mcs, link)
		if (!--group)
			return mc;
	return NULL;
}

/* The subject's own names, in place of what the answer had there. */
static void queue(struct fake_event *event, const struct rdma_ucm_event_resp *resp)
{
	uint64_t uid = event->resp.uid;
	uint32_t number = event->resp.id;

	event->resp = *resp;
	event->resp.uid = event->mc ? event->mc->uid : uid;
	event->resp.id = event->mc ? event->mc->number : number;
	if (resp->event == FAKE_EV_CONNECT_REQUEST && !event->mc) {
		event->child = fake_child_forge(event->owner);
		event->resp.id = event->child->number;
	}
	fake_event_force(event);
}

static int inject(const void *uid, unsigned group, const struct rdma_ucm_event_resp *resp)
{
	struct fake_id *id = id_of_uid(uid);
	struct fake_mc *mc = id && group ? membership(id, group) : NULL;
	struct fake_event *event;

	if (!id || (group && !mc))
		return -ENOENT;
	event = fake_event_new(id, resp->event, 0);
	event->mc = mc;
	queue(event, resp);
	return 0;
}

int fake_inject_event(const void *uid, unsigned group, const struct evr_ucma_resp_event *event)
{
	struct rdma_ucm_event_resp resp;

	FAKE_GUARD();
	memcpy(&resp, event, sizeof(resp));
	return inject(uid, group, &resp);
}

int fake_inject_data(const void *uid, unsigned type, int status, const void *data, uint8_t len)
{
	struct rdma_ucm_event_resp resp = { .event = type, .status = (uint32_t)status };
	struct fake_id *id;

	FAKE_GUARD();
	id = id_of_uid(uid);
	if (id && fake_is_ud(id)) {
		memcpy(resp.param.ud.private_data, data, len);
		resp.param.ud.private_data_len = len;
	} else {
		memcpy(resp.param.conn.private_data, data, len);
		resp.param.conn.private_data_len = len;
	}
	return inject(uid, 0, &resp);
}

int fake_inject(const void *uid, unsigned type, int status)
{
	return fake_inject_data(uid, type, status, "", 0);
}

int fake_inject_stray(int fd, const struct evr_ucma_resp_event *event)
{
	struct fake_event *stray;
	struct fake_file *file;

	FAKE_GUARD();
	file = fake_file_of(fd);
	if (!file)
		return -EBADF;
	stray = fake_alloc(sizeof(*stray));
	stray->file = file;
	memcpy(&stray->resp, event, sizeof(stray->resp));
	fake_event_force(stray);
	return 0;
}

unsigned fake_unread(int fd)
{
	struct fake_event *event;
	struct fake_file *file;
	unsigned n = 0;

	FAKE_GUARD();
	file = fake_file_of(fd);
	if (file)
		TAILQ_FOREACH (event, &file->events, link)
			n++;
	return n;
}

static struct fake_event *unread(int fd, unsigned n)
{
	struct fake_file *file = fake_file_of(fd);
	struct fake_event *event;

	if (file)
		TAILQ_FOREACH (event, &file->events, link)
			if (!--n)
				return event;
	return NULL;
}

int fake_bring_forward(int fd, unsigned n)
{
	struct fake_event *event;

	FAKE_GUARD();
	event = unread(fd, n);
	if (!event)
		return -ENOENT;
	TAILQ_REMOVE(&event->file->events, event, link);
	TAILQ_INSERT_HEAD(&event->file->events, event, link);
	return 0;
}

int fake_repeat(int fd, unsigned n)
{
	struct fake_event *event, *copy;

	FAKE_GUARD();
	event = unread(fd, n);
	if (!event)
		return -ENOENT;
	if (event->child)
		return -EINVAL;
	copy = fake_alloc(sizeof(*copy));
	*copy = *event;
	fake_event_force(copy);
	return 0;
}
