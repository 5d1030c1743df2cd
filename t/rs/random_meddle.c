/*
 * What another thread may do between two looks of a call at something: it comes between them where
 * the call takes a lock, and holds none. On few processors that hardly ever happens by itself, so a
 * user's thread pauses there now and then, or does it itself: a call within a call, which never
 * waits.
 */
#include "rs/random.h"

#include <errno.h>
#include <rdma/rsocket.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	PAUSE_ONCE_IN = 24,
	LONG_ONCE_IN = 16,
	SHORT_US = 20,
	LONG_US = 1500,
	MEDDLE_ONCE_IN = 6,
	CLOSE_ONCE_IN = 150,
	SMALL = 300,
};

/* Linked in the place of what the library calls. */
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);

static _Thread_local struct {
	struct random random;
	const struct random_user *user; /* whose thread this is, or NULL */
	struct random_user *other;	/* who meddles */
	unsigned held;
} own;

/* --- what is done ---------------------------------------------------------------------------- */

static void send_here(struct random_user *other, struct random_end *end)
{
	random_push(other, end->peer, 1 + random_below(&own.random, SMALL));
}

static void look(struct random_user *other, struct random_end *end)
{
	random_peek(other, end);
}

static void send_there(struct random_user *other, struct random_end *end)
{
	random_push(other, end, 1 + random_below(&own.random, SMALL));
}

static void make_room(struct random_user *other, struct random_end *end)
{
	random_drain(other, end->peer);
}

static void ask(struct random_user *other, struct random_end *end)
{
	int value;
	socklen_t len = sizeof(value);

	(void)other;
	rgetsockopt(end->fd, SOL_SOCKET, SO_RCVBUF, &value, &len);
}

static void (*const before[])(struct random_user *other, struct random_end *end) = {
	send_here,
	make_room,
	send_there,
};

static void (*const after[])(struct random_user *other, struct random_end *end) = {
	look,
	send_there,
	ask,
};

/* What has not been said may not keep it here. */
static void close_here(struct random_user *other, struct random_end *end)
{
	bool resets = random_once_in(&own.random, 2);

	if (resets || end->nonblock)
		random_close(other->schedule, end, resets ? 0 : -1);
}

/* Above all what the call waits for. */
static void bring_about(const struct random_user *user)
{
	if (user->wants & FOR_BYTES)
		send_here(own.other, user->end);
	else if (user->wants & FOR_ROOM)
		make_room(own.other, user->end);
	else
		RANDOM_OF(&own.random, before)(own.other, user->end);
}

static void meddle(const struct random_user *user)
{
	if (random_once_in(&own.random, CLOSE_ONCE_IN)) {
		close_here(own.other, user->end);
		return;
	}
	bring_about(user);
	if (!random_once_in(&own.random, 4))
		RANDOM_OF(&own.random, after)(own.other, user->end);
}

/* --- when ------------------------------------------------------------------------------------ */

static void come_between(void)
{
	const struct random_user *user = own.user;
	int error = errno;

	own.user = NULL;
	if (random_once_in(&own.random, MEDDLE_ONCE_IN))
		meddle(user);
	else if (random_once_in(&own.random, PAUSE_ONCE_IN))
		usleep(random_below(&own.random,
			random_once_in(&own.random, LONG_ONCE_IN) ? LONG_US : SHORT_US));
	own.user = user;
	errno = error;
}

void random_meddle(struct random_user *other, const struct random_user *user)
{
	own.random.state = random_next(&other->random);
	own.other = other;
	own.user = user;
}

/* --- at a place ------------------------------------------------------------------------------ */

static _Thread_local struct {
	void (*run)(void);
	unsigned places; /* until then */
	bool asleep;	 /* it came when there were no more of them */
} once;

void random_come_at(unsigned place, void (*run)(void))
{
	once.run = run;
	once.places = place;
	once.asleep = false;
}

static void come_once(void)
{
	void (*run)(void) = once.run;
	int error = errno;

	once.run = NULL;
	run();
	errno = error;
}

void random_come_now(void)
{
	if (!once.run)
		return;
	once.asleep = true;
	come_once();
}

bool random_has_come(bool *asleep)
{
	bool has = !once.run;

	*asleep = once.asleep;
	once.run = NULL;
	return has;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	if (own.user && !own.held)
		come_between();
	if (once.run && !own.held && !--once.places)
		come_once();
	own.held++;
	return __real_pthread_mutex_lock(mutex);
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	int ret = __real_pthread_mutex_trylock(mutex);

	own.held += !ret;
	return ret;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	own.held--;
	return __real_pthread_mutex_unlock(mutex);
}
