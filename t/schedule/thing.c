/* What all objects have in common: told of nothing inside a call, and of nothing once gone. */
#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

void *thing_new(struct world *w, enum kind kind, unsigned home, size_t size)
{
	struct thing *thing = calloc(1, size);

	MUST(thing && w->thing_count < MAX_THINGS, "there is no room for one more");
	thing->world = w;
	thing->kind = kind;
	thing->home = home;
	w->things[w->thing_count++] = thing;
	thing->number = w->thing_count;
	return thing;
}

void thing_call(struct thing *thing, unsigned mark)
{
	MUST(!thing->world->in_call, "a call within a call");
	cover(thing->kind, thing->state, mark);
	trace_mix(thing->number, thing->state, mark);
	thing->world->in_call = true;
}

int thing_returned(struct thing *thing, unsigned mark, int ret)
{
	thing->world->in_call = false;
	trace_mix(thing->number, mark, (unsigned)ret);
	trace(thing->world, "%s %u (%s): %s -> %d", cover_kind_name(thing->kind), thing->number,
		cover_state_name(thing->kind, thing->state), cover_mark_name(thing->kind, mark),
		ret);
	return ret;
}

void thing_event(struct thing *thing, unsigned mark)
{
	const char *kind = cover_kind_name(thing->kind), *what = cover_mark_name(thing->kind, mark);

	world_sync(thing->world);
	trace_mix(thing->number, thing->state, mark);
	trace(thing->world, "%s %u (%s): * %s", kind, thing->number,
		cover_state_name(thing->kind, thing->state), what);
	MUST(!thing->world->in_call, "%s %u: %s came inside a call", kind, thing->number, what);
	MUST(!thing->gone, "%s %u: %s came after it was closed", kind, thing->number, what);
	cover(thing->kind, thing->state, mark);
}

void thing_gone(struct thing *thing)
{
	thing->gone = true;
}

static bool fits(const struct thing *thing, enum kind kind, unsigned states)
{
	return thing->kind == kind && !thing->gone && states & IN(thing->state);
}

void *thing_pick(struct world *w, enum kind kind, unsigned states)
{
	struct thing *thing, *picked = NULL;
	unsigned i, n = 0;

	FOR_EACH_THING(w, thing, i)
	if (fits(thing, kind, states) && random_once_in(&w->random, ++n))
		picked = thing;
	return picked;
}

unsigned thing_live(struct world *w, enum kind kind)
{
	struct thing *thing;
	unsigned i, n = 0;

	FOR_EACH_THING(w, thing, i)
	n += fits(thing, kind, ANY_STATE);
	return n;
}

struct thing *thing_numbered(struct world *w, enum kind kind, unsigned number)
{
	struct thing *thing = number && number <= w->thing_count ? w->things[number - 1] : NULL;

	return thing && thing->kind == kind ? thing : NULL;
}

void thing_check_end(struct thing *thing)
{
	MUST(thing->gone || thing->kind == REQUEST, "%s %u was never closed",
		cover_kind_name(thing->kind), thing->number);
	if (thing->kind == CONN)
		side_check_end((struct side *)thing);
}
