/* The ways to end things, when it is done, and what has to come of it. */
#include "destroy/fixture.h"

#include <check.h>
#include <errno.h>

/* --- the ends ------------------------------------------------------------------------------- */

/* A base ends everything on it. */
static void mark_ending(struct object *base)
{
	struct fixture *fixture = base->fixture;
	unsigned i;

	for (i = 0; i < fixture->num_objects; i++)
		if (fixture->objects[i].base == base)
			fixture->objects[i].ending = true;
}

/* What goes with a base, without a callback. */
static void forget_with_base(struct object *base, bool closed)
{
	struct fixture *fixture = base->fixture;
	unsigned i;

	for (i = 0; i < fixture->num_objects; i++) {
		struct object *object = &fixture->objects[i];

		if (object->base != base)
			continue;
		if (object->type == REQUEST)
			object->it = NULL;
		if (closed && !object->shared &&
			(object->type == POOL || object->type == SRQ || object->type == DOMAIN))
			object->it = NULL;
	}
}

void on_base_closed(struct evrdma_base *base, void *arg)
{
	struct object *object = arg;

	forget_with_base(object, true);
	last_point(object, ROW_BASE_CLOSED);
	object->fixture->bases--;
}

static void end_base(struct object *object)
{
	evrdma_base_close(object->it, on_base_closed, object);
	mark_ending(object);
	forget_with_base(object, false);
}

static void end_listener(struct object *object)
{
	evrdma_listener_close(object->it);
}

static void end_request(struct object *object)
{
	ck_assert_int_eq(evrdma_request_reject(object->it, "no", 3), 0);
	object->it = NULL;
}

static void end_id(struct object *object)
{
	evrdma_id_close(object->it);
}

static void end_conn(struct object *object)
{
	evrdma_conn_close(object->it);
}

static void end_dgram(struct object *object)
{
	evrdma_dgram_close(object->it);
}

static void end_mcast(struct object *object)
{
	evrdma_mcast_close(object->it);
}

static void end_peer(struct object *object)
{
	evrdma_peer_close(object->it);
}

static void end_pool(struct object *object)
{
	evrdma_pool_free(object->it);
	object->it = NULL;
}

static void end_srq(struct object *object)
{
	evrdma_srq_free(object->it);
	object->it = NULL;
}

static void end_domain(struct object *object)
{
	evrdma_domain_free(object->it);
	object->it = NULL;
}

static void end_buf(struct object *object)
{
	struct evrdma_buf *buf = object->it;

	object->it = NULL;
	evrdma_buf_unref(buf);
}

void end_object(struct object *object)
{
	static void (*const ends[TYPES])(struct object *) = {
		[BASE] = end_base,
		[LISTENER] = end_listener,
		[REQUEST] = end_request,
		[ID] = end_id,
		[CONN] = end_conn,
		[DGRAM] = end_dgram,
		[MCAST] = end_mcast,
		[PEER] = end_peer,
		[POOL] = end_pool,
		[SRQ] = end_srq,
		[DOMAIN] = end_domain,
		[BUF] = end_buf,
	};

	if (!object || !object->it)
		return;
	object->ending = true;
	ends[object->type](object);
}

/* What was up is told of it, so that it is not marked. */
void shut_down(struct object *base)
{
	int ret;

	if (!base || !base->it)
		return;
	ret = evrdma_base_shutdown(base->it, SHUTDOWN_MS, on_base_closed, base);
	MUST(ret == (base->ending || base->leaving ? -EALREADY : 0), "%s: %d", running, ret);
	base->leaving = true;
	forget_with_base(base, false);
}

/* --- the actions ---------------------------------------------------------------------------- */

static void once(struct object *victim)
{
	end_object(victim);
}

static void twice(struct object *victim)
{
	end_object(victim);
	end_object(victim);
}

static void then_its_base(struct object *victim)
{
	end_object(victim);
	end_object(victim->base);
}

static void after_its_base(struct object *victim)
{
	struct object again = *victim;

	end_object(victim->base);
	/* A request may still be answered in the callback in which its base is closed. */
	if (victim->type == REQUEST)
		end_object(&again);
	else
		end_object(victim);
}

static void while_its_base_goes(struct object *victim)
{
	shut_down(victim->base);
	end_object(victim);
}

static void shut_down_and_close(struct object *victim)
{
	shut_down(victim);
	end_object(victim);
}

