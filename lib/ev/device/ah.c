#include "ev/device/ah.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ev/core/base.h"
#include "ev/core/error.h"
#include "ev/core/log.h"
#include "util/clock.h"

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

bool evr_ah_same_attr(const struct ibv_ah_attr *a, const struct ibv_ah_attr *b)
{
	return a->dlid == b->dlid && a->sl == b->sl && a->src_path_bits == b->src_path_bits &&
	       a->static_rate == b->static_rate && a->port_num == b->port_num &&
	       a->is_global == b->is_global && (!a->is_global || same_grh(&a->grh, &b->grh));
}

static void leave_bucket(struct evr_ah *ah)
{
	if (!ah->retired)
		TAILQ_REMOVE(bucket_of(ah->cache, &ah->attr), ah, link);
	ah->retired = true;
}

static void set_idle(struct evr_ah *ah)
{
	TAILQ_INSERT_TAIL(&ah->cache->idle, ah, idle_link);
	ah->cache->num_idle++;
}

static void set_busy(struct evr_ah *ah)
{
	TAILQ_REMOVE(&ah->cache->idle, ah, idle_link);
	ah->cache->num_idle--;
}

static void destroy(struct evr_ah *ah)
{
	leave_bucket(ah);
	set_busy(ah);
	if (ah->ah) {
		ah->cache->base->stats.address_handles--;
		evr_log_failure("ibv_destroy_ah", ibv_destroy_ah(ah->ah));
	}
	free(ah);
}

/* It is found no more, and goes with its last user. */
static void retire(struct evr_ah *ah)
{
	leave_bucket(ah);
	if (!ah->refs)
		destroy(ah);
}

void evr_ah_cache_retire_all(struct evr_ah_cache *cache)
{
	struct evr_ah *ah, *next;
	size_t i;

	for (i = 0; i < EVR_AH_BUCKETS; i++)
		TAILQ_FOREACH_SAFE (ah, &cache->buckets[i], link, next)
			retire(ah);
}

static void shrink(struct evr_ah_cache *cache)
{
	if (cache->num_idle > EVR_AH_MAX_IDLE)
		destroy(TAILQ_FIRST(&cache->idle));
}

void evr_ah_cache_clear(struct evr_ah_cache *cache)
{
	struct evr_ah *ah;

	while ((ah = TAILQ_FIRST(&cache->idle)))
		destroy(ah);
}

/* The kernel has asked for the hardware address, or knows that it would be of no use. */
static bool was_asked_in_vain(int err)
{
	return err == ETIMEDOUT || err == EHOSTUNREACH || err == ENETUNREACH;
}

static int create(struct evr_ah *ah, struct ibv_pd *pd)
{
	struct ibv_ah_attr attr = ah->attr; /* some drivers write into it */

	errno = 0;
	ah->ah = ibv_create_ah(pd, &attr);
	ah->err = ah->ah ? 0 : -evr_verbs_error();
	return -ah->err;
}

static void keep(struct evr_ah *ah, struct evr_ah_cache *cache, int ms)
{
	ah->cache = cache;
	ah->end_us = evr_clock_now_us() + (uint64_t)ms * EVR_US_PER_MS;
	TAILQ_INSERT_HEAD(bucket_of(cache, &ah->attr), ah, link);
}

static void remember(struct evr_ah *ah, struct evr_ah_cache *cache)
{
	keep(ah, cache, EVR_AH_IN_VAIN_MS);
	set_idle(ah);
	shrink(cache);
}

static int give_up(struct evr_ah *ah, struct evr_ah_cache *cache)
{
	int ret = -ah->err;

	if (was_asked_in_vain(ah->err))
		remember(ah, cache);
	else
		free(ah);
	return ret;
}

static int make(struct evr_ah_cache *cache, struct ibv_pd *pd, const struct ibv_ah_attr *attr,
	struct evr_ah **made)
{
	struct evr_ah *ah = calloc(1, sizeof(*ah));

	if (!ah)
		return -ENOMEM;
	ah->attr = *attr;
	if (create(ah, pd))
		return give_up(ah, cache);
	ah->refs = 1;
	keep(ah, cache, EVR_AH_LIFETIME_MS);
	cache->base->stats.address_handles++;
	*made = ah;
	return 0;
}

static struct evr_ah *find(struct evr_ah_cache *cache, const struct ibv_ah_attr *attr)
{
	struct evr_ah *ah;

	TAILQ_FOREACH (ah, bucket_of(cache, attr), link)
		if (evr_ah_same_attr(&ah->attr, attr))
			break;
	if (!ah || evr_clock_now_us() < ah->end_us)
		return ah;
	retire(ah);
	return NULL;
}

int evr_ah_find(
	struct evr_ah_cache *cache, const struct ibv_ah_attr *attr, struct evr_ah **found)
{
	struct evr_ah *ah = find(cache, attr);

	if (!ah || ah->err)
		return ah ? -ah->err : -ENOENT;
	*found = evr_ah_ref(ah);
	return 0;
}

int evr_ah_get(struct evr_ah_cache *cache, struct ibv_pd *pd, const struct ibv_ah_attr *attr,
	struct evr_ah **found)
{
	int ret = evr_ah_find(cache, attr, found);

	return ret == -ENOENT ? make(cache, pd, attr, found) : ret;
}

void evr_ah_note_in_vain(struct evr_ah_cache *cache, const struct ibv_ah_attr *attr, int err)
{
	struct evr_ah *ah;

	if (!was_asked_in_vain(err) || find(cache, attr))
		return;
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return;
	ah->attr = *attr;
	ah->err = err;
	remember(ah, cache);
}

struct evr_ah *evr_ah_ref(struct evr_ah *ah)
{
	if (!ah->refs++)
		set_busy(ah);
	return ah;
}

void evr_ah_unref(struct evr_ah *ah)
{
	struct evr_ah_cache *cache;

	if (!ah || --ah->refs)
		return;
	cache = ah->cache;
	set_idle(ah);
	if (ah->retired)
		destroy(ah);
	else
		shrink(cache);
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
