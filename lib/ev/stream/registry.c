#include "ev/stream/registry.h"

#include "ev/core/lock.h"
#include "util/ptrmap.h"

static struct evr_lock lock = EVR_LOCK_INITIALIZER(EVR_LOCK_REGISTRY);
static struct evr_ptrmap map;

int evr_registry_add(const struct bufferevent *bev, struct evr_bev *behind)
{
	int ret;

	evr_lock(&lock);
	evr_ptrmap_remove(&map, bev);
	ret = evr_ptrmap_add(&map, bev, behind);
	evr_unlock(&lock);
	return ret;
}

struct evr_bev *evr_registry_find(const struct bufferevent *bev)
{
	struct evr_bev *behind;

	evr_lock(&lock);
	behind = evr_ptrmap_find(&map, bev);
	evr_unlock(&lock);
	return behind;
}

void evr_registry_visit(const struct bufferevent *bev, void (*visit)(struct evr_bev *behind))
{
	struct evr_bev *behind;

	evr_lock(&lock);
	behind = evr_ptrmap_find(&map, bev);
	if (behind)
		visit(behind);
	evr_unlock(&lock);
}

void evr_registry_remove(const struct bufferevent *bev, const struct evr_bev *behind)
{
	evr_lock(&lock);
	if (evr_ptrmap_find(&map, bev) == behind)
		evr_ptrmap_remove(&map, bev);
	if (!map.used)
		evr_ptrmap_fini(&map);
	evr_unlock(&lock);
}
