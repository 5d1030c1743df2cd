#include "util/idmap.h"

#include <errno.h>
#include <stdlib.h>

enum {
	INDEX_BITS = 20,
	MAX_SLOTS = 1 << INDEX_BITS,
	FIRST_SIZE = 64,
};

#define NO_SLOT UINT32_MAX

static uint32_t index_of(uint32_t number)
{
	return number & (MAX_SLOTS - 1);
}

void evr_idmap_init(struct evr_idmap *map)
{
	*map = (struct evr_idmap){ .first_free = NO_SLOT };
}

void evr_idmap_fini(struct evr_idmap *map)
{
	free(map->slots);
	evr_idmap_init(map);
}

static int grow(struct evr_idmap *map)
{
	uint32_t size = map->size ? map->size * 2 : FIRST_SIZE;
	struct evr_idmap_slot *slots;
	uint32_t i;

	if (size > MAX_SLOTS)
		return -ENOSPC;
	slots = realloc(map->slots, size * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (i = size; i-- > map->size;) {
		slots[i] = (struct evr_idmap_slot){ .number = i, .next_free = map->first_free };
		map->first_free = i;
	}
	map->slots = slots;
	map->size = size;
	return 0;
}

int evr_idmap_add(struct evr_idmap *map, void *value, uint32_t *number)
{
	struct evr_idmap_slot *slot;
	int ret;

	if (map->first_free == NO_SLOT) {
		ret = grow(map);
		if (ret)
			return ret;
	}
	slot = &map->slots[map->first_free];
	map->first_free = slot->next_free;
	slot->value = value;
	slot->number += MAX_SLOTS;
	if (!slot->number) /* slot 0, and the generation came round */
		slot->number += MAX_SLOTS;
	*number = slot->number;
	return 0;
}

void *evr_idmap_find(const struct evr_idmap *map, uint32_t number)
{
	uint32_t i = index_of(number);

	return i < map->size && map->slots[i].number == number ? map->slots[i].value : NULL;
}

void evr_idmap_remove(struct evr_idmap *map, uint32_t number)
{
	uint32_t i = index_of(number);

	if (!evr_idmap_find(map, number))
		return;
	map->slots[i].value = NULL;
	map->slots[i].next_free = map->first_free;
	map->first_free = i;
}
