/* Bases, with their pools, and the buffers that the user keeps. */
#include "schedule/schedule.h"

#include <errno.h>
#include <event2/event.h>
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
	MUST(buf, "no buffer of the user's memory: %d", errno);
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
	INSIDE(w, buf = evrdma_pool_get(home->pool));
	MUST(buf || errno == ENOBUFS || world_excuses(w, -errno), "no buffer: %d", errno);
	MUST(!buf || !evrdma_buf_get_user(buf), "a new buffer is somebody's already");
	return buf;
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

static struct evrdma_base *new_base(struct world *w)
{
	static const unsigned idle_ms[] = { 0, 1, 1000 }, cq_budgets[] = { 1, 3, 256 },
			      cq_entries[] = { 1, 24, 4096 };
	struct evrdma_base_options options;

	evrdma_base_options_init(&options);
	options.cq_budget = RANDOM_OF(&w->random, cq_budgets);
	options.cq_entries = RANDOM_OF(&w->random, cq_entries);
	options.device_idle_ms = RANDOM_OF(&w->random, idle_ms);
	return evrdma_base_new(w->loop, &options);
}

static void on_log(enum evrdma_log_level level, const char *text, void *arg)
{
	MUST(!strstr(text, "written to after"), "a buffer was %s", text);
}

/* Whoever writes to a buffer that is free is found, the device too. */
static struct evrdma_pool *new_pool(struct home *home)
{
	struct evrdma_pool_options options;

	evrdma_set_log_cb(on_log, NULL);
	evrdma_pool_options_init(&options);
	options.max_bufs = home->pool_bufs;
	options.flags = EVRDMA_POOL_OPT_POISON;
	return evrdma_pool_new_with_options(home->base, BUF_SIZE, &options);
}

static void make_srq(struct home *home)
{
	struct world *w = home->thing.world;

	if (!w->has_srqs)
		return;
	INSIDE(w, home->srq = evrdma_srq_new(
			  home->base, home->pool, 1 + random_below(&w->random, 6)));
}

/* Whoever still uses it keeps it. Completions of all the others may wait. */
static void give_up_srq(struct home *home)
{
	INSIDE(home->thing.world, evrdma_srq_free(home->srq));
	home->srq = NULL;
}

static void make_domain(struct home *home)
{
	INSIDE(home->thing.world, home->domain = evrdma_domain_new(home->base));
}

static void give_up_domain(struct home *home)
{
	INSIDE(home->thing.world, evrdma_domain_free(home->domain));
	home->domain = NULL;
}

struct home *home_new(struct world *w)
{
	static const unsigned pool_bufs[] = { 6, 20, 64 };
	struct home *home = thing_new(w, BASE, w->home_count, sizeof(*home));

	INSIDE(w, home->base = new_base(w));
	MUST(home->base, "no base: %d", errno);
	home->pool_bufs = RANDOM_OF(&w->random, pool_bufs);
	INSIDE(w, home->pool = new_pool(home));
	MUST(home->pool, "no pool: %d", errno);
	if (random_once_in(&w->random, 2))
		make_srq(home);
	if (random_once_in(&w->random, 3))
		make_domain(home);
	trace(w, "base %u: %u buffers%s%s", home->thing.number, home->pool_bufs,
		home->srq ? ", SRQ" : "", home->domain ? ", domain" : "");
	return home;
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
	bool closing = home->thing.state == BASE_CLOSING && err == EPIPE;

	MUST(closing || world_excuses(home->thing.world, -err), "base %u refuses an object: %d",
		home->thing.number, err);
}

static void give_up(struct home *home)
{
	if (home->given_up)
		return;
	home->given_up = true;
	give_up_srq(home);
	give_up_domain(home);
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
	MUST(thing->kind == BASE || thing->kind == REQUEST || thing->gone ||
			thing->home != home->thing.home,
		"base %u is closed, %s %u on it is not", home->thing.number,
		cover_kind_name(thing->kind), thing->number);
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

void home_close(struct home *home)
{
	struct world *w = home->thing.world;
	struct thing *thing;
	unsigned i;

	if (home->thing.gone)
		return;
	thing_call(&home->thing, BASE_CLOSE);
	evrdma_base_close(home->base, on_closed, home);
	thing_returned(&home->thing, BASE_CLOSE, 0);
	if (home->thing.state == BASE_CLOSING)
		return;
	home->thing.state = BASE_CLOSING;
	home->since_us = clock_now_us();
	FOR_EACH_THING(w, thing, i)
	if (!thing->gone && is_on(thing, home->thing.home))
		mark_closing(thing);
}

void home_check_idle(struct home *home, bool for_ever)
{
	MUST(!home->calls_pending, "base %u: a call into the loop is not made", home->thing.number);
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
	while (n < 64 && (bufs[n] = evrdma_pool_get(home->pool)))
		n++;
	MUST(n == home->pool_bufs, "base %u: of %u buffers %u are left", home->thing.number,
		home->pool_bufs, n);
	while (n)
		INSIDE(home->thing.world, evrdma_buf_unref(bufs[--n]));
	if (random_once_in(&home->thing.world->random, 2))
		INSIDE(home->thing.world, evrdma_pool_free(home->pool));
}

/* --- actions --------------------------------------------------------------------------------- */

static void on_ran(struct evrdma_base *base, void *arg)
{
	struct home *home = arg;

	thing_event(&home->thing, BASE_RAN_IN_LOOP);
	MUST(home->calls_pending, "base %u: more calls were made than asked for",
		home->thing.number);
	home->calls_pending--;
	world_act(home->thing.world);
}

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

/* Others come in their place. */
static void replace_srq(struct world *w)
{
	struct home *home = world_home(w);

	if (!home || home->given_up)
		return;
	trace(w, "base %u: another SRQ", home->thing.number);
	give_up_srq(home);
	make_srq(home);
}

static void replace_domain(struct world *w)
{
	struct home *home = world_home(w);

	if (!home || home->given_up)
		return;
	trace(w, "base %u: another domain", home->thing.number);
	give_up_domain(home);
	make_domain(home);
}

const struct action base_actions[] = {
	{ "run in loop", 2, run_in_loop },
	{ "replace SRQ", 2, replace_srq },
	{ "replace domain", 1, replace_domain },
	{ "close base", 1, close_base },
	{ "new object", 2, new_object },
	{ "release", 6, release },
	{ 0 },
};
