#include "ev/device/shared.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "ev/core/error.h"
#include "ev/core/lock.h"
#include "ev/core/log.h"
#include "ev/device/region.h"

struct evr_shared {
	atomic_uint users;
	struct evr_lock lock;
	/* Under the lock, and all that is in them. */
	TAILQ_HEAD(, evr_shared_pd) pds;
	TAILQ_HEAD(, evr_shared_part) parts;
};

struct evr_shared *evr_shared_new(void)
{
	struct evr_shared *shared = calloc(1, sizeof(*shared));

	if (!shared)
		return NULL;
	atomic_init(&shared->users, 1);
	evr_lock_init(&shared->lock, EVR_LOCK_SHARED);
	TAILQ_INIT(&shared->pds);
	TAILQ_INIT(&shared->parts);
	return shared;
}

struct evr_shared *evr_shared_ref(struct evr_shared *shared)
{
	atomic_fetch_add_explicit(&shared->users, 1, memory_order_relaxed);
	return shared;
}

void evr_shared_unref(struct evr_shared *shared)
{
	if (atomic_fetch_sub_explicit(&shared->users, 1, memory_order_acq_rel) > 1)
		return;
	evr_lock_fini(&shared->lock);
	free(shared);
}

/* --- the bases ------------------------------------------------------------------------------ */

void evr_shared_join(struct evr_shared *shared, struct evr_shared_part *part)
{
	evr_lock(&shared->lock);
	TAILQ_INSERT_TAIL(&shared->parts, part, link);
	evr_unlock(&shared->lock);
}

void evr_shared_leave(struct evr_shared *shared, struct evr_shared_part *part)
{
	evr_lock(&shared->lock);
	TAILQ_REMOVE(&shared->parts, part, link);
	evr_unlock(&shared->lock);
}

/* A base that is closing takes nothing, and leaves by itself. */
void evr_shared_give_up(struct evr_shared *shared)
{
	struct evr_shared_part *part;

	evr_lock(&shared->lock);
	TAILQ_FOREACH (part, &shared->parts, link)
		evr_inbox_put(part->base, &part->item);
	evr_unlock(&shared->lock);
}

/* --- registrations -------------------------------------------------------------------------- */

/* With the lock held; its result is to be logged without. */
static int end_mr(struct evr_shared_mr *mr)
{
	struct evr_shared_pd *pd = atomic_load_explicit(&mr->pd, memory_order_relaxed);
	int err = ibv_dereg_mr(mr->mr);

	TAILQ_REMOVE(&pd->mrs, mr, pd_link);
	atomic_store_explicit(&mr->pd, NULL, memory_order_relaxed);
	return err;
}

static int first_of(int err, int next)
{
	return err ? err : next;
}

/* The rest of one that has ended may be another's already, but not that of one of this domain's. */
static bool is_of(const struct evr_shared_mr *mr, const struct evr_shared_pd *pd, int access)
{
	return atomic_load_explicit(&mr->pd, memory_order_acquire) == pd && mr->access == access;
}

const struct ibv_mr *evr_shared_find_mr(
	const struct evr_region *region, const struct evr_shared_pd *pd, int access)
{
	const struct evr_shared_mr *mr =
		atomic_load_explicit(&region->shared_mrs, memory_order_acquire);

	while (mr && !is_of(mr, pd, access))
		mr = mr->next;
	return mr ? mr->mr : NULL;
}

/* With the lock held: one that has ended, or a new one. */
static struct evr_shared_mr *find_room(struct evr_region *region)
{
	struct evr_shared_mr *first =
		atomic_load_explicit(&region->shared_mrs, memory_order_relaxed);
	struct evr_shared_mr *mr = first;

	while (mr && atomic_load_explicit(&mr->pd, memory_order_relaxed))
		mr = mr->next;
	if (mr)
		return mr;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	mr->next = first;
	atomic_store_explicit(&region->shared_mrs, mr, memory_order_release);
	return mr;
}

/* With the lock held. */
static int add(struct evr_region *region, struct evr_shared_pd *pd, int access,
	const struct ibv_mr **added)
{
	struct evr_shared_mr *mr = find_room(region);

	if (!mr)
		return -ENOMEM;
	errno = 0;
	mr->mr = ibv_reg_mr(pd->pd, region->addr, region->bytes, (unsigned int)access);
	if (!mr->mr)
		return evr_verbs_error();
	mr->access = access;
	TAILQ_INSERT_TAIL(&pd->mrs, mr, pd_link);
	*added = mr->mr;
	atomic_store_explicit(&mr->pd, pd, memory_order_release);
	return 0;
}

