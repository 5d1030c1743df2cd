/* Runs one schedule: connects, starts its users, wakes them up, and ends it. */
#include "rs/random.h"

#include "unit/cm_unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	ACTIONS = 60, /* of one user, at most */
	ALONE = 600,
	LOOK_US = 500,
	ASLEEP = 4, /* so many looks show that all of them sleep */
	HANG_LOOKS = HANG_S * 1000000 / LOOK_US,
	LONG_S = 4 * HANG_S,
};

/* --- making ---------------------------------------------------------------------------------- */

static void add_user(struct random_schedule *s, struct random_end *end)
{
	struct random_user *user = &s->users[s->num_users++];

	user->schedule = s;
	user->end = end;
	user->random.state = random_next(&s->random);
	user->left = s->alone ? ALONE : 1 + random_below(&s->random, ACTIONS);
	user->edges[0] = user->edges[1] = -1;
	user->call = "nothing";
}

static void make_ends(struct random_schedule *s)
{
	unsigned i;

	/* Where few move, nobody else wakes who was not woken. */
	s->num_ends =
		2 *
		(random_once_in(&s->random, 2) ? 1 : 1 + random_below(&s->random, RANDOM_PAIRS));
	for (i = 0; i < s->num_ends; i++) {
		s->ends[i].number = i;
		s->ends[i].peer = &s->ends[i ^ 1];
	}
}

static void make_users(struct random_schedule *s)
{
	unsigned i, n, crowd = random_once_in(&s->random, 2) ? 1 : RANDOM_CROWD;

	if (s->alone) {
		add_user(s, &s->ends[0]);
		return;
	}
	for (i = 0; i < s->num_ends; i++)
		for (n = random_below(&s->random, crowd) + 1; n; n--)
			add_user(s, &s->ends[i]);
}

static void choose_device(struct random_schedule *s)
{
	static const enum fake_kind kinds[] = { FAKE_ROCE, FAKE_ROCE, FAKE_IWARP, FAKE_IB };
	enum fake_kind kind = RANDOM_OF(&s->random, kinds);

	/* On iWARP it depends on the library's thread when who accepted may send. */
	s->kind = fake_kind_to_test(s->alone && kind == FAKE_IWARP ? FAKE_ROCE : kind);
	if (s->kind != FAKE_ROCE)
		fake_device_add(s->kind);
}

static struct random_schedule *make(uint64_t seed, bool alone)
{
	struct random_schedule *s = calloc(1, sizeof(*s));

	ck_assert_ptr_nonnull(s);
	s->seed = seed;
	s->alone = alone;
	s->random.state = seed;
	s->traced = getenv("EVR_RS_TRACE");
	if (s->traced)
		printf("# seed %llu%s\n", (unsigned long long)seed, alone ? ", alone" : "");
	pthread_mutex_init(&s->lock, NULL);
	choose_device(s);
	make_ends(s);
	random_connect(s);
	make_users(s);
	return s;
}

/* --- looking --------------------------------------------------------------------------------- */

bool random_sleeps(pid_t tid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	file = fopen(path, "re");
	if (!file)
		return true;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(file);
	return state == 'S';
}

struct look {
	uint64_t turns;
	unsigned over;
	bool all_sleep;
};

static struct look look(struct random_schedule *s)
{
	struct look look = { .all_sleep = true };
	unsigned i;

	pthread_mutex_lock(&s->lock);
	for (i = 0; i < s->num_users; i++) {
		look.turns += s->users[i].turns;
		look.over += s->users[i].over;
		if (!s->users[i].over && (!s->users[i].tid || !random_sleeps(s->users[i].tid)))
			look.all_sleep = false;
	}
	pthread_mutex_unlock(&s->lock);
	return look;
}

/* --- bringing about what is waited for ------------------------------------------------------- */

/* Calls of who watches, as an end's user who never waits. */
static size_t push(struct random_schedule *s, struct random_end *end, size_t len)
{
	static struct random_user watcher;

	watcher.schedule = s;
	return random_push(&watcher, end, len);
}

static size_t drain(struct random_schedule *s, struct random_end *end)
{
	static struct random_user watcher;

	watcher.schedule = s;
	return random_drain(&watcher, end);
}

static bool give_bytes(struct random_schedule *s, const struct random_user *user)
{
	struct random_end *peer = user->end->peer;
	uint64_t there, want;

	pthread_mutex_lock(&s->lock);
	there = peer->out.sent - peer->out.taken;
	want = user->want;
	pthread_mutex_unlock(&s->lock);
	return push(s, peer, want > there ? want - there : 1) > 0;
}

