/* Bases, with their pools, and the buffers that the user keeps. */
#include "schedule/schedule.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

enum { CLOSE_LIMIT_US = 3000000 };

/* --- buffers --------------------------------------------------------------------------------- */

static void on_cleanup(void *data, size_t size, void *arg)
{
	struct world *w = arg;

	w->references--;
	free(data);
}

struct evrdma_buf *world_reference(struct world *w, size_t size, unsigned flags, void **data)
{
	struct evrdma_buf *buf;

	*data = calloc(1, size);
	INSIDE(w, buf = evrdma_buf_new_reference(*data, size, flags, on_cleanup, w));
	MUST(buf && evrdma_buf_size(buf) == size, "no buffer of the user's memory: %d", errno);
	w->references++;
	return buf;
}

struct evrdma_buf *world_buf(struct world *w, unsigned number)
{
	struct home *home = w->homes[number];
	struct evrdma_buf *buf;
	void *data;

	if (home->thing.state != BASE_OPEN || home->given_up || random_once_in(&w->random, 8))
		return world_reference(w, BUF_SIZE, 0, &data);
	INSIDE(w, buf = evrdma_pool_get(home->store->pool));
	MUST(buf || errno == ENOBUFS || world_excuses(w, -errno), "no buffer: %d", errno);
	MUST(!buf || !evrdma_buf_get_user(buf), "a new buffer is somebody's already");
	return buf;
}

static bool may_share(const struct side *side)
{
	const struct world *w = side->thing.world;

	return w->shared && side->shared == w->shared_number;
}

static struct evrdma_buf *shared_reference(
	struct world *w, size_t size, unsigned flags, void **data)
{
	struct evrdma_buf *buf;

	*data = calloc(1, size);
	INSIDE(w, buf = evrdma_buf_new_shared(w->shared, *data, size, flags, on_cleanup, w));
	MUST(buf, "no shared buffer of the user's memory: %d", errno);
	w->references++;
	return buf;
}

struct evrdma_buf *side_reference(struct side *side, size_t size, unsigned flags, void **data)
{
	return (may_share(side) ? shared_reference : world_reference)(
		side->thing.world, size, flags, data);
}

struct evrdma_buf *side_buf(struct side *side)
{
	struct world *w = side->thing.world;
	void *data;

	if (may_share(side) && random_once_in(&w->random, 3))
		return shared_reference(w, BUF_SIZE, 0, &data);
	return world_buf(w, side->thing.home);
}

void world_hold(struct world *w, struct evrdma_buf *buf)
{
	if (w->held_count < MAX_HELD)
		w->held[w->held_count++] = evrdma_buf_ref(buf);
}

void world_release_one(struct world *w)
{
	unsigned at;

	if (!w->held_count)
		return;
	at = random_below(&w->random, w->held_count);
	INSIDE(w, evrdma_buf_unref(w->held[at]));
	w->held[at] = w->held[--w->held_count];
}

/* --- life ------------------------------------------------------------------------------------ */

static void choose_options(struct home *home, struct evrdma_base_options *options)
{
	static const unsigned idle_ms[] = { 0, 1, 1000 }, cq_budgets[] = { 1, 3, 256 },
			      cq_entries[] = { 1, 24, 4096 };
	struct random *r = &home->thing.world->random;

	evrdma_base_options_init(options);
	options->cq_budget = RANDOM_OF(r, cq_budgets);
	options->cq_entries = RANDOM_OF(r, cq_entries);
	options->device_idle_ms = RANDOM_OF(r, idle_ms);
	if (random_once_in(r, 8))
		options->device_poll_ms = 500;
	if (random_once_in(r, 12)) {
		options->max_pinned_bytes = 4096u * (1 + random_below(r, 12));
		home->thing.world->troubled = true;
	}
	if (home->thing.world->hands_in)
		options->flags |= EVRDMA_BASE_OPT_NO_ASYNC_EVENTS;
}

