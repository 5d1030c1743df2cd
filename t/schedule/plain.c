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
	if (p->thing.state != ID_CLOSING)
		p->thing.state = p->operations[MAIN].under_way ? ID_BUSY : ID_OPEN;
}

/* --- callbacks ------------------------------------------------------------------------------- */

static void on_done(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct operation *op = arg;
	struct plain *p = op->plain;

	thing_event(&p->thing, error ? ID_FAILED : ID_DONE);
	MUST(id == p->id, "id %u is told of another", p->thing.number);
	MUST(op->under_way, "id %u: %s is over for the second time", p->thing.number,
		cover_mark_name(ID, op->mark));
	op->under_way = false;
	set_state(p);
	world_act(p->thing.world);
}

static void on_event(struct evrdma_id *id, const struct rdma_cm_event *event, void *arg)
{
	struct plain *p = arg;
	unsigned i;

	thing_event(&p->thing, event ? ID_EVENT : ID_CLOSED);
	MUST(id == p->id, "id %u is told of another", p->thing.number);
	if (event) {
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			foreign_take(p->thing.world, p->events_home, event->id);
		world_act(p->thing.world);
		return;
	}
	MUST(p->thing.state == ID_CLOSING, "id %u is closed, and nobody asked", p->thing.number);
	for (i = 0; i < 3; i++)
		MUST(!p->operations[i].under_way, "id %u is closed, and %s is not over",
			p->thing.number, cover_mark_name(ID, p->operations[i].mark));
	world_act(p->thing.world);
	thing_gone(&p->thing);
}

/* --- life ------------------------------------------------------------------------------------ */

static struct plain *plain_new(struct world *w, struct home *home)
{
	struct plain *p = thing_new(w, ID, home->thing.home, sizeof(*p));
	unsigned i;

	p->events_home = home->thing.home;
	for (i = 0; i < 3; i++)
		p->operations[i].plain = p;
	return p;
}

/* Unless that is refused the id is the object's from now on, with all its events. */
void plain_adopt(struct foreign *foreign, struct home *home)
{
	struct world *w = home->thing.world;
	struct plain *p = plain_new(w, home);
	int err;

	thing_call(&foreign->thing, FOREIGN_ADOPT);
	p->id = evrdma_id_adopt(home->base, foreign->cm, on_event, p);
	err = p->id ? 0 : errno;
	thing_returned(&foreign->thing, FOREIGN_ADOPT, -err);
	if (p->id) {
		thing_gone(&foreign->thing);
		return;
	}
	thing_gone(&p->thing);
	MUST((home->thing.state != BASE_OPEN && err == EPIPE) || world_excuses(w, -err),
		"base %u does not adopt foreign id %u: %d", home->thing.number,
		foreign->thing.number, err);
}

static void new_plain(struct world *w)
{
	static const int spaces[] = { RDMA_PS_TCP, RDMA_PS_TCP, RDMA_PS_UDP };
	struct home *home = world_home(w);
	struct plain *p;

	if (!w->profile.ids || !home_has_room(home, ID))
		return;
	p = plain_new(w, home);
	w->in_call = true;
	p->id = evrdma_id_new(home->base, RANDOM_OF(&w->random, spaces), on_event, p);
	w->in_call = false;
	trace(w, "id %u: new on base %u", p->thing.number, home->thing.number);
	if (p->id)
		return;
	home_refused(home, errno);
	thing_gone(&p->thing);
}

void plain_close(struct plain *p)
{
	thing_call(&p->thing, ID_CLOSE);
	evrdma_id_close(p->id);
	thing_returned(&p->thing, ID_CLOSE, 0);
	p->thing.state = ID_CLOSING;
}

void plain_check_idle(struct plain *p, bool for_ever)
{
	struct operation *op = &p->operations[MAIN];

	MUST(p->thing.state != ID_CLOSING, "id %u: nobody goes on closing it", p->thing.number);
	if (!op->under_way || !op->timeout_ms)
		return;
	MUST(!for_ever && clock_now_us() - op->since_us <
				  (uint64_t)op->timeout_ms * US_PER_MS + SLACK_US,
		"id %u: %s takes too long", p->thing.number, cover_mark_name(ID, op->mark));
}

/* --- actions --------------------------------------------------------------------------------- */

static struct plain *pick(struct world *w)
{
	return thing_pick(w, ID, ANY_STATE);
}

static struct operation *begin(struct plain *p, unsigned slot, unsigned mark)
{
	struct operation *op = &p->operations[slot];

	thing_call(&p->thing, mark);
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
	int closing = p->thing.state == ID_CLOSING;

	thing_returned(&p->thing, mark, ret);
	MUST(!closing || ret == -EPIPE, "id %u: %s gives %d while it is closing", p->thing.number,
		cover_mark_name(ID, mark), ret);
	MUST(closing || !op->under_way || ret == -EBUSY,
		"id %u: %s gives %d while another is under way", p->thing.number,
		cover_mark_name(ID, mark), ret);
	if (!ret)
		op->under_way = true;
	set_state(p);
}

static void resolve_addr(struct world *w)
{
	struct plain *p = pick(w);
	struct port *port = thing_pick(w, LISTENER, ANY_STATE);
	struct sockaddr_in sin;
	struct operation *op;

	if (!p)
		return;
	world_address(&sin, w->ip, port ? port->number : 9);
	op = begin(p, MAIN, ID_RESOLVE_ADDR);
	begun(p, op, ID_RESOLVE_ADDR,
		evrdma_id_resolve_addr(p->id, NULL, (struct sockaddr *)&sin, 20, on_done, op));
}

