/* Datagram endpoints. */
#include "schedule/schedule.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

static unsigned max_message(void)
{
	return BUF_SIZE - EVRDMA_DGRAM_HEADER_BYTES;
}

/* --- callbacks ------------------------------------------------------------------------------- */

void endpoint_sent(struct evrdma_dgram *dgram, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	struct ticket *ticket = arg;
	struct endpoint *e = (struct endpoint *)ticket->thing;
	unsigned sender, serial;

	thing_event(&e->thing, error ? DGRAM_SEND_FAILED : DGRAM_SENT);
	MUST(dgram == e->dgram, "dgram %u is told of another", e->thing.number);
	MUST(!ticket->over && buf == ticket->buf, "dgram %u: a send is over with another's buffer",
		e->thing.number);
	MUST(message_check(evrdma_buf_data(buf), ticket->len, &sender, &serial) &&
			serial == ticket->serial,
		"dgram %u: the buffer of message %u was taken by somebody else", e->thing.number,
		ticket->serial);
	ticket_over(ticket, &e->tickets);
	e->under_way--;
	world_act(e->thing.world);
	INSIDE(ticket->thing->world, evrdma_buf_unref(ticket->buf));
	ticket->buf = NULL;
}

static void check_dependents(struct endpoint *e);

static void on_event(struct evrdma_dgram *dgram, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg)
{
	static const unsigned marks[] = {
		[EVRDMA_DGRAM_READY] = DGRAM_IS_READY,
		[EVRDMA_DGRAM_ERROR] = DGRAM_ERROR,
		[EVRDMA_DGRAM_WRITABLE] = DGRAM_WRITABLE,
		[EVRDMA_DGRAM_CLOSED] = DGRAM_CLOSED,
	};
	struct endpoint *e = arg;

	MUST(event != EVRDMA_DGRAM_ADDR_CHANGED, "dgram %u: no address changed", e->thing.number);
	thing_event(&e->thing, marks[event]);
	MUST(!error == (event != EVRDMA_DGRAM_ERROR), "dgram %u: a wrong error", e->thing.number);
	if (error)
		trace(e->thing.world, "  error %d in step %d", error->err, error->step);
	switch (event) {
	case EVRDMA_DGRAM_READY:
		MUST(e->thing.state == DGRAM_OPENING && evrdma_dgram_get_mtu(dgram) &&
				evrdma_dgram_get_qp_num(dgram),
			"dgram %u is not ready as it should be", e->thing.number);
		e->thing.state = DGRAM_READY;
		break;
	case EVRDMA_DGRAM_ERROR:
		MUST(!e->ended && e->thing.state != DGRAM_CLOSING, "dgram %u ends twice",
			e->thing.number);
		e->ended = true;
		e->thing.state = DGRAM_ENDED;
		break;
	case EVRDMA_DGRAM_WRITABLE:
		MUST(e->want_writable, "dgram %u is told WRITABLE for nothing", e->thing.number);
		e->want_writable = false;
		break;
	case EVRDMA_DGRAM_CLOSED:
		MUST(e->thing.state == DGRAM_CLOSING && TAILQ_EMPTY(&e->tickets),
			"dgram %u is closed too early", e->thing.number);
		check_dependents(e);
		break;
	case EVRDMA_DGRAM_ADDR_CHANGED:
		break;
	}
	world_act(e->thing.world);
	if (event == EVRDMA_DGRAM_CLOSED)
		thing_gone(&e->thing);
}

static void reply(struct endpoint *e, const struct evrdma_recv *recv);