static struct evrdma_base *new_base(struct home *home)
{
	struct world *w = home->thing.world;
	struct evrdma_base_options options;

	choose_options(home, &options);
	if (!w->profile.ids || random_once_in(&w->random, 3))
		return evrdma_base_new(w->loop, &options);
	home->channel = rdma_create_event_channel();
	MUST(home->channel, "no event channel: %d", errno);
	return evrdma_base_new_with_channel(w->loop, home->channel, &options);
}

/* A device goes once each time that it is pulled, and the ports have news when they are asked. */
static void on_device(struct evrdma_base *base, enum evrdma_device_event event, const char *device,
	int port_num, void *arg)
{
	struct home *home = arg;
	struct world *w = home->thing.world;
	bool whole = event == EVRDMA_DEVICE_ARRIVED || event == EVRDMA_DEVICE_REMOVED ||
		event == EVRDMA_DEVICE_FATAL;

	thing_event(&home->thing, BASE_DEVICE_EVENT);
	trace(w, "  %s: event %d, port %d", device, event, port_num);
	MUST(base == home->base && *device && !port_num == whole,
		"base %u is told of port %d of device %s", home->thing.number, port_num, device);
	home->removals += event == EVRDMA_DEVICE_REMOVED;
	MUST(home->removals <= w->pulls, "base %u: %u devices were removed, %u are told",
		home->thing.number, w->pulls, home->removals);
	MUST(whole || w->profile.async || !machine.exact, "base %u: there are no news of a port",
		home->thing.number);
	world_act(w);
}

struct evrdma_domain *home_choose_domain(struct home *home)
{
	struct world *w = home->thing.world;

	if (random_once_in(&w->random, 4))
		return w->shared;
	return random_once_in(&w->random, 3) ? home->domain : NULL;
}

void world_share(struct world *w)
{
	INSIDE(w, w->shared = evrdma_domain_new_shared());
	MUST(w->shared, "no shared domain: %d", errno);
	w->shared_number++;
}

/* Whoever names it keeps it. */
void world_share_no_more(struct world *w)
{
	INSIDE(w, evrdma_domain_free(w->shared));
	w->shared = NULL;
}

struct home *home_new(struct world *w)
{
	struct home *home = thing_new(w, BASE, w->home_count, sizeof(*home));

	INSIDE(w, home->base = new_base(home));
	MUST(home->base, "no base: %d", errno);
	INSIDE(w, evrdma_base_set_device_cb(home->base, on_device, home));
	if (home->channel)
		INSIDE(w, evrdma_base_set_event_cb(home->base, foreign_on_event, home));
	home->store = store_new(home);
	if (random_once_in(&w->random, 2))
		home->shared = shared_new(home);
	if (random_once_in(&w->random, 3))
		INSIDE(w, home->domain = evrdma_domain_new(home->base));
	trace(w, "base %u:%s%s%s", home->thing.number, home->channel ? " channel" : "",
		home->shared ? " SRQ" : "", home->domain ? " domain" : "");
	return home;
}

/* It was the base's to use, and is as it was before. */
void home_free_channel(struct home *home)
{
	if (!home->channel)
		return;
	MUST(!(fcntl(home->channel->fd, F_GETFL) & O_NONBLOCK),
		"base %u left its channel changed", home->thing.number);
	rdma_destroy_event_channel(home->channel);
}

struct home *world_home(struct world *w)
{
	return thing_pick(w, BASE, IN(BASE_OPEN));
}

/* Nothing may be made on a base whose pool is gone, but by those who need none. */
bool home_has_room(struct home *home, enum kind kind)
{
	struct world *w;

	if (!home || home->given_up)
		return false;
	w = home->thing.world;
	return !w->ending && w->thing_count < ENOUGH_THINGS && thing_live(w, kind) < MAX_LIVE;
}

