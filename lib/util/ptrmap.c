#include "util/ptrmap.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

enum { FIRST_SIZE = 16 };

static size_t home(const struct evr_ptrmap *map, const void *key)
{
	uint64_t h = (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(h >> 32) & (map->size - 1);
}

/* The slot that holds the key, or the free one where it would go. */
static struct evr_ptrmap_slot *probe(const struct evr_ptrmap *map, const void *key)
{
	size_t i = home(map, key);

	while (map->slots[i].key && map->slots[i].key != key)
		i = (i + 1) & (map->size - 1);
	return &map->slots[i];
}

static int grow(struct evr_ptrmap *map)
{
	struct evr_ptrmap bigger = { .size = map->size ? map->size * 2 : FIRST_SIZE };
	size_t i;

	bigger.slots = calloc(bigger.size, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (i = 0; i < map->size; i++)
		if (map->slots[i].key)
			*probe(&bigger, map->slots[i].key) = map->slots[i];
	free(map->slots);
	map->slots = bigger.slots;
	map->size = bigger.size;
	return 0;
}

void evr_ptrmap_init(struct evr_ptrmap *map)
{
	*map = (struct evr_ptrmap){ 0 };
}

void evr_ptrmap_fini(struct evr_ptrmap *map)
{
	free(map->slots);
	evr_ptrmap_init(map);
}

int evr_ptrmap_add(struct evr_ptrmap *map, const void *key, void *value)
{
	struct evr_ptrmap_slot *slot;
	int ret;

	if (3 * (map->used + 1) > 2 * map->size) {
		ret = grow(map);
		if (ret)
			return ret;
	}
	slot = probe(map, key);
	if (slot->key)
		return -EEXIST;
	*slot = (struct evr_ptrmap_slot){ key, value };
	map->used++;
	return 0;
}

void *evr_ptrmap_find(const struct evr_ptrmap *map, const void *key)
{
	return map->used ? probe(map, key)->value : NULL;
}

/* Moves later members of the run into the hole, so that no probe stops short of them. */
static void close_hole(struct evr_ptrmap *map, size_t hole)
{
	size_t mask = map->size - 1;
	size_t i = hole;

	for (;;) {
		i = (i + 1) & mask;
		if (!map->slots[i].key)
			break;
		if (((i - home(map, map->slots[i].key)) & mask) >= ((i - hole) & mask)) {
			map->slots[hole] = map->slots[i];
			hole = i;
		}
	}
	map->slots[hole] = (struct evr_ptrmap_slot){ 0 };
}

void *evr_ptrmap_remove(struct evr_ptrmap *map, const void *key)
{
	struct evr_ptrmap_slot *slot = map->used ? probe(map, key) : NULL;
	void *value;

	if (!slot || !slot->key)
		return NULL;
	value = slot->value;
	map->used--;
	close_hole(map, (size_t)(slot - map->slots));
	return value;
}
