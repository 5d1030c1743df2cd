/*
 * Numbers for pointers: each number carries a generation, so that one that was given back does not
 * find its successor. Not thread-safe.
 */
#ifndef EVR_UTIL_IDMAP_H
#define EVR_UTIL_IDMAP_H

#include <stddef.h>
#include <stdint.h>

enum { EVR_IDMAP_MAX = 1 << 20 }; /* in use at once; a power of two */

struct evr_idmap_slot {
	void *value;
	uint32_t number; /* while in use, and the last one used otherwise */
	uint32_t next_free;
};

struct evr_idmap {
	struct evr_idmap_slot *slots;
	uint32_t size;
	uint32_t first_free;
};

void evr_idmap_init(struct evr_idmap *map);
void evr_idmap_fini(struct evr_idmap *map);
/* 0 and the number, which is never 0; -ENOMEM; -ENOSPC with 2^20 numbers in use. */
int evr_idmap_add(struct evr_idmap *map, void *value, uint32_t *number);

static inline uint32_t evr_idmap_index(uint32_t number)
{
	return number & (EVR_IDMAP_MAX - 1);
}

static inline void *evr_idmap_find(const struct evr_idmap *map, uint32_t number)
{
	uint32_t i = evr_idmap_index(number);

	return i < map->size && map->slots[i].number == number ? map->slots[i].value : NULL;
}

void evr_idmap_remove(struct evr_idmap *map, uint32_t number);

#endif
