/* Endpoints, their groups and peers, ids of the thin layer, and what they are told. */
#include "destroy/fixture.h"

#include <check.h>
#include <rdma/rdma_cma.h>
#include <string.h>

/* --- endpoints ------------------------------------------------------------------------------ */

static void on_endpoint_event(struct evrdma_dgram *it, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg)
{
	struct object *endpoint = arg;

	switch (event) {
	case EVRDMA_DGRAM_READY:
		point(endpoint, ROW_DGRAM_READY);
		break;
	case EVRDMA_DGRAM_ERROR:
		endpoint->ended++;
		point(endpoint, ROW_DGRAM_ERROR);
		break;
	case EVRDMA_DGRAM_WRITABLE:
		point(endpoint, ROW_DGRAM_WRITABLE);
		break;
	case EVRDMA_DGRAM_CLOSED:
		last_point(endpoint, ROW_DGRAM_CLOSED);
		break;
	case EVRDMA_DGRAM_ADDR_CHANGED:
		break;
	}
}

static struct object *find_sender(struct object *endpoint, const struct evrdma_recv *recv);

static void on_datagram(struct evrdma_dgram *it, const struct evrdma_recv *recv, void *arg)
{
	struct object *endpoint = arg;
	struct fixture *fixture = endpoint->fixture;

	point(endpoint, ROW_DGRAM_RECV);
	if (fixture->finds_sender && !fixture->peer && !recv->err)
		fixture->peer = find_sender(endpoint, recv);
}

struct object *make_endpoint(struct object *base, struct object *pool)
{
	struct evrdma_dgram_options options;
	struct object *endpoint;

	if (!base || !base->it || !pool || !pool->it)
		return NULL;
	evrdma_dgram_options_init(&options);
	options.recv_pool = pool->it;
	options.recv_depth = options.send_depth = 4;
	options.drain_timeout_ms = 20;
	endpoint = object_new(base->fixture, DGRAM, base, evrdma_dgram_new(base->it, &options));
	if (endpoint)
		evrdma_dgram_setcb(endpoint->it, on_datagram, on_endpoint_event, endpoint);
	return endpoint;
}

void endpoint_open(struct object *endpoint, const char *src, const char *dst)
{
	struct sockaddr_in from, to;

	if (!endpoint || !endpoint->it)
		return;
	if (src)
		memcpy(&from, address(src, 0), sizeof(from));
	if (dst)
		memcpy(&to, address(dst, 0), sizeof(to));
	op_begun(&(struct op){ .object = endpoint },
		evrdma_dgram_open(endpoint->it, src ? (struct sockaddr *)&from : NULL,
			dst ? (struct sockaddr *)&to : NULL));
}

struct object *make_ready_endpoint(struct fixture *fixture, enum fake_kind kind)
{
	struct object *endpoint = make_endpoint(fixture->base, fixture->pool);

	endpoint_open(endpoint, fixture_ip(kind), NULL);
	fixture_settle(fixture);
	return endpoint;
}

static void on_datagram_sent(struct evrdma_dgram *it, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	op_told(arg, error != NULL);
}

static int send_one(struct object *endpoint, struct object *group, struct object *peer,
	struct evrdma_buf *buf, struct op *op)
{
	if (group)
		return evrdma_dgram_send(
			endpoint->it, group->it, buf, MESSAGE, NULL, on_datagram_sent, op);
	return evrdma_dgram_send_to(
		endpoint->it, peer->it, buf, MESSAGE, NULL, on_datagram_sent, op);
}

