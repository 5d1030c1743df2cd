/*
 * Connects that are on their way. A thread, which is there while there are any, brings each to its
 * end: by RDMA, or then by TCP. Until that is known the number shows nothing.
 */
#ifndef EVR_PRELOAD_ATTEMPT_H
#define EVR_PRELOAD_ATTEMPT_H

#include "preload/preload.h"

/* The thread looks at it, from now on, when the descriptor is writable or the time is over. */
int evr_pre_attempt_start(struct evr_pre *pre, int fd);
/* The same with another descriptor, for ever: TCP has a time of its own. */
int evr_pre_attempt_go_on(struct evr_pre *pre, int fd);
/* It has come to an end, or is no more. */
void evr_pre_attempt_stop(struct evr_pre *pre);

/* silent: what an attempt's number has now is shown to those that wait for what it had. */
void evr_pre_attempts_keep(int bell, int fd);

/* fork: nobody is within while the process is copied; the child has none of them. */
void evr_pre_attempts_lock(void);
void evr_pre_attempts_unlock(void);
void evr_pre_attempts_reset(void);

/* connect: looks at one, whose lock is held; is_over: its time. */
void evr_pre_look(struct evr_pre *pre, bool is_over);

#endif
