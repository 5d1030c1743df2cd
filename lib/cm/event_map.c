#include "cm/cm.h"

#include "util/ptrmap.h"

/* Several locks, so that threads with ids of their own seldom meet. */
#define NUM_SHARDS 32
#define SHARD_BITS 5

struct shard {
	pthread_mutex_t lock;
	struct evr_ptrmap map;
};

struct map {
	struct shard shards[NUM_SHARDS];
};

#define MAP_INITIALIZER                                                                            \
	{                                                                                          \
		.shards = { [0 ... NUM_SHARDS - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER } }       \
	}

static struct map ids = MAP_INITIALIZER;
static struct map children = MAP_INITIALIZER;
static struct map groups = MAP_INITIALIZER;

static struct shard *shard_of(struct map *map, const void *key)
{
	uint64_t h = (uint64_t)(uintptr_t)key * UINT64_C(0xff51afd7ed558ccd);

	return &map->shards[h >> (64 - SHARD_BITS)];
}

static int map_add(struct map *map, const void *key, void *value)
{
	struct shard *shard = shard_of(map, key);
	int ret;

	pthread_mutex_lock(&shard->lock);
	ret = evr_ptrmap_add(&shard->map, key, value);
	pthread_mutex_unlock(&shard->lock);
	return ret;
}

static void *map_find(struct map *map, const void *key)
{
	struct shard *shard = shard_of(map, key);
	void *value;

	pthread_mutex_lock(&shard->lock);
	value = evr_ptrmap_find(&shard->map, key);
	pthread_mutex_unlock(&shard->lock);
	return value;
}

/* Whatever the key stood for before. */
static int map_set(struct map *map, const void *key, void *value)
{
	struct shard *shard = shard_of(map, key);
	int ret;

	pthread_mutex_lock(&shard->lock);
	evr_ptrmap_remove(&shard->map, key);
	ret = evr_ptrmap_add(&shard->map, key, value);
	pthread_mutex_unlock(&shard->lock);
	return ret;
}

/* Unless the key stands for something else by now. */
static void map_remove(struct map *map, const void *key, const void *value)
{
	struct shard *shard = shard_of(map, key);

	pthread_mutex_lock(&shard->lock);
	if (evr_ptrmap_find(&shard->map, key) == value)
		evr_ptrmap_remove(&shard->map, key);
	pthread_mutex_unlock(&shard->lock);
}

/* Handles start at 0, keys must not. */
static const void *handle_key(uint32_t handle)
{
	return (const void *)((uintptr_t)handle + 1);
}

static const void *uid_key(uint64_t uid)
{
	return (const void *)(uintptr_t)uid;
}

int evr_cm_map_add_id(struct evr_cm_id *id)
{
	return map_add(&ids, id, id);
}

void evr_cm_map_remove_id(struct evr_cm_id *id)
{
	map_remove(&ids, id, id);
	map_remove(&children, handle_key(id->handle), id);
}

struct evr_cm_id *evr_cm_map_find_id(uint64_t uid)
{
	return map_find(&ids, uid_key(uid));
}

/* The kernel gives a handle out again at once, maybe before its last owner has left the map. */
int evr_cm_map_add_child(struct evr_cm_id *id)
{
	return map_set(&children, handle_key(id->handle), id);
}

struct evr_cm_id *evr_cm_map_find_child(uint32_t handle)
{
	return map_find(&children, handle_key(handle));
}

int evr_cm_map_add_mc(struct evr_cm_mc *mc)
{
	return map_add(&groups, mc, mc);
}

void evr_cm_map_remove_mc(struct evr_cm_mc *mc)
{
	map_remove(&groups, mc, mc);
}

struct evr_cm_mc *evr_cm_map_find_mc(uint64_t uid)
{
	return map_find(&groups, uid_key(uid));
}