void endpoint_send(struct object *endpoint, struct object *group, struct object *peer, unsigned n)
{
	struct object *to = group ? group : peer;

	while (n-- && endpoint && endpoint->it && to && to->it && endpoint->fixture->pool->it) {
		struct op *op = op_new(endpoint, ROW_DGRAM_SENT, ROW_DGRAM_SEND_FAILED);
		struct evrdma_buf *buf = evrdma_pool_get(endpoint->fixture->pool->it);

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
	struct object *group = arg;

	switch (event) {
	case EVRDMA_MCAST_JOINED:
		point(group, ROW_MCAST_JOINED);
		break;
	case EVRDMA_MCAST_ERROR:
		group->ended++;
		point(group, ROW_MCAST_ERROR);
		break;
	case EVRDMA_MCAST_CLOSED:
		last_point(group, ROW_MCAST_CLOSED);
		break;
	}
}

struct object *join(struct object *endpoint)
{
	struct fixture *fixture;
	struct object *group;

	if (!endpoint || !endpoint->it)
		return NULL;
	fixture = endpoint->fixture;
	group = &fixture->objects[fixture->num_objects];
	return object_new(fixture, MCAST, endpoint->base,
		evrdma_mcast_join(endpoint->it, address("239.1.2.3", 0), 0, on_group_event, group));
}

static void on_peer_event(struct evrdma_peer *it, enum evrdma_peer_event event,
	const struct evrdma_error *error, void *arg)
{
	struct object *peer = arg;

	switch (event) {
	case EVRDMA_PEER_READY:
		point(peer, ROW_PEER_READY);
		break;
	case EVRDMA_PEER_ERROR:
		peer->ended++;
		point(peer, ROW_PEER_ERROR);
		break;
	case EVRDMA_PEER_CLOSED:
		last_point(peer, ROW_PEER_CLOSED);
		break;
	}
}

struct object *find_peer(
	struct object *endpoint, const struct object *listener, enum fake_kind kind)
{
	struct fixture *fixture;
	struct object *peer;
	uint16_t port;

	if (!endpoint || !endpoint->it || !listener || !listener->it)
		return NULL;
	fixture = endpoint->fixture;
	peer = &fixture->objects[fixture->num_objects];
	port = evrdma_listener_get_port(listener->it);
	return object_new(fixture, PEER, endpoint->base,
		evrdma_peer_new(
			endpoint->it, address(fixture_ip(kind), port), NULL, on_peer_event, peer));
}

static struct object *find_sender(struct object *endpoint, const struct evrdma_recv *recv)
{
	struct fixture *fixture = endpoint->fixture;
	struct object *peer = &fixture->objects[fixture->num_objects];

	if (!endpoint->it)
		return NULL;
	return object_new(fixture, PEER, endpoint->base,
		evrdma_peer_new_sender(endpoint->it, recv, on_peer_event, peer));
}

/* --- ids ------------------------------------------------------------------------------------ */

static void adopt(struct object *listening, struct rdma_cm_id *cm);

static void on_id_event(struct evrdma_id *it, const struct rdma_cm_event *event, void *arg)
{
	if (!event) {
		last_point(arg, ROW_ID_CLOSED);
		return;
	}
	point(arg, ROW_ID_EVENT);
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		adopt(arg, event->id);
}

static void adopt(struct object *listening, struct rdma_cm_id *cm)
{
	struct fixture *fixture = listening->fixture;
	struct object *id = &fixture->objects[fixture->num_objects];

	listening->accepted = object_new(fixture, ID, listening->base,
		evrdma_id_adopt(listening->base->it, cm, on_id_event, id));
	if (!listening->accepted)
		rdma_destroy_id(cm);
	else
		listening->accepted->bystander = listening->bystander;
}

struct object *make_id(struct object *base, int port_space)
{
	struct fixture *fixture;
	struct object *id;

	if (!base || !base->it)
		return NULL;
	fixture = base->fixture;
	id = &fixture->objects[fixture->num_objects];
	return object_new(fixture, ID, base, evrdma_id_new(base->it, port_space, on_id_event, id));
}

void on_id_done(struct evrdma_id *it, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	op_told(arg, error != NULL);
}

void id_resolve(struct object *id, enum fake_kind kind)
{
	struct op *op;

	if (!id || !id->it)
		return;
	op = op_new(id, ROW_ID_DONE, ROW_ID_FAILED);
	op_begun(op, evrdma_id_resolve_addr(
			     id->it, NULL, address(fixture_ip(kind), 9), 1000, on_id_done, op));
}
