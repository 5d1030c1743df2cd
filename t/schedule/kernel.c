/* A machine of fakes: what the kernel, the network, the device and the time do. */
#include "ev/core/lock.h"
#include "fake/fake.h"
#include "schedule/schedule.h"

#include <errno.h>
#include <rdma/rdma_cma.h>

/* --- messages -------------------------------------------------------------------------------- */

static enum fake_message any_message(struct world *w)
{
	return (enum fake_message)random_below(&w->random, FAKE_MESSAGES);
}

static void hold(struct world *w)
{
	enum fake_message kind = any_message(w);

	if (!w->profile.holds)
		return;
	trace(w, "kernel: hold messages %d", kind);
	fake_hold(kind);
}

static void let_go(struct world *w)
{
	enum fake_message kind = any_message(w);

	if (w->profile.holds && fake_held(kind))
		trace(w, "kernel: release %u messages %d", fake_release(kind), kind);
}

static void time_out(struct world *w)
{
	enum fake_message kind = any_message(w);

	if (fake_held(kind))
		trace(w, "kernel: %u messages %d are lost", fake_time_out(kind), kind);
}

/* --- work ------------------------------------------------------------------------------------ */

static void by_hand(struct world *w)
{
	bool on = random_once_in(&w->random, 2);

	if (!w->profile.by_hand)
		return;
	trace(w, "kernel: work %s", on ? "by hand" : "by itself");
	fake_work_by_hand(on);
	fake_step_before_arming(random_below(&w->random, 3));
	fake_work_order(
		random_once_in(&w->random, 2) ? FAKE_NEWEST_QP_FIRST : FAKE_OLDEST_QP_FIRST);
}

static void step_work(struct world *w)
{
	unsigned n = 1 + random_below(&w->random, 8);

	if (w->profile.by_hand)
		trace(w, "kernel: carry out %u of %u", fake_step(n), n);
}

static void time_out_work(struct world *w)
{
	if (w->profile.faults && random_once_in(&w->random, 3)) {
		w->troubled = true;
		trace(w, "kernel: %u QPs give up", fake_time_out_work());
	}
}

/* --- trouble --------------------------------------------------------------------------------- */

static void fail(struct world *w)
{
	static const int errors[] = { ENOMEM, EIO, EAGAIN, EINVAL, ENODEV };
	unsigned n = 1 + random_below(&w->random, 12);
	int err = RANDOM_OF(&w->random, errors);

	if (!w->profile.faults)
		return;
	trace(w, "kernel: call %u from now fails with %d", n, err);
	w->troubled = true;
	fake_fail_nth(FAKE_ANY, n, err);
}

static enum fake_kind kind;

static void cover_pull(struct thing *thing)
{
	static const unsigned marks[KINDS] = {
		[LISTENER] = LISTENER_PULLED,
		[REQUEST] = REQUEST_PULLED,
		[CONN] = CONN_PULLED,
		[DGRAM] = DGRAM_PULLED,
		[GROUP] = GROUP_PULLED,
		[PEER] = PEER_PULLED,
		[ID] = ID_PULLED,
		[FOREIGN] = FOREIGN_PULLED,
	};

	if (thing->kind != BASE && thing->kind != POOL && thing->kind != SRQ)
		cover(thing->kind, thing->state, marks[thing->kind]);
}

static void pull(struct world *w)
{
	struct thing *thing;
	unsigned i;

	if (!w->profile.pulls || w->pulled)
		return;
	trace(w, "kernel: the device is pulled");
	w->troubled = w->pulled = true;
	w->pulls++;
	FOR_EACH_THING(w, thing, i)
	if (!thing->gone)
		cover_pull(thing);
	fake_device_remove(kind);
}

static void plug_in(struct world *w)
{
	if (!w->pulled || !fake_device_gone(kind))
		return;
	trace(w, "kernel: the device is back");
	w->pulled = false;
	fake_device_add(kind);
}

static void inject_on(struct world *w, const struct thing *thing, struct rdma_cm_id *cm,
	enum rdma_cm_event_type event)
{
	if (!w->profile.injects || !cm)
		return;
	trace(w, "kernel: %s %u gets %s", cover_kind_name(thing->kind), thing->number,
		rdma_event_str(event));
	fake_inject(cm, event, event == RDMA_CM_EVENT_REJECTED ? 28 : 0);
}

/* Events that may come at any time, late ones and second ones too. */
static void inject(struct world *w)
{
	static const enum rdma_cm_event_type events[] = { RDMA_CM_EVENT_DISCONNECTED,
		RDMA_CM_EVENT_TIMEWAIT_EXIT, RDMA_CM_EVENT_ADDR_CHANGE, RDMA_CM_EVENT_UNREACHABLE,
		RDMA_CM_EVENT_REJECTED, RDMA_CM_EVENT_CONNECT_ERROR };
	struct side *side = thing_pick(w, CONN, ANY_STATE);

	if (side)
		inject_on(w, &side->thing, evrdma_conn_get_cm_id(side->conn),
			RANDOM_OF(&w->random, events));
}

static void inject_on_id(struct world *w)
{
	static const enum rdma_cm_event_type events[] = { RDMA_CM_EVENT_TIMEWAIT_EXIT,
		RDMA_CM_EVENT_ADDR_CHANGE };
	struct plain *plain = thing_pick(w, ID, ANY_STATE);

	if (plain)
		inject_on(w, &plain->thing, evrdma_id_get_cm_id(plain->id),
			RANDOM_OF(&w->random, events));
}

