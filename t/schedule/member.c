/* Whom endpoints send to: groups and peers. */
#include "schedule/schedule.h"

#include <errno.h>

/* From here on nobody on it is told of more than the end. */
static bool is_closing(const struct endpoint *e)
{
	return e->thing.state == DGRAM_CLOSING;
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
	unsigned number = m->thing.number;

	thing_event(&m->thing, marks[event]);
	MUST(!error == (event != EVRDMA_MCAST_ERROR), "group %u: a wrong error", number);
	switch (event) {
	case EVRDMA_MCAST_JOINED:
		MUST(m->thing.state == GROUP_JOINING && m->endpoint->thing.state == DGRAM_READY,
			"group %u is joined again, or after its endpoint", number);
		m->thing.state = GROUP_MEMBER;
		break;
	case EVRDMA_MCAST_ERROR:
		MUST(!m->ended && m->thing.state != GROUP_CLOSING && !is_closing(m->endpoint),
			"group %u ends twice, or is told after the close", number);
		m->ended = true;
		m->thing.state = GROUP_ENDED;
		break;
	case EVRDMA_MCAST_CLOSED:
		MUST(m->thing.state == GROUP_CLOSING || m->endpoint->ended ||
				is_closing(m->endpoint),
			"group %u is closed, and nobody asked", number);
		break;
	}
	world_act(m->thing.world);
	if (event == EVRDMA_MCAST_CLOSED)
		thing_gone(&m->thing);
}

static bool is_member(const struct endpoint *e, const char *ip)
{
	struct thing *thing;
	unsigned i;

	FOR_EACH_THING (e->thing.world, thing, i) {
		const struct member *m = (const struct member *)thing;

		if (thing->kind == GROUP && !thing->gone && m->endpoint == e && m->ip == ip &&
			(thing->state == GROUP_JOINING || thing->state == GROUP_MEMBER))
			return true;
	}
	return false;
}

/* Its base takes nothing new. */
static bool is_ending(const struct endpoint *e)
{
	return errno == EPIPE && e->thing.world->homes[e->thing.home]->thing.state != BASE_OPEN;
}

static void join(struct world *w)
{
	static const char *const ips[] = { "239.1.1.1", "239.1.1.2", "239.1.1.3" };
	struct endpoint *e =
		thing_pick(w, DGRAM, random_once_in(&w->random, 4) ? ANY_STATE : IN(DGRAM_READY));
	unsigned flags = random_once_in(&w->random, 3) ? EVRDMA_MCAST_OPT_SENDONLY : 0;
	const char *ip = RANDOM_OF(&w->random, ips);
	struct sockaddr_in sin;
	struct member *m;
	bool twice;

	if (!e || w->thing_count >= ENOUGH_THINGS || thing_live(w, GROUP) >= MAX_LIVE)
		return;
	twice = is_member(e, ip);
	m = thing_new(w, GROUP, e->thing.home, sizeof(*m));
	m->endpoint = e;
	world_address(&sin, ip, 0);
	thing_call(&e->thing, DGRAM_JOIN);
	m->group = evrdma_mcast_join(e->dgram, (struct sockaddr *)&sin, flags, on_group_event, m);
	thing_returned(&e->thing, DGRAM_JOIN, m->group ? 0 : -errno);
	MUST(!m->group || !twice, "an endpoint joins a group twice");
	m->ip = ip;
	if (m->group)
		return;
	MUST(e->thing.state != DGRAM_READY || world_excuses(w, -errno) || is_ending(e) ||
			(twice && errno == EADDRINUSE),
		"join gives %d", errno);
	thing_gone(&m->thing);
}

static void leave(struct world *w)
{
	struct member *m = thing_pick(w, GROUP, ANY_STATE);

	if (!m)
		return;
	thing_call(&m->thing, GROUP_CLOSE);
	evrdma_mcast_close(m->group);
	thing_returned(&m->thing, GROUP_CLOSE, 0);
	m->thing.state = GROUP_CLOSING;
}

static void get_group(struct world *w)
{
	struct member *m = thing_pick(w, GROUP, ANY_STATE);
	bool joined;

	if (!m)
		return;
	thing_call(&m->thing, GROUP_GET);
	joined = evrdma_mcast_get_ah_attr(m->group) != NULL;
	evrdma_mcast_get_addr(m->group);
	evrdma_mcast_get_qp_num(m->group);
	MUST(joined || (m->thing.state != GROUP_MEMBER && !evrdma_mcast_get_qkey(m->group)),
		"group %u: a member does not know its group", m->thing.number);
	thing_returned(&m->thing, GROUP_GET, joined);
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
	unsigned number = f->thing.number;

	thing_event(&f->thing, marks[event]);
	MUST(!error == (event != EVRDMA_PEER_ERROR), "peer %u: a wrong error", number);
	switch (event) {
	case EVRDMA_PEER_READY:
		MUST(f->thing.state == PEER_FINDING && f->endpoint->thing.state == DGRAM_READY,
			"peer %u is ready again, or after its endpoint", number);
		f->thing.state = PEER_READY;
		break;
	case EVRDMA_PEER_ERROR:
		MUST(!f->ended && f->thing.state != PEER_CLOSING && !is_closing(f->endpoint),
			"peer %u ends twice, or is told after the close", number);
		f->ended = true;
		f->thing.state = PEER_ENDED;
		break;
	case EVRDMA_PEER_CLOSED:
		MUST(f->thing.state == PEER_CLOSING || f->endpoint->ended ||
				is_closing(f->endpoint),
			"peer %u is closed, and nobody asked", number);
		break;
	}
	world_act(f->thing.world);
	if (event == EVRDMA_PEER_CLOSED)
		thing_gone(&f->thing);
}

