/*
 * A peer of an endpoint.
 *
 *   SETUP --ESTABLISHED, or made of a datagram--> READY
 *    both --failed, closed--> DOWN
 *
 * The id of the setup goes once the peer is known. A peer ends after the last of its sends, and
 * never outlives its endpoint.
 */
#ifndef EVR_EV_PEER_H
#define EVR_EV_PEER_H

#include <stdbool.h>

#include "ev/cm/cmid.h"
#include "ev/core/obj.h"
#include "ev/core/timer.h"
#include "ev/device/ah.h"
#include "util/list.h"

#include <evrdma/peer.h>

struct evr_reply;
struct evrdma_dgram;

TAILQ_HEAD(evr_reply_list, evr_reply);

enum { EVR_PEER_DATA_MAX = 180 };

enum evr_peer_state {
	EVR_PEER_SETUP,
	EVR_PEER_READY,
	EVR_PEER_DOWN,
};

/* The next step, made from the task queue. */
enum evr_peer_next {
	EVR_PEER_RESOLVE,
	EVR_PEER_FOUND,
	EVR_PEER_CONNECT,
	EVR_PEER_DROP_ID,
};

struct evrdma_peer {
	struct evr_obj obj;
	TAILQ_ENTRY(evrdma_peer) link;
	struct evrdma_dgram *dgram;
	struct evr_cmid cmid;
	evrdma_peer_event_cb cb;
	void *arg;

	enum evr_peer_state state;
	enum evr_peer_next next;
	enum evrdma_step step;
	struct evr_timer deadline;
	int timeout_ms;
	struct sockaddr_storage addr;
	unsigned char private_data[EVR_PEER_DATA_MAX];
	uint8_t private_data_len;

	/*
	 * Who sent a datagram is known but for his hardware address. The kernel asks for it when an
	 * id resolves his address, and the loop goes on meanwhile.
	 */
	bool is_sender;
	struct ibv_ah_attr attr;
	/* Of him the user knows nothing: what is to be sent to him when he is found. */
	bool hidden;
	struct evr_reply_list replies;
	int err; /* why he was not; 0: nobody asks any more */

	struct evr_dest dest;
	unsigned char peer_data[255];
	size_t peer_data_len;
};

TAILQ_HEAD(evr_peer_list, evrdma_peer);

bool evr_peer_is_ready(const struct evrdma_peer *peer);
/* A hidden one who is being asked for. 0 or -errno. */
int evr_peer_ask(struct evrdma_dgram *dgram, const struct evrdma_recv *recv,
	const struct ibv_ah_attr *attr, struct evrdma_peer **peer);
/* The endpoint ends, by a failure unless it is closed, and waits for the peer to be gone. */
void evr_peer_end_with_dgram(struct evrdma_peer *peer);

#endif