void home_refused(struct home *home, int err)
{
	bool closing = home->thing.state != BASE_OPEN && err == EPIPE;

	MUST(closing || world_excuses(home->thing.world, -err), "base %u refuses an object: %d",
		home->thing.number, err);
}

static void give_up(struct home *home)
{
	if (home->given_up)
		return;
	home->given_up = true;
	shared_give_up(home);
	INSIDE(home->thing.world, evrdma_domain_free(home->domain));
	home->domain = NULL;
}

/* Pools and SRQs go with the base; what is the user's stays. */
static void outlived(struct home *home, struct thing *thing)
{
	if (thing->kind == POOL || thing->kind == SRQ)
		thing_gone(thing);
	else
		MUST(thing->kind == BASE || thing->kind == REQUEST || thing->kind == FOREIGN,
			"base %u is closed, %s %u on it is not", home->thing.number,
			cover_kind_name(thing->kind), thing->number);
}

static void on_closed(struct evrdma_base *base, void *arg)
{
	struct home *home = arg;
	struct world *w = home->thing.world;
	struct thing *thing;
	unsigned i;

	thing_event(&home->thing, BASE_CLOSED);
	MUST(!home->calls_pending, "base %u: calls were not made before it was closed",
		home->thing.number);
	FOR_EACH_THING(w, thing, i)
	if (thing->home == home->thing.home && !thing->gone)
		outlived(home, thing);
	thing_gone(&home->thing);
}

static void mark_closing(struct thing *thing)
{
	switch (thing->kind) {
	case CONN:
		side_closing((struct side *)thing);
		break;
	case DGRAM:
		endpoint_closing((struct endpoint *)thing);
		break;
	case LISTENER:
		thing->state = LISTENER_CLOSING;
		break;
	case ID:
		thing->state = ID_CLOSING;
		break;
	case GROUP:
		thing->state = GROUP_CLOSING;
		break;
	case PEER:
		thing->state = PEER_CLOSING;
		break;
	case REQUEST:
		cover(REQUEST, thing->state, REQUEST_BASE_CLOSED);
		ask_forget((struct ask *)thing);
		break;
	default:
		break;
	}
}

/* What was moved to the base goes with it, as long as there is an id there. */
static bool was_moved_to(const struct thing *thing, unsigned home)
{
	const struct side *side = (const struct side *)thing;

	if (thing->kind == ID)
		return ((const struct plain *)thing)->events_home == home;
	return thing->kind == CONN && side->events_home == home &&
	       evrdma_conn_get_cm_id(side->conn);
}

static bool is_on(const struct thing *thing, unsigned home)
{
	return thing->home == home || was_moved_to(thing, home);
}

static void now_closing(struct home *home)
{
	struct world *w = home->thing.world;
	struct thing *thing;
	unsigned i;

	home->thing.state = BASE_CLOSING;
	home->since_us = clock_now_us();
	FOR_EACH_THING(w, thing, i)
	if (!thing->gone && is_on(thing, home->thing.home))
		mark_closing(thing);
}

void home_close(struct home *home)
{
	if (home->thing.gone)
		return;
	thing_call(&home->thing, BASE_CLOSE);
	evrdma_base_close(home->base, on_closed, home);
	thing_returned(&home->thing, BASE_CLOSE, 0);
	if (home->thing.state != BASE_CLOSING)
		now_closing(home);
}

void home_check_idle(struct home *home, bool for_ever)
{
	uint64_t us = clock_now_us() - home->since_us;

	MUST(!home->calls_pending, "base %u: a call into the loop is not made", home->thing.number);
	if (home->thing.state == BASE_LEAVING)
		MUST(!for_ever && us < (uint64_t)home->shutdown_ms * US_PER_MS + SLACK_US,
			"base %u: it is shut down, and nobody closes it", home->thing.number);
	if (home->thing.state != BASE_CLOSING)
		return;
	MUST(!for_ever && clock_now_us() - home->since_us < CLOSE_LIMIT_US,
		"base %u: nobody goes on closing it", home->thing.number);
}

