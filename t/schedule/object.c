/* What all objects have in common: told of nothing inside a call, and of nothing once gone. */
#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

void *object_new(struct schedule *s, enum kind kind, unsigned owner, size_t size)
{
	struct object *object = calloc(1, size);

	MUST(object && s->object_count < MAX_OBJECTS, "there is no room for one more");
	object->schedule = s;
	object->kind = kind;
	object->owner = owner;
	s->objects[s->object_count++] = object;
	object->number = s->object_count;
	return object;
}

void object_call(struct object *object, unsigned mark)
{
	MUST(!object->schedule->in_call, "a call within a call");
	cover(object->kind, object->state, mark);
	trace_mix(object->number, object->state, mark);
	object->schedule->in_call = true;
}

int object_returned(struct object *object, unsigned mark, int ret)
{
	object->schedule->in_call = false;
	trace_mix(object->number, mark, (unsigned)ret);
	trace(object->schedule, "%s %u (%s): %s -> %d", cover_kind_name(object->kind),
		object->number, cover_state_name(object->kind, object->state),
		cover_mark_name(object->kind, mark), ret);
	return ret;
}

void object_event(struct object *object, unsigned mark)
{
	const char *kind = cover_kind_name(object->kind),
		   *what = cover_mark_name(object->kind, mark);

	schedule_sync(object->schedule);
	trace_mix(object->number, object->state, mark);
	trace(object->schedule, "%s %u (%s): * %s", kind, object->number,
		cover_state_name(object->kind, object->state), what);
	MUST(!object->schedule->in_call, "%s %u: %s came inside a call", kind, object->number,
		what);
	MUST(!object->gone, "%s %u: %s came after it was closed", kind, object->number, what);
	cover(object->kind, object->state, mark);
}

void object_gone(struct object *object)
{
	object->gone = true;
}

static bool fits(const struct object *object, enum kind kind, unsigned states)
{
	return object->kind == kind && !object->gone && states & IN(object->state);
}

void *object_pick(struct schedule *s, enum kind kind, unsigned states)
{
	struct object *object, *picked = NULL;
	unsigned i, n = 0;

	FOR_EACH_OBJECT(s, object, i)
	if (fits(object, kind, states) && random_once_in(&s->random, ++n))
		picked = object;
	return picked;
}

unsigned object_live(struct schedule *s, enum kind kind)
{
	struct object *object;
	unsigned i, n = 0;

	FOR_EACH_OBJECT(s, object, i)
	n += fits(object, kind, ANY_STATE);
	return n;
}

struct object *object_numbered(struct schedule *s, enum kind kind, unsigned number)
{
	struct object *object = number && number <= s->object_count ? s->objects[number - 1] : NULL;

	return object && object->kind == kind ? object : NULL;
}

void object_check_end(struct object *object)
{
	MUST(object->gone || object->kind == REQUEST, "%s %u was never closed",
		cover_kind_name(object->kind), object->number);
	if (object->kind == CONN)
		connection_check_end((struct connection *)object);
}