static void on_recv(struct evrdma_dgram *dgram, const struct evrdma_recv *recv, void *arg)
{
	struct endpoint *e = arg;
	struct world *w = e->thing.world;
	unsigned sender = 0, serial = 0;
	struct sockaddr_storage from;

	thing_event(&e->thing, DGRAM_RECEIVED);
	MUST(!recv->err, "dgram %u: a failed receive is told", e->thing.number);
	MUST(message_check(recv->data, recv->len, &sender, &serial),
		"dgram %u: what came was not sent by anybody", e->thing.number);
	MUST(thing_numbered(w, DGRAM, sender) && (!recv->has_imm || recv->imm == serial),
		"dgram %u: what came is from %u, with %u", e->thing.number, sender, recv->imm);
	evrdma_dgram_get_sender(dgram, recv, &from);
	if (random_once_in(&w->random, 6))
		world_hold(w, recv->buf);
	if (!w->ending && random_once_in(&w->random, 4))
		reply(e, recv);
	if (!w->ending && random_once_in(&w->random, 8) && thing_live(w, PEER) < MAX_LIVE)
		friend_new(e, recv);
	world_act(w);
}

/* --- life ------------------------------------------------------------------------------------ */

static void choose_options(struct endpoint *e, struct home *home)
{
	static const unsigned ms[] = { 1, 20, 1000 };
	struct random *r = &e->thing.world->random;
	struct evrdma_dgram_options *o = &e->options;

	evrdma_dgram_options_init(o);
	o->send_depth = 1 + random_below(r, 8);
	o->send_queue = random_once_in(r, 2) ? random_below(r, 6) : 0;
	o->low_water = random_below(r, o->send_depth + o->send_queue + 1);
	o->drain_timeout_ms = (int)RANDOM_OF(r, ms);
	if (random_once_in(r, 4))
		o->join_timeout_ms = (int)RANDOM_OF(r, ms);
	o->recv_depth = 1 + random_below(r, 6);
	e->receiving = home->shared && random_once_in(r, 3) ? BY_SRQ : BY_POOL;
	if (e->receiving == BY_SRQ)
		o->srq = home_srq(home);
	else
		o->recv_pool = home->store->pool;
	o->domain = home_choose_domain(home);
}

struct endpoint *endpoint_new(struct world *w, unsigned home)
{
	struct endpoint *e = thing_new(w, DGRAM, home, sizeof(*e));

	TAILQ_INIT(&e->tickets);
	choose_options(e, w->homes[home]);
	w->in_call = true;
	e->dgram = evrdma_dgram_new(w->homes[home]->base, &e->options);
	w->in_call = false;
	trace(w, "dgram %u: new on base %u, %u + %u sends, %u receives %s", e->thing.number,
		w->homes[home]->thing.number, e->options.send_depth, e->options.send_queue,
		e->options.recv_depth, receiving_names[e->receiving]);
	if (!e->dgram) {
		home_refused(w->homes[home], errno);
		thing_gone(&e->thing);
		return NULL;
	}
	evrdma_dgram_setcb(e->dgram, on_recv, on_event, e);
	return e;
}

/* Groups and peers go before their endpoint. */
static void check_dependents(struct endpoint *e)
{
	struct thing *thing;
	unsigned i;

	FOR_EACH_THING(e->thing.world, thing, i)
	{
		bool of_it = thing->kind == GROUP ? ((struct member *)thing)->endpoint == e
						  : thing->kind == PEER &&
							    ((struct friend *)thing)->endpoint == e;

		MUST(!of_it || thing->gone, "dgram %u is closed before %s %u", e->thing.number,
			cover_kind_name(thing->kind), thing->number);
	}
}

void endpoint_closing(struct endpoint *e)
{
	if (e->thing.state == DGRAM_CLOSING)
		return;
	e->thing.state = DGRAM_CLOSING;
	e->since_us = clock_now_us();
}

void endpoint_close(struct endpoint *e)
{
	thing_call(&e->thing, DGRAM_CLOSE);
	evrdma_dgram_close(e->dgram);
	thing_returned(&e->thing, DGRAM_CLOSE, 0);
	endpoint_closing(e);
}

