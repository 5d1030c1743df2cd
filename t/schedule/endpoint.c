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
	struct endpoint *e = (struct endpoint *)ticket->object;
	unsigned sender, serial;

	object_event(&e->object, error ? DGRAM_SEND_FAILED : DGRAM_SENT);
	MUST(dgram == e->dgram, "dgram %u is told of another", e->object.number);
	MUST(!ticket->over && buf == ticket->buf, "dgram %u: a send is over with another's buffer",
		e->object.number);
	MUST(message_check(evrdma_buf_data(buf), ticket->len, &sender, &serial) &&
			serial == ticket->serial,
		"dgram %u: the buffer of message %u was taken by somebody else", e->object.number,
		ticket->serial);
	ticket_over(ticket, &e->tickets);
	e->under_way--;
	schedule_act(e->object.schedule);
	INSIDE(ticket->object->schedule, evrdma_buf_unref(ticket->buf));
	ticket->buf = NULL;
}

/* What was taken is counted then, and as over before that is told. */
static void check_stats(struct endpoint *e)
{
	struct evrdma_traffic_stats stats;
	uint64_t over;

	INSIDE(e->object.schedule, evrdma_dgram_get_stats(e->dgram, &stats));
	over = stats.work_done + stats.work_failed + stats.work_cancelled;
	MUST(stats.sends == e->taken && stats.bytes_sent == e->bytes_taken,
		"dgram %u: %u sends of %u bytes were taken, %llu of %llu counted", e->object.number,
		e->taken, e->bytes_taken, (unsigned long long)stats.sends,
		(unsigned long long)stats.bytes_sent);
	MUST(over <= e->taken && over >= e->taken - e->under_way,
		"dgram %u: of %u sends %u are under way, and %llu were counted as over",
		e->object.number, e->taken, e->under_way, (unsigned long long)over);
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

	MUST(event != EVRDMA_DGRAM_ADDR_CHANGED, "dgram %u: no address changed", e->object.number);
	object_event(&e->object, marks[event]);
	MUST(!error == (event != EVRDMA_DGRAM_ERROR), "dgram %u: a wrong error", e->object.number);
	if (error)
		trace(e->object.schedule, "  error %d in step %d", error->err, error->step);
	switch (event) {
	case EVRDMA_DGRAM_READY:
		MUST(e->object.state == DGRAM_OPENING && evrdma_dgram_get_mtu(dgram) &&
				evrdma_dgram_get_qp_num(dgram),
			"dgram %u is not ready as it should be", e->object.number);
		e->object.state = DGRAM_READY;
		break;
	case EVRDMA_DGRAM_ERROR:
		MUST(!e->ended && e->object.state != DGRAM_CLOSING, "dgram %u ends twice",
			e->object.number);
		e->ended = true;
		e->object.state = DGRAM_ENDED;
		break;
	case EVRDMA_DGRAM_WRITABLE:
		MUST(e->want_writable, "dgram %u is told WRITABLE for nothing", e->object.number);
		e->want_writable = false;
		break;
	case EVRDMA_DGRAM_CLOSED:
		MUST(e->object.state == DGRAM_CLOSING && TAILQ_EMPTY(&e->tickets),
			"dgram %u is closed too early", e->object.number);
		check_stats(e);
		check_dependents(e);
		break;
	case EVRDMA_DGRAM_ADDR_CHANGED:
		break;
	}
	schedule_act(e->object.schedule);
	if (event == EVRDMA_DGRAM_CLOSED)
		object_gone(&e->object);
}

static void reply(struct endpoint *e, const struct evrdma_recv *recv);

static void on_recv(struct evrdma_dgram *dgram, const struct evrdma_recv *recv, void *arg)
{
	struct endpoint *e = arg;
	struct schedule *s = e->object.schedule;
	unsigned sender = 0, serial = 0;
	struct sockaddr_storage from;

	object_event(&e->object, DGRAM_RECEIVED);
	MUST(!recv->err, "dgram %u: a failed receive is told", e->object.number);
	MUST(message_check(recv->data, recv->len, &sender, &serial),
		"dgram %u: what came was not sent by anybody", e->object.number);
	MUST(object_numbered(s, DGRAM, sender) && (!recv->has_imm || recv->imm == serial),
		"dgram %u: what came is from %u, with %u", e->object.number, sender, recv->imm);
	evrdma_dgram_get_sender(dgram, recv, &from);
	if (random_once_in(&s->random, 6))
		schedule_hold(s, recv->buf);
	if (!s->ending && random_once_in(&s->random, 4))
		reply(e, recv);
	if (!s->ending && random_once_in(&s->random, 8) && object_live(s, PEER) < MAX_LIVE)
		friend_new(e, recv);
	schedule_act(s);
}

/* --- life ------------------------------------------------------------------------------------ */

