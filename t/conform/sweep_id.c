/* The thin layer, and channels that belong to the caller. */
#include "conform/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>

enum { TIMEOUT_MS = 200 };

/* Of the scenario that runs. */
static struct {
	struct evrdma_id *listener, *client, *server;
	struct evrdma_base *other;
	struct rdma_event_channel *channel;
	unsigned up, down;
} t;

static void on_event(struct evrdma_id *id, const struct rdma_cm_event *event, void *arg);

static struct evrdma_id *new_id(struct run *r, int port_space)
{
	return run_made(r, evrdma_id_new(r->base, port_space, on_event, r));
}

/* What the CM itself says of an id that went with its device is the kernel's word for it. */
static int cm_errno(int err)
{
	return err == ENXIO ? ENODEV : err;
}

static int cm_result(int ret)
{
	return ret ? -cm_errno(errno) : 0;
}

static bool make_qp(struct run *r, struct evrdma_id *id)
{
	struct ibv_qp_init_attr init = { .cap = { 2, 2, 1, 1, 0 },
		.qp_type = evrdma_id_get_cm_id(id)->qp_type };

	return run_ok(r, cm_result(rdma_create_qp(evrdma_id_get_cm_id(id), NULL, &init)));
}

/* What an operation came to, and whether the scenario goes on. */
static bool ended_well(struct run *r, const struct evrdma_error *error)
{
	r->over++;
	if (error)
		run_fail(r, error->err);
	return !error && !r->finished;
}

static void begun(struct run *r, int ret)
{
	r->asked += run_ok(r, ret);
}

/* --- a connection, step by step -------------------------------------------------------------- */

static void on_down(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct run *r = arg;

	if (!ended_well(r, error))
		return;
	r->through = true;
	run_finish(r);
}

static void on_up(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct run *r = arg;

	if (ended_well(r, error) && ++t.up == 2)
		begun(r, evrdma_id_disconnect(t.client, on_down, r));
}

static void on_route(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct run *r = arg;

	if (!ended_well(r, error) || !make_qp(r, id))
		return;
	r->connects_begun++;
	begun(r, evrdma_id_connect(id, NULL, TIMEOUT_MS, on_up, r));
}

static void on_addr(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct run *r = arg;

	if (ended_well(r, error))
		begun(r, evrdma_id_resolve_route(id, TIMEOUT_MS, on_route, r));
}

static void accept_child(struct run *r, struct rdma_cm_id *child)
{
	r->requests++;
	if (!r->finished)
		t.server = run_made(r, evrdma_id_adopt(r->base, child, on_event, r));
	if (!t.server)
		rdma_destroy_id(child);
	else if (make_qp(r, t.server))
		begun(r, evrdma_id_accept(t.server, NULL, TIMEOUT_MS, on_up, r));
}

static void on_event(struct evrdma_id *id, const struct rdma_cm_event *event, void *arg)
{
	struct run *r = arg;

	if (!event)
		r->closed++;
	else if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		accept_child(r, event->id);
	else if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		run_fail(r, ENODEV);
	else if (event->event == RDMA_CM_EVENT_DISCONNECTED && id == t.server)
		evrdma_id_close(id);
}

static void resolve(struct run *r)
{
	begun(r, evrdma_id_resolve_addr(t.client, NULL, run_address(sweep_ip(), SWEEP_PORT),
			 TIMEOUT_MS, on_addr, r));
}

static bool listen_by_id(struct run *r)
{
	t.listener = new_id(r, RDMA_PS_TCP);
	return t.listener &&
	       run_ok(r, evrdma_id_bind(t.listener, run_address(sweep_ip(), SWEEP_PORT))) &&
	       run_ok(r, evrdma_id_listen(t.listener, 8));
}

static void ids_connect(struct run *r)
{
	t.server = NULL;
	t.up = 0;
	if (!listen_by_id(r))
		return;
	t.client = new_id(r, RDMA_PS_TCP);
	if (t.client)
		resolve(r);
}

/* --- a refusal, on another base -------------------------------------------------------------- */

static void on_refused(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct run *r = arg;

	r->over++;
	r->through = error && error->err == ECONNREFUSED && t.server;
	run_fail(r, error ? error->err : EBADMSG);
}

static void refuse_child(struct evrdma_id *id, const struct rdma_cm_event *event, void *arg)
{
	struct run *r = arg;

	if (!event || event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		on_event(id, event, arg);
		return;
	}
	r->requests++;
	t.server = run_made(r, evrdma_id_adopt(t.other, event->id, on_event, r));
	if (!t.server)
		rdma_destroy_id(event->id);
	else
		run_ok(r, evrdma_id_reject(t.server, "no", 3));
}

