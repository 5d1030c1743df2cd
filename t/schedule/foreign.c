/* Ids that the user makes with rdma_create_id(), on a channel that is the user's as well. */
#include "schedule/schedule.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>

/* --- life ------------------------------------------------------------------------------------ */

static struct foreign *foreign_new(struct schedule *s, unsigned owner, struct rdma_cm_id *cm)
{
	struct foreign *f = object_new(s, FOREIGN, owner, sizeof(*f));

	f->cm = cm;
	cm->context = f;
	trace(s, "foreign id %u: new", f->object.number);
	return f;
}

void foreign_take(struct schedule *s, unsigned owner, struct rdma_cm_id *cm)
{
	if (s->ending || s->object_count >= ENOUGH_OBJECTS || random_once_in(&s->random, 3))
		INSIDE(s, rdma_destroy_id(cm));
	else
		foreign_new(s, owner, cm);
}

void foreign_destroy(struct foreign *f)
{
	object_call(&f->object, FOREIGN_DESTROY);
	object_returned(&f->object, FOREIGN_DESTROY, rdma_destroy_id(f->cm));
	object_gone(&f->object);
}

/* What comes for objects of the library's is not told here. */
void foreign_on_event(struct evrdma_base *base, const struct rdma_cm_event *event, void *arg)
{
	bool request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
	struct foreign *f = request ? event->listen_id->context : event->id->context;
	struct owner *owner = arg;
	struct schedule *s = owner->object.schedule;

	MUST(base == owner->base, "base %u is told of another", owner->object.number);
	MUST(f, "base %u: an event of nobody's id comes", owner->object.number);
	object_event(&f->object, FOREIGN_EVENT);
	if (request)
		foreign_take(s, f->object.owner, event->id);
	schedule_act(s);
}

/* --- actions --------------------------------------------------------------------------------- */

/* Some are on a channel of their own, as those who make blocking calls have them. */
static void new_foreign(struct schedule *s)
{
	struct owner *owner = object_pick(s, BASE, ANY_STATE);
	bool alone = random_once_in(&s->random, 4);
	struct rdma_cm_id *cm;
	int ret;

	if (!s->profile.ids || !owner || !owner->channel || s->ending ||
		s->object_count >= ENOUGH_OBJECTS || object_live(s, FOREIGN) >= MAX_LIVE)
		return;
	INSIDE(s, ret = rdma_create_id(alone ? NULL : owner->channel, &cm, NULL, RDMA_PS_TCP));
	MUST(!ret || schedule_excuses(s, ret), "no id: %d", errno);
	if (!ret)
		foreign_new(s, owner->object.owner, cm);
}

/* One on a channel of its own would wait for the answer. */
static bool is_on_channel(const struct foreign *f)
{
	return f->cm->channel == f->object.schedule->owners[f->object.owner]->channel;
}

static void resolve(struct schedule *s)
{
	struct foreign *f = object_pick(s, FOREIGN, ANY_STATE);
	struct port *port = object_pick(s, LISTENER, ANY_STATE);
	struct sockaddr_in sin;

	if (!f || !is_on_channel(f))
		return;
	schedule_address(&sin, s->ip, port ? port->number : 9);
	object_call(&f->object, FOREIGN_RESOLVE);
	object_returned(&f->object, FOREIGN_RESOLVE,
		rdma_resolve_addr(f->cm, NULL, (struct sockaddr *)&sin, 20));
}

/* What the kernel says of its state is its own affair. */
static void listen_foreign(struct schedule *s)
{
	struct foreign *f = object_pick(s, FOREIGN, ANY_STATE);
	struct sockaddr_in sin;
	int ret;

	if (!f)
		return;
	schedule_address(&sin, s->ip, 0);
	object_call(&f->object, FOREIGN_LISTEN);
	ret = rdma_bind_addr(f->cm, (struct sockaddr *)&sin);
	if (!ret)
		ret = rdma_listen(f->cm, 4);
	object_returned(&f->object, FOREIGN_LISTEN, ret);
	if (!ret)
		s->open_port = ntohs(rdma_get_src_port(f->cm));
}

static void adopt(struct schedule *s)
{
	struct foreign *f = object_pick(s, FOREIGN, ANY_STATE);
	struct owner *owner = object_pick(s, BASE, ANY_STATE);

	if (f && owner && !s->ending && s->object_count < ENOUGH_OBJECTS)
		plain_adopt(f, owner);
}

static void destroy(struct schedule *s)
{
	struct foreign *f = object_pick(s, FOREIGN, ANY_STATE);

	if (f)
		foreign_destroy(f);
}

const struct action foreign_actions[] = {
	{ "new foreign id", 3, new_foreign },
	{ "resolve foreign id", 4, resolve },
	{ "listen with foreign id", 2, listen_foreign },
	{ "adopt", 5, adopt },
	{ "destroy foreign id", 1, destroy },
	{ 0 },
};