static void choose_options(struct endpoint *e, struct owner *owner)
{
	static const unsigned ms[] = { 1, 20, 1000 };
	struct random *r = &e->object.schedule->random;
	struct evrdma_dgram_options *o = &e->options;

	evrdma_dgram_options_init(o);
	o->send_depth = 1 + random_below(r, 8);
	o->send_queue = random_once_in(r, 2) ? random_below(r, 6) : 0;
	o->low_water = random_below(r, o->send_depth + o->send_queue + 1);
	o->drain_timeout_ms = (int)RANDOM_OF(r, ms);
	if (random_once_in(r, 4))
		o->join_timeout_ms = (int)RANDOM_OF(r, ms);
	o->recv_depth = 1 + random_below(r, 6);
	e->receiving = owner->shared && random_once_in(r, 3) ? BY_SRQ : BY_POOL;
	if (e->receiving == BY_SRQ)
		o->srq = owner_srq(owner);
	else
		o->recv_pool = owner->store->pool;
	o->domain = owner_choose_domain(owner);
}

struct endpoint *endpoint_new(struct schedule *s, unsigned owner)
{
	struct endpoint *e = object_new(s, DGRAM, owner, sizeof(*e));

	TAILQ_INIT(&e->tickets);
	choose_options(e, s->owners[owner]);
	s->in_call = true;
	e->dgram = evrdma_dgram_new(s->owners[owner]->base, &e->options);
	s->in_call = false;
	trace(s, "dgram %u: new on base %u, %u + %u sends, %u receives %s", e->object.number,
		s->owners[owner]->object.number, e->options.send_depth, e->options.send_queue,
		e->options.recv_depth, receiving_names[e->receiving]);
	if (!e->dgram) {
		owner_refused(s->owners[owner], errno);
		object_gone(&e->object);
		return NULL;
	}
	evrdma_dgram_setcb(e->dgram, on_recv, on_event, e);
	return e;
}

/* Groups and peers go before their endpoint. */
static void check_dependents(struct endpoint *e)
{
	struct object *object;
	unsigned i;

	FOR_EACH_OBJECT(e->object.schedule, object, i)
	{
		bool of_it =
			object->kind == GROUP
				? ((struct member *)object)->endpoint == e
				: object->kind == PEER && ((struct friend *)object)->endpoint == e;

		MUST(!of_it || object->gone, "dgram %u is closed before %s %u", e->object.number,
			cover_kind_name(object->kind), object->number);
	}
}

void endpoint_closing(struct endpoint *e)
{
	if (e->object.state == DGRAM_CLOSING)
		return;
	e->object.state = DGRAM_CLOSING;
	e->since_us = clock_now_us();
}

void endpoint_close(struct endpoint *e)
{
	object_call(&e->object, DGRAM_CLOSE);
	evrdma_dgram_close(e->dgram);
	object_returned(&e->object, DGRAM_CLOSE, 0);
	endpoint_closing(e);
}

void endpoint_check_idle(struct endpoint *e, bool for_ever)
{
	uint64_t limit_us = (uint64_t)e->options.drain_timeout_ms * US_PER_MS + SLACK_US;
	uint32_t low = e->options.low_water;

	if (e->object.state == DGRAM_CLOSING)
		MUST(!for_ever && clock_now_us() - e->since_us < limit_us,
			"dgram %u: nobody goes on closing it", e->object.number);
	MUST(e->object.state != DGRAM_READY || !schedule_is_deaf(evrdma_dgram_get_cm_id(e->dgram)),
		"dgram %u is ready, and hears nothing", e->object.number);
	if (!low)
		low = (e->options.send_depth + 3) / 4;
	if (e->object.state == DGRAM_READY && e->want_writable)
		MUST(e->options.send_depth + e->options.send_queue - e->under_way < low,
			"dgram %u: WRITABLE did not come", e->object.number);
}

/* --- sending --------------------------------------------------------------------------------- */

struct ticket *endpoint_make_datagram(struct endpoint *e)
{
	struct schedule *s = e->object.schedule;
	struct evrdma_buf *buf = schedule_buf(s, e->object.owner);
	struct ticket *ticket;

	if (!buf)
		return NULL;
	ticket = ticket_new(&e->object, &e->tickets);
	ticket->buf = buf;
	ticket->serial = ++e->serial;
	ticket->len = message_len(s, max_message());
	ticket->with_imm = random_once_in(&s->random, 3);
	message_fill(evrdma_buf_data(buf), ticket->len, e->object.number, ticket->serial);
	return ticket;
}

void endpoint_check_sent(const struct endpoint *e, const struct object *to)
{
	const struct ticket *ticket;

	TAILQ_FOREACH (ticket, &e->tickets, link)
		MUST(ticket->to != to, "%s %u is closed, and message %u to it is under way",
			cover_kind_name(to->kind), to->number, ticket->serial);
}

bool endpoint_can_send(const struct endpoint *e)
{
	return e->object.state == DGRAM_READY &&
	       e->object.schedule->owners[e->object.owner]->object.state == BASE_OPEN;
}

