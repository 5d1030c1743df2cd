/*
 * Address handles of an endpoint: how datagrams reach a peer or a group. Making one is a system
 * call, so those that nobody uses any more are kept for a while, the least recently used going
 * first. A handle has the hardware address that its peer had when it was made: after the lifetime
 * that the kernel gives such an address it is found no more, and another one is made. Whom the
 * kernel asked for his in vain, which takes a second, is not asked for again at once.
 */
#ifndef EVR_EV_AH_H
#define EVR_EV_AH_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/list.h"

enum {
	EVR_AH_BUCKETS = 64,
	EVR_AH_MAX_IDLE = 256,
	EVR_AH_LIFETIME_MS = 30000,
	EVR_AH_IN_VAIN_MS = 10000,
};

struct evr_ah_cache;
struct evr_obj;
struct evrdma_base;

struct evr_ah {
	TAILQ_ENTRY(evr_ah) link;      /* in its bucket */
	TAILQ_ENTRY(evr_ah) idle_link; /* while nobody uses it */
	struct evr_ah_cache *cache;
	struct ibv_ah_attr attr;
	struct ibv_ah *ah; /* NULL: there is none, because of */
	int err;
	uint64_t end_us;   /* of its lifetime */
	bool retired;      /* not in its bucket any more */
	unsigned refs;	   /* its users, and the sends under way */
};

/* Where datagrams to a group or a peer go. Its owner ends after the last of its sends. */
struct evr_dest {
	struct evr_obj *owner;
	struct evr_ah *ah;
	uint32_t qp_num;
	uint32_t qkey;
	unsigned sends;
};

TAILQ_HEAD(evr_ah_list, evr_ah);

struct evr_ah_cache {
	struct evr_ah_list buckets[EVR_AH_BUCKETS];
	struct evrdma_base *base;
	struct evr_ah_list idle; /* the least recently used first */
	unsigned num_idle;
};

void evr_ah_cache_init(struct evr_ah_cache *cache, struct evrdma_base *base);
/* Destroys all; nobody may use one. Before their PD goes. */
void evr_ah_cache_clear(struct evr_ah_cache *cache);

/* The hardware addresses may be others now. */
void evr_ah_cache_retire_all(struct evr_ah_cache *cache);

bool evr_ah_same_attr(const struct ibv_ah_attr *a, const struct ibv_ah_attr *b);
/* One that is known, with a reference. -ENOENT, or why the last one who asked for it got none. */
int evr_ah_find(
	struct evr_ah_cache *cache, const struct ibv_ah_attr *attr, struct evr_ah **ah);
/* If the kernel has asked in vain, for a while nobody asks for it again. */
void evr_ah_note_in_vain(struct evr_ah_cache *cache, const struct ibv_ah_attr *attr, int err);
/*
 * Finds or makes one, with a reference. Slow when it is made: off InfiniBand the kernel may ask for
 * the neighbour's address. 0 or -errno.
 */
int evr_ah_get(struct evr_ah_cache *cache, struct ibv_pd *pd, const struct ibv_ah_attr *attr,
	struct evr_ah **ah);
struct evr_ah *evr_ah_ref(struct evr_ah *ah);
/* NULL is fine. */
void evr_ah_unref(struct evr_ah *ah);

/* A send has ended. */
void evr_dest_send_over(struct evr_dest *dest);
/* -EINPROGRESS while sends are under way, after which the owner is continued; 0 when it is over. */
int evr_dest_end(struct evr_dest *dest);

#endif
