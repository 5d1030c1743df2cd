/* Whom endpoints send to: groups and peers. */
#include "schedule/schedule.h"

#include <errno.h>

/* From here on nobody on it is told of more than the end. */
static bool is_closing(const struct endpoint *e)
{
	return e->object.state == DGRAM_CLOSING;
}

/* --- groups ---------------------------------------------------------------------------------- */

static void on_group_event(struct evrdma_mcast *group, enum evrdma_mcast_event event,
	const struct evrdma_error *error, void *arg)
{
	static const unsigned marks[] = {
		[EVRDMA_MCAST_JOINED] = GROUP_JOINED,
		[EVRDMA_MCAST_ERROR] = GROUP_ERROR,
		[EVRDMA_MCAST_CLOSED] = GROUP_CLOSED,
	};
	struct member *m = arg;
	unsigned number = m->object.number;

	object_event(&m->object, marks[event]);
	MUST(!error == (event != EVRDMA_MCAST_ERROR), "group %u: a wrong error", number);
	switch (event) {
	case EVRDMA_MCAST_JOINED:
		MUST(m->object.state == GROUP_JOINING && m->endpoint->object.state == DGRAM_READY,
			"group %u is joined again, or after its endpoint", number);
		m->object.state = GROUP_MEMBER;
		break;
	case EVRDMA_MCAST_ERROR:
		MUST(!m->ended && m->object.state != GROUP_CLOSING && !is_closing(m->endpoint),
			"group %u ends twice, or is told after the close", number);
		m->ended = true;
		m->object.state = GROUP_ENDED;
		break;
	case EVRDMA_MCAST_CLOSED:
		MUST(m->object.state == GROUP_CLOSING || m->endpoint->ended ||
				is_closing(m->endpoint),
			"group %u is closed, and nobody asked", number);
		endpoint_check_sent(m->endpoint, &m->object);
		break;
	}
	schedule_act(m->object.schedule);
	if (event == EVRDMA_MCAST_CLOSED)
		object_gone(&m->object);
}

static bool is_member(const struct endpoint *e, const char *ip)
{
	struct object *object;
	unsigned i;

	FOR_EACH_OBJECT(e->object.schedule, object, i)
	{
		const struct member *m = (const struct member *)object;

		if (object->kind == GROUP && !object->gone && m->endpoint == e && m->ip == ip &&
			(object->state == GROUP_JOINING || object->state == GROUP_MEMBER))
			return true;
	}
	return false;
}

/* Its base takes nothing new. */
static bool is_ending(const struct endpoint *e)
{
	return errno == EPIPE &&
	       e->object.schedule->owners[e->object.owner]->object.state != BASE_OPEN;
}

static void join(struct schedule *s)
{
	static const char *const ips[] = { "239.1.1.1", "239.1.1.2", "239.1.1.3" };
	struct endpoint *e =
		object_pick(s, DGRAM, random_once_in(&s->random, 4) ? ANY_STATE : IN(DGRAM_READY));
	unsigned flags = random_once_in(&s->random, 3) ? EVRDMA_MCAST_OPT_SENDONLY : 0;
	const char *ip = RANDOM_OF(&s->random, ips);
	struct sockaddr_in sin;
	struct member *m;
	bool twice;

	if (!e || s->object_count >= ENOUGH_OBJECTS || object_live(s, GROUP) >= MAX_LIVE)
		return;
	twice = is_member(e, ip);
	m = object_new(s, GROUP, e->object.owner, sizeof(*m));
	m->endpoint = e;
	schedule_address(&sin, ip, 0);
	object_call(&e->object, DGRAM_JOIN);
	m->group = evrdma_mcast_join(e->dgram, (struct sockaddr *)&sin, flags, on_group_event, m);
	object_returned(&e->object, DGRAM_JOIN, m->group ? 0 : -errno);
	MUST(!m->group || !twice, "an endpoint joins a group twice");
	m->ip = ip;
	if (m->group)
		return;
	MUST(e->object.state != DGRAM_READY || schedule_excuses(s, -errno) || is_ending(e) ||
			(twice && errno == EADDRINUSE),
		"join gives %d", errno);
	object_gone(&m->object);
}

