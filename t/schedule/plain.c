/* Ids of the thin layer: whatever is asked of them in whatever order, each answer comes once. */
#include "schedule/schedule.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

enum { MAIN, JOIN, DISCONNECT };

/* Busy while one of the main operations is under way. */
static void set_state(struct plain *p)
{
	if (p->object.state != ID_CLOSING)
		p->object.state = p->operations[MAIN].under_way ? ID_BUSY : ID_OPEN;
}

/* --- callbacks ------------------------------------------------------------------------------- */

static void on_done(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct operation *op = arg;
	struct plain *p = op->plain;

	object_event(&p->object, error ? ID_FAILED : ID_DONE);
	MUST(id == p->id, "id %u is told of another", p->object.number);
	MUST(op->under_way, "id %u: %s is over for the second time", p->object.number,
		cover_mark_name(ID, op->mark));
	op->under_way = false;
	set_state(p);
	schedule_act(p->object.schedule);
}

static void on_event(struct evrdma_id *id, const struct rdma_cm_event *event, void *arg)
{
	struct plain *p = arg;
	unsigned i;

	object_event(&p->object, event ? ID_EVENT : ID_CLOSED);
	MUST(id == p->id, "id %u is told of another", p->object.number);
	if (event) {
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			foreign_take(p->object.schedule, p->events_owner, event->id);
		schedule_act(p->object.schedule);
		return;
	}
	MUST(p->object.state == ID_CLOSING, "id %u is closed, and nobody asked", p->object.number);
	for (i = 0; i < 3; i++)
		MUST(!p->operations[i].under_way, "id %u is closed, and %s is not over",
			p->object.number, cover_mark_name(ID, p->operations[i].mark));
	schedule_act(p->object.schedule);
	object_gone(&p->object);
}

/* --- life ------------------------------------------------------------------------------------ */

static struct plain *plain_new(struct schedule *s, struct owner *owner)
{
	struct plain *p = object_new(s, ID, owner->object.owner, sizeof(*p));
	unsigned i;

	p->events_owner = owner->object.owner;
	for (i = 0; i < 3; i++)
		p->operations[i].plain = p;
	return p;
}

/* Unless that is refused the id is the object's from now on, with all its events. */
void plain_adopt(struct foreign *foreign, struct owner *owner)
{
	struct schedule *s = owner->object.schedule;
	struct plain *p = plain_new(s, owner);
	int err;

	object_call(&foreign->object, FOREIGN_ADOPT);
	p->id = evrdma_id_adopt(owner->base, foreign->cm, on_event, p);
	err = p->id ? 0 : errno;
	object_returned(&foreign->object, FOREIGN_ADOPT, -err);
	if (p->id) {
		object_gone(&foreign->object);
		return;
	}
	object_gone(&p->object);
	MUST((owner->object.state != BASE_OPEN && err == EPIPE) || schedule_excuses(s, -err),
		"base %u does not adopt foreign id %u: %d", owner->object.number,
		foreign->object.number, err);
}

static void new_plain(struct schedule *s)
{
	static const int spaces[] = { RDMA_PS_TCP, RDMA_PS_TCP, RDMA_PS_UDP };
	struct owner *owner = schedule_owner(s);
	struct plain *p;

	if (!s->profile.ids || !owner_has_room(owner, ID))
		return;
	p = plain_new(s, owner);
	s->in_call = true;
	p->id = evrdma_id_new(owner->base, RANDOM_OF(&s->random, spaces), on_event, p);
	s->in_call = false;
	trace(s, "id %u: new on base %u", p->object.number, owner->object.number);
	if (p->id)
		return;
	owner_refused(owner, errno);
	object_gone(&p->object);
}

void plain_close(struct plain *p)
{
	object_call(&p->object, ID_CLOSE);
	evrdma_id_close(p->id);
	object_returned(&p->object, ID_CLOSE, 0);
	p->object.state = ID_CLOSING;
}

