#include "ev/datagram/reply.h"

#include <errno.h>
#include <stdlib.h>

#include "ev/core/error.h"
#include "ev/datagram/dgram.h"
#include "ev/datagram/peer.h"

struct evr_reply {
	TAILQ_ENTRY(evr_reply) link;
	struct evr_send send;
	struct evrdma_seg seg; /* with a reference to its buffer */
};

/* --- waiting -------------------------------------------------------------------------------- */

static struct evrdma_peer *find(struct evrdma_dgram *dgram, const struct ibv_ah_attr *attr)
{
	struct evrdma_peer *peer;

	TAILQ_FOREACH (peer, &dgram->peers, link)
		if (peer->hidden && peer->state == EVR_PEER_SETUP &&
			evr_ah_same_attr(&peer->attr, attr))
			break;
	return peer;
}

/* Whoever forges addresses is not to take all the room of those who do not. */
static bool may_hold(const struct evrdma_dgram *dgram)
{
	return !dgram->replies_held || dgram->replies_held < dgram->qp.capacity / 2;
}

static struct evr_reply *make(const struct evr_send *send, const struct evrdma_seg *seg)
{
	struct evr_reply *reply = calloc(1, sizeof(*reply));

	if (!reply)
		return NULL;
	reply->send = *send;
	reply->seg = *seg;
	return reply;
}

static int hold(struct evrdma_dgram *dgram, struct evrdma_peer *peer, struct evr_reply *reply)
{
	int ret = evr_qp_reserve_send(&dgram->qp, &reply->send, reply->seg.len);

	if (ret)
		return ret;
	evrdma_buf_ref(reply->seg.buf);
	TAILQ_INSERT_TAIL(&peer->replies, reply, link);
	dgram->replies_held++;
	return 0;
}

int evr_reply_later(struct evrdma_dgram *dgram, const struct evrdma_recv *recv,
	const struct ibv_ah_attr *attr, const struct evr_send *send, const struct evrdma_seg *seg)
{
	struct evrdma_peer *peer;
	struct evr_reply *reply;
	int ret;

	if (!may_hold(dgram))
		return -EBUSY;
	peer = find(dgram, attr);
	reply = make(send, seg);
	if (!reply)
		return -ENOMEM;
	reply->send.wr.ud.remote_qpn = recv->src_qp;
	ret = peer ? 0 : evr_peer_ask(dgram, recv, attr, &peer);
	if (!ret)
		ret = hold(dgram, peer, reply);
	if (ret)
		free(reply);
	return ret;
}

/* --- the end of it -------------------------------------------------------------------------- */

static struct evr_reply *take(struct evrdma_peer *peer)
{
	struct evr_reply *reply = TAILQ_FIRST(&peer->replies);

	if (!reply)
		return NULL;
	TAILQ_REMOVE(&peer->replies, reply, link);
	peer->dgram->replies_held--;
	evr_qp_unreserve_send(&peer->dgram->qp);
	return reply;
}

static void drop(struct evr_reply *reply)
{
	evrdma_buf_unref(reply->seg.buf);
	free(reply);
}

static void fail(struct evrdma_dgram *dgram, struct evr_reply *reply, int err)
{
	evrdma_dgram_send_cb cb = (evrdma_dgram_send_cb)reply->send.cb;
	struct evrdma_error error;

	evr_error_set(&error, err, err == ECANCELED ? EVRDMA_STEP_TRANSFER : EVRDMA_STEP_ADDR);
	evr_qp_count_ended(&dgram->qp, &error);
	if (cb)
		cb(dgram, reply->seg.buf, &error, reply->send.arg);
	drop(reply);
	evr_qp_tell_writable(&dgram->qp);
	evr_dgram_look_drained(dgram);
}

void evr_replies_submit(struct evrdma_peer *peer)
{
	struct evrdma_dgram *dgram = peer->dgram;
	struct evr_reply *reply;

	while ((reply = take(peer))) {
		struct evr_dest sender = { .ah = peer->dest.ah,
			.qp_num = reply->send.wr.ud.remote_qpn,
			.qkey = dgram->qkey };
		int ret = evr_dgram_submit(dgram, &sender, &reply->send, &reply->seg);

		if (ret)
			fail(dgram, reply, -ret);
		else
			drop(reply);
	}
}

bool evr_replies_fail_one(struct evrdma_peer *peer)
{
	struct evr_reply *reply = take(peer);

	if (reply)
		fail(peer->dgram, reply, peer->err ? peer->err : ECANCELED);
	return reply;
}
