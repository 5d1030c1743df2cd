/*
 * What lives on a base: the CM's ids, the devices, the pools, the queues. Each keeps its own state
 * in a part that it adds to the base when that is made. The base knows of a part what is here.
 */
#ifndef EVR_EV_PART_H
#define EVR_EV_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "util/list.h"

struct ibv_context;

struct evr_dump;
struct evr_obj;
struct evr_part;
struct evrdma_base;

struct evr_part_class {
	/* The base is at its end. The part that came last goes first. */
	void (*stop)(struct evr_part *part);

	/* All that follow may be NULL. */

	/* Tells what there is to tell, as far as the budget of this turn goes; of one part only. */
	void (*tell)(struct evr_part *part);
	/* Whether there is more to tell. It goes with tell. */
	bool (*has_more)(const struct evr_part *part);
	/*
	 * Asks about the objects of other bases that use this one, until the answer is true: it
	 * does not end before they have gone.
	 */
	bool (*any_guest)(const struct evr_part *part, bool (*is)(struct evr_obj *obj));
	/* Gives up what the end of the base would take long for. Returns whether there is more. */
	bool (*shed)(struct evr_part *part, uint64_t deadline_us);
	/* The CM says that the device is being removed: of each id on it, so more than once. */
	void (*device_goes)(struct evr_part *part, const struct ibv_context *verbs);
	/* Tells what is counted. */
	void (*dump)(const struct evr_part *part, const struct evr_dump *to);
};

/* The first of the state, which is the base's to free. */
struct evr_part {
	const struct evr_part_class *cls;
	struct evrdma_base *base;
	TAILQ_ENTRY(evr_part) link;
};

TAILQ_HEAD(evr_part_list, evr_part);

void evr_part_add(
	struct evr_part *part, struct evrdma_base *base, const struct evr_part_class *cls);
/* The part of this class. */
struct evr_part *evr_part_find(const struct evrdma_base *base, const struct evr_part_class *cls);

bool evr_parts_have_more(const struct evrdma_base *base);
void evr_parts_tell(struct evrdma_base *base);
bool evr_parts_have_guest(const struct evrdma_base *base, bool (*is)(struct evr_obj *obj));
bool evr_parts_shed(struct evrdma_base *base, uint64_t deadline_us);
void evr_parts_device_goes(struct evrdma_base *base, const struct ibv_context *verbs);
void evr_parts_dump(const struct evrdma_base *base, const struct evr_dump *to);
void evr_parts_stop(struct evrdma_base *base);

#endif
