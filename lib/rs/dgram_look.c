/* What there is news of: in the queues at any time, elsewhere when a call says so. */
#include "rs/dgram.h"

#include <sys/epoll.h>

#include "util/clock.h"

enum {
	LOOK_US = 1000,	   /* how often to ask, when there is little to be expected */
	EXPECT_US = 10000, /* for how long there is more */
	EVENTS = 8,
};

/* That one has failed is news: what waited for a place in it goes by UDP. */
static bool poll_queues(struct evr_rs *rs)
{
	struct evr_rs_ud *ud;
	bool any = false;

	TAILQ_FOREACH (ud, &rs->dgram->uds, link) {
		any |= evr_rs_ud_poll_recv(ud);
		if (evr_rs_ud_waits_for_sends(ud))
			any |= evr_rs_ud_poll_send(ud);
		if (!ud->broken)
			continue;
		evr_rs_ud_stop(ud);
		any = true;
	}
	return any;
}

static bool look_at_udp(struct evr_rs *rs, uint32_t events)
{
	bool any = evr_rs_udp_read(rs);

	if (!(events & EPOLLOUT) || !rs->dgram->udp_full)
		return any;
	evr_rs_udp_set_full(rs, false);
	return true;
}

static bool look_at(struct evr_rs *rs, const struct epoll_event *event)
{
	if (event->data.ptr == rs->dgram)
		return look_at_udp(rs, event->events);
	if (event->data.ptr == rs)
		return evr_rs_read_events(rs);
	return evr_rs_ud_take_event(event->data.ptr);
}

/* A queue pair may end by an event of the CM, but not be freed: the others stay what they are. */
bool evr_rs_dgram_look(struct evr_rs *rs)
{
	struct epoll_event events[EVENTS];
	int num = epoll_wait(rs->dgram->epoll_fd, events, EVENTS, 0), i;
	bool any = false;

	for (i = 0; i < num; i++)
		any |= look_at(rs, &events[i]);
	return poll_queues(rs) || any;
}

void evr_rs_dgram_expect(struct evr_rs *rs)
{
	rs->dgram->quiet_us = evr_clock_now_us() + EXPECT_US;
}

/* Queues that are never empty do not keep it from the rest. */
bool evr_rs_dgram_progress(struct evr_rs *rs)
{
	struct evr_rs_dgram *dgram = rs->dgram;
	bool any = poll_queues(rs);
	uint64_t now = evr_clock_now_us();

	if (now < dgram->look_us && (any || now >= dgram->quiet_us))
		return any;
	dgram->look_us = now + LOOK_US;
	return evr_rs_dgram_look(rs) || any;
}

void evr_rs_dgram_arm(struct evr_rs *rs)
{
	struct evr_rs_ud *ud;

	TAILQ_FOREACH (ud, &rs->dgram->uds, link)
		evr_rs_ud_arm(ud);
}

void evr_rs_dgram_event(struct evr_rs *rs, const struct evr_rs_event *event)
{
	struct evr_rs_ud *ud;

	TAILQ_FOREACH (ud, &rs->dgram->uds, link) {
		if (ud->id != event->id)
			continue;
		if (event->type == RDMA_CM_EVENT_DEVICE_REMOVAL)
			evr_rs_ud_stop(ud);
		return;
	}
	evr_rs_dest_event(rs, event->id->context, event);
}
