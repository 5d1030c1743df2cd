/*
 * Pointers by number of descriptor, for many threads: no call waits for one on another number, or
 * for a lock at all. Zeroes are an empty one, and it has no end: its memory may be looked at at any
 * time.
 */
#ifndef EVR_UTIL_FDMAP_H
#define EVR_UTIL_FDMAP_H

#include <stdatomic.h>
#include <stdint.h>

enum { EVR_FDMAP_BLOCKS = 1024, EVR_FDMAP_BLOCK = 1024 };
enum { EVR_FDMAP_MAX = EVR_FDMAP_BLOCKS * EVR_FDMAP_BLOCK };

/* The pointer, with its lowest bit set while somebody takes hold of what it points to. */
typedef _Atomic(uintptr_t) evr_fdmap_entry;

struct evr_fdmap {
	_Atomic(evr_fdmap_entry *) blocks[EVR_FDMAP_BLOCKS];
};

/* A place for that number. 0, -EBADF, -EMFILE or -ENOMEM; with a place, setting cannot fail. */
int evr_fdmap_make(struct evr_fdmap *map, int fd);
/* Returns what was there; NULL is also where there is no place. */
void *evr_fdmap_set(struct evr_fdmap *map, int fd, void *value);
/* What is there, for one look. */
void *evr_fdmap_peek(struct evr_fdmap *map, int fd);
/* What is there, which cannot be taken away before hold() has made sure that it stays. */
void *evr_fdmap_get(struct evr_fdmap *map, int fd, void (*hold)(void *value));
/* The same for who waits for nobody: NULL, too, while somebody else is at it. */
void *evr_fdmap_try(struct evr_fdmap *map, int fd, void (*hold)(void *value));
/* The first number from there on under which there is the value, or anything for NULL; or -1. */
int evr_fdmap_next(struct evr_fdmap *map, int fd, const void *value);
/* In a child of fork(): whoever was about to hold something is not there any more. */
void evr_fdmap_unlock_all(struct evr_fdmap *map);

#endif
