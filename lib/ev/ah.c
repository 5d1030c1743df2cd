#include "ev/ah.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ev/base.h"
#include "ev/error.h"
#include "ev/log.h"

void evr_ah_cache_init(struct evr_ah_cache *cache, struct evrdma_base *base)
{
	size_t i;

	for (i = 0; i < EVR_AH_BUCKETS; i++)
		TAILQ_INIT(&cache->buckets[i]);
	TAILQ_INIT(&cache->idle);
	cache->num_idle = 0;
	cache->base = base;
}

static struct evr_ah_list *bucket_of(struct evr_ah_cache *cache, const struct ibv_ah_attr *attr)
{
	uint32_t hash = attr->dlid;
	size_t i;

	for (i = 0; i < sizeof(attr->grh.dgid.raw); i++)
		hash = hash * 31 + attr->grh.dgid.raw[i];
	return &cache->buckets[hash % EVR_AH_BUCKETS];
}

static bool same_grh(const struct ibv_global_route *a, const struct ibv_global_route *b)
{
	return !memcmp(&a->dgid, &b->dgid, sizeof(a->dgid)) && a->flow_label == b->flow_label &&
	       a->sgid_index == b->sgid_index && a->hop_limit == b->hop_limit &&
	       a->traffic_class == b->traffic_class;
}

static bool same_attr(const struct ibv_ah_attr *a, const struct ibv_ah_attr *b)
{
	return a->dlid == b->dlid && a->sl == b->sl && a->src_path_bits == b->src_path_bits &&
	       a->static_rate == b->static_rate && a->port_num == b->port_num &&
	       a->is_global == b->is_global && (!a->is_global || same_grh(&a->grh, &b->grh));
}

static void destroy(struct evr_ah *ah)
{
	TAILQ_REMOVE(bucket_of(ah->cache, &ah->attr), ah, link);
	TAILQ_REMOVE(&ah->cache->idle, ah, idle_link);
	ah->cache->num_idle--;
	ah->cache->base->stats.address_handles--;
	evr_log_failure("ibv_destroy_ah", ibv_destroy_ah(ah->ah));
	free(ah);
}

void evr_ah_cache_clear(struct evr_ah_cache *cache)
{
	struct evr_ah *ah;

	while ((ah = TAILQ_FIRST(&cache->idle)))
		destroy(ah);
}

static int make(struct evr_ah_cache *cache, struct ibv_pd *pd, const struct ibv_ah_attr *attr,
	struct evr_ah **made)
{
	struct evr_ah *ah = calloc(1, sizeof(*ah));
	int ret;

	if (!ah)
		return -ENOMEM;
	ah->attr = *attr;
	errno = 0;
	ah->ah = ibv_create_ah(pd, &ah->attr);
	if (!ah->ah) {
		ret = evr_verbs_error();
		free(ah);
		return ret;
	}
	/* As it was asked for: some drivers write into it. */
	ah->attr = *attr;
	ah->cache = cache;
	ah->refs = 1;
	cache->base->stats.address_handles++;
	TAILQ_INSERT_HEAD(bucket_of(cache, attr), ah, link);
	*made = ah;
	return 0;
}

int evr_ah_get(struct evr_ah_cache *cache, struct ibv_pd *pd, const struct ibv_ah_attr *attr,
	struct evr_ah **found)
{
	struct evr_ah *ah;

	TAILQ_FOREACH (ah, bucket_of(cache, attr), link)
		if (same_attr(&ah->attr, attr)) {
			*found = evr_ah_ref(ah);
			return 0;
		}
	return make(cache, pd, attr, found);
}

struct evr_ah *evr_ah_ref(struct evr_ah *ah)
{
	if (!ah->refs++) {
		TAILQ_REMOVE(&ah->cache->idle, ah, idle_link);
		ah->cache->num_idle--;
	}
	return ah;
}

void evr_ah_unref(struct evr_ah *ah)
{
	struct evr_ah_cache *cache;

	if (!ah || --ah->refs)
		return;
	cache = ah->cache;
	TAILQ_INSERT_TAIL(&cache->idle, ah, idle_link);
	cache->num_idle++;
	if (cache->num_idle > EVR_AH_MAX_IDLE)
		destroy(TAILQ_FIRST(&cache->idle));
}

void evr_dest_send_over(struct evr_dest *dest)
{
	if (!--dest->sends)
		evr_obj_continue(dest->owner);
}

int evr_dest_end(struct evr_dest *dest)
{
	if (dest->sends)
		return -EINPROGRESS;
	evr_ah_unref(dest->ah);
	dest->ah = NULL;
	return 0;
}