/* Those that have arrived, and that nobody has answered. */
static unsigned count_requests(const struct home *home)
{
	struct world *w = home->thing.world;
	struct thing *thing;
	unsigned i, n = 0;

	FOR_EACH_THING(w, thing, i)
	n += thing->kind == REQUEST && !thing->gone && thing->state != REQUEST_MOVING &&
	     thing->home == home->thing.home;
	return n;
}

/* With nobody left on it. */
static void check_counts(struct home *home)
{
	unsigned requests = count_requests(home);
	struct evrdma_base_stats stats;

	INSIDE(home->thing.world, evrdma_base_get_stats(home->base, &stats));
	MUST(!stats.connections && !stats.endpoints && !stats.address_handles,
		"base %u: %llu connections, %llu endpoints, %llu address handles are left",
		home->thing.number, (unsigned long long)stats.connections,
		(unsigned long long)stats.endpoints, (unsigned long long)stats.address_handles);
	MUST(stats.requests_pending == requests, "base %u counts %llu requests, there are %u",
		home->thing.number, (unsigned long long)stats.requests_pending, requests);
}

/* The same: all buffers of the pool are there to be taken. */
void home_check_balance(struct home *home)
{
	struct evrdma_buf *bufs[64];
	unsigned n = 0;

	if (home->thing.state != BASE_OPEN)
		return;
	check_counts(home);
	give_up(home);
	while (n < 64 && (bufs[n] = evrdma_pool_get(home->store->pool)))
		n++;
	MUST(n == home->store->bufs, "base %u: of %u buffers %u are left", home->thing.number,
		home->store->bufs, n);
	while (n)
		INSIDE(home->thing.world, evrdma_buf_unref(bufs[--n]));
	if (random_once_in(&home->thing.world->random, 2))
		store_give_up(home);
}

/* --- the orderly end ------------------------------------------------------------------------- */

static void on_ran(struct evrdma_base *base, void *arg)
{
	struct home *home = arg;

	thing_event(&home->thing, BASE_RAN_IN_LOOP);
	MUST(home->calls_pending, "base %u: more calls were made than asked for",
		home->thing.number);
	home->calls_pending--;
	world_act(home->thing.world);
}

static void on_witness(struct evrdma_id *id, const struct rdma_cm_event *event, void *arg)
{
	struct home *home = arg;

	if (!event)
		home->witness = NULL;
}

static bool has_witness(const struct home *home)
{
	return home->witness && evrdma_id_get_cm_id(home->witness);
}

/* What the calls say of what is closed, and of nothing else: they change nothing. */
static bool says_closing(struct thing *thing)
{
	struct sockaddr_in sin;
	int ret = 0;

	world_address(&sin, thing->world->ip, 9);
	thing->world->in_call = true;
	if (thing->kind == CONN)
		ret = evrdma_conn_connect(
			((struct side *)thing)->conn, NULL, (struct sockaddr *)&sin);
	else if (thing->kind == DGRAM)
		ret = evrdma_dgram_open(
			((struct endpoint *)thing)->dgram, (struct sockaddr *)&sin, NULL);
	else if (!evrdma_id_get_cm_id(((struct plain *)thing)->id))
		ret = -EPIPE;
	thing->world->in_call = false;
	return ret == -EPIPE;
}

static bool is_of_shutdown(const struct thing *thing)
{
	struct home *const *homes = thing->world->homes;
	unsigned events_home = thing->home;

	if (thing->kind == CONN)
		events_home = ((const struct side *)thing)->events_home;
	else if (thing->kind == ID)
		events_home = ((const struct plain *)thing)->events_home;
	else if (thing->kind != DGRAM)
		return false;
	return homes[thing->home]->was_shut_down || homes[events_home]->was_shut_down;
}

