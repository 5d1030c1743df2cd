/*
 * The locks between the threads of several bases, and the one order in which they are taken: who
 * holds one takes only those further down. Nobody is called under any, and nothing is released that
 * others know of.
 */
#ifndef EVR_EV_LOCK_H
#define EVR_EV_LOCK_H

#include <pthread.h>

enum evr_lock_rank {
	EVR_LOCK_ASYNC = 1, /* async.c's: who reads a device's events, and what was noted of them */
	EVR_LOCK_SHARED,    /* of memory that bases share; verbs register under it: shared.h */
	EVR_LOCK_INBOX,     /* of a base: what other threads hand to it */
	EVR_LOCK_REGISTRY,  /* registry.c's: which bufferevents are over RDMA */
};

struct evr_lock {
	pthread_mutex_t mutex;
	enum evr_lock_rank rank;
};

#define EVR_LOCK_INITIALIZER(rank) { PTHREAD_MUTEX_INITIALIZER, rank }

void evr_lock_init(struct evr_lock *lock, enum evr_lock_rank rank);
void evr_lock_fini(struct evr_lock *lock);
void evr_lock(struct evr_lock *lock);
void evr_unlock(struct evr_lock *lock);
/* To be said where somebody is called, or something released that others know of. */
void evr_lock_expect_none(void);

/* Tests are told of what goes against the order; NULL: nobody is. */
extern void (*evr_lock_misused)(const char *what);

#endif