static void leave(struct schedule *s)
{
	struct member *m = object_pick(s, GROUP, ANY_STATE);

	if (!m)
		return;
	object_call(&m->object, GROUP_CLOSE);
	evrdma_mcast_close(m->group);
	object_returned(&m->object, GROUP_CLOSE, 0);
	m->object.state = GROUP_CLOSING;
}

static void get_group(struct schedule *s)
{
	struct member *m = object_pick(s, GROUP, ANY_STATE);
	bool joined;

	if (!m)
		return;
	object_call(&m->object, GROUP_GET);
	joined = evrdma_mcast_get_ah_attr(m->group) != NULL;
	evrdma_mcast_get_addr(m->group);
	evrdma_mcast_get_qp_num(m->group);
	MUST(joined || (m->object.state != GROUP_MEMBER && !evrdma_mcast_get_qkey(m->group)),
		"group %u: a member does not know its group", m->object.number);
	object_returned(&m->object, GROUP_GET, joined);
}

/* --- peers ----------------------------------------------------------------------------------- */

static void on_friend_event(struct evrdma_peer *peer, enum evrdma_peer_event event,
	const struct evrdma_error *error, void *arg)
{
	static const unsigned marks[] = {
		[EVRDMA_PEER_READY] = PEER_IS_READY,
		[EVRDMA_PEER_ERROR] = PEER_ERROR,
		[EVRDMA_PEER_CLOSED] = PEER_CLOSED,
	};
	struct friend *f = arg;
	unsigned number = f->object.number;

	object_event(&f->object, marks[event]);
	MUST(!error == (event != EVRDMA_PEER_ERROR), "peer %u: a wrong error", number);
	switch (event) {
	case EVRDMA_PEER_READY:
		MUST(f->object.state == PEER_FINDING && f->endpoint->object.state == DGRAM_READY,
			"peer %u is ready again, or after its endpoint", number);
		f->object.state = PEER_READY;
		break;
	case EVRDMA_PEER_ERROR:
		MUST(!f->ended && f->object.state != PEER_CLOSING && !is_closing(f->endpoint),
			"peer %u ends twice, or is told after the close", number);
		f->ended = true;
		f->object.state = PEER_ENDED;
		break;
	case EVRDMA_PEER_CLOSED:
		MUST(f->object.state == PEER_CLOSING || f->endpoint->ended ||
				is_closing(f->endpoint),
			"peer %u is closed, and nobody asked", number);
		endpoint_check_sent(f->endpoint, &f->object);
		break;
	}
	schedule_act(f->object.schedule);
	if (event == EVRDMA_PEER_CLOSED)
		object_gone(&f->object);
}

static struct friend *friend_made(struct friend *f, bool excused)
{
	int err = errno;
	struct schedule *s = f->object.schedule;

	object_returned(&f->endpoint->object, DGRAM_FIND, f->peer ? 0 : -err);
	if (f->peer)
		return f;
	errno = err;
	MUST(excused || schedule_excuses(s, -err) || is_ending(f->endpoint), "no peer: %d", err);
	object_gone(&f->object);
	return NULL;
}

/* Of one who sent a datagram. */
struct friend *friend_new(struct endpoint *e, const struct evrdma_recv *recv)
{
	struct friend *f = object_new(e->object.schedule, PEER, e->object.owner, sizeof(*f));

	f->endpoint = e;
	f->since_us = clock_now_us();
	f->timeout_ms = 4000;
	object_call(&e->object, DGRAM_FIND);
	f->peer = evrdma_peer_new_sender(e->dgram, recv, on_friend_event, f);
	return friend_made(f, e->object.state != DGRAM_READY || endpoint_is_unreachable(-errno));
}

static void find(struct schedule *s)
{
	struct endpoint *e =
		object_pick(s, DGRAM, random_once_in(&s->random, 4) ? ANY_STATE : IN(DGRAM_READY));
	struct port *port = port_for_dgrams(s);
	struct evrdma_peer_options options;
	struct sockaddr_in sin;
	struct friend *f;

	if (!e || s->object_count >= ENOUGH_OBJECTS || object_live(s, PEER) >= MAX_LIVE)
		return;
	f = object_new(s, PEER, e->object.owner, sizeof(*f));
	f->endpoint = e;
	f->since_us = clock_now_us();
	evrdma_peer_options_init(&options);
	options.timeout_ms = f->timeout_ms = random_once_in(&s->random, 3) ? 2 : 5000;
	options.private_data = &e->object.number;
	options.private_data_len = sizeof(e->object.number);
	schedule_address(&sin, s->ip, port ? port->number : 9);
	object_call(&e->object, DGRAM_FIND);
	f->peer = evrdma_peer_new(e->dgram, (struct sockaddr *)&sin, &options, on_friend_event, f);
	friend_made(f, e->object.state != DGRAM_READY);
}

