#include "ev/device/region.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "ev/core/base.h"
#include "ev/core/error.h"
#include "ev/core/log.h"
#include "ev/device/device.h"
#include "ev/device/pd.h"
#include "ev/device/shared.h"

void evr_region_init(struct evr_region *region, void *addr, size_t bytes, int access)
{
	region->addr = addr;
	region->bytes = bytes;
	region->access = access;
	TAILQ_INIT(&region->mrs);
	region->shared = NULL;
	atomic_init(&region->shared_mrs, NULL);
}

void evr_region_share(struct evr_region *region, struct evr_shared *shared)
{
	region->shared = evr_shared_ref(shared);
}

static struct evrdma_base_stats *stats_of(const struct evr_pd *pd)
{
	return &pd->device->base->stats;
}

static void drop(struct evr_region *region, struct evr_mr *mr)
{
	evr_log_failure("ibv_dereg_mr", ibv_dereg_mr(mr->mr));
	stats_of(mr->pd)->registrations_now--;
	stats_of(mr->pd)->bytes_pinned -= region->bytes;
	TAILQ_REMOVE(&mr->pd->mrs, mr, pd_link);
	TAILQ_REMOVE(&region->mrs, mr, region_link);
	free(mr);
}

void evr_region_fini(struct evr_region *region)
{
	struct evr_mr *mr;

	while ((mr = TAILQ_FIRST(&region->mrs)))
		drop(region, mr);
	if (region->shared)
		evr_shared_forget_region(region);
}

static int check_quota(const struct evr_region *region, const struct evr_pd *pd)
{
	const struct evrdma_base *base = pd->device->base;
	uint64_t most = base->options.max_pinned_bytes, pinned = base->stats.bytes_pinned;

	if (!most || (pinned <= most && region->bytes <= most - pinned))
		return 0;
	stats_of(pd)->quota_errors++;
	return -EDQUOT;
}

static void count(struct evrdma_base_stats *stats, size_t bytes)
{
	stats->registrations++;
	stats->registrations_now++;
	stats->bytes_pinned += bytes;
	if (stats->bytes_pinned > stats->bytes_pinned_max)
		stats->bytes_pinned_max = stats->bytes_pinned;
}

static int add(struct evr_region *region, struct evr_pd *pd, int access, struct evr_mr **added)
{
	struct evr_mr *mr;
	int ret = check_quota(region, pd);

	if (ret)
		return ret;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	errno = 0;
	mr->mr = ibv_reg_mr(pd->pd, region->addr, region->bytes, (unsigned int)access);
	if (!mr->mr) {
		ret = evr_verbs_error();
		free(mr);
		return ret;
	}
	count(stats_of(pd), region->bytes);
	mr->pd = pd;
	mr->region = region;
	mr->access = access;
	pd->made++;
	TAILQ_INSERT_TAIL(&pd->mrs, mr, pd_link);
	TAILQ_INSERT_TAIL(&region->mrs, mr, region_link);
	*added = mr;
	return 0;
}

static int get_shared_mr(
	struct evr_region *region, struct evr_pd *pd, int access, const struct ibv_mr **found)
{
	int ret;

	if (!pd->shared || pd->shared->shared != region->shared)
		return -EXDEV;
	*found = evr_shared_find_mr(region, pd->shared, access);
	if (*found)
		return 0;
	ret = evr_shared_get_mr(region, pd->shared, access, found);
	pd->made += !ret;
	return ret;
}

int evr_region_get_mr(
	struct evr_region *region, struct evr_pd *pd, int more, const struct ibv_mr **found)
{
	int access = region->access | more;
	struct evr_mr *mr;
	int ret;

	if (region->shared)
		return get_shared_mr(region, pd, access, found);
	TAILQ_FOREACH (mr, &region->mrs, region_link)
		if (evr_mr_is(mr, pd, access))
			break;
	if (!mr) {
		ret = add(region, pd, access, &mr);
		if (ret)
			return ret;
	}
	*found = mr->mr;
	return 0;
}

bool evr_region_drop_one(struct evr_pd *pd)
{
	struct evr_mr *mr = TAILQ_FIRST(&pd->mrs);

	if (mr)
		drop(mr->region, mr);
	return mr || (pd->shared && evr_shared_drop_one(pd->shared));
}

void evr_region_forget_pd(struct evr_pd *pd)
{
	struct evr_mr *mr;

	while ((mr = TAILQ_FIRST(&pd->mrs)))
		drop(mr->region, mr);
}
