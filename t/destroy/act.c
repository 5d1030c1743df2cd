/* The ways to end things, when it is done, and what has to come of it. */
#include "destroy/stage.h"

#include <check.h>
#include <errno.h>

/* --- the ends ------------------------------------------------------------------------------- */

/* A base ends everything on it. */
static void mark_ending(struct actor *base)
{
	struct stage *stage = base->stage;
	unsigned i;

	for (i = 0; i < stage->num_actors; i++)
		if (stage->actors[i].base == base)
			stage->actors[i].ending = true;
}

/* What goes with a base, without a callback. */
static void forget_with_base(struct actor *base, bool closed)
{
	struct stage *stage = base->stage;
	unsigned i;

	for (i = 0; i < stage->num_actors; i++) {
		struct actor *actor = &stage->actors[i];

		if (actor->base != base)
			continue;
		if (actor->object == REQUEST)
			actor->it = NULL;
		if (closed &&
			(actor->object == POOL || actor->object == SRQ || actor->object == DOMAIN))
			actor->it = NULL;
	}
}

void on_base_closed(struct evrdma_base *base, void *arg)
{
	struct actor *actor = arg;

	forget_with_base(actor, true);
	last_moment(actor, ROW_BASE_CLOSED);
	actor->stage->bases--;
}

static void end_base(struct actor *actor)
{
	evrdma_base_close(actor->it, on_base_closed, actor);
	mark_ending(actor);
	forget_with_base(actor, false);
}

static void end_listener(struct actor *actor)
{
	evrdma_listener_close(actor->it);
}

static void end_request(struct actor *actor)
{
	ck_assert_int_eq(evrdma_request_reject(actor->it, "no", 3), 0);
	actor->it = NULL;
}

static void end_id(struct actor *actor)
{
	evrdma_id_close(actor->it);
}

static void end_conn(struct actor *actor)
{
	evrdma_conn_close(actor->it);
}

static void end_dgram(struct actor *actor)
{
	evrdma_dgram_close(actor->it);
}

static void end_mcast(struct actor *actor)
{
	evrdma_mcast_close(actor->it);
}

static void end_peer(struct actor *actor)
{
	evrdma_peer_close(actor->it);
}

static void end_pool(struct actor *actor)
{
	evrdma_pool_free(actor->it);
	actor->it = NULL;
}

static void end_srq(struct actor *actor)
{
	evrdma_srq_free(actor->it);
	actor->it = NULL;
}

static void end_domain(struct actor *actor)
{
	evrdma_domain_free(actor->it);
	actor->it = NULL;
}

static void end_buf(struct actor *actor)
{
	struct evrdma_buf *buf = actor->it;

	actor->it = NULL;
	evrdma_buf_unref(buf);
}

