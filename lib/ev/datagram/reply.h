/* Replies to senders whose hardware address has to be asked for first. */
#ifndef EVR_EV_REPLY_H
#define EVR_EV_REPLY_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct evr_send;
struct evrdma_dgram;
struct evrdma_peer;
struct evrdma_recv;
struct evrdma_seg;

/*
 * Takes a reply until its sender is found or not. 0; -EBUSY when as many replies wait for that as
 * half of the sends that the endpoint takes; or as a submit.
 */
int evr_reply_later(struct evrdma_dgram *dgram, const struct evrdma_recv *recv,
	const struct ibv_ah_attr *attr, const struct evr_send *send,
	const struct evrdma_seg *seg);
/* He is found. */
void evr_replies_submit(struct evrdma_peer *peer);
/* He is not: tells it of one reply. False: there is none. */
bool evr_replies_fail_one(struct evrdma_peer *peer);

#endif
