#include "cm/cm.h"

#include "util/ptrmap.h"

/*
 * Several locks, so that threads with ids of their own seldom meet; fewer than a tool that watches
 * locks lets one thread hold, as who forks has all of them.
 */
#define NUM_LOCKS 32
#define LOCK_BITS 5

static pthread_mutex_t locks[NUM_LOCKS] = {
	[0 ... NUM_LOCKS - 1] = PTHREAD_MUTEX_INITIALIZER,
};

struct map {
	struct evr_ptrmap parts[NUM_LOCKS];
};

static struct map ids, children, groups;

void evr_cm_map_hold(bool hold)
{
	int i;

	for (i = 0; i < NUM_LOCKS; i++) {
		if (hold)
			pthread_mutex_lock(&locks[i]);
		else
			pthread_mutex_unlock(&locks[i]);
	}
}

static unsigned int lock(const void *key)
{
	unsigned int at =
		(uint64_t)(uintptr_t)key * UINT64_C(0xff51afd7ed558ccd) >> (64 - LOCK_BITS);

	pthread_mutex_lock(&locks[at]);
	return at;
}

static void unlock(unsigned int at)
{
	pthread_mutex_unlock(&locks[at]);
}

static int map_add(struct map *map, const void *key, void *value)
{
	unsigned int at = lock(key);
	int ret = evr_ptrmap_add(&map->parts[at], key, value);

	unlock(at);
	return ret;
}

static void *map_find(struct map *map, const void *key)
{
	unsigned int at = lock(key);
	void *value = evr_ptrmap_find(&map->parts[at], key);

	unlock(at);
	return value;
}

/* Whatever the key stood for before. */
static int map_set(struct map *map, const void *key, void *value)
{
	unsigned int at = lock(key);
	int ret;

	evr_ptrmap_remove(&map->parts[at], key);
	ret = evr_ptrmap_add(&map->parts[at], key, value);
	unlock(at);
	return ret;
}

/* Unless the key stands for something else by now. */
static void map_remove(struct map *map, const void *key, const void *value)
{
	unsigned int at = lock(key);

	if (evr_ptrmap_find(&map->parts[at], key) == value)
		evr_ptrmap_remove(&map->parts[at], key);
	unlock(at);
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
