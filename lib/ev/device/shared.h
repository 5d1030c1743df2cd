/*
 * Memory that the bases of a process share, each on its own thread: what evrdma_domain_new_shared()
 * makes, its protection domains, and where the buffers of evrdma_buf_new_shared() are registered.
 *
 *   struct evr_shared     The whole. Held by the program's handle until evrdma_domain_free(), by
 *                         the part that each base has in it, and by each of its buffers.
 *   struct evr_shared_pd  On one device. Held by the bases that have a part there; made with the
 *                         first, it goes with the last, its registrations before it.
 *   struct evr_shared_mr  A region in one of these, with one set of rights. Made by the base that
 *                         asks first, on its thread, in that call. It ends with its protection
 *                         domain or with its region, whichever goes first, on that one's thread.
 *
 * So a device's context, which the ids of a base keep open, has nothing of ours on it once the last
 * base has left it. Nobody is called back but by the buffer itself, after its last registration.
 *
 * One lock of the whole guards all that, verbs that make and end it included: who needs what
 * another thread is registering waits for it. Who has a protection domain finds what is registered
 * in it without the lock.
 */
#ifndef EVR_EV_SHARED_H
#define EVR_EV_SHARED_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "ev/core/inbox.h"
#include "util/list.h"

struct evr_region;
struct evr_shared;

struct evr_shared_mr {
	struct evr_shared_mr *next; /* of its region's; it stays there when it has ended */
	struct evr_shared_pd *_Atomic pd; /* NULL: it has ended, and may be another's */
	TAILQ_ENTRY(evr_shared_mr) pd_link;
	struct ibv_mr *mr;
	int access;
};

struct evr_shared_pd {
	TAILQ_ENTRY(evr_shared_pd) link;
	struct evr_shared *shared;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	unsigned users;
	TAILQ_HEAD(, evr_shared_mr) mrs;
};

/* A base's part in it. */
struct evr_shared_part {
	TAILQ_ENTRY(evr_shared_part) link;
	struct evrdma_base *base;
	struct evr_inbox_item item; /* comes to the base when the handle is given up */
};

/* With one user. NULL: no memory. */
struct evr_shared *evr_shared_new(void);
struct evr_shared *evr_shared_ref(struct evr_shared *shared);
void evr_shared_unref(struct evr_shared *shared);

void evr_shared_join(struct evr_shared *shared, struct evr_shared_part *part);
void evr_shared_leave(struct evr_shared *shared, struct evr_shared_part *part);
/* Tells all parts that the handle is given up. */
void evr_shared_give_up(struct evr_shared *shared);

/* Finds or makes the one on a device, which is slow: 0 or -errno. Each is to be put. */
int evr_shared_pd_get(
	struct evr_shared *shared, struct ibv_context *verbs, struct evr_shared_pd **pd);
/* Slow when it is the last user. */
void evr_shared_pd_put(struct evr_shared_pd *pd);
/* The only user ends one of its registrations; false when there is none, or there are others. */
bool evr_shared_drop_one(struct evr_shared_pd *pd);

/*
 * Finds the registration of a region that is shared, or NULL. From any thread whose base has the
 * protection domain, and which has a reference to the region's buffer.
 */
const struct ibv_mr *evr_shared_find_mr(
	const struct evr_region *region, const struct evr_shared_pd *pd, int access);
/* The same, and makes it when it is not there: 0 or -errno. */
int evr_shared_get_mr(struct evr_region *region, struct evr_shared_pd *pd, int access,
	const struct ibv_mr **mr);
/* Ends all its registrations. Nobody else knows of it any more. */
void evr_shared_forget_region(struct evr_region *region);

#endif