static void sync_thing(struct thing *thing)
{
	bool fresh = (thing->kind == CONN && thing->state == CONN_NEW) ||
		(thing->kind == DGRAM && thing->state == DGRAM_NEW);

	if (!thing->gone && !fresh && is_of_shutdown(thing) && says_closing(thing))
		mark_closing(thing);
}

void world_sync(struct world *w)
{
	bool any = false;
	struct thing *thing;
	unsigned i;

	for (i = 0; i < w->home_count; i++) {
		any |= w->homes[i]->was_shut_down;
		if (w->homes[i]->thing.state == BASE_LEAVING && !has_witness(w->homes[i]))
			now_closing(w->homes[i]);
	}
	FOR_EACH_THING(w, thing, i)
	if (any)
		sync_thing(thing);
}

/* Those who talk come to an end, and the others are closed. */
static void leave(struct thing *thing)
{
	switch (thing->kind) {
	case CONN:
		if (thing->state == CONN_UP) {
			thing->state = CONN_LEAVING;
			((struct side *)thing)->since_us = clock_now_us();
		} else if (thing->state < CONN_UP) {
			mark_closing(thing);
		}
		break;
	case DGRAM:
		if (thing->state < DGRAM_READY)
			mark_closing(thing);
		break;
	case LISTENER:
	case REQUEST:
		mark_closing(thing);
		break;
	default:
		break;
	}
}

static void now_leaving(struct home *home)
{
	struct thing *thing;
	unsigned i;

	home->thing.state = BASE_LEAVING;
	home->was_shut_down = true;
	home->since_us = clock_now_us();
	FOR_EACH_THING(home->thing.world, thing, i)
	if (!thing->gone && is_on(thing, home->thing.home))
		leave(thing);
	world_sync(home->thing.world);
}

static void shut_down(struct world *w)
{
	static const int timeouts_ms[] = { -1, 0, 1, 20, 1000 };
	struct home *home = thing_pick(w, BASE, ANY_STATE);
	int timeout_ms = RANDOM_OF(&w->random, timeouts_ms), want = 0, ret;

	if (!home || !w->profile.closes_bases)
		return;
	if (home->thing.state != BASE_OPEN)
		want = -EALREADY;
	if (timeout_ms < 0)
		want = -EINVAL;
	if (!want)
		INSIDE(w, home->witness = evrdma_id_new(
				  home->base, RDMA_PS_TCP, on_witness, home));
	if (!want && !home->witness)
		return;
	thing_call(&home->thing, BASE_SHUTDOWN);
	ret = evrdma_base_shutdown(home->base, timeout_ms, on_closed, home);
	thing_returned(&home->thing, BASE_SHUTDOWN, ret);
	MUST(ret == want, "base %u: shutdown gives %d in place of %d", home->thing.number, ret,
		want);
	if (ret)
		return;
	home->shutdown_ms = timeout_ms;
	now_leaving(home);
}

/* --- actions --------------------------------------------------------------------------------- */

static void run_in_loop(struct world *w)
{
	struct home *home = thing_pick(w, BASE, ANY_STATE);
	int ret;

	if (!home)
		return;
	thing_call(&home->thing, BASE_RUN_IN_LOOP);
	ret = evrdma_base_run_in_loop(home->base, on_ran, home);
	thing_returned(&home->thing, BASE_RUN_IN_LOOP, ret);
	MUST(ret == (home->thing.state == BASE_CLOSING ? -EPIPE : 0),
		"base %u: a call into the loop gives %d", home->thing.number, ret);
	home->calls_pending += !ret;
}

static void on_line(const char *text, void *arg)
{
	MUST(*text && !strchr(text, '\n'), "base %u tells no line: %s",
		((struct home *)arg)->thing.number, text);
}

