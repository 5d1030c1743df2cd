/* What must hold of the library's side, whatever the program does. */
#include "fuzz/sequence.h"

#include "cm/cm.h"
#include "kern/sys.h"

static struct seq_fixture *watched;
static const struct evr_sys *fake_sys;

/* --- the count of events --------------------------------------------------------------------- */

/* The ends of synchronous calls hold an event that counts as soon as they let go of it. */
static uint32_t kept_for(const struct evr_cm_id *id)
{
	uint32_t kept = 0;
	size_t i;

	for (i = 0; i < SEQ_IDS; i++) {
		const struct rdma_cm_id *other = watched->slots[i].id;

		if (other && other->event)
			kept += ((struct evr_cm_event *)other->event)->counted == id;
	}
	return kept;
}

static const struct evr_cm_id *id_by_handle(uint32_t handle)
{
	size_t i;

	for (i = 0; i < SEQ_IDS; i++)
		if (watched->slots[i].id && evr_cm_id(watched->slots[i].id)->handle == handle)
			return evr_cm_id(watched->slots[i].id);
	return NULL;
}

static void check_id_count(uint32_t handle, uint32_t reported)
{
	const struct evr_cm_id *id = id_by_handle(handle);

	if (id && reported != id->events_done + kept_for(id))
		fuzz_fail("id %u: %u events reported, %u done, %u kept", handle, reported,
			id->events_done, kept_for(id));
}

static ssize_t watching_write(int fd, const void *buf, size_t len)
{
	const struct evr_ucma_cmd_destroy *cmd = buf;
	const struct evr_ucma_cmd_migrate_id *move = buf;
	const struct evr_ucma_resp_events *resp;
	ssize_t n = fake_sys->write(fd, buf, len);

	if (n < 0)
		return n;
	if (cmd->hdr.op == EVR_UCMA_DESTROY_ID || cmd->hdr.op == EVR_UCMA_MIGRATE_ID) {
		resp = (const void *)(uintptr_t)cmd->response;
		check_id_count(cmd->hdr.op == EVR_UCMA_DESTROY_ID ? cmd->handle : move->handle,
			resp->events_reported);
	}
	return n;
}

void seq_watch(struct seq_fixture *f)
{
	static struct evr_sys watching;

	watched = f;
	fake_sys = evr_sys;
	watching = *fake_sys;
	watching.write = watching_write;
	evr_sys = &watching;
}

/* --- the fields of an id --------------------------------------------------------------------- */

static void check_id(const struct evr_cm_id *id)
{
	const struct rdma_route *route = &id->id.route;

	fuzz_check(evr_cm_map_find_id(evr_cm_uid(id)) == id);
	fuzz_check(id->id.channel);
	fuzz_check(!id->id.verbs == !id->dev);
	fuzz_check(!id->dev || (id->id.verbs == id->dev->verbs && id->id.pd && id->id.port_num));
	fuzz_check(!id->id.qp || (id->id.qp->context == id->id.verbs && id->id.pd));
	fuzz_check(!route->num_paths == !route->path_rec);
	fuzz_check(!id->id.event || id->sync);
}

static void check_event(const struct seq_event *held)
{
	const struct evr_cm_event *evt = (const struct evr_cm_event *)held->event;

	fuzz_check(evt->counted == evr_cm_id(held->counted));
	fuzz_check(!evt->mc || evt->mc->id == evt->counted);
}

void seq_check(const struct seq_fixture *f)
{
	size_t i;

	for (i = 0; i < SEQ_IDS; i++)
		if (f->slots[i].id)
			check_id(evr_cm_id(f->slots[i].id));
	for (i = 0; i < f->num_events; i++)
		check_event(&f->events[i]);
}
