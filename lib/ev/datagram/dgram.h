/*
 * A datagram endpoint.
 *
 *   NEW --open()--> SETUP --device found, QP made--> UP
 *    any of them --failed, closed--> DOWN
 *
 * In DOWN the object is ending (obj.h): the memberships and the peers end with it, the QP is
 * flushed, the groups are left, the QP is destroyed, and when all of them are gone, the id.
 */
#ifndef EVR_EV_DGRAM_H
#define EVR_EV_DGRAM_H

#include <event2/event_struct.h>
#include <stdbool.h>

#include "ev/cm/cmid.h"
#include "ev/core/obj.h"
#include "ev/datagram/mcast.h"
#include "ev/datagram/peer.h"
#include "ev/device/ah.h"
#include "ev/queue/qp.h"

#include <evrdma/dgram.h>

enum evr_dgram_state {
	EVR_DGRAM_NEW,
	EVR_DGRAM_SETUP,
	EVR_DGRAM_UP,
	EVR_DGRAM_DOWN,
};

enum evr_dgram_end {
	EVR_DGRAM_END_START,
	EVR_DGRAM_END_DRAIN,
	EVR_DGRAM_END_LEAVE,
	EVR_DGRAM_END_QP,
	EVR_DGRAM_END_WAIT,
	EVR_DGRAM_END_ID,
};

/* Where an address of ours is in the device's table of GIDs, which a search asks for one by one. */
struct evr_own_gid {
	union ibv_gid gid;
	uint8_t next_header; /* of RoCE v1 and v2, which have an entry each */
	uint8_t index;
	uint64_t end_us; /* believed until then */
};

struct evrdma_dgram {
	struct evr_obj obj;
	struct evr_cmid cmid;
	struct evr_qp qp;
	struct evrdma_dgram_options options;

	evrdma_dgram_recv_cb recv_cb;
	evrdma_dgram_event_cb event_cb;
	void *arg;

	enum evr_dgram_state state;
	enum evr_dgram_end end;
	bool resolved; /* the next step of the setup makes the QP */
	struct sockaddr_storage src;
	struct sockaddr_storage dst;
	size_t mtu;
	uint32_t qkey; /* of the QP, and of those who send to it */
	bool is_infiniband; /* its GIDs are no IP addresses */
	struct evr_ah_cache ahs;
	struct evr_own_gid own_gids[2]; /* IPv6, IPv4 */
	struct evr_mcast_list groups;
	struct evr_peer_list peers;
	unsigned replies_held;
};

/* Where the endpoint is, with port 0. */
int evr_dgram_source(const struct evrdma_dgram *dgram, struct sockaddr_storage *src);
/* An address handle of the endpoint's device, with a reference. */
int evr_dgram_get_ah(
	struct evrdma_dgram *dgram, const struct ibv_ah_attr *attr, struct evr_ah **ah);
/* The same if none has to be asked for: -ENOENT, or why there was no answer. */
int evr_dgram_find_ah(
	struct evrdma_dgram *dgram, const struct ibv_ah_attr *attr, struct evr_ah **ah);
/* Where a datagram came from. 0 or -errno. */
int evr_dgram_sender_attr(
	struct evrdma_dgram *dgram, const struct evrdma_recv *recv, struct ibv_ah_attr *attr);
/* Sends, without another look at whether it may. */
int evr_dgram_submit(struct evrdma_dgram *dgram, struct evr_dest *dest, struct evr_send *send,
	const struct evrdma_seg *seg);
/* With all sent, an endpoint that drains is closed. */
void evr_dgram_look_drained(struct evrdma_dgram *dgram);

#endif
