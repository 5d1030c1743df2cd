/* Ids that the user makes with rdma_create_id(), on a channel that is the user's as well. */
#include "schedule/schedule.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>

/* --- life ------------------------------------------------------------------------------------ */

static struct foreign *foreign_new(struct world *w, unsigned home, struct rdma_cm_id *cm)
{
	struct foreign *f = thing_new(w, FOREIGN, home, sizeof(*f));

	f->cm = cm;
	cm->context = f;
	trace(w, "foreign id %u: new", f->thing.number);
	return f;
}

void foreign_take(struct world *w, unsigned home, struct rdma_cm_id *cm)
{
	if (w->ending || w->thing_count >= ENOUGH_THINGS || random_once_in(&w->random, 3))
		INSIDE(w, rdma_destroy_id(cm));
	else
		foreign_new(w, home, cm);
}

void foreign_destroy(struct foreign *f)
{
	thing_call(&f->thing, FOREIGN_DESTROY);
	thing_returned(&f->thing, FOREIGN_DESTROY, rdma_destroy_id(f->cm));
	thing_gone(&f->thing);
}

/* What comes for objects of the library's is not told here. */
void foreign_on_event(struct evrdma_base *base, const struct rdma_cm_event *event, void *arg)
{
	bool request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
	struct foreign *f = request ? event->listen_id->context : event->id->context;
	struct home *home = arg;
	struct world *w = home->thing.world;

	MUST(base == home->base, "base %u is told of another", home->thing.number);
	MUST(f, "base %u: an event of nobody's id comes", home->thing.number);
	thing_event(&f->thing, FOREIGN_EVENT);
	if (request)
		foreign_take(w, f->thing.home, event->id);
	world_act(w);
}

/* --- actions --------------------------------------------------------------------------------- */

/* Some are on a channel of their own, as those who make blocking calls have them. */
static void new_foreign(struct world *w)
{
	struct home *home = thing_pick(w, BASE, ANY_STATE);
	bool alone = random_once_in(&w->random, 4);
	struct rdma_cm_id *cm;
	int ret;

	if (!w->profile.ids || !home || !home->channel || w->ending ||
		w->thing_count >= ENOUGH_THINGS || thing_live(w, FOREIGN) >= MAX_LIVE)
		return;
	INSIDE(w, ret = rdma_create_id(alone ? NULL : home->channel, &cm, NULL, RDMA_PS_TCP));
	MUST(!ret || world_excuses(w, ret), "no id: %d", errno);
	if (!ret)
		foreign_new(w, home->thing.home, cm);
}

/* One on a channel of its own would wait for the answer. */
static bool is_on_channel(const struct foreign *f)
{
	return f->cm->channel == f->thing.world->homes[f->thing.home]->channel;
}

static void resolve(struct world *w)
{
	struct foreign *f = thing_pick(w, FOREIGN, ANY_STATE);
	struct port *port = thing_pick(w, LISTENER, ANY_STATE);
	struct sockaddr_in sin;

	if (!f || !is_on_channel(f))
		return;
	world_address(&sin, w->ip, port ? port->number : 9);
	thing_call(&f->thing, FOREIGN_RESOLVE);
	thing_returned(&f->thing, FOREIGN_RESOLVE,
		rdma_resolve_addr(f->cm, NULL, (struct sockaddr *)&sin, 20));
}

/* What the kernel says of its state is its own affair. */
static void listen_foreign(struct world *w)
{
	struct foreign *f = thing_pick(w, FOREIGN, ANY_STATE);
	struct sockaddr_in sin;
	int ret;

	if (!f)
		return;
	world_address(&sin, w->ip, 0);
	thing_call(&f->thing, FOREIGN_LISTEN);
	ret = rdma_bind_addr(f->cm, (struct sockaddr *)&sin);
	if (!ret)
		ret = rdma_listen(f->cm, 4);
	thing_returned(&f->thing, FOREIGN_LISTEN, ret);
	if (!ret)
		w->open_port = ntohs(rdma_get_src_port(f->cm));
}

static void adopt(struct world *w)
{
	struct foreign *f = thing_pick(w, FOREIGN, ANY_STATE);
	struct home *home = thing_pick(w, BASE, ANY_STATE);

	if (f && home && !w->ending && w->thing_count < ENOUGH_THINGS)
		plain_adopt(f, home);
}

static void destroy(struct world *w)
{
	struct foreign *f = thing_pick(w, FOREIGN, ANY_STATE);

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