static void close_peer(struct schedule *s)
{
	struct friend *f = object_pick(s, PEER, ANY_STATE);

	if (!f)
		return;
	object_call(&f->object, PEER_CLOSE);
	evrdma_peer_close(f->peer);
	object_returned(&f->object, PEER_CLOSE, 0);
	f->object.state = PEER_CLOSING;
}

static void get_peer(struct schedule *s)
{
	struct friend *f = object_pick(s, PEER, ANY_STATE);
	size_t len;

	if (!f)
		return;
	object_call(&f->object, PEER_GET);
	MUST(evrdma_peer_get_qp_num(f->peer) || f->object.state != PEER_READY,
		"peer %u is ready and has no QP", f->object.number);
	evrdma_peer_get_qkey(f->peer);
	evrdma_peer_get_private_data(f->peer, &len);
	object_returned(&f->object, PEER_GET, 0);
}

void friend_check_idle(struct friend *f, bool for_ever)
{
	uint64_t limit_us = (uint64_t)f->timeout_ms * US_PER_MS + SLACK_US;

	if (f->object.state == PEER_FINDING)
		MUST(!for_ever && clock_now_us() - f->since_us < limit_us,
			"peer %u is looked for for too long", f->object.number);
}

/* --- sending --------------------------------------------------------------------------------- */

static bool send_to_group(struct member *m)
{
	struct endpoint *e = m->endpoint;
	struct ticket *ticket = endpoint_make_datagram(e);
	int ret;

	if (!ticket)
		return false;
	ticket->to = &m->object;
	cover(GROUP, m->object.state, GROUP_SEND);
	object_call(&e->object, DGRAM_SEND);
	ret = evrdma_dgram_send(e->dgram, m->group, ticket->buf, ticket->len,
		ticket->with_imm ? &ticket->serial : NULL, endpoint_sent, ticket);
	object_returned(&e->object, DGRAM_SEND, ret);
	endpoint_submitted(e, ticket, endpoint_can_send(e) && m->object.state == GROUP_MEMBER, ret);
	return !ret;
}

static void send_to_some_group(struct schedule *s)
{
	unsigned n = random_once_in(&s->random, 3) ? 1 + random_below(&s->random, 16) : 1;
	struct member *m =
		object_pick(s, GROUP, random_once_in(&s->random, 4) ? ANY_STATE : IN(GROUP_MEMBER));

	while (m && n-- && send_to_group(m))
		;
}

static bool send_to_peer(struct friend *f)
{
	struct endpoint *e = f->endpoint;
	struct ticket *ticket = endpoint_make_datagram(e);
	int ret;

	if (!ticket)
		return false;
	ticket->to = &f->object;
	cover(PEER, f->object.state, PEER_SEND);
	object_call(&e->object, DGRAM_SEND_TO);
	ret = evrdma_dgram_send_to(e->dgram, f->peer, ticket->buf, ticket->len,
		ticket->with_imm ? &ticket->serial : NULL, endpoint_sent, ticket);
	object_returned(&e->object, DGRAM_SEND_TO, ret);
	endpoint_submitted(e, ticket, endpoint_can_send(e) && f->object.state == PEER_READY, ret);
	return !ret;
}

static void send_to_some_peer(struct schedule *s)
{
	unsigned n = random_once_in(&s->random, 3) ? 1 + random_below(&s->random, 16) : 1;
	struct friend *f =
		object_pick(s, PEER, random_once_in(&s->random, 4) ? ANY_STATE : IN(PEER_READY));

	while (f && n-- && send_to_peer(f))
		;
}

const struct action member_actions[] = {
	{ "join", 4, join },
	{ "leave", 2, leave },
	{ "get group", 1, get_group },
	{ "find", 4, find },
	{ "close peer", 2, close_peer },
	{ "get peer", 1, get_peer },
	{ "send to group", 8, send_to_some_group },
	{ "send to peer", 8, send_to_some_peer },
	{ 0 },
};
