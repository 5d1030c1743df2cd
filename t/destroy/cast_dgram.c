/* Endpoints, their groups and peers, ids of the thin layer, and what they are told. */
#include "destroy/stage.h"

#include <check.h>
#include <rdma/rdma_cma.h>
#include <string.h>

/* --- endpoints ------------------------------------------------------------------------------ */

static void on_endpoint_event(struct evrdma_dgram *it, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg)
{
	struct actor *endpoint = arg;

	switch (event) {
	case EVRDMA_DGRAM_READY:
		moment(endpoint, ROW_DGRAM_READY);
		break;
	case EVRDMA_DGRAM_ERROR:
		endpoint->ended++;
		moment(endpoint, ROW_DGRAM_ERROR);
		break;
	case EVRDMA_DGRAM_WRITABLE:
		moment(endpoint, ROW_DGRAM_WRITABLE);
		break;
	case EVRDMA_DGRAM_CLOSED:
		last_moment(endpoint, ROW_DGRAM_CLOSED);
		break;
	case EVRDMA_DGRAM_ADDR_CHANGED:
		break;
	}
}

static void on_datagram(struct evrdma_dgram *it, const struct evrdma_recv *recv, void *arg)
{
	moment(arg, ROW_DGRAM_RECV);
}

struct actor *make_endpoint(struct actor *base, struct actor *pool)
{
	struct evrdma_dgram_options options;
	struct actor *endpoint;

	if (!base || !base->it || !pool || !pool->it)
		return NULL;
	evrdma_dgram_options_init(&options);
	options.recv_pool = pool->it;
	options.recv_depth = options.send_depth = 4;
	options.drain_timeout_ms = 20;
	endpoint = actor_new(base->stage, DGRAM, base, evrdma_dgram_new(base->it, &options));
	if (endpoint)
		evrdma_dgram_setcb(endpoint->it, on_datagram, on_endpoint_event, endpoint);
	return endpoint;
}

void endpoint_open(struct actor *endpoint, const char *src, const char *dst)
{
	struct sockaddr_in from, to;

	if (!endpoint || !endpoint->it)
		return;
	if (src)
		memcpy(&from, address(src, 0), sizeof(from));
	if (dst)
		memcpy(&to, address(dst, 0), sizeof(to));
	op_begun(&(struct op){ .actor = endpoint },
		evrdma_dgram_open(endpoint->it, src ? (struct sockaddr *)&from : NULL,
			dst ? (struct sockaddr *)&to : NULL));
}

struct actor *make_ready_endpoint(struct stage *stage, enum fake_kind kind)
{
	struct actor *endpoint = make_endpoint(stage->base, stage->pool);

	endpoint_open(endpoint, stage_ip(kind), NULL);
	stage_settle(stage);
	return endpoint;
}

static void on_datagram_sent(struct evrdma_dgram *it, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	op_told(arg, error != NULL);
}

static int send_one(struct actor *endpoint, struct actor *group, struct actor *peer,
	struct evrdma_buf *buf, struct op *op)
{
	if (group)
		return evrdma_dgram_send(
			endpoint->it, group->it, buf, MESSAGE, NULL, on_datagram_sent, op);
	return evrdma_dgram_send_to(
		endpoint->it, peer->it, buf, MESSAGE, NULL, on_datagram_sent, op);
}

void endpoint_send(struct actor *endpoint, struct actor *group, struct actor *peer, unsigned n)
{
	struct actor *to = group ? group : peer;

	while (n-- && endpoint && endpoint->it && to && to->it && endpoint->stage->pool->it) {
		struct op *op = op_new(endpoint, ROW_DGRAM_SENT, ROW_DGRAM_SEND_FAILED);
		struct evrdma_buf *buf = evrdma_pool_get(endpoint->stage->pool->it);

		ck_assert_ptr_nonnull(buf);
		memset(evrdma_buf_data(buf), 0x5a, MESSAGE);
		op_begun(op, send_one(endpoint, group, peer, buf, op));
		evrdma_buf_unref(buf);
	}
}