const struct action actions[] = {
	{ "ended", once, OF_ALL },
	{ "ended twice", twice, OF_THOSE_THAT_STAY },
	{ "ended before its base", then_its_base, OF_THOSE_ON_A_BASE },
	{ "ended after its base", after_its_base, OF_THOSE_ON_A_BASE },
	{ "ended while its base is shut down", while_its_base_goes, OF_THOSE_ON_A_BASE },
	{ "shut down", shut_down, OF_BASES },
	{ "shut down, then closed", shut_down_and_close, OF_BASES },
};

const unsigned num_actions = sizeof(actions) / sizeof(actions[0]);

/* --- points --------------------------------------------------------------------------------- */

static void keep(struct fixture *fixture, enum row row)
{
	struct point *kept = &fixture->points[fixture->num_points];
	unsigned i;

	ck_assert_uint_lt(fixture->num_points, MAX_POINTS);
	kept->row = row;
	for (i = 0; i < fixture->num_objects; i++)
		kept->alive[i] = fixture->objects[i].it != NULL;
	fixture->num_points++;
}

static struct object *victim_of(struct fixture *fixture, enum row row)
{
	const struct plan *plan = fixture->plan;

	if (!plan->action || fixture->acted)
		return NULL;
	if (plan->state)
		return plan->row == row ? fixture->victim : NULL;
	return fixture->num_points - 1 == plan->point ? &fixture->objects[plan->object] : NULL;
}

static bool is_news(enum row row)
{
	switch (row) {
	case ROW_LISTENER_REQUEST:
	case ROW_LISTENER_ERROR:
	case ROW_ID_EVENT:
	case ROW_CONN_CONNECTED:
	case ROW_CONN_DISCONNECTED:
	case ROW_CONN_ERROR:
	case ROW_CONN_WRITABLE:
	case ROW_DGRAM_READY:
	case ROW_DGRAM_ERROR:
	case ROW_DGRAM_WRITABLE:
	case ROW_MCAST_JOINED:
	case ROW_MCAST_ERROR:
	case ROW_PEER_READY:
	case ROW_PEER_ERROR:
	case ROW_BASE_DEVICE:
		return true;
	default:
		return false;
	}
}

static void check_call(const struct object *object, enum row row)
{
	MUST(!object->fixture->in_call || row == ROW_BUF_CLEANUP, "%s: told of %s inside a call",
		running, row_infos[row].what);
	MUST(!object->closed, "%s: told of %s after it was closed", running, row_infos[row].what);
	MUST(object->it || row == ROW_BUF_CLEANUP, "%s: told of %s when it was gone", running,
		row_infos[row].what);
	MUST(!object->ending || !is_news(row), "%s: told of %s while it closes", running,
		row_infos[row].what);
}

void point(struct object *object, enum row row)
{
	struct fixture *fixture = object->fixture;
	struct object *victim;

	check_call(object, row);
	fixture->calls++;
	if (object->bystander || !fixture->playing)
		return;
	if (!fixture->acted)
		keep(fixture, row);
	victim = victim_of(fixture, row);
	if (!victim)
		return;
	fixture->acted = true;
	fixture->in_call = true;
	fixture->plan->action->end(victim);
	fixture->in_call = false;
}

void last_point(struct object *object, enum row row)
{
	point(object, row);
	object->closed++;
	object->it = NULL;
}

/* --- objects and work ----------------------------------------------------------------------- */

struct object *object_new(struct fixture *fixture, enum type type, struct object *base, void *it)
{
	struct object *object = &fixture->objects[fixture->num_objects];

	/* Before the act nothing has a reason to fail. */
	MUST(it || fixture->acted, "%s: object %d, errno %d", running, type, errno);
	if (!it)
		return NULL;
	ck_assert_uint_lt(fixture->num_objects, MAX_OBJECTS);
	fixture->num_objects++;
	object->fixture = fixture;
	object->type = type;
	object->base = base;
	object->it = it;
	object->bystander = fixture->bystanders;
	return object;
}

struct op *op_new(struct object *object, enum row good, enum row bad)
{
	struct fixture *fixture = object->fixture;
	struct op *op = &fixture->ops[fixture->num_ops++];

	ck_assert_uint_le(fixture->num_ops, MAX_OPS);
	*op = (struct op){ .object = object, .good = good, .bad = bad };
	fixture->in_call = true;
	return op;
}

int op_begun(struct op *op, int ret)
{
	struct fixture *fixture = op->object->fixture;

	fixture->in_call = false;
	MUST(!ret || ret == -EAGAIN || fixture->acted, "%s: %d", running, ret);
	op->taken = !ret;
	return ret;
}

void op_told(struct op *op, bool failed)
{
	MUST(op->taken && !op->told, "%s: %s, told %u times", running,
		row_infos[failed ? op->bad : op->good].what, op->told + 1);
	op->told++;
	point(op->object, failed ? op->bad : op->good);
}