static struct friend *friend_made(struct friend *f, bool excused)
{
	int err = errno;
	struct world *w = f->thing.world;

	thing_returned(&f->endpoint->thing, DGRAM_FIND, f->peer ? 0 : -err);
	if (f->peer)
		return f;
	errno = err;
	MUST(excused || world_excuses(w, -err) || is_ending(f->endpoint), "no peer: %d", err);
	thing_gone(&f->thing);
	return NULL;
}

/* Of one who sent a datagram. */
struct friend *friend_new(struct endpoint *e, const struct evrdma_recv *recv)
{
	struct friend *f = thing_new(e->thing.world, PEER, e->thing.home, sizeof(*f));

	f->endpoint = e;
	f->since_us = clock_now_us();
	f->timeout_ms = 4000;
	thing_call(&e->thing, DGRAM_FIND);
	f->peer = evrdma_peer_new_sender(e->dgram, recv, on_friend_event, f);
	return friend_made(
		f, e->thing.state != DGRAM_READY || endpoint_is_unreachable(-errno));
}

static void find(struct world *w)
{
	struct endpoint *e =
		thing_pick(w, DGRAM, random_once_in(&w->random, 4) ? ANY_STATE : IN(DGRAM_READY));
	struct port *port = port_for_dgrams(w);
	struct evrdma_peer_options options;
	struct sockaddr_in sin;
	struct friend *f;

	if (!e || w->thing_count >= ENOUGH_THINGS || thing_live(w, PEER) >= MAX_LIVE)
		return;
	f = thing_new(w, PEER, e->thing.home, sizeof(*f));
	f->endpoint = e;
	f->since_us = clock_now_us();
	evrdma_peer_options_init(&options);
	options.timeout_ms = f->timeout_ms = random_once_in(&w->random, 3) ? 2 : 5000;
	options.private_data = &e->thing.number;
	options.private_data_len = sizeof(e->thing.number);
	world_address(&sin, w->ip, port ? port->number : 9);
	thing_call(&e->thing, DGRAM_FIND);
	f->peer = evrdma_peer_new(e->dgram, (struct sockaddr *)&sin, &options, on_friend_event, f);
	friend_made(f, e->thing.state != DGRAM_READY);
}

static void close_peer(struct world *w)
{
	struct friend *f = thing_pick(w, PEER, ANY_STATE);

	if (!f)
		return;
	thing_call(&f->thing, PEER_CLOSE);
	evrdma_peer_close(f->peer);
	thing_returned(&f->thing, PEER_CLOSE, 0);
	f->thing.state = PEER_CLOSING;
}

static void get_peer(struct world *w)
{
	struct friend *f = thing_pick(w, PEER, ANY_STATE);
	size_t len;

	if (!f)
		return;
	thing_call(&f->thing, PEER_GET);
	MUST(evrdma_peer_get_qp_num(f->peer) || f->thing.state != PEER_READY,
		"peer %u is ready and has no QP", f->thing.number);
	evrdma_peer_get_qkey(f->peer);
	evrdma_peer_get_private_data(f->peer, &len);
	thing_returned(&f->thing, PEER_GET, 0);
}

void friend_check_idle(struct friend *f, bool for_ever)
{
	uint64_t limit_us = (uint64_t)f->timeout_ms * US_PER_MS + SLACK_US;

	if (f->thing.state == PEER_FINDING)
		MUST(!for_ever && clock_now_us() - f->since_us < limit_us,
			"peer %u is looked for for too long", f->thing.number);
}

/* --- sending --------------------------------------------------------------------------------- */

static bool send_to_group(struct member *m)
{
	struct endpoint *e = m->endpoint;
	struct ticket *ticket = endpoint_make_datagram(e);
	int ret;

	if (!ticket)
		return false;
	cover(GROUP, m->thing.state, GROUP_SEND);
	thing_call(&e->thing, DGRAM_SEND);
	ret = evrdma_dgram_send(e->dgram, m->group, ticket->buf, ticket->len,
		ticket->with_imm ? &ticket->serial : NULL, endpoint_sent, ticket);
	thing_returned(&e->thing, DGRAM_SEND, ret);
	endpoint_submitted(
		e, ticket, endpoint_can_send(e) && m->thing.state == GROUP_MEMBER, ret);
	return !ret;
}

static void send_to_some_group(struct world *w)
{
	unsigned n = random_once_in(&w->random, 3) ? 1 + random_below(&w->random, 16) : 1;
	struct member *m =
		thing_pick(w, GROUP, random_once_in(&w->random, 4) ? ANY_STATE : IN(GROUP_MEMBER));

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
	cover(PEER, f->thing.state, PEER_SEND);
	thing_call(&e->thing, DGRAM_SEND_TO);
	ret = evrdma_dgram_send_to(e->dgram, f->peer, ticket->buf, ticket->len,
		ticket->with_imm ? &ticket->serial : NULL, endpoint_sent, ticket);
	thing_returned(&e->thing, DGRAM_SEND_TO, ret);
	endpoint_submitted(
		e, ticket, endpoint_can_send(e) && f->thing.state == PEER_READY, ret);
	return !ret;
}

static void send_to_some_peer(struct world *w)
{
	unsigned n = random_once_in(&w->random, 3) ? 1 + random_below(&w->random, 16) : 1;
	struct friend *f =
		thing_pick(w, PEER, random_once_in(&w->random, 4) ? ANY_STATE : IN(PEER_READY));

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
