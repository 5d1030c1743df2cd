/* A machine of fakes: what the kernel, the network, the device and the time do. */
#include "ev/core/lock.h"
#include "fake/fake.h"
#include "schedule/schedule.h"

#include <errno.h>
#include <rdma/rdma_cma.h>

/* --- messages -------------------------------------------------------------------------------- */

static enum fake_message any_message(struct schedule *s)
{
	return (enum fake_message)random_below(&s->random, FAKE_MESSAGES);
}

static void hold(struct schedule *s)
{
	enum fake_message kind = any_message(s);

	if (!s->profile.holds)
		return;
	trace(s, "kernel: hold messages %d", kind);
	fake_hold(kind);
}

static void let_go(struct schedule *s)
{
	enum fake_message kind = any_message(s);

	if (s->profile.holds && fake_held(kind))
		trace(s, "kernel: release %u messages %d", fake_release(kind), kind);
}

static void time_out(struct schedule *s)
{
	enum fake_message kind = any_message(s);

	if (fake_held(kind))
		trace(s, "kernel: %u messages %d are lost", fake_time_out(kind), kind);
}

/* --- work ------------------------------------------------------------------------------------ */

static void by_hand(struct schedule *s)
{
	bool on = random_once_in(&s->random, 2);

	if (!s->profile.by_hand)
		return;
	trace(s, "kernel: work %s", on ? "by hand" : "by itself");
	fake_work_by_hand(on);
	fake_step_before_arming(random_below(&s->random, 3));
	fake_work_order(
		random_once_in(&s->random, 2) ? FAKE_NEWEST_QP_FIRST : FAKE_OLDEST_QP_FIRST);
}

static void step_work(struct schedule *s)
{
	unsigned n = 1 + random_below(&s->random, 8);

	if (s->profile.by_hand)
		trace(s, "kernel: carry out %u of %u", fake_step(n), n);
}

static void time_out_work(struct schedule *s)
{
	if (s->profile.faults && random_once_in(&s->random, 3)) {
		s->troubled = true;
		trace(s, "kernel: %u QPs give up", fake_time_out_work());
	}
}

/* --- trouble --------------------------------------------------------------------------------- */

static void fail(struct schedule *s)
{
	static const int errors[] = { ENOMEM, EIO, EAGAIN, EINVAL, ENODEV };
	unsigned n = 1 + random_below(&s->random, 12);
	int err = RANDOM_OF(&s->random, errors);

	if (!s->profile.faults)
		return;
	trace(s, "kernel: call %u from now fails with %d", n, err);
	s->troubled = true;
	fake_fail_nth(FAKE_ANY, n, err);
}

/* With what it took; what others complete there may come yet, or not. */
static void fail_poll(struct schedule *s)
{
	unsigned n = 1 + random_below(&s->random, 6);

	if (!s->profile.polls)
		return;
	trace(s, "kernel: poll %u from now fails", n);
	s->troubled = true;
	fake_fail_later("ibv_poll_cq", n, EIO);
}

/* Whichever base looks then, be it between two events, never hears anything again. */
static void lose(struct schedule *s)
{
	unsigned n = 1 + random_below(&s->random, 3);

	if (!s->profile.loses || s->losses >= OWNERS)
		return;
	trace(s, "kernel: an event channel is lost, at look %u", n);
	s->losses++;
	s->troubled = true;
	fake_fail_later("GET_EVENT", n, EACCES);
}

static enum fake_kind kind;

static void cover_pull(struct object *object)
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

	if (object->kind != BASE && object->kind != POOL && object->kind != SRQ)
		cover(object->kind, object->state, marks[object->kind]);
}

static void pull(struct schedule *s)
{
	struct object *object;
	unsigned i;

	if (!s->profile.pulls || s->pulled)
		return;
	trace(s, "kernel: the device is pulled");
	s->troubled = s->pulled = true;
	s->pulls++;
	FOR_EACH_OBJECT(s, object, i)
	if (!object->gone)
		cover_pull(object);
	fake_device_remove(kind);
}

static void plug_in(struct schedule *s)
{
	if (!s->pulled || !fake_device_gone(kind))
		return;
	trace(s, "kernel: the device is back");
	s->pulled = false;
	fake_device_add(kind);
}

static void inject_on(struct schedule *s, const struct object *object, struct rdma_cm_id *cm,
	enum rdma_cm_event_type event)
{
	if (!s->profile.injects || !cm)
		return;
	trace(s, "kernel: %s %u gets %s", cover_kind_name(object->kind), object->number,
		rdma_event_str(event));
	fake_inject(cm, event, event == RDMA_CM_EVENT_REJECTED ? 28 : 0);
}

/* Events that may come at any time, late ones and second ones too. */
static void inject(struct schedule *s)
{
	static const enum rdma_cm_event_type events[] = { RDMA_CM_EVENT_DISCONNECTED,
		RDMA_CM_EVENT_TIMEWAIT_EXIT, RDMA_CM_EVENT_ADDR_CHANGE, RDMA_CM_EVENT_UNREACHABLE,
		RDMA_CM_EVENT_REJECTED, RDMA_CM_EVENT_CONNECT_ERROR };
	struct connection *connection = object_pick(s, CONN, ANY_STATE);

	if (connection)
		inject_on(s, &connection->object, evrdma_conn_get_cm_id(connection->conn),
			RANDOM_OF(&s->random, events));
}