void plain_check_idle(struct plain *p, bool for_ever)
{
	struct operation *op = &p->operations[MAIN];

	MUST(p->object.state != ID_CLOSING, "id %u: nobody goes on closing it", p->object.number);
	if (!op->under_way || !op->timeout_ms)
		return;
	MUST(!for_ever && clock_now_us() - op->since_us <
				  (uint64_t)op->timeout_ms * US_PER_MS + SLACK_US,
		"id %u: %s takes too long", p->object.number, cover_mark_name(ID, op->mark));
}

/* --- actions --------------------------------------------------------------------------------- */

static struct plain *pick(struct schedule *s)
{
	return object_pick(s, ID, ANY_STATE);
}

static struct operation *begin(struct plain *p, unsigned slot, unsigned mark)
{
	struct operation *op = &p->operations[slot];

	object_call(&p->object, mark);
	if (!op->under_way) {
		op->mark = mark;
		op->since_us = clock_now_us();
		/* How long resolving takes is the kernel's affair. */
		op->timeout_ms = mark == ID_CONNECT || mark == ID_ACCEPT ? 20 : 0;
	}
	return op;
}

/* What the kernel says of the state is its own affair; that one is under way is ours. */
static void begun(struct plain *p, struct operation *op, unsigned mark, int ret)
{
	int closing = p->object.state == ID_CLOSING;

	object_returned(&p->object, mark, ret);
	MUST(!closing || ret == -EPIPE, "id %u: %s gives %d while it is closing", p->object.number,
		cover_mark_name(ID, mark), ret);
	MUST(closing || !op->under_way || ret == -EBUSY,
		"id %u: %s gives %d while another is under way", p->object.number,
		cover_mark_name(ID, mark), ret);
	if (!ret)
		op->under_way = true;
	set_state(p);
}

static void resolve_addr(struct schedule *s)
{
	struct plain *p = pick(s);
	struct port *port = object_pick(s, LISTENER, ANY_STATE);
	struct sockaddr_in sin;
	struct operation *op;

	if (!p)
		return;
	schedule_address(&sin, s->ip, port ? port->number : 9);
	op = begin(p, MAIN, ID_RESOLVE_ADDR);
	begun(p, op, ID_RESOLVE_ADDR,
		evrdma_id_resolve_addr(p->id, NULL, (struct sockaddr *)&sin, 20, on_done, op));
}

static void resolve_route(struct schedule *s)
{
	struct plain *p = pick(s);
	struct operation *op;

	if (!p)
		return;
	op = begin(p, MAIN, ID_RESOLVE_ROUTE);
	begun(p, op, ID_RESOLVE_ROUTE, evrdma_id_resolve_route(p->id, 20, on_done, op));
}

static void connect_id(struct schedule *s)
{
	struct rdma_conn_param param = { .retry_count = 7, .qp_num = 77 };
	struct plain *p = pick(s);
	struct operation *op;

	if (!p)
		return;
	op = begin(p, MAIN, ID_CONNECT);
	begun(p, op, ID_CONNECT, evrdma_id_connect(p->id, &param, 20, on_done, op));
}

static void accept_id(struct schedule *s)
{
	struct plain *p = pick(s);
	struct operation *op;

	if (!p)
		return;
	op = begin(p, MAIN, ID_ACCEPT);
	begun(p, op, ID_ACCEPT, evrdma_id_accept(p->id, NULL, 20, on_done, op));
}

static void join_id(struct schedule *s)
{
	struct plain *p = pick(s);
	struct sockaddr_in sin;
	struct operation *op;

	if (!p)
		return;
	schedule_address(&sin, "239.1.1.1", 0);
	op = begin(p, JOIN, ID_JOIN);
	begun(p, op, ID_JOIN,
		evrdma_id_join(
			p->id, (struct sockaddr *)&sin, RDMA_MC_JOIN_FLAG_FULLMEMBER, on_done, op));
}

static void disconnect_id(struct schedule *s)
{
	struct plain *p = pick(s);
	struct operation *op;

	if (!p)
		return;
	op = begin(p, DISCONNECT, ID_DISCONNECT);
	begun(p, op, ID_DISCONNECT, evrdma_id_disconnect(p->id, on_done, op));
}