/* What was shut down in both directions takes nothing more: it is closed. */
static bool give_room(struct random_schedule *s, struct random_user *user)
{
	struct random_end *peer = user->end->peer;
	bool shut, busy;

	pthread_mutex_lock(&s->lock);
	shut = peer->shut_all && !peer->closed && !peer->by_copy;
	busy = peer->receiving;
	/* Who wakes up meanwhile has had its room, and may have used it up. */
	if (!shut && !busy) {
		user->given_turn = user->turns;
		user->given_sent = user->end->out.sent;
	}
	pthread_mutex_unlock(&s->lock);
	if (shut)
		return random_close(s, peer, -1);
	return !busy && drain(s, peer) > 0;
}

/* It sleeps, and what it waits for is there, unless another call at that end has it already. */
static bool is_owed(const struct random_user *user)
{
	const struct random_end *end = user->end;
	bool bytes = user->wants & FOR_BYTES, room = user->wants & FOR_ROOM;

	if (user->over)
		return false;
	if ((bytes || room) && random_is_over(end))
		return true;
	if (bytes && random_has(end, user->want) && (user->in_call || !end->receiving))
		return true;
	if (room && end->out.shut)
		return true;
	return room && user->given_turn == user->turns && user->given_sent == end->out.sent &&
	       (user->in_call || !end->sending);
}

/* Whether there was anything that could be done. */
static bool help(struct random_schedule *s, struct random_user *user)
{
	int wants;

	pthread_mutex_lock(&s->lock);
	wants = user->over ? 0 : user->wants;
	pthread_mutex_unlock(&s->lock);
	if (!wants)
		return false;
	if (wants & FOR_BYTES && (!(wants & FOR_ROOM) || random_once_in(&s->random, 2)))
		return give_bytes(s, user);
	return give_room(s, user);
}

static bool help_one(struct random_schedule *s)
{
	unsigned at = random_below(&s->random, s->num_users), i;

	for (i = 0; i < s->num_users; i++)
		if (help(s, &s->users[(at + i) % s->num_users]))
			return true;
	return false;
}

static const struct random_user *find_owed(struct random_schedule *s)
{
	const struct random_user *owed = NULL;
	unsigned i;

	pthread_mutex_lock(&s->lock);
	for (i = 0; i < s->num_users && !owed; i++)
		if (is_owed(&s->users[i]))
			owed = &s->users[i];
	pthread_mutex_unlock(&s->lock);
	return owed;
}

/* --- ending something ------------------------------------------------------------------------ */

/* With the lock. */
static unsigned users_in(const struct random_schedule *s, const struct random_end *end)
{
	unsigned i, n = 0;

	for (i = 0; i < s->num_users; i++)
		n += s->users[i].end == end && !s->users[i].over;
	return n;
}

static bool has_users(struct random_schedule *s, const struct random_end *end)
{
	unsigned n;

	pthread_mutex_lock(&s->lock);
	n = users_in(s, end);
	pthread_mutex_unlock(&s->lock);
	return n;
}

static void await_no_users(struct random_schedule *s, const struct random_end *end)
{
	unsigned looks = 0;

	while (has_users(s, end)) {
		if (looks++ == HANG_LOOKS)
			random_wrong(s, end, "a close that lingers leaves somebody in a call");
		usleep(LOOK_US);
	}
}

/* What the copy of one that lingers shows is not the end yet. */
static bool can_linger(const struct random_schedule *s, const struct random_end *end)
{
	return !end->by_copy && !end->sending && !end->out.shut && !random_is_over(end) &&
	       users_in(s, end);
}

struct closing {
	struct random_schedule *schedule;
	struct random_end *end;
};

static void *close_slowly(void *arg)
{
	const struct closing *closing = arg;

	random_finish(closing->schedule, closing->end, LONG_S);
	return NULL;
}

static void hold_work(struct random_schedule *s, bool held)
{
	if (!held)
		fake_work_by_hand(false);
	pthread_mutex_lock(&s->lock);
	s->held = held;
	pthread_mutex_unlock(&s->lock);
	if (held)
		fake_work_by_hand(true);
}

static void close_when_left(struct random_schedule *s, struct random_end *end)
{
	struct closing closing = { .schedule = s, .end = end };
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, close_slowly, &closing), 0);
	await_no_users(s, end);
	hold_work(s, false);
	pthread_join(thread, NULL);
}

/* Nothing arrives until they have left; nor does a close that waits for that return. */
static bool close_under_way(struct random_schedule *s, struct random_end *end)
{
	bool may;

	hold_work(s, true);
	push(s, end, 1);
	may = random_begin_to_close(s, end, LONG_S);
	if (may)
		close_when_left(s, end);
	else
		hold_work(s, false);
	return may;
}

static bool shut_down(struct random_schedule *s, struct random_end *end)
{
	pthread_mutex_lock(&s->lock);
	end->shut_all = end->out.shut = true;
	pthread_mutex_unlock(&s->lock);
	rshutdown(end->fd, SHUT_RDWR);
	return true;
}

