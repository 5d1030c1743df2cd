/*
 * How many connections a listener has at once. Each one holds a slot, from its request to its end,
 * on whatever thread that is; so the count lives as long as the last of them.
 */
#ifndef EVR_EV_SLOTS_H
#define EVR_EV_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>

struct evr_slots {
	atomic_uint refs;
	atomic_uint used;
	unsigned most; /* 0: no limit */
};

struct evr_slots *evr_slots_new(unsigned most);
/* NULL is fine. */
void evr_slots_unref(struct evr_slots *slots);

/* Takes one, with a reference for whoever holds it. False when there is none. */
bool evr_slots_take(struct evr_slots *slots);
/* NULL is fine. */
void evr_slots_give(struct evr_slots *slots);

#endif
