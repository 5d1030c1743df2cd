#include "ev/core/lock.h"

#include <stddef.h>

void (*evr_lock_misused)(const char *what);

/* The rank of the last one that this thread took, and of those before it, one bit each. */
static _Thread_local unsigned held;

static void expect(int condition, const char *what)
{
	if (!condition && evr_lock_misused)
		evr_lock_misused(what);
}

void evr_lock_init(struct evr_lock *lock, enum evr_lock_rank rank)
{
	pthread_mutex_init(&lock->mutex, NULL);
	lock->rank = rank;
}

void evr_lock_fini(struct evr_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
}

void evr_lock(struct evr_lock *lock)
{
	expect(!(held >> lock->rank), "a lock is taken out of its order");
	pthread_mutex_lock(&lock->mutex);
	held |= 1u << lock->rank;
}

void evr_unlock(struct evr_lock *lock)
{
	held &= ~(1u << lock->rank);
	pthread_mutex_unlock(&lock->mutex);
}

void evr_lock_expect_none(void)
{
	expect(!held, "somebody is called under a lock");
}
