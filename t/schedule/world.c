/* The beginning and the end of a schedule, and its loop. */
#include "schedule/schedule.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	FDS = 96,	    /* descriptors that are looked at */
	MANY_TURNS = 20000, /* no end takes so many */
	SETTLE_TURNS = 2000,
};

void world_address(struct sockaddr_in *sin, const char *ip, uint16_t port)
{
	memset(sin, 0, sizeof(*sin));
	sin->sin_family = AF_INET;
	sin->sin_port = htons(port);
	inet_pton(AF_INET, ip, &sin->sin_addr);
}

bool world_excuses(const struct world *w, int ret)
{
	return ret && w->troubled;
}

/*
 * There is one thread: what it waits for, nobody else will do. The real kernel may; of what it does
 * not, the alarm tells.
 */
int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	if (machine.exact)
		wrong("a call never returns: it waits for an event to be acknowledged");
	pthread_mutex_unlock(mutex);
	usleep(1000);
	return pthread_mutex_lock(mutex);
}

/* --- turns ----------------------------------------------------------------------------------- */

/* On iWARP what was asked of a peer is not closed before the answer, which may never come here. */
static bool may_wait(const struct thing *thing)
{
	if (!thing->world->is_iwarp)
		return false;
	return (thing->kind == CONN && thing->state == CONN_CLOSING) ||
		(thing->kind == ID && thing->state == ID_CLOSING) ||
		(thing->kind == BASE && thing->state == BASE_CLOSING);
}

static void check_thing_idle(struct thing *thing, bool for_ever)
{
	if (may_wait(thing))
		return;
	switch (thing->kind) {
	case CONN:
		side_check_idle((struct side *)thing, for_ever);
		break;
	case DGRAM:
		endpoint_check_idle((struct endpoint *)thing, for_ever);
		break;
	case PEER:
		friend_check_idle((struct friend *)thing, for_ever);
		break;
	case ID:
		plain_check_idle((struct plain *)thing, for_ever);
		break;
	case LISTENER:
		MUST(thing->state != LISTENER_CLOSING, "listener %u: nobody goes on closing it",
			thing->number);
		break;
	case REQUEST:
		MUST(thing->state != REQUEST_MOVING, "request %u: nobody goes on moving it",
			thing->number);
		break;
	case BASE:
		home_check_idle((struct home *)thing, for_ever);
		break;
	default:
		break;
	}
}

/* The loop would sleep: whatever can be done without it has to be done by now. */
static void check_idle(struct world *w, bool for_ever)
{
	struct thing *thing;
	unsigned i;

	MUST(!machine.unpolled || !machine.unpolled(), "the loop sleeps, and %u completions wait",
		machine.unpolled());
	world_sync(w);
	FOR_EACH_THING(w, thing, i)
	if (!thing->gone)
		check_thing_idle(thing, for_ever);
}

bool world_turn(struct world *w)
{
	enum clock_turn turn = clock_turn(w->loop, false);

	if (turn == CLOCK_IDLE || turn == CLOCK_FOREVER)
		check_idle(w, turn == CLOCK_FOREVER);
	return turn == CLOCK_RAN;
}

void world_settle(struct world *w)
{
	unsigned turns = 0;

	while (world_turn(w))
		MUST(turns++ < SETTLE_TURNS, "the loop does not come to rest");
}

void world_skip(struct world *w)
{
	clock_turn(w->loop, true);
}

/* --- actions --------------------------------------------------------------------------------- */

enum { USER_TABLES = 8, TABLES, MAX_ACTIONS = 128 };

/* The machine's are the last. */
static const struct action *table(unsigned t)
{
	static const struct action *const users[USER_TABLES] = { base_actions, store_actions,
		port_actions, conn_actions, dgram_actions, member_actions, id_actions,
		foreign_actions };

	return t < USER_TABLES ? users[t] : machine.actions;
}

/* Every schedule likes other actions, and cannot do some at all. */
static void choose_weights(struct world *w)
{
	const struct action *action;
	unsigned t, n = 0;

	for (t = 0; t < TABLES; t++)
		for (action = table(t); action->name; action++, n++) {
			static const unsigned factors[] = { 0, 1, 1, 2, 4 };

			MUST(n < MAX_ACTIONS, "there is no room for one more action");
			w->weights[n] = action->weight * RANDOM_OF(&w->random, factors);
		}
}