static void get_base(struct world *w)
{
	struct home *home = thing_pick(w, BASE, ANY_STATE);
	struct rdma_event_channel *channel;
	struct evrdma_traffic_stats s;

	if (!home)
		return;
	thing_call(&home->thing, BASE_GET);
	channel = evrdma_base_get_channel(home->base);
	MUST(channel && (!home->channel || channel == home->channel) &&
			evrdma_base_get_event_base(home->base) == w->loop,
		"base %u is on another loop or channel", home->thing.number);
	evrdma_base_get_traffic_stats(home->base, &s);
	MUST(s.work_done + s.work_failed + s.work_cancelled <=
			s.sends + s.writes + s.reads + s.atomics,
		"base %u: more work is over than was taken", home->thing.number);
	evrdma_base_dump(home->base, on_line, home);
	thing_returned(&home->thing, BASE_GET, 0);
}

/* As if the device had said so to the user, who reads what it says. */
static void hand_in(struct world *w)
{
	static const enum ibv_event_type types[] = { IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE,
		IBV_EVENT_GID_CHANGE, IBV_EVENT_DEVICE_FATAL, IBV_EVENT_QP_FATAL };
	struct side *side = thing_pick(w, CONN, ANY_STATE);
	struct rdma_cm_id *cm = side ? evrdma_conn_get_cm_id(side->conn) : NULL;
	struct ibv_async_event event = { .event_type = RANDOM_OF(&w->random, types) };
	struct home *home = side ? w->homes[side->thing.home] : NULL;
	int ret;

	if (!w->hands_in || w->pulled || !cm || !cm->verbs)
		return;
	if (event.event_type == IBV_EVENT_QP_FATAL)
		event.element.qp = cm->qp;
	else
		event.element.port_num = 1;
	if (event.event_type == IBV_EVENT_QP_FATAL || event.event_type == IBV_EVENT_DEVICE_FATAL)
		w->troubled = true;
	thing_call(&home->thing, BASE_HAND_IN);
	ret = evrdma_async_event(cm->verbs, &event);
	thing_returned(&home->thing, BASE_HAND_IN, ret);
	MUST(!ret || (ret == -ENODEV && side->thing.state != CONN_UP),
		"conn %u is up, and its device is used by nobody: %d", side->thing.number, ret);
}

static void close_base(struct world *w)
{
	struct home *home = thing_pick(w, BASE, ANY_STATE);

	if (home && w->profile.closes_bases)
		home_close(home);
}

/* A base that is closing takes nothing new. */
static void new_object(struct world *w)
{
	struct home *home = thing_pick(w, BASE, ANY_STATE);
	struct evrdma_conn *conn;
	int err;

	if (!home || (home->thing.state == BASE_OPEN && w->thing_count >= ENOUGH_THINGS))
		return;
	if (home->thing.state == BASE_OPEN) {
		thing_call(&home->thing, BASE_NEW_OBJECT);
		thing_returned(&home->thing, BASE_NEW_OBJECT, 0);
		side_new(w, home->thing.home);
		return;
	}
	thing_call(&home->thing, BASE_NEW_OBJECT);
	conn = evrdma_conn_new(home->base, NULL);
	err = errno;
	thing_returned(&home->thing, BASE_NEW_OBJECT, -err);
	MUST(!conn && err == EPIPE, "base %u takes an object while it is closing",
		home->thing.number);
}

static void release(struct world *w)
{
	world_release_one(w);
}

static void replace_shared(struct world *w)
{
	if (w->ending)
		return;
	trace(w, "another shared domain");
	world_share_no_more(w);
	if (!random_once_in(&w->random, 3))
		world_share(w);
}

const struct action base_actions[] = {
	{ "run in loop", 2, run_in_loop },
	{ "get base", 2, get_base },
	{ "hand in", 4, hand_in },
	{ "shut down", 1, shut_down },
	{ "replace shared domain", 1, replace_shared },
	{ "close base", 1, close_base },
	{ "new object", 2, new_object },
	{ "release", 6, release },
	{ 0 },
};
