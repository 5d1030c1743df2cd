/* Memory that devices may use: where it is registered, and with which rights. */
#ifndef EVR_EV_REGION_H
#define EVR_EV_REGION_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

#include "util/list.h"

struct evr_pd;
struct evr_region;
struct evr_shared;
struct evr_shared_mr;

/* One region in one protection domain, with one set of rights. */
struct evr_mr {
	TAILQ_ENTRY(evr_mr) pd_link;
	TAILQ_ENTRY(evr_mr) region_link;
	struct evr_pd *pd;
	struct evr_region *region;
	struct ibv_mr *mr;
	int access;
};

TAILQ_HEAD(evr_mr_list, evr_mr);

struct evr_region {
	void *addr;
	size_t bytes;
	int access; /* enum ibv_access_flags */
	struct evr_mr_list mrs;
	struct evr_shared *shared; /* NULL: one thread's, and what follows unused */
	struct evr_shared_mr *_Atomic shared_mrs;
};

void evr_region_init(struct evr_region *region, void *addr, size_t bytes, int access);
/* Before it is known to anybody: it is registered for all who share that, and nowhere else. */
void evr_region_share(struct evr_region *region, struct evr_shared *shared);
/* Ends all its registrations. Slow when there are some. */
void evr_region_fini(struct evr_region *region);

/* One with these rights, in that domain. */
static inline bool evr_mr_is(const struct evr_mr *mr, const struct evr_pd *pd, int access)
{
	return mr->pd == pd && mr->access == access;
}

/*
 * Its registration in a protection domain, with more rights than its own for a key that stays here,
 * or 0. Made the first time, which is slow. 0 or -errno; -EXDEV for one that is shared with others.
 */
int evr_region_get_mr(
	struct evr_region *region, struct evr_pd *pd, int more, const struct ibv_mr **mr);
/* The same, if it was the first to be made, as it nearly always is, and is not shared; or NULL. */
static inline const struct ibv_mr *evr_region_first_mr(
	const struct evr_region *region, const struct evr_pd *pd, int more)
{
	const struct evr_mr *mr = TAILQ_FIRST(&region->mrs);

	return mr && evr_mr_is(mr, pd, region->access | more) ? mr->mr : NULL;
}

/* Ends one registration in a protection domain that nobody uses; false when there is none. */
bool evr_region_drop_one(struct evr_pd *pd);
/* Ends them all. */
void evr_region_forget_pd(struct evr_pd *pd);

#endif
