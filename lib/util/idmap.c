#include "util/idmap.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_SIZE = 64 };

#define NO_SLOT UINT32_MAX

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

	if (size > EVR_IDMAP_MAX)
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
	slot->number += EVR_IDMAP_MAX;
	if (!slot->number) /* slot 0, and the generation came round */
		slot->number += EVR_IDMAP_MAX;
	*number = slot->number;
	return 0;
}

void evr_idmap_remove(struct evr_idmap *map, uint32_t number)
{
	uint32_t i = evr_idmap_index(number);

	if (!evr_idmap_find(map, number))
		return;
	map->slots[i].value = NULL;
	map->slots[i].next_free = map->first_free;
	map->first_free = i;
}