/* All ends are on it. */
static bool remove_device(struct random_schedule *s)
{
	bool there = !s->ends[0].gone;
	unsigned i;

	pthread_mutex_lock(&s->lock);
	for (i = 0; i < s->num_ends; i++)
		s->ends[i].gone = true;
	pthread_mutex_unlock(&s->lock);
	if (there)
		fake_device_remove(s->kind);
	return there;
}

/* Who waits by its number would wait for another's, once it is closed. */
static struct random_end *pick(struct random_schedule *s, bool lingers)
{
	unsigned at = random_below(&s->random, s->num_ends), i;
	struct random_end *picked = NULL;

	pthread_mutex_lock(&s->lock);
	for (i = 0; i < s->num_ends && !picked; i++) {
		struct random_end *end = &s->ends[(at + i) % s->num_ends];

		if (!end->closed && !end->by_number && (!lingers || can_linger(s, end)))
			picked = end;
	}
	pthread_mutex_unlock(&s->lock);
	return picked;
}

static bool end_one(struct random_schedule *s)
{
	unsigned how = random_below(&s->random, 7);
	struct random_end *end = pick(s, how == 2 || how == 3);

	if (!end)
		return false;
	if (how == 0)
		return shut_down(s, end);
	if (how == 6)
		return remove_device(s);
	if (how == 2 || how == 3)
		return close_under_way(s, end);
	return random_close(s, end, how == 1 ? -1 : 0);
}

/* --- watching -------------------------------------------------------------------------------- */

/* Whether something was done: nothing while somebody is owed to wake up by what was done before. */
static bool wake_somebody(struct random_schedule *s)
{
	if (find_owed(s))
		return false;
	if (random_once_in(&s->random, 8) && end_one(s))
		return true;
	return help_one(s);
}

static void find_who_hangs(struct random_schedule *s)
{
	const struct random_user *owed = find_owed(s);

	if (owed)
		random_wrong(s, owed->end, "who waits for what is there sleeps on");
	random_wrong(s, &s->ends[0], "all sleep, and nothing can be done about it");
}

static void watch(struct random_schedule *s)
{
	struct look seen = { 0 }, now;
	unsigned still = 0;

	while ((now = look(s)).over < s->num_users) {
		still = now.all_sleep && now.turns == seen.turns ? still + 1 : 0;
		seen = now;
		if (still == HANG_LOOKS)
			find_who_hangs(s);
		if (still == ASLEEP && wake_somebody(s))
			still = 0;
		usleep(LOOK_US);
	}
}

/* --- the end --------------------------------------------------------------------------------- */

/* All that was sent is there, and then the end, which a user may have seen already. */
static void take_the_rest(struct random_schedule *s, struct random_end *end)
{
	const struct random_flow *in = &end->peer->out;
	struct pollfd pfd = { .fd = end->fd, .events = POLLIN };

	while (!end->shut_all && !end->ended && !end->gone) {
		if (rpoll(&pfd, 1, HANG_S * 1000) != 1)
			random_wrong(s, end, "what was sent, or the end of it, is not there");
		drain(s, end);
	}
	if (!end->shut_all && !end->gone && !end->told && in->taken < in->sent)
		random_wrong(s, end, "not all that was sent has come");
}

/* Its copy, and what has its number now. */
static void close_all(const struct random_end *end)
{
	if (end->in_repoll)
		ck_assert_ok(rclose(end->set));
	else if (end->set >= 0)
		close(end->set);
	close(end->copy);
	close(end->fd);
}

static void end_pair(struct random_schedule *s, struct random_end *first)
{
	struct random_end *second = first->peer;

	if (!first->closed)
		random_close(s, first, random_once_in(&s->random, 3) ? 0 : -1);
	if (!second->closed) {
		take_the_rest(s, second);
		random_close(s, second, -1);
	}
	close_all(first);
	close_all(second);
}

static void end_all(struct random_schedule *s)
{
	unsigned i, first;

	for (i = 0; i < s->num_ends; i += 2) {
		first = random_below(&s->random, 2);
		if (s->ends[i + !first].closed)
			first = !first;
		end_pair(s, &s->ends[i + first]);
	}
}

static void start_users(struct random_schedule *s)
{
	unsigned i;

	for (i = 0; i < s->num_users; i++)
		ck_assert_int_eq(
			pthread_create(&s->users[i].thread, NULL, random_user_run, &s->users[i]),
			0);
}

uint64_t random_run(uint64_t seed, bool alone)
{
	struct random_schedule *s = make(seed, alone);
	uint64_t digest;
	unsigned i;

	start_users(s);
	if (!alone)
		watch(s);
	for (i = 0; i < s->num_users; i++)
		pthread_join(s->users[i].thread, NULL);
	digest = s->digest;
	end_all(s);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return digest;
}
