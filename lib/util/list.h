/* Intrusive lists: the platform's queue macros, under the one include everything uses. */
#ifndef EVR_UTIL_LIST_H
#define EVR_UTIL_LIST_H

#include <stddef.h>
#include <sys/queue.h>

#define evr_container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

#ifndef TAILQ_FOREACH_SAFE
#define TAILQ_FOREACH_SAFE(var, head, field, next)                                                 \
	for ((var) = TAILQ_FIRST(head); (var) && ((next) = TAILQ_NEXT(var, field), 1);             \
		(var) = (next))
#endif

#endif