/* Those that answer at once: the kernel may say no, and after close all do. */
static void answered(struct plain *p, unsigned mark, int ret)
{
	object_returned(&p->object, mark, ret);
	MUST(p->object.state != ID_CLOSING || ret < 0, "id %u: %s works while it is closing",
		p->object.number, cover_mark_name(ID, mark));
}

static void bind_id(struct schedule *s)
{
	struct plain *p = pick(s);
	struct sockaddr_in sin;

	if (!p)
		return;
	schedule_address(&sin, s->ip, 0);
	object_call(&p->object, ID_BIND);
	answered(p, ID_BIND, evrdma_id_bind(p->id, (struct sockaddr *)&sin));
}

static void listen_id(struct schedule *s)
{
	struct plain *p = pick(s);

	if (!p)
		return;
	object_call(&p->object, ID_LISTEN);
	answered(p, ID_LISTEN, evrdma_id_listen(p->id, 4));
}

static bool asks_its_peer(const struct plain *p)
{
	const struct operation *op = &p->operations[MAIN];

	return op->under_way && (op->mark == ID_CONNECT || op->mark == ID_ACCEPT);
}

static void reject_id(struct schedule *s)
{
	struct plain *p = pick(s);
	int ret;

	if (!p)
		return;
	object_call(&p->object, ID_REJECT);
	ret = evrdma_id_reject(p->id, NULL, 0);
	MUST(ret || !asks_its_peer(p), "id %u rejects what it asked itself", p->object.number);
	answered(p, ID_REJECT, ret);
}

static void leave_id(struct schedule *s)
{
	struct plain *p = pick(s);
	struct sockaddr_in sin;

	if (!p)
		return;
	schedule_address(&sin, "239.1.1.1", 0);
	object_call(&p->object, ID_LEAVE);
	answered(p, ID_LEAVE, evrdma_id_leave(p->id, (struct sockaddr *)&sin));
}

static void migrate_id(struct schedule *s)
{
	struct plain *p = pick(s);
	struct owner *owner = object_pick(s, BASE, ANY_STATE);
	int ret;

	if (!p || !owner)
		return;
	object_call(&p->object, ID_MIGRATE);
	ret = evrdma_id_migrate(p->id, owner->base);
	answered(p, ID_MIGRATE, ret);
	MUST(ret || owner->object.state == BASE_OPEN, "id %u moves to a base that is closing",
		p->object.number);
	if (!ret)
		p->events_owner = owner->object.owner;
}

/* Whose it is already. */
static void adopt_again(struct schedule *s)
{
	struct plain *p = pick(s);
	struct owner *owner = p ? s->owners[p->events_owner] : NULL;
	struct rdma_cm_id *cm = p ? evrdma_id_get_cm_id(p->id) : NULL;
	struct evrdma_id *second;
	int err;

	if (!cm || owner->object.state != BASE_OPEN)
		return;
	object_call(&p->object, ID_ADOPT_AGAIN);
	second = evrdma_id_adopt(owner->base, cm, on_event, p);
	err = errno;
	object_returned(&p->object, ID_ADOPT_AGAIN, -err);
	MUST(!second && (err == EEXIST || (err == EACCES && p->object.schedule->losses)),
		"id %u is adopted twice", p->object.number);
}

static void close_id(struct schedule *s)
{
	struct plain *p = pick(s);

	if (p)
		plain_close(p);
}

const struct action id_actions[] = {
	{ "new id", 3, new_plain },
	{ "id resolve addr", 6, resolve_addr },
	{ "id resolve route", 4, resolve_route },
	{ "id connect", 4, connect_id },
	{ "id accept", 1, accept_id },
	{ "id join", 8, join_id },
	{ "id disconnect", 2, disconnect_id },
	{ "id bind", 2, bind_id },
	{ "id listen", 1, listen_id },
	{ "id reject", 1, reject_id },
	{ "id leave", 1, leave_id },
	{ "id migrate", 1, migrate_id },
	{ "id adopt again", 1, adopt_again },
	{ "close id", 1, close_id },
	{ 0 },
};