void endpoint_check_idle(struct endpoint *e, bool for_ever)
{
	uint64_t limit_us = (uint64_t)e->options.drain_timeout_ms * US_PER_MS + SLACK_US;
	uint32_t low = e->options.low_water;

	if (e->thing.state == DGRAM_CLOSING)
		MUST(!for_ever && clock_now_us() - e->since_us < limit_us,
			"dgram %u: nobody goes on closing it", e->thing.number);
	if (!low)
		low = (e->options.send_depth + 3) / 4;
	if (e->thing.state == DGRAM_READY && e->want_writable)
		MUST(e->options.send_depth + e->options.send_queue - e->under_way < low,
			"dgram %u: WRITABLE did not come", e->thing.number);
}

/* --- sending --------------------------------------------------------------------------------- */

struct ticket *endpoint_make_datagram(struct endpoint *e)
{
	struct world *w = e->thing.world;
	struct evrdma_buf *buf = world_buf(w, e->thing.home);
	struct ticket *ticket;

	if (!buf)
		return NULL;
	ticket = ticket_new(&e->thing, &e->tickets);
	ticket->buf = buf;
	ticket->serial = ++e->serial;
	ticket->len = message_len(w, max_message());
	ticket->with_imm = random_once_in(&w->random, 3);
	message_fill(evrdma_buf_data(buf), ticket->len, e->thing.number, ticket->serial);
	return ticket;
}

bool endpoint_can_send(const struct endpoint *e)
{
	return e->thing.state == DGRAM_READY &&
		e->thing.world->homes[e->thing.home]->thing.state == BASE_OPEN;
}

/* can: whether the state of all who take part allows it. */
void endpoint_submitted(struct endpoint *e, struct ticket *ticket, bool can, int ret)
{
	uint32_t capacity = e->options.send_depth + e->options.send_queue;
	bool full = e->under_way == capacity;

	if (can)
		MUST(ret == (full ? -EAGAIN : 0) || world_excuses(e->thing.world, ret),
			"dgram %u: a send gives %d with %u of %u under way", e->thing.number, ret,
			e->under_way, capacity);
	else
		MUST(ret < 0, "dgram %u takes what it cannot send", e->thing.number);
	e->want_writable |= ret == -EAGAIN;
	e->under_way += !ret;
	e->taken += !ret;
	if (!ret)
		return;
	INSIDE(ticket->thing->world, evrdma_buf_unref(ticket->buf));
	ticket_drop(ticket, &e->tickets);
}

/* Who sent has no address, or too many replies wait for one. */
bool endpoint_is_unreachable(int ret)
{
	return ret == -EBUSY || ret == -ETIMEDOUT || ret == -EHOSTUNREACH || ret == -ENETUNREACH;
}

static void reply(struct endpoint *e, const struct evrdma_recv *recv)
{
	struct ticket *ticket = endpoint_make_datagram(e);
	int ret;

	if (!ticket)
		return;
	ticket->is_reply = true;
	thing_call(&e->thing, DGRAM_REPLY);
	ret = evrdma_dgram_reply(e->dgram, recv, ticket->buf, ticket->len,
		ticket->with_imm ? &ticket->serial : NULL, endpoint_sent, ticket);
	thing_returned(&e->thing, DGRAM_REPLY, ret);
	e->replies += !ret;
	endpoint_submitted(e, ticket, endpoint_can_send(e) && !endpoint_is_unreachable(ret), ret);
}

/* --- actions --------------------------------------------------------------------------------- */

static void new_dgram(struct world *w)
{
	struct home *home = world_home(w);

	if (w->profile.dgrams && home_has_room(home, DGRAM) && thing_live(w, DGRAM) < 5)
		endpoint_new(w, home->thing.home);
}