static void act(struct world *w, unsigned table_count)
{
	const struct action *action;
	unsigned t, n, total, at = 0;

	for (total = n = t = 0; t < table_count; t++)
		for (action = table(t); action->name; action++)
			total += w->weights[n++];
	if (!total)
		return;
	world_sync(w);
	at = random_below(&w->random, total);
	for (n = t = 0; t < table_count; t++)
		for (action = table(t); action->name; action++) {
			if (at < w->weights[n]) {
				action->run(w);
				return;
			}
			at -= w->weights[n++];
		}
}

void world_step(struct world *w)
{
	act(w, TABLES);
}

void world_act(struct world *w)
{
	unsigned n = w->profile.acts_in_callbacks;

	if (!n || w->depth >= 2 || !random_once_in(&w->random, n))
		return;
	w->depth++;
	act(w, USER_TABLES);
	w->depth--;
}

/* --- the beginning --------------------------------------------------------------------------- */

static int count_fds(void)
{
	int fd, n = 0;

	for (fd = 0; fd < FDS; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void choose_profile(struct world *w)
{
	struct random *r = &w->random;

	w->profile = (struct profile){
		.holds = random_once_in(r, 3),
		.by_hand = random_once_in(r, 4),
		.faults = random_once_in(r, 5),
		.pulls = random_once_in(r, 6),
		.injects = random_once_in(r, 4),
		.closes_bases = random_once_in(r, 3),
		.dgrams = random_once_in(r, 2),
		.ids = random_once_in(r, 4),
		.async = random_once_in(r, 6),
		.acts_in_callbacks = random_once_in(r, 2) ? 1 + random_below(r, 6) : 0,
	};
}

/* What most begin with, so that the steps find something to happen to. */
static void start_conns(struct world *w)
{
	unsigned n = 1 + random_below(&w->random, 3);
	struct port *port = port_new(w, 0, false);
	struct side *side;

	while (n--) {
		side = side_new(w, random_below(&w->random, w->home_count));
		side_connect(side, port->number);
	}
}

static void start_dgrams(struct world *w)
{
	unsigned i;

	port_new(w, 0, true);
	for (i = 0; i < 2; i++)
		endpoint_open(endpoint_new(w, 0));
}

static void warm_up(struct world *w)
{
	unsigned turns = random_below(&w->random, 30);

	if (!random_once_in(&w->random, 6))
		start_conns(w);
	if (w->profile.dgrams && !random_once_in(&w->random, 6))
		start_dgrams(w);
	while (turns-- && world_turn(w))
		;
}

struct world *world_new(uint64_t seed)
{
	static const unsigned ticks_us[] = { 0, 0, 0, 50, 700 };
	struct world *w = calloc(1, sizeof(*w));
	unsigned i, homes;

	MUST(w, "out of memory");
	w->random.state = seed;
	w->weights = calloc(MAX_ACTIONS, sizeof(*w->weights));
	w->fds = count_fds();
	TAILQ_INIT(&w->spent);
	if (machine.exact)
		clock_start(RANDOM_OF(&w->random, ticks_us));
	else
		clock_follow();
	choose_profile(w);
	machine.begin(w);
	/* Where there are no datagrams, there is more of the rest. */
	w->profile.dgrams &= w->has_dgrams;
	choose_weights(w);
	w->hands_in = w->profile.async && random_once_in(&w->random, 2);
	w->loop = event_base_new();
	w->names = evdns_base_new(w->loop, 0);
	homes = 1 + random_below(&w->random, HOMES);
	for (i = 0; i < homes; i++) {
		w->homes[i] = home_new(w);
		w->home_count++;
	}
	if (random_once_in(&w->random, 2))
		world_share(w);
	warm_up(w);
	return w;
}

/* --- the end --------------------------------------------------------------------------------- */

/* When it is gone. */
static bool is_told_of(enum kind kind)
{
	return kind != REQUEST && kind != POOL && kind != SRQ && kind != FOREIGN;
}

static bool all_gone(struct world *w, bool bases_too)
{
	struct thing *thing;
	unsigned i;

	FOR_EACH_THING(w, thing, i)
	if (!thing->gone && is_told_of(thing->kind) && (bases_too || thing->kind != BASE))
		return false;
	return true;
}

/* Those that moved meanwhile: on iWARP somebody waits for the answer. */
static void answer_requests(struct world *w)
{
	struct thing *thing;
	unsigned i;

	world_sync(w);
	FOR_EACH_THING(w, thing, i)
	if (!thing->gone && thing->kind == REQUEST && w->is_iwarp)
		ask_reject((struct ask *)thing);
}

static void run_to_end(struct world *w, bool bases_too)
{
	unsigned turns = 0;
	enum clock_turn turn;

	while (!all_gone(w, bases_too)) {
		answer_requests(w);
		turn = clock_turn(w->loop, true);
		MUST(turn != CLOCK_FOREVER && turn != CLOCK_EMPTY,
			"nothing is pending, and not all is closed");
		MUST(turns++ < MANY_TURNS, "all was closed, and there is no end to it");
	}
}

static void close_one(struct thing *thing)
{
	switch (thing->kind) {
	case CONN:
		side_close((struct side *)thing);
		break;
	case DGRAM:
		endpoint_close((struct endpoint *)thing);
		break;
	case LISTENER:
		port_close((struct port *)thing);
		break;
	case ID:
		plain_close((struct plain *)thing);
		break;
	case REQUEST:
		ask_reject((struct ask *)thing);
		break;
	default:
		break; /* groups and peers go with their endpoint, bases last */
	}
}

static void close_all(struct world *w)
{
	struct thing *thing;
	unsigned i;

	/* Anew after each turn: what arrives meanwhile is closed as well. */
	for (i = 0; i < w->thing_count; i++) {
		thing = w->things[i];
		world_sync(w);
		if (!thing->gone)
			close_one(thing);
		if (random_once_in(&w->random, 4))
			world_turn(w);
	}
}

/* Who asked them waits for the answer. */
static void destroy_foreign(struct world *w)
{
	struct foreign *f;

	while ((f = thing_pick(w, FOREIGN, ANY_STATE)))
		foreign_destroy(f);
}

static void release_all(struct world *w)
{
	while (w->held_count)
		world_release_one(w);
}

/* One after the other, so that what each has borrowed can be counted; or all at once. */
static void close_world(struct world *w, bool orderly)
{
	unsigned i;

	destroy_foreign(w);
	if (orderly) {
		close_all(w);
		run_to_end(w, false);
		release_all(w);
		for (i = 0; i < w->home_count; i++)
			home_check_balance(w->homes[i]);
	}
	for (i = 0; i < w->home_count; i++)
		home_close(w->homes[i]);
	run_to_end(w, true);
}

static void free_world(struct world *w)
{
	struct ticket *ticket;
	unsigned i;

	/* Some look at each other. */
	for (i = 0; i < w->thing_count; i++)
		thing_check_end(w->things[i]);
	for (i = 0; i < w->home_count; i++)
		home_free_channel(w->homes[i]);
	for (i = 0; i < w->thing_count; i++)
		free(w->things[i]);
	MUST(!w->references, "%d pieces of the user's memory were not given back", w->references);
	while ((ticket = TAILQ_FIRST(&w->spent)))
		ticket_drop(ticket, &w->spent);
	free(w->weights);
	free(w);
}

void world_end(struct world *w)
{
	bool orderly = random_once_in(&w->random, 2), late = random_once_in(&w->random, 3);
	int fds = w->fds, left;

	trace(w, "the end: %s, %s", orderly ? "one by one" : "the bases",
		late ? "with the kernel as it is" : "with a kernel that answers");
	w->ending = true;
	if (late)
		world_share_no_more(w);
	w->profile.acts_in_callbacks = 0;
	if (!late || w->is_iwarp)
		machine.answer(w);
	close_world(w, orderly);
	release_all(w);
	machine.answer(w);
	evdns_base_free(w->names, 0);
	MUST(clock_turn(w->loop, false) == CLOCK_EMPTY, "an event is left in the loop");
	event_base_free(w->loop);
	world_share_no_more(w);
	free_world(w);
	machine.end();
	left = count_fds();
	MUST(left >= fds && left <= fds + machine.fds_kept, "%d descriptors were open, %d are", fds,
		left);
}