void end_actor(struct actor *actor)
{
	static void (*const ends[OBJECTS])(struct actor *) = {
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

	if (!actor || !actor->it)
		return;
	actor->ending = true;
	ends[actor->object](actor);
}

/* What was up is told of it, so that it is not marked. */
void shut_down(struct actor *base)
{
	int ret;

	if (!base || !base->it)
		return;
	ret = evrdma_base_shutdown(base->it, SHUTDOWN_MS, on_base_closed, base);
	ck_assert_msg(
		ret == (base->ending || base->leaving ? -EALREADY : 0), "%s: %d", running, ret);
	base->leaving = true;
	forget_with_base(base, false);
}

/* --- the acts ------------------------------------------------------------------------------- */

static void once(struct actor *victim)
{
	end_actor(victim);
}

static void twice(struct actor *victim)
{
	end_actor(victim);
	end_actor(victim);
}

static void then_its_base(struct actor *victim)
{
	end_actor(victim);
	end_actor(victim->base);
}

static void after_its_base(struct actor *victim)
{
	struct actor again = *victim;

	end_actor(victim->base);
	/* A request may still be answered in the callback in which its base is closed. */
	if (victim->object == REQUEST)
		end_actor(&again);
	else
		end_actor(victim);
}

static void while_its_base_goes(struct actor *victim)
{
	shut_down(victim->base);
	end_actor(victim);
}

static void shut_down_and_close(struct actor *victim)
{
	shut_down(victim);
	end_actor(victim);
}

const struct act acts[] = {
	{ "ended", once, OF_ALL },
	{ "ended twice", twice, OF_THOSE_THAT_STAY },
	{ "ended before its base", then_its_base, OF_THOSE_ON_A_BASE },
	{ "ended after its base", after_its_base, OF_THOSE_ON_A_BASE },
	{ "ended while its base is shut down", while_its_base_goes, OF_THOSE_ON_A_BASE },
	{ "shut down", shut_down, OF_BASES },
	{ "shut down, then closed", shut_down_and_close, OF_BASES },
};

const unsigned num_acts = sizeof(acts) / sizeof(acts[0]);

/* --- moments -------------------------------------------------------------------------------- */

static void keep(struct stage *stage, enum row row)
{
	struct moment *kept = &stage->moments[stage->num_moments];
	unsigned i;

	ck_assert_uint_lt(stage->num_moments, MAX_MOMENTS);
	kept->row = row;
	for (i = 0; i < stage->num_actors; i++)
		kept->alive[i] = stage->actors[i].it != NULL;
	stage->num_moments++;
}

static struct actor *victim_of(struct stage *stage, enum row row)
{
	const struct plan *plan = stage->plan;

	if (!plan->act || stage->acted)
		return NULL;
	if (plan->state)
		return plan->row == row ? stage->victim : NULL;
	return stage->num_moments - 1 == plan->moment ? &stage->actors[plan->actor] : NULL;
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

static void check_call(const struct actor *actor, enum row row)
{
	ck_assert_msg(!actor->stage->in_call || row == ROW_BUF_CLEANUP,
		"%s: told of %s inside a call", running, row_infos[row].what);
	ck_assert_msg(
		!actor->closed, "%s: told of %s after it was closed", running, row_infos[row].what);
	ck_assert_msg(actor->it || row == ROW_BUF_CLEANUP, "%s: told of %s when it was gone",
		running, row_infos[row].what);
	ck_assert_msg(!actor->ending || !is_news(row), "%s: told of %s while it closes", running,
		row_infos[row].what);
}

void moment(struct actor *actor, enum row row)
{
	struct stage *stage = actor->stage;
	struct actor *victim;

	check_call(actor, row);
	stage->calls++;
	if (actor->bystander || !stage->playing)
		return;
	if (!stage->acted)
		keep(stage, row);
	victim = victim_of(stage, row);
	if (!victim)
		return;
	stage->acted = true;
	stage->in_call = true;
	stage->plan->act->end(victim);
	stage->in_call = false;
}

void last_moment(struct actor *actor, enum row row)
{
	moment(actor, row);
	actor->closed++;
	actor->it = NULL;
}

/* --- actors and work ------------------------------------------------------------------------ */

struct actor *actor_new(struct stage *stage, enum object object, struct actor *base, void *it)
{
	struct actor *actor = &stage->actors[stage->num_actors];

	/* Before the act nothing has a reason to fail. */
	ck_assert_msg(it || stage->acted, "%s: object %d, errno %d", running, object, errno);
	if (!it)
		return NULL;
	ck_assert_uint_lt(stage->num_actors, MAX_ACTORS);
	stage->num_actors++;
	actor->stage = stage;
	actor->object = object;
	actor->base = base;
	actor->it = it;
	actor->bystander = stage->bystanders;
	return actor;
}

struct op *op_new(struct actor *actor, enum row good, enum row bad)
{
	struct stage *stage = actor->stage;
	struct op *op = &stage->ops[stage->num_ops++];

	ck_assert_uint_le(stage->num_ops, MAX_OPS);
	*op = (struct op){ .actor = actor, .good = good, .bad = bad };
	stage->in_call = true;
	return op;
}

int op_begun(struct op *op, int ret)
{
	struct stage *stage = op->actor->stage;

	stage->in_call = false;
	ck_assert_msg(!ret || ret == -EAGAIN || stage->acted, "%s: %d", running, ret);
	op->taken = !ret;
	return ret;
}

void op_told(struct op *op, bool failed)
{
	ck_assert_msg(op->taken && !op->told, "%s: %s, told %u times", running,
		row_infos[failed ? op->bad : op->good].what, op->told + 1);
	op->told++;
	moment(op->actor, failed ? op->bad : op->good);
}
