/*
 * The mode for programs that fork (RDMAV_FORK_SAFE): an rsocket is its process' alone, so a thread
 * of that process stands between it and a pair of the kernel's sockets, the other end of which is
 * what the program has. Children have that end too, may execute other programs with it, and may
 * pass it on.
 */
#ifndef EVR_PRELOAD_BROKER_H
#define EVR_PRELOAD_BROKER_H

#include "preload/preload.h"

/* Whether the program is to run so. */
bool evr_broker_is_wanted(void);

/* --- the thread ------------------------------------------------------------------------------ */

enum { EVR_BROKER_FDS = 5 };

/* What it looks after. A descriptor is -1, or of the process' own, and ends with it. */
struct evr_brokered {
	TAILQ_ENTRY(evr_brokered) link;
	struct {
		int fd;
		bool is_watched;
	} fds[EVR_BROKER_FDS];
	bool is_paused;
	/* Does what can be done without waiting, and says what to watch; or ends. */
	void (*look)(struct evr_brokered *thing);
};

/* 0 or -errno. From then on the thread looks at it, first of all at once. */
int evr_broker_start(struct evr_brokered *thing);
/* The rest is for what the thread calls. keep: a hang-up is told without any events, too. */
void evr_broker_watch(struct evr_brokered *thing, int which, uint32_t events, bool keep);
/* It is looked at again a little later, whatever else comes: something is short. */
void evr_broker_pause(struct evr_brokered *thing);
/* Stops; the descriptors are the caller's to close. */
void evr_broker_stop(struct evr_brokered *thing);
/* For starting another one from within the thread. */
int evr_broker_start_within(struct evr_brokered *thing);

/* --- what it looks after --------------------------------------------------------------------- */

/*
 * carry: a connection. Returns the program's end of the pair; the rsocket is taken then. Or -errno.
 */
int evr_broker_carry(int rs, bool is_within);
/*
 * What has come from the program goes, for the process ends; last of all its rsocket. Whether
 * there is anything left.
 */
bool evr_broker_flush(struct evr_brokered *thing, bool is_last);

/* share: a listener; the same. */
int evr_broker_share(int rs, int tcp);
/* Of such an end: the next connection, or -1. The own name is known of one by RDMA. */
int evr_broker_accept(int fd, int flags, struct sockaddr_storage *peer,
	struct sockaddr_storage *own, bool *is_carried);

#endif