int evr_shared_get_mr(struct evr_region *region, struct evr_shared_pd *pd, int access,
	const struct ibv_mr **found)
{
	int ret = 0;

	evr_lock(&pd->shared->lock);
	*found = evr_shared_find_mr(region, pd, access);
	if (!*found)
		ret = add(region, pd, access, found);
	evr_unlock(&pd->shared->lock);
	return ret;
}

static void free_mrs(struct evr_region *region)
{
	struct evr_shared_mr *mr, *next;

	mr = atomic_load_explicit(&region->shared_mrs, memory_order_relaxed);
	for (; mr; mr = next) {
		next = mr->next;
		free(mr);
	}
}

void evr_shared_forget_region(struct evr_region *region)
{
	struct evr_shared_mr *mr;
	int err = 0;

	evr_lock(&region->shared->lock);
	mr = atomic_load_explicit(&region->shared_mrs, memory_order_relaxed);
	for (; mr; mr = mr->next)
		if (atomic_load_explicit(&mr->pd, memory_order_relaxed))
			err = first_of(err, end_mr(mr));
	evr_unlock(&region->shared->lock);
	evr_log_failure("ibv_dereg_mr", err);
	free_mrs(region);
	evr_shared_unref(region->shared);
}

/* --- on a device ---------------------------------------------------------------------------- */

/* With the lock held. */
static int make(struct evr_shared *shared, struct ibv_context *verbs, struct evr_shared_pd **made)
{
	struct evr_shared_pd *pd = calloc(1, sizeof(*pd));
	int ret;

	if (!pd)
		return -ENOMEM;
	errno = 0;
	pd->pd = ibv_alloc_pd(verbs);
	if (!pd->pd) {
		ret = evr_verbs_error();
		free(pd);
		return ret;
	}
	pd->shared = shared;
	pd->verbs = verbs;
	TAILQ_INIT(&pd->mrs);
	TAILQ_INSERT_TAIL(&shared->pds, pd, link);
	*made = pd;
	return 0;
}

static struct evr_shared_pd *find(struct evr_shared *shared, const struct ibv_context *verbs)
{
	struct evr_shared_pd *pd;

	TAILQ_FOREACH (pd, &shared->pds, link)
		if (pd->verbs == verbs)
			break;
	return pd;
}

int evr_shared_pd_get(
	struct evr_shared *shared, struct ibv_context *verbs, struct evr_shared_pd **pd)
{
	int ret = 0;

	evr_lock(&shared->lock);
	*pd = find(shared, verbs);
	if (!*pd)
		ret = make(shared, verbs, pd);
	if (!ret)
		(*pd)->users++;
	evr_unlock(&shared->lock);
	return ret;
}

/* With the lock held. */
static void end_pd(struct evr_shared_pd *pd, int *dereg_err, int *dealloc_err)
{
	struct evr_shared_mr *mr;

	while ((mr = TAILQ_FIRST(&pd->mrs)))
		*dereg_err = first_of(*dereg_err, end_mr(mr));
	*dealloc_err = ibv_dealloc_pd(pd->pd);
	TAILQ_REMOVE(&pd->shared->pds, pd, link);
	free(pd);
}

void evr_shared_pd_put(struct evr_shared_pd *pd)
{
	struct evr_shared *shared = pd->shared;
	int dereg_err = 0, dealloc_err = 0;

	evr_lock(&shared->lock);
	if (!--pd->users)
		end_pd(pd, &dereg_err, &dealloc_err);
	evr_unlock(&shared->lock);
	evr_log_failure("ibv_dereg_mr", dereg_err);
	evr_log_failure("ibv_dealloc_pd", dealloc_err);
}

bool evr_shared_drop_one(struct evr_shared_pd *pd)
{
	struct evr_shared_mr *mr;
	int err = 0;

	evr_lock(&pd->shared->lock);
	mr = pd->users == 1 ? TAILQ_FIRST(&pd->mrs) : NULL;
	if (mr)
		err = end_mr(mr);
	evr_unlock(&pd->shared->lock);
	evr_log_failure("ibv_dereg_mr", err);
	return mr;
}