static void resolve_route(struct world *w)
{
	struct plain *p = pick(w);
	struct operation *op;

	if (!p)
		return;
	op = begin(p, MAIN, ID_RESOLVE_ROUTE);
	begun(p, op, ID_RESOLVE_ROUTE, evrdma_id_resolve_route(p->id, 20, on_done, op));
}

static void connect_id(struct world *w)
{
	struct rdma_conn_param param = { .retry_count = 7, .qp_num = 77 };
	struct plain *p = pick(w);
	struct operation *op;

	if (!p)
		return;
	op = begin(p, MAIN, ID_CONNECT);
	begun(p, op, ID_CONNECT, evrdma_id_connect(p->id, &param, 20, on_done, op));
}

static void accept_id(struct world *w)
{
	struct plain *p = pick(w);
	struct operation *op;

	if (!p)
		return;
	op = begin(p, MAIN, ID_ACCEPT);
	begun(p, op, ID_ACCEPT, evrdma_id_accept(p->id, NULL, 20, on_done, op));
}

static void join_id(struct world *w)
{
	struct plain *p = pick(w);
	struct sockaddr_in sin;
	struct operation *op;

	if (!p)
		return;
	world_address(&sin, "239.1.1.1", 0);
	op = begin(p, JOIN, ID_JOIN);
	begun(p, op, ID_JOIN,
		evrdma_id_join(
			p->id, (struct sockaddr *)&sin, RDMA_MC_JOIN_FLAG_FULLMEMBER, on_done, op));
}

static void disconnect_id(struct world *w)
{
	struct plain *p = pick(w);
	struct operation *op;

	if (!p)
		return;
	op = begin(p, DISCONNECT, ID_DISCONNECT);
	begun(p, op, ID_DISCONNECT, evrdma_id_disconnect(p->id, on_done, op));
}

/* Those that answer at once: the kernel may say no, and after close all do. */
static void answered(struct plain *p, unsigned mark, int ret)
{
	thing_returned(&p->thing, mark, ret);
	MUST(p->thing.state != ID_CLOSING || ret < 0, "id %u: %s works while it is closing",
		p->thing.number, cover_mark_name(ID, mark));
}

static void bind_id(struct world *w)
{
	struct plain *p = pick(w);
	struct sockaddr_in sin;

	if (!p)
		return;
	world_address(&sin, w->ip, 0);
	thing_call(&p->thing, ID_BIND);
	answered(p, ID_BIND, evrdma_id_bind(p->id, (struct sockaddr *)&sin));
}

static void listen_id(struct world *w)
{
	struct plain *p = pick(w);

	if (!p)
		return;
	thing_call(&p->thing, ID_LISTEN);
	answered(p, ID_LISTEN, evrdma_id_listen(p->id, 4));
}

static bool asks_its_peer(const struct plain *p)
{
	const struct operation *op = &p->operations[MAIN];

	return op->under_way && (op->mark == ID_CONNECT || op->mark == ID_ACCEPT);
}

static void reject_id(struct world *w)
{
	struct plain *p = pick(w);
	int ret;

	if (!p)
		return;
	thing_call(&p->thing, ID_REJECT);
	ret = evrdma_id_reject(p->id, NULL, 0);
	MUST(ret || !asks_its_peer(p), "id %u rejects what it asked itself", p->thing.number);
	answered(p, ID_REJECT, ret);
}

static void leave_id(struct world *w)
{
	struct plain *p = pick(w);
	struct sockaddr_in sin;

	if (!p)
		return;
	world_address(&sin, "239.1.1.1", 0);
	thing_call(&p->thing, ID_LEAVE);
	answered(p, ID_LEAVE, evrdma_id_leave(p->id, (struct sockaddr *)&sin));
}

static void migrate_id(struct world *w)
{
	struct plain *p = pick(w);
	struct home *home = thing_pick(w, BASE, ANY_STATE);
	int ret;

	if (!p || !home)
		return;
	thing_call(&p->thing, ID_MIGRATE);
	ret = evrdma_id_migrate(p->id, home->base);
	answered(p, ID_MIGRATE, ret);
	MUST(ret || home->thing.state == BASE_OPEN, "id %u moves to a base that is closing",
		p->thing.number);
	if (!ret)
		p->events_home = home->thing.home;
}

/* Whose it is already. */
static void adopt_again(struct world *w)
{
	struct plain *p = pick(w);
	struct home *home = p ? w->homes[p->events_home] : NULL;
	struct rdma_cm_id *cm = p ? evrdma_id_get_cm_id(p->id) : NULL;
	struct evrdma_id *second;
	int err;

	if (!cm || home->thing.state != BASE_OPEN)
		return;
	thing_call(&p->thing, ID_ADOPT_AGAIN);
	second = evrdma_id_adopt(home->base, cm, on_event, p);
	err = errno;
	thing_returned(&p->thing, ID_ADOPT_AGAIN, -err);
	MUST(!second && err == EEXIST, "id %u is adopted twice", p->thing.number);
}

static void close_id(struct world *w)
{
	struct plain *p = pick(w);

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