static void inject_on_id(struct schedule *s)
{
	static const enum rdma_cm_event_type events[] = { RDMA_CM_EVENT_TIMEWAIT_EXIT,
		RDMA_CM_EVENT_ADDR_CHANGE };
	struct plain *plain = object_pick(s, ID, ANY_STATE);

	if (plain)
		inject_on(s, &plain->object, evrdma_id_get_cm_id(plain->id),
			RANDOM_OF(&s->random, events));
}

/* From nobody who is there. */
static void inject_request(struct schedule *s)
{
	struct port *port = object_pick(s, LISTENER, ANY_STATE);
	struct rdma_cm_id *cm = port ? evrdma_listener_get_cm_id(port->listener) : NULL;

	if (!s->profile.injects || !cm || s->object_count >= ENOUGH_OBJECTS)
		return;
	trace(s, "kernel: listener %u gets a request", port->object.number);
	fake_inject(cm, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
}

static void raise_async(struct schedule *s)
{
	static const enum ibv_event_type events[] = { IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE,
		IBV_EVENT_LID_CHANGE, IBV_EVENT_GID_CHANGE };

	if (!s->profile.async || s->hands_in || s->pulled)
		return;
	trace(s, "kernel: the port has news");
	fake_async_port(kind, RANDOM_OF(&s->random, events));
}

/* --- time ------------------------------------------------------------------------------------ */

static void turn(struct schedule *s)
{
	unsigned n = 1 + random_below(&s->random, 4);

	while (n-- && schedule_turn(s))
		;
}

static void settle(struct schedule *s)
{
	schedule_settle(s);
}

static void skip(struct schedule *s)
{
	trace(s, "time: to the next timer");
	schedule_skip(s);
}

static uint64_t *since_of(struct object *object)
{
	switch (object->kind) {
	case BASE:
		return &((struct owner *)object)->since_us;
	case CONN:
		return &((struct connection *)object)->since_us;
	case DGRAM:
		return &((struct endpoint *)object)->since_us;
	default:
		return NULL;
	}
}

/* Of two waits in a row the second begins when the loop comes to it. */
static bool settles(struct object *object)
{
	return ((object->kind == CONN && object->state == CONN_CLOSING) ||
		       (object->kind == BASE && object->state == BASE_CLOSING)) &&
	       clock_now_us() - *since_of(object) <= SETTLE_US;
}

/* What was asked for but not begun has its whole time yet when the loop comes to it. */
static void forgive(struct object *object, bool at_rest, uint64_t us)
{
	if (!object->gone && since_of(object) && (!at_rest || settles(object)))
		*since_of(object) += us;
}

static void wait(struct schedule *s)
{
	static const unsigned us[] = { 1000, 1000, 5000, 20000, 60000, 1100000, 11000000 };
	unsigned long_us = RANDOM_OF(&s->random, us);
	bool at_rest = random_once_in(&s->random, 2);
	struct object *object;
	unsigned i;

	if (at_rest)
		schedule_settle(s);
	trace(s, "time: %u us", long_us);
	FOR_EACH_OBJECT(s, object, i)
	forgive(object, at_rest, long_us);
	clock_advance_us(long_us);
	schedule_settle(s);
}

static bool is_deaf(const struct ibv_qp *qp)
{
	return fake_poll_failed(qp->send_cq) || fake_poll_failed(qp->recv_cq);
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
	{ "fail poll", 4, fail_poll },
	{ "lose", 2, lose },
	{ "pull", 2, pull },
	{ "plug in", 6, plug_in },
	{ "inject", 6, inject },
	{ "inject on id", 4, inject_on_id },
	{ "inject request", 3, inject_request },
	{ "async", 4, raise_async },
	{ 0 },
};

/* --- beginning and end ----------------------------------------------------------------------- */

static void begin(struct schedule *s)
{
	static const enum fake_kind kinds[] = { FAKE_ROCE, FAKE_ROCE, FAKE_ROCE, FAKE_IWARP,
		FAKE_IB };
	static const char *const ips[FAKE_KINDS] = {
		[FAKE_ROCE] = FAKE_ROCE_IP, [FAKE_IWARP] = FAKE_IWARP_IP, [FAKE_IB] = FAKE_IB_IP
	};

	kind = fake_kind_to_test(RANDOM_OF(&s->random, kinds));
	s->ip = ips[kind];
	s->is_iwarp = kind == FAKE_IWARP;
	s->has_atomics = !(fake_lacks(kind) & FAKE_ATOMICS);
	s->has_immediates = !(fake_lacks(kind) & FAKE_IMMEDIATES);
	s->has_srqs = !(fake_lacks(kind) & FAKE_SRQS);
	s->has_dgrams = !(fake_lacks(kind) & (FAKE_DATAGRAMS | FAKE_GROUPS));
	if (kind != FAKE_ROCE)
		fake_device_add(kind);
}

static void answer(struct schedule *s)
{
	int message;

	fake_fail_nth(FAKE_ANY, 0, 0);
	fake_work_by_hand(false);
	fake_step_before_arming(0);
	for (message = 0; message < FAKE_MESSAGES; message++) {
		if (random_once_in(&s->random, 3))
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
	.is_deaf = is_deaf,
	.actions = actions,
};