/* can: whether the state of all who take part allows it. */
void endpoint_submitted(struct endpoint *e, struct ticket *ticket, bool can, int ret)
{
	uint32_t capacity = e->options.send_depth + e->options.send_queue;
	bool full = e->under_way == capacity;

	if (can)
		MUST(ret == (full ? -EAGAIN : 0) || schedule_excuses(e->object.schedule, ret),
			"dgram %u: a send gives %d with %u of %u under way", e->object.number, ret,
			e->under_way, capacity);
	else
		MUST(ret < 0, "dgram %u takes what it cannot send", e->object.number);
	e->want_writable |= ret == -EAGAIN;
	e->under_way += !ret;
	e->taken += !ret;
	if (!ret) {
		e->bytes_taken += (unsigned)ticket->len;
		check_stats(e);
		return;
	}
	INSIDE(ticket->object->schedule, evrdma_buf_unref(ticket->buf));
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
	object_call(&e->object, DGRAM_REPLY);
	ret = evrdma_dgram_reply(e->dgram, recv, ticket->buf, ticket->len,
		ticket->with_imm ? &ticket->serial : NULL, endpoint_sent, ticket);
	object_returned(&e->object, DGRAM_REPLY, ret);
	endpoint_submitted(e, ticket, endpoint_can_send(e) && !endpoint_is_unreachable(ret), ret);
}

/* --- actions --------------------------------------------------------------------------------- */

static void new_dgram(struct schedule *s)
{
	struct owner *owner = schedule_owner(s);

	if (s->profile.dgrams && owner_has_room(owner, DGRAM) && object_live(s, DGRAM) < 5)
		endpoint_new(s, owner->object.owner);
}

void endpoint_open(struct endpoint *e)
{
	struct schedule *s = e->object.schedule;
	bool by_dst = random_once_in(&s->random, 2);
	struct sockaddr_in src, dst;
	int ret, want = -EALREADY;

	if (e->object.state == DGRAM_NEW)
		want = 0;
	else if (e->object.state == DGRAM_CLOSING)
		want = -EPIPE;
	schedule_address(&src, s->ip, 0);
	schedule_address(&dst, random_once_in(&s->random, 8) ? machine.no_rdma_ip : s->ip, 9);
	object_call(&e->object, DGRAM_OPEN);
	ret = evrdma_dgram_open(e->dgram, by_dst ? NULL : (struct sockaddr *)&src,
		by_dst ? (struct sockaddr *)&dst : NULL);
	object_returned(&e->object, DGRAM_OPEN, ret);
	MUST(ret == want, "dgram %u: open gives %d in place of %d", e->object.number, ret, want);
	if (!ret)
		e->object.state = DGRAM_OPENING;
}

static void open_dgram(struct schedule *s)
{
	struct endpoint *e =
		object_pick(s, DGRAM, random_once_in(&s->random, 4) ? ANY_STATE : IN(DGRAM_NEW));

	if (e)
		endpoint_open(e);
}

static int expected_accept(const struct endpoint *e, const struct ask *ask)
{
	if (e->object.state != DGRAM_READY)
		return -ENOTCONN;
	if (!ask->port->for_dgrams)
		return -EINVAL;
	return e->object.owner != ask->object.owner ? -EXDEV : 0;
}

void endpoint_accept(struct endpoint *e, struct ask *ask)
{
	int ret, want = expected_accept(e, ask);

	cover(REQUEST, ask->object.state, REQUEST_ACCEPT_DGRAM);
	object_call(&e->object, DGRAM_ACCEPT);
	ret = evrdma_dgram_accept(e->dgram, ask->request, "yes", 4);
	object_returned(&e->object, DGRAM_ACCEPT, ret);
	/* Who asked may have gone, which only the kernel knows. */
	MUST(ret == want || (!want && ret) || ask_may_end(ask, ret),
		"dgram %u: accept gives %d in place of %d", e->object.number, ret, want);
	if (!ret)
		ask_forget(ask);
}

static void accept_dgram(struct schedule *s)
{
	struct ask *ask =
		object_pick(s, REQUEST, IN(REQUEST_OFFERED) | IN(REQUEST_KEPT) | IN(REQUEST_MOVED));
	struct endpoint *e =
		object_pick(s, DGRAM, random_once_in(&s->random, 4) ? ANY_STATE : IN(DGRAM_READY));

	if (ask && e)
		endpoint_accept(e, ask);
}

static void get_dgram(struct schedule *s)
{
	struct endpoint *e = object_pick(s, DGRAM, ANY_STATE);

	if (!e)
		return;
	object_call(&e->object, DGRAM_GET);
	MUST(evrdma_dgram_get_mtu(e->dgram) || e->object.state != DGRAM_READY,
		"dgram %u is ready and has no MTU", e->object.number);
	evrdma_dgram_get_qp_num(e->dgram);
	evrdma_dgram_get_cm_id(e->dgram);
	object_returned(&e->object, DGRAM_GET, 0);
	check_stats(e);
}

static void close_dgram(struct schedule *s)
{
	struct endpoint *e =
		object_pick(s, DGRAM, random_once_in(&s->random, 4) ? ANY_STATE : ~IN(DGRAM_NEW));

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
