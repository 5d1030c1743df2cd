/*
 * The places where a call takes a lock and holds none: what another thread may do between two looks
 * of the call at something it does there. On few processors that hardly ever happens by itself, so
 * a thread pauses there now and then, or does it itself: a call within a call, which never waits.
 */
#define _GNU_SOURCE
#include "rs/random.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { COME_ONCE_IN = 6, PAUSE_ONCE_IN = 24, LONG_ONCE_IN = 16, SHORT_US = 20, LONG_US = 1500 };

/* Linked in the place of what the library calls. */
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);

static _Thread_local unsigned held;

/* --- now and then ---------------------------------------------------------------------------- */

static _Thread_local struct {
	struct random random;
	void (*run)(void *arg); /* NULL: nobody comes */
	void *arg;
} often;

static void come_or_pause(void)
{
	void (*run)(void *arg) = often.run;
	int error = errno;

	often.run = NULL;
	if (random_once_in(&often.random, COME_ONCE_IN))
		run(often.arg);
	else if (random_once_in(&often.random, PAUSE_ONCE_IN))
		usleep(random_below(&often.random,
			random_once_in(&often.random, LONG_ONCE_IN) ? LONG_US : SHORT_US));
	often.run = run;
	errno = error;
}

void random_come_often(uint64_t seed, void (*run)(void *arg), void *arg)
{
	often.random.state = seed;
	often.arg = arg;
	often.run = run;
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
	if (often.run && !held)
		come_or_pause();
	if (once.run && !held && !--once.places)
		come_once();
	held++;
	return __real_pthread_mutex_lock(mutex);
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	int ret = __real_pthread_mutex_trylock(mutex);

	held += !ret;
	return ret;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	held--;
	return __real_pthread_mutex_unlock(mutex);
}

/* --- numbers --------------------------------------------------------------------------------- */

int __real_close(int fd);
int __wrap_close(int fd);

static _Thread_local int kept = -1;

void random_keep_number(int fd)
{
	kept = fd;
}

int __wrap_close(int fd)
{
	int null;

	if (fd < 0 || fd != kept)
		return __real_close(fd);
	kept = -1;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup3(null, fd, O_CLOEXEC) < 0)
		return -1;
	return __real_close(null);
}