/* From nobody who is there. */
static void inject_request(struct world *w)
{
	struct port *port = thing_pick(w, LISTENER, ANY_STATE);
	struct rdma_cm_id *cm = port ? evrdma_listener_get_cm_id(port->listener) : NULL;

	if (!w->profile.injects || !cm || w->thing_count >= ENOUGH_THINGS)
		return;
	trace(w, "kernel: listener %u gets a request", port->thing.number);
	fake_inject(cm, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
}

static void raise_async(struct world *w)
{
	static const enum ibv_event_type events[] = { IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE,
		IBV_EVENT_LID_CHANGE, IBV_EVENT_GID_CHANGE };

	if (!w->profile.async || w->hands_in || w->pulled)
		return;
	trace(w, "kernel: the port has news");
	fake_async_port(kind, RANDOM_OF(&w->random, events));
}

/* --- time ------------------------------------------------------------------------------------ */

static void turn(struct world *w)
{
	unsigned n = 1 + random_below(&w->random, 4);

	while (n-- && world_turn(w))
		;
}

static void settle(struct world *w)
{
	world_settle(w);
}

static void skip(struct world *w)
{
	trace(w, "time: to the next timer");
	world_skip(w);
}

/* What was asked for but not begun has its whole time yet when the loop comes to it. */
static void forgive(struct thing *thing, uint64_t us)
{
	switch (thing->kind) {
	case BASE:
		((struct home *)thing)->since_us += us;
		break;
	case CONN:
		((struct side *)thing)->since_us += us;
		break;
	case DGRAM:
		((struct endpoint *)thing)->since_us += us;
		break;
	default:
		break;
	}
}

static void wait(struct world *w)
{
	static const unsigned us[] = { 1000, 1000, 5000, 20000, 60000, 1100000, 11000000 };
	unsigned long_us = RANDOM_OF(&w->random, us);
	bool at_rest = random_once_in(&w->random, 2);
	struct thing *thing;
	unsigned i;

	if (at_rest)
		world_settle(w);
	trace(w, "time: %u us", long_us);
	clock_advance_us(long_us);
	FOR_EACH_THING(w, thing, i)
	if (!at_rest && !thing->gone)
		forgive(thing, long_us);
	world_settle(w);
}

static const struct action actions[] = {
	{ "turn", 60, turn },
	{ "settle", 16, settle },
	{ "skip", 6, skip },
	{ "wait", 4, wait },
	{ "hold", 8, hold },
	{ "release messages", 10, let_go },
	{ "time out", 6, time_out },
	{ "by hand", 6, by_hand },
	{ "step work", 20, step_work },
	{ "time out work", 1, time_out_work },
	{ "fail", 8, fail },
	{ "pull", 2, pull },
	{ "plug in", 6, plug_in },
	{ "inject", 6, inject },
	{ "inject on id", 4, inject_on_id },
	{ "inject request", 3, inject_request },
	{ "async", 4, raise_async },
	{ 0 },
};

/* --- beginning and end ----------------------------------------------------------------------- */

static void begin(struct world *w)
{
	static const enum fake_kind kinds[] = { FAKE_ROCE, FAKE_ROCE, FAKE_ROCE, FAKE_IWARP,
		FAKE_IB };
	static const char *const ips[FAKE_KINDS] = {
		[FAKE_ROCE] = FAKE_ROCE_IP, [FAKE_IWARP] = FAKE_IWARP_IP, [FAKE_IB] = FAKE_IB_IP
	};

	kind = fake_kind_to_test(RANDOM_OF(&w->random, kinds));
	w->ip = ips[kind];
	w->is_iwarp = kind == FAKE_IWARP;
	w->has_atomics = !(fake_lacks(kind) & FAKE_ATOMICS);
	w->has_immediates = !(fake_lacks(kind) & FAKE_IMMEDIATES);
	w->has_srqs = !(fake_lacks(kind) & FAKE_SRQS);
	w->has_dgrams = !(fake_lacks(kind) & (FAKE_DATAGRAMS | FAKE_GROUPS));
	if (kind != FAKE_ROCE)
		fake_device_add(kind);
}

static void answer(struct world *w)
{
	int message;

	fake_fail_nth(FAKE_ANY, 0, 0);
	fake_work_by_hand(false);
	fake_step_before_arming(0);
	for (message = 0; message < FAKE_MESSAGES; message++) {
		if (random_once_in(&w->random, 3))
			fake_time_out((enum fake_message)message);
		fake_release((enum fake_message)message);
	}
	/* What asked a silent host on iWARP can go only then. */
	fake_time_out(FAKE_REQ);
	while (fake_step(1000))
		;
}

/* Only when they are gone does the CM close them. */
static void remove_devices(void)
{
	int i;

	for (i = 0; i < FAKE_KINDS; i++)
		fake_device_remove((enum fake_kind)i);
	rdma_free_devices(rdma_get_devices(NULL));
}

static void end(void)
{
	const char *left;

	remove_devices();
	left = fake_expect_clean();
	MUST(!left, "%s", left);
	fake_reset();
}

static void lock_misused(const char *what)
{
	wrong("%s", what);
}

static void set_up(void)
{
	fake_install();
	evr_lock_misused = lock_misused;
}

const struct machine machine = {
	.exact = true,
	.silent_ip = FAKE_ROCE_SILENT_IP,
	.no_rdma_ip = FAKE_NO_RDMA_IP,
	.no_route_ip = FAKE_NO_ROUTE_IP,
	.set_up = set_up,
	.begin = begin,
	.answer = answer,
	.end = end,
	.unpolled = fake_unpolled,
	.actions = actions,
};
