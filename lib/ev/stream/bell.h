/*
 * A doorbell: a pair of local sockets. The far end is a bufferevent's descriptor, the near one is
 * ours. A byte that we send makes theirs readable; what is not taken out of it makes theirs not
 * writable; when theirs is closed we see the end.
 */
#ifndef EVR_EV_BELL_H
#define EVR_EV_BELL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct evr_bell {
	int ours;   /* -1: closed */
	int theirs; /* its number, which may be another's by now */
	dev_t dev;  /* what theirs was */
	ino_t ino;
};

/* 0 or -errno. Theirs is the caller's to give away, or to close. */
int evr_bell_open(struct evr_bell *bell);
/* Only ours. */
void evr_bell_close(struct evr_bell *bell);
/* The number is still that of the far end. */
bool evr_bell_is_theirs(const struct evr_bell *bell);

/* Makes theirs not writable, while it is ours. Returns how many bytes that took, or -errno. */
ssize_t evr_bell_fill(struct evr_bell *bell);
/* Sends a byte. 0 or -errno. */
int evr_bell_ring(struct evr_bell *bell, unsigned char byte);
/* They have read all of it. */
bool evr_bell_is_heard(const struct evr_bell *bell);
/* Takes back what they have not read, while theirs is ours. */
void evr_bell_withdraw(struct evr_bell *bell);
/* They read an end, after what was sent. */
void evr_bell_end(struct evr_bell *bell);
/*
 * They read an end, and whatever they write fails with EPIPE. What they have written is taken:
 * whom one closes upon with something unread is told of a reset in place of the end.
 */
void evr_bell_hang_up(struct evr_bell *bell);
/* What they wrote: how many bytes, 0 at the end, -EAGAIN. */
ssize_t evr_bell_take(struct evr_bell *bell, void *to, size_t size);

#endif
