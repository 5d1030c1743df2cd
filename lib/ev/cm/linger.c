#include "ev/cm/linger.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>

#include "ev/cm/channel.h"
#include "ev/cm/cmid.h"
#include "ev/cm/slots.h"
#include "ev/core/base.h"
#include "ev/core/obj.h"
#include "ev/core/timer.h"
#include "util/clock.h"

enum {
	CLOSING_MS = 1000,
	/*
	 * The kernel's cm_destroy_id() calls its question back, but waits for a frame of it that
	 * has not left: rxe sends no more while 64 frames of its CM wait for the hardware address
	 * of a neighbour (RXE_INFLIGHT_SKBS_PER_QP_HIGH), three seconds if nobody answers. As many
	 * questions as this do not come near to that.
	 */
	FEW = 32,
	STUCK_US = 100000, /* takes whoever destroys an id in that case, and much more */
};

struct evr_lingering {
	struct evr_obj obj;
	struct evr_cmid cmid;
	struct evr_lingering **link; /* what its connection knows it by, while that is there */
	struct evr_slots *slots;     /* of the listener, or NULL: one is ours */
	struct evr_timer slot_timer;
	struct evr_timer timer; /* of a base that is closing */
	bool due;
	bool over; /* for the kernel: to destroy it takes no time */
};

static void on_over(struct evr_lingering *linger)
{
	linger->over = true;
	evr_obj_close(&linger->obj);
	evr_obj_continue(&linger->obj);
}

static void on_event(struct evr_cmid *cmid, const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_DISCONNECTED ||
		event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		on_over(evr_container_of(cmid, struct evr_lingering, cmid));
}

static void on_lost(struct evr_cmid *cmid, int err)
{
	on_over(evr_container_of(cmid, struct evr_lingering, cmid));
}

static const struct evr_cmid_ops cmid_ops = { .event = on_event, .lost = on_lost };

static void give_slot(struct evr_lingering *linger)
{
	evr_timer_stop(&linger->slot_timer);
	evr_slots_give(linger->slots);
	linger->slots = NULL;
}

static void on_slot_timer(evutil_socket_t fd, short what, void *arg)
{
	give_slot(arg);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct evr_lingering *linger = arg;

	linger->due = true;
	evr_obj_continue(&linger->obj);
}

static bool port_is_up(const struct rdma_cm_id *cm)
{
	struct ibv_port_attr port;

	return ibv_query_port(cm->verbs, cm->port_num, &port) || port.state == IBV_PORT_ACTIVE;
}

/* The kernel has many questions that it may not even get to ask. */
static bool is_stuck(const struct evr_lingering *linger)
{
	const struct evrdma_base *base = linger->obj.base;

	return base->stats.ids_lingering > FEW &&
		(evr_channel_of(base)->linger_stuck || !port_is_up(linger->cmid.cm));
}

static void destroy(struct evr_lingering *linger)
{
	uint64_t since_us = evr_clock_now_us();

	evr_timer_stop(&linger->timer);
	evr_cmid_destroy(&linger->cmid);
	if (evr_clock_now_us() - since_us > STUCK_US)
		evr_channel_of(linger->obj.base)->linger_stuck = true;
}

static int linger_end(struct evr_obj *obj)
{
	struct evr_lingering *linger = evr_container_of(obj, struct evr_lingering, obj);

	if (linger->over || (linger->due && !is_stuck(linger))) {
		destroy(linger);
		return 0;
	}
	linger->due = false;
	if (!evr_timer_runs(&linger->timer))
		evr_timer_start(&linger->timer, CLOSING_MS);
	return -EINPROGRESS;
}

static void linger_closed(struct evr_obj *obj)
{
	struct evr_lingering *linger = evr_container_of(obj, struct evr_lingering, obj);

	obj->base->stats.ids_lingering--;
	give_slot(linger);
	if (linger->link)
		*linger->link = NULL;
}

static void linger_free(struct evr_obj *obj)
{
	free(evr_container_of(obj, struct evr_lingering, obj));
}

static const struct evr_obj_class linger_class = {
	.end = linger_end,
	.closed = linger_closed,
	.free = linger_free,
};

int evr_linger(struct evr_cmid *cmid, struct evr_lingering **link)
{
	struct evr_lingering *linger = calloc(1, sizeof(*linger));
	int ret;

	if (!linger)
		return -ENOMEM;
	ret = evr_obj_init(&linger->obj, cmid->base, &linger_class);
	if (ret) {
		free(linger);
		return ret;
	}
	linger->cmid.owner = &linger->obj;
	linger->cmid.ops = &cmid_ops;
	linger->link = link;
	*link = linger;
	evr_timer_assign(&linger->slot_timer, cmid->base, on_slot_timer, linger);
	evr_timer_assign(&linger->timer, cmid->base, on_timer, linger);
	evr_cmid_hand_over(cmid, &linger->cmid);
	linger->obj.base->stats.ids_lingering++;
	return 0;
}

void evr_linger_keep_slot(struct evr_lingering *linger, struct evr_slots *slots, int ms)
{
	linger->link = NULL;
	linger->slots = slots;
	evr_timer_start(&linger->slot_timer, ms);
}
