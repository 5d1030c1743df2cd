/*
 * A hash map from pointers to pointers, for finding our object behind somebody else's.
 * Open addressing, kept at most two thirds full; not thread-safe.
 */
#ifndef EVR_UTIL_PTRMAP_H
#define EVR_UTIL_PTRMAP_H

#include <stddef.h>

struct evr_ptrmap_slot {
	const void *key;
	void *value;
};

struct evr_ptrmap {
	struct evr_ptrmap_slot *slots;
	size_t size; /* a power of two, or 0 */
	size_t used;
};

void evr_ptrmap_init(struct evr_ptrmap *map);
void evr_ptrmap_fini(struct evr_ptrmap *map);
/* 0, -EEXIST or -ENOMEM. The key and the value must not be NULL. */
int evr_ptrmap_add(struct evr_ptrmap *map, const void *key, void *value);
void *evr_ptrmap_find(const struct evr_ptrmap *map, const void *key);
/* Returns what was stored, or NULL. Never fails for want of memory. */
void *evr_ptrmap_remove(struct evr_ptrmap *map, const void *key);

#endif
