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

void schedule_address(struct sockaddr_in *sin, const char *ip, uint16_t port)
{
	memset(sin, 0, sizeof(*sin));
	sin->sin_family = AF_INET;
	sin->sin_port = htons(port);
	inet_pton(AF_INET, ip, &sin->sin_addr);
}

bool schedule_excuses(const struct schedule *s, int ret)
{
	return ret && s->troubled;
}

bool schedule_is_deaf(const struct rdma_cm_id *cm)
{
	return machine.is_deaf && cm && cm->qp && machine.is_deaf(cm->qp);
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
static bool may_wait(const struct object *object)
{
	if (!object->schedule->is_iwarp)
		return false;
	return (object->kind == CONN && object->state == CONN_CLOSING) ||
	       (object->kind == ID && object->state == ID_CLOSING) ||
	       (object->kind == BASE && object->state == BASE_CLOSING);
}

static void check_object_idle(struct object *object, bool for_ever)
{
	if (may_wait(object))
		return;
	switch (object->kind) {
	case CONN:
		connection_check_idle((struct connection *)object, for_ever);
		break;
	case DGRAM:
		endpoint_check_idle((struct endpoint *)object, for_ever);
		break;
	case PEER:
		friend_check_idle((struct friend *)object, for_ever);
		break;
	case ID:
		plain_check_idle((struct plain *)object, for_ever);
		break;
	case LISTENER:
		MUST(object->state != LISTENER_CLOSING, "listener %u: nobody goes on closing it",
			object->number);
		break;
	case REQUEST:
		/* What cannot hear of it rejects it. */
		MUST(object->state != REQUEST_MOVING || object->schedule->losses,
			"request %u: nobody goes on moving it", object->number);
		ask_check_idle((struct ask *)object);
		break;
	case BASE:
		owner_check_idle((struct owner *)object, for_ever);
		break;
	default:
		break;
	}
}

/* The loop would sleep: whatever can be done without it has to be done by now. */
static void check_idle(struct schedule *s, bool for_ever)
{
	struct object *object;
	unsigned i;

	/* Of a device that broke nobody expects anything. */
	MUST(s->broken || !machine.unpolled || !machine.unpolled(),
		"the loop sleeps, and %u completions wait", machine.unpolled());
	schedule_sync(s);
	FOR_EACH_OBJECT(s, object, i)
	if (!object->gone)
		check_object_idle(object, for_ever);
}

bool schedule_turn(struct schedule *s)
{
	enum clock_turn turn = clock_turn(s->loop, false);

	if (turn == CLOCK_IDLE || turn == CLOCK_FOREVER)
		check_idle(s, turn == CLOCK_FOREVER);
	return turn == CLOCK_RAN;
}

void schedule_settle(struct schedule *s)
{
	unsigned turns = 0;

	while (schedule_turn(s))
		MUST(turns++ < SETTLE_TURNS, "the loop does not come to rest");
}

void schedule_skip(struct schedule *s)
{
	clock_turn(s->loop, true);
}

/* --- actions --------------------------------------------------------------------------------- */

enum { USER_TABLES = 9, TABLES, MAX_ACTIONS = 128 };

/* The machine's are the last. */
static const struct action *table(unsigned t)
{
	static const struct action *const users[USER_TABLES] = { base_actions, store_actions,
		port_actions, conn_actions, dgram_actions, member_actions, id_actions,
		foreign_actions, stream_actions };

	return t < USER_TABLES ? users[t] : machine.actions;
}

/* Every schedule likes other actions, and cannot do some at all. */
static void choose_weights(struct schedule *s)
{
	const struct action *action;
	unsigned t, n = 0;

	for (t = 0; t < TABLES; t++)
		for (action = table(t); action->name; action++, n++) {
			static const unsigned factors[] = { 0, 1, 1, 2, 4 };

			MUST(n < MAX_ACTIONS, "there is no room for one more action");
			s->weights[n] = action->weight * RANDOM_OF(&s->random, factors);
		}
}

static void act(struct schedule *s, unsigned table_count)
{
	const struct action *action;
	unsigned t, n, total, at = 0;

	for (total = n = t = 0; t < table_count; t++)
		for (action = table(t); action->name; action++)
			total += s->weights[n++];
	if (!total)
		return;
	schedule_sync(s);
	at = random_below(&s->random, total);
	for (n = t = 0; t < table_count; t++)
		for (action = table(t); action->name; action++) {
			if (at < s->weights[n]) {
				action->run(s);
				return;
			}
			at -= s->weights[n++];
		}
}

void schedule_step(struct schedule *s)
{
	act(s, TABLES);
}

void schedule_act(struct schedule *s)
{
	unsigned n = s->profile.acts_in_callbacks;

	if (!n || s->depth >= 2 || !random_once_in(&s->random, n))
		return;
	s->depth++;
	act(s, USER_TABLES);
	s->depth--;
}

/* --- the beginning --------------------------------------------------------------------------- */

static int count_fds(void)
{
	int fd, n = 0;

	for (fd = 0; fd < FDS; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void choose_profile(struct schedule *s)
{
	struct random *r = &s->random;

	s->profile = (struct profile){
		.holds = random_once_in(r, 3),
		.by_hand = random_once_in(r, 4),
		.faults = random_once_in(r, 5),
		.polls = random_once_in(r, 8),
		.pulls = random_once_in(r, 6),
		.injects = random_once_in(r, 4),
		.closes_bases = random_once_in(r, 3),
		.dgrams = random_once_in(r, 2),
		.ids = random_once_in(r, 4),
		.async = random_once_in(r, 6),
		.loses = random_once_in(r, 8),
		.acts_in_callbacks = random_once_in(r, 2) ? 1 + random_below(r, 6) : 0,
	};
}

/* What most begin with, so that the steps find something to happen to. */
static void start_conns(struct schedule *s)
{
	unsigned n = 1 + random_below(&s->random, 3);
	struct port *port = port_new(s, 0, false);
	struct connection *connection;

	while (n--) {
		connection = connection_new(s, random_below(&s->random, s->owner_count));
		connection_connect(connection, port->number);
	}
}

static void start_dgrams(struct schedule *s)
{
	unsigned i;

	port_new(s, 0, true);
	for (i = 0; i < 2; i++)
		endpoint_open(endpoint_new(s, 0));
}

static void warm_up(struct schedule *s)
{
	unsigned turns = random_below(&s->random, 30);

	if (!random_once_in(&s->random, 6))
		start_conns(s);
	if (s->profile.dgrams && !random_once_in(&s->random, 6))
		start_dgrams(s);
	while (turns-- && schedule_turn(s))
		;
}

struct schedule *schedule_new(uint64_t seed)
{
	static const unsigned ticks_us[] = { 0, 0, 0, 50, 700 };
	struct schedule *s = calloc(1, sizeof(*s));
	unsigned i, owners, tick_us;

	MUST(s, "out of memory");
	s->random.state = seed;
	s->weights = calloc(MAX_ACTIONS, sizeof(*s->weights));
	s->fds = count_fds();
	TAILQ_INIT(&s->spent);
	tick_us = RANDOM_OF(&s->random, ticks_us);
	s->time_passes = machine.exact && tick_us;
	if (machine.exact)
		clock_start(tick_us);
	else
		clock_follow();
	choose_profile(s);
	machine.begin(s);
	/* Where there are no datagrams, there is more of the rest. */
	s->profile.dgrams &= s->has_dgrams;
	choose_weights(s);
	s->hands_in = s->profile.async && random_once_in(&s->random, 2);
	s->loop = event_base_new();
	s->priorities = 1 + (int)random_below(&s->random, 3);
	event_base_priority_init(s->loop, s->priorities);
	s->names = evdns_base_new(s->loop, 0);
	owners = 1 + random_below(&s->random, OWNERS);
	for (i = 0; i < owners; i++) {
		s->owners[i] = owner_new(s);
		s->owner_count++;
	}
	if (random_once_in(&s->random, 2))
		schedule_share(s);
	warm_up(s);
	return s;
}

/* --- the end --------------------------------------------------------------------------------- */

/* When it is gone. */
static bool is_told_of(enum kind kind)
{
	return kind != REQUEST && kind != POOL && kind != SRQ && kind != FOREIGN;
}

static bool all_gone(struct schedule *s, bool bases_too)
{
	struct object *object;
	unsigned i;

	FOR_EACH_OBJECT(s, object, i)
	if (!object->gone && is_told_of(object->kind) && (bases_too || object->kind != BASE))
		return false;
	return true;
}

/* Those that moved meanwhile: on iWARP somebody waits for the answer. */
static void answer_requests(struct schedule *s)
{
	struct object *object;
	unsigned i;

	schedule_sync(s);
	FOR_EACH_OBJECT(s, object, i)
	if (!object->gone && object->kind == REQUEST && s->is_iwarp)
		ask_reject((struct ask *)object);
}

static void run_to_end(struct schedule *s, bool bases_too)
{
	unsigned turns = 0;
	enum clock_turn turn;

	while (!all_gone(s, bases_too)) {
		answer_requests(s);
		turn = clock_turn(s->loop, true);
		MUST(turn != CLOCK_FOREVER && turn != CLOCK_EMPTY,
			"nothing is pending, and not all is closed");
		MUST(turns++ < MANY_TURNS, "all was closed, and there is no end to it");
	}
}

static void close_one(struct object *object)
{
	switch (object->kind) {
	case CONN:
		connection_close((struct connection *)object);
		break;
	case DGRAM:
		endpoint_close((struct endpoint *)object);
		break;
	case LISTENER:
		port_close((struct port *)object);
		break;
	case ID:
		plain_close((struct plain *)object);
		break;
	case REQUEST:
		ask_reject((struct ask *)object);
		break;
	default:
		break; /* groups and peers go with their endpoint, bases last */
	}
}

static void close_all(struct schedule *s)
{
	struct object *object;
	unsigned i;

	/* Anew after each turn: what arrives meanwhile is closed as well. */
	for (i = 0; i < s->object_count; i++) {
		object = s->objects[i];
		schedule_sync(s);
		if (!object->gone)
			close_one(object);
		if (random_once_in(&s->random, 4))
			schedule_turn(s);
	}
}

/* Who asked them waits for the answer. */
static void destroy_foreign(struct schedule *s)
{
	struct foreign *f;

	while ((f = object_pick(s, FOREIGN, ANY_STATE)))
		foreign_destroy(f);
}

static void release_all(struct schedule *s)
{
	while (s->held_count)
		schedule_release_one(s);
}

/* One after the other, so that what each has borrowed can be counted; or all at once. */
static void close_schedule(struct schedule *s, bool orderly)
{
	unsigned i;

	destroy_foreign(s);
	streams_close(s);
	if (orderly) {
		close_all(s);
		run_to_end(s, false);
		/* Nothing tells when a request that was answered lets go of what it shares. */
		schedule_settle(s);
		release_all(s);
		for (i = 0; i < s->owner_count; i++)
			owner_check_balance(s->owners[i]);
	}
	for (i = 0; i < s->owner_count; i++)
		owner_close(s->owners[i]);
	run_to_end(s, true);
}

static void free_schedule(struct schedule *s)
{
	struct ticket *ticket;
	unsigned i;

	/* Some look at each other. */
	for (i = 0; i < s->object_count; i++)
		object_check_end(s->objects[i]);
	for (i = 0; i < s->owner_count; i++)
		owner_free_channel(s->owners[i]);
	for (i = 0; i < s->object_count; i++)
		free(s->objects[i]);
	MUST(!s->references, "%d pieces of the user's memory were not given back", s->references);
	while ((ticket = TAILQ_FIRST(&s->spent)))
		ticket_drop(ticket, &s->spent);
	free(s->weights);
	free(s);
}

void schedule_end(struct schedule *s)
{
	bool orderly = random_once_in(&s->random, 2), late = random_once_in(&s->random, 3);
	int fds = s->fds, left;

	trace(s, "the end: %s, %s", orderly ? "one by one" : "the bases",
		late ? "with the kernel as it is" : "with a kernel that answers");
	s->ending = true;
	if (late)
		schedule_share_no_more(s);
	s->profile.acts_in_callbacks = 0;
	if (!late || s->is_iwarp)
		machine.answer(s);
	close_schedule(s, orderly);
	release_all(s);
	machine.answer(s);
	streams_end(s);
	evdns_base_free(s->names, 0);
	MUST(clock_turn(s->loop, false) == CLOCK_EMPTY, "an event is left in the loop");
	event_base_free(s->loop);
	schedule_share_no_more(s);
	free_schedule(s);
	machine.end();
	left = count_fds();
	MUST(left >= fds && left <= fds + machine.fds_kept, "%d descriptors were open, %d are", fds,
		left);
}