/* --- groups and peers ----------------------------------------------------------------------- */

static void on_group_event(struct evrdma_mcast *it, enum evrdma_mcast_event event,
	const struct evrdma_error *error, void *arg)
{
	struct actor *group = arg;

	switch (event) {
	case EVRDMA_MCAST_JOINED:
		moment(group, ROW_MCAST_JOINED);
		break;
	case EVRDMA_MCAST_ERROR:
		group->ended++;
		moment(group, ROW_MCAST_ERROR);
		break;
	case EVRDMA_MCAST_CLOSED:
		last_moment(group, ROW_MCAST_CLOSED);
		break;
	}
}

struct actor *join(struct actor *endpoint)
{
	struct stage *stage;
	struct actor *group;

	if (!endpoint || !endpoint->it)
		return NULL;
	stage = endpoint->stage;
	group = &stage->actors[stage->num_actors];
	return actor_new(stage, MCAST, endpoint->base,
		evrdma_mcast_join(endpoint->it, address("239.1.2.3", 0), 0, on_group_event, group));
}

static void on_peer_event(struct evrdma_peer *it, enum evrdma_peer_event event,
	const struct evrdma_error *error, void *arg)
{
	struct actor *peer = arg;

	switch (event) {
	case EVRDMA_PEER_READY:
		moment(peer, ROW_PEER_READY);
		break;
	case EVRDMA_PEER_ERROR:
		peer->ended++;
		moment(peer, ROW_PEER_ERROR);
		break;
	case EVRDMA_PEER_CLOSED:
		last_moment(peer, ROW_PEER_CLOSED);
		break;
	}
}

struct actor *find_peer(struct actor *endpoint, const struct actor *listener, enum fake_kind kind)
{
	struct stage *stage;
	struct actor *peer;
	uint16_t port;

	if (!endpoint || !endpoint->it || !listener || !listener->it)
		return NULL;
	stage = endpoint->stage;
	peer = &stage->actors[stage->num_actors];
	port = evrdma_listener_get_port(listener->it);
	return actor_new(stage, PEER, endpoint->base,
		evrdma_peer_new(
			endpoint->it, address(stage_ip(kind), port), NULL, on_peer_event, peer));
}

/* --- ids ------------------------------------------------------------------------------------ */

static void adopt(struct actor *listening, struct rdma_cm_id *cm);

static void on_id_event(struct evrdma_id *it, const struct rdma_cm_event *event, void *arg)
{
	if (!event) {
		last_moment(arg, ROW_ID_CLOSED);
		return;
	}
	moment(arg, ROW_ID_EVENT);
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		adopt(arg, event->id);
}

static void adopt(struct actor *listening, struct rdma_cm_id *cm)
{
	struct stage *stage = listening->stage;
	struct actor *id = &stage->actors[stage->num_actors];

	listening->accepted = actor_new(stage, ID, listening->base,
		evrdma_id_adopt(listening->base->it, cm, on_id_event, id));
	if (!listening->accepted)
		rdma_destroy_id(cm);
	else
		listening->accepted->bystander = listening->bystander;
}

struct actor *make_id(struct actor *base, int port_space)
{
	struct stage *stage;
	struct actor *id;

	if (!base || !base->it)
		return NULL;
	stage = base->stage;
	id = &stage->actors[stage->num_actors];
	return actor_new(stage, ID, base, evrdma_id_new(base->it, port_space, on_id_event, id));
}

void on_id_done(struct evrdma_id *it, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	op_told(arg, error != NULL);
}

void id_resolve(struct actor *id, enum fake_kind kind)
{
	struct op *op;

	if (!id || !id->it)
		return;
	op = op_new(id, ROW_ID_DONE, ROW_ID_FAILED);
	op_begun(op, evrdma_id_resolve_addr(
			     id->it, NULL, address(stage_ip(kind), 9), 1000, on_id_done, op));
}