void endpoint_open(struct endpoint *e)
{
	struct world *w = e->thing.world;
	bool by_dst = random_once_in(&w->random, 2);
	struct sockaddr_in src, dst;
	int ret, want = -EALREADY;

	if (e->thing.state == DGRAM_NEW)
		want = 0;
	else if (e->thing.state == DGRAM_CLOSING)
		want = -EPIPE;
	world_address(&src, w->ip, 0);
	world_address(&dst, random_once_in(&w->random, 8) ? machine.no_rdma_ip : w->ip, 9);
	thing_call(&e->thing, DGRAM_OPEN);
	ret = evrdma_dgram_open(e->dgram, by_dst ? NULL : (struct sockaddr *)&src,
		by_dst ? (struct sockaddr *)&dst : NULL);
	thing_returned(&e->thing, DGRAM_OPEN, ret);
	MUST(ret == want, "dgram %u: open gives %d in place of %d", e->thing.number, ret, want);
	if (!ret)
		e->thing.state = DGRAM_OPENING;
}

static void open_dgram(struct world *w)
{
	struct endpoint *e =
		thing_pick(w, DGRAM, random_once_in(&w->random, 4) ? ANY_STATE : IN(DGRAM_NEW));

	if (e)
		endpoint_open(e);
}

static int expected_accept(const struct endpoint *e, const struct ask *ask)
{
	if (e->thing.state != DGRAM_READY)
		return -ENOTCONN;
	if (!ask->port->for_dgrams)
		return -EINVAL;
	return e->thing.home != ask->thing.home ? -EXDEV : 0;
}

void endpoint_accept(struct endpoint *e, struct ask *ask)
{
	int ret, want = expected_accept(e, ask);

	cover(REQUEST, ask->thing.state, REQUEST_ACCEPT_DGRAM);
	thing_call(&e->thing, DGRAM_ACCEPT);
	ret = evrdma_dgram_accept(e->dgram, ask->request, "yes", 4);
	thing_returned(&e->thing, DGRAM_ACCEPT, ret);
	/* Who asked may have gone, which only the kernel knows. */
	MUST(ret == want || (!want && ret), "dgram %u: accept gives %d in place of %d",
		e->thing.number, ret, want);
	if (!ret)
		ask_forget(ask);
}

static void accept_dgram(struct world *w)
{
	struct ask *ask =
		thing_pick(w, REQUEST, IN(REQUEST_OFFERED) | IN(REQUEST_KEPT) | IN(REQUEST_MOVED));
	struct endpoint *e =
		thing_pick(w, DGRAM, random_once_in(&w->random, 4) ? ANY_STATE : IN(DGRAM_READY));

	if (ask && e)
		endpoint_accept(e, ask);
}

static void get_dgram(struct world *w)
{
	struct endpoint *e = thing_pick(w, DGRAM, ANY_STATE);
	struct evrdma_traffic_stats stats;

	if (!e)
		return;
	thing_call(&e->thing, DGRAM_GET);
	MUST(evrdma_dgram_get_mtu(e->dgram) || e->thing.state != DGRAM_READY,
		"dgram %u is ready and has no MTU", e->thing.number);
	evrdma_dgram_get_qp_num(e->dgram);
	evrdma_dgram_get_cm_id(e->dgram);
	evrdma_dgram_get_stats(e->dgram, &stats);
	/* A reply that waits for an address is none yet. */
	MUST(stats.sends <= e->taken && stats.sends + e->replies >= e->taken,
		"dgram %u: %u sends were taken, %llu counted",
		e->thing.number, e->taken, (unsigned long long)stats.sends);
	thing_returned(&e->thing, DGRAM_GET, 0);
}

static void close_dgram(struct world *w)
{
	struct endpoint *e =
		thing_pick(w, DGRAM, random_once_in(&w->random, 4) ? ANY_STATE : ~IN(DGRAM_NEW));

	if (e)
		endpoint_close(e);
}

const struct action dgram_actions[] = {
	{ "new dgram", 3, new_dgram },
	{ "open", 8, open_dgram },
	{ "accept dgram", 6, accept_dgram },
	{ "get dgram", 1, get_dgram },
	{ "close dgram", 1, close_dgram },
	{ 0 },
};