static void connect_and_be_refused(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct run *r = arg;

	if (!ended_well(r, error) || !make_qp(r, id))
		return;
	r->connects_begun++;
	begun(r, evrdma_id_connect(id, NULL, TIMEOUT_MS, on_refused, r));
}

static void resolve_and_be_refused(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct run *r = arg;

	if (ended_well(r, error) && run_ok(r, evrdma_id_migrate(id, t.other)))
		begun(r, evrdma_id_resolve_route(id, TIMEOUT_MS, connect_and_be_refused, r));
}

static void id_refuses(struct run *r)
{
	t.server = NULL;
	r->awaited = ECONNREFUSED;
	t.other = run_add_base(r, NULL);
	if (!t.other)
		return;
	t.listener = run_made(r, evrdma_id_new(r->base, RDMA_PS_TCP, refuse_child, r));
	t.client = r->finished ? NULL : new_id(r, RDMA_PS_TCP);
	if (!t.client ||
		!run_ok(r, evrdma_id_bind(t.listener, run_address(sweep_ip(), SWEEP_PORT))) ||
		!run_ok(r, evrdma_id_listen(t.listener, 8)))
		return;
	begun(r, evrdma_id_resolve_addr(t.client, NULL, run_address(sweep_ip(), SWEEP_PORT),
			 TIMEOUT_MS, resolve_and_be_refused, r));
}

/* --- a group --------------------------------------------------------------------------------- */

static void on_joined(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct run *r = arg;

	if (!ended_well(r, error) || !run_ok(r, evrdma_id_leave(id, run_address("239.1.2.3", 0))))
		return;
	r->through = true;
	run_finish(r);
}

static void id_joins(struct run *r)
{
	t.client = new_id(r, RDMA_PS_UDP);
	if (t.client && run_ok(r, evrdma_id_bind(t.client, run_address(sweep_ip(), 0))) &&
		make_qp(r, t.client))
		begun(r, evrdma_id_join(t.client, run_address("239.1.2.3", 0), 0, on_joined, r));
}

/* --- a channel of the caller's --------------------------------------------------------------- */

static struct rdma_cm_id *foreign;

static void destroy_foreign(void)
{
	if (foreign)
		rdma_destroy_id(foreign);
	foreign = NULL;
}

static void on_foreign(struct evrdma_base *base, const struct rdma_cm_event *event, void *arg)
{
	struct run *r = arg;

	if (event->event == RDMA_CM_EVENT_ADDR_RESOLVED)
		r->through = evrdma_base_get_channel(base) == t.channel;
	else
		run_note(r, event->status ? cm_errno(-event->status) : ENODEV);
	/* Before the channel is read for the last time: the CM lets go of the device then. */
	destroy_foreign();
	run_finish(r);
}

static void destroy_channel(struct run *r)
{
	if (t.channel)
		rdma_destroy_event_channel(t.channel);
}

/* Its closed callback is the last that is heard of the base. */
static void on_channel_base_closed(struct evrdma_base *base, void *arg)
{
	destroy_foreign();
	run_on_base_closed(base, arg);
}

static void resolve_foreign(struct run *r)
{
	struct sockaddr *addr = run_address(sweep_ip(), SWEEP_PORT);

	if (run_ok(r, cm_result(rdma_create_id(t.channel, &foreign, NULL, RDMA_PS_TCP))))
		run_ok(r, cm_result(rdma_resolve_addr(foreign, NULL, addr, TIMEOUT_MS)));
}

static void channel_is_the_callers(struct run *r)
{
	struct evrdma_base *base;

	foreign = NULL;
	t.channel = run_have(r, rdma_create_event_channel());
	r->after = destroy_channel;
	if (!t.channel)
		return;
	run_ok(r, cm_result(fcntl(t.channel->fd, F_SETFL, O_NONBLOCK)));
	base = run_have(r, evrdma_base_new_with_channel(r->loop, t.channel, NULL));
	if (!base)
		return;
	run_take_base(r, base, on_channel_base_closed);
	evrdma_base_set_event_cb(base, on_foreign, r);
	resolve_foreign(r);
}

const struct scenario sweep_id[] = {
	{ "ids connect", ids_connect },
	{ "id refuses", id_refuses },
	{ "id joins", id_joins, FAKE_GROUPS },
	{ "channel is the caller's", channel_is_the_callers },
	{ NULL, NULL },
};
