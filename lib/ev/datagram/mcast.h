/*
 * A membership.
 *
 *   JOINING --MULTICAST_JOIN--> MEMBER
 *    both --failed, left, closed--> DOWN
 *
 * It ends after the last of its sends, and never outlives its endpoint.
 */
#ifndef EVR_EV_MCAST_H
#define EVR_EV_MCAST_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>

#include "ev/core/obj.h"
#include "ev/core/timer.h"
#include "ev/device/ah.h"
#include "util/list.h"

#include <evrdma/mcast.h>

struct evrdma_dgram;

enum evr_mcast_state {
	EVR_MCAST_JOINING,
	EVR_MCAST_MEMBER,
	EVR_MCAST_DOWN,
};

struct evrdma_mcast {
	struct evr_obj obj;
	TAILQ_ENTRY(evrdma_mcast) link;
	struct evrdma_dgram *dgram;
	evrdma_mcast_event_cb cb;
	void *arg;

	enum evr_mcast_state state;
	struct sockaddr_storage addr;
	unsigned flags;
	bool asked; /* the CM was asked to join, so it must be asked to leave */
	bool joined;
	struct evr_timer deadline;
	struct ibv_ah_attr ah_attr;
	struct evr_dest dest;
};

TAILQ_HEAD(evr_mcast_list, evrdma_mcast);

void evr_mcast_on_event(struct evrdma_dgram *dgram, const struct rdma_cm_event *event);
bool evr_mcast_is_member(const struct evrdma_mcast *group);
/* Asks the CM to leave, if it was asked to join. */
void evr_mcast_leave(struct evrdma_mcast *group);
/* The endpoint ends, by a failure unless it is closed, and waits for the group to be gone. */
void evr_mcast_end_with_dgram(struct evrdma_mcast *group);

#endif
