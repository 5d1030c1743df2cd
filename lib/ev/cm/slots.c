#include "ev/cm/slots.h"

#include <stdlib.h>

struct evr_slots *evr_slots_new(unsigned most)
{
	struct evr_slots *slots = malloc(sizeof(*slots));

	if (!slots)
		return NULL;
	atomic_init(&slots->refs, 1);
	atomic_init(&slots->used, 0);
	slots->most = most;
	return slots;
}

void evr_slots_unref(struct evr_slots *slots)
{
	if (slots && atomic_fetch_sub(&slots->refs, 1) == 1)
		free(slots);
}

/* Only the listener's thread takes; others give. */
bool evr_slots_take(struct evr_slots *slots)
{
	if (slots->most && atomic_load(&slots->used) >= slots->most)
		return false;
	atomic_fetch_add(&slots->used, 1);
	atomic_fetch_add(&slots->refs, 1);
	return true;
}

void evr_slots_give(struct evr_slots *slots)
{
	if (!slots)
		return;
	atomic_fetch_sub(&slots->used, 1);
	evr_slots_unref(slots);
}
