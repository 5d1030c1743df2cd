#include "unit/cm_subject.h"

#include <fcntl.h>
#include <string.h>

#define GROUP "239.1.2.3"
#define OTHER_GROUP "239.1.2.4"

void cm_must(bool ok, const char *what)
{
	if (!ok)
		ck_abort_msg("%s: %s", what, strerror(errno));
}

/* --- steps ------------------------------------------------------------------------------------ */

static struct rdma_cm_id *take(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	CM_MUST(rdma_get_cm_event(channel, &event));
	cm_must(event->event == type, rdma_event_str(event->event));
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static void make_qp(struct cm_subject *s, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = cm_qp_attr(id->qp_type);

	if (s->qp)
		CM_MUST(rdma_create_qp(id, NULL, &attr));
}

static struct rdma_cm_id *new_id(struct cm_subject *s, enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	CM_MUST(rdma_create_id(s->channel, &id, NULL, ps));
	return id;
}

static struct rdma_conn_param *param(const struct cm_subject *s)
{
	static struct rdma_conn_param external = { .qp_num = 77 };

	return s->qp ? NULL : &external;
}

/* --- on the way to a connection --------------------------------------------------------------- */

static void create(struct cm_subject *s, enum rdma_port_space ps)
{
	s->id = s->client = new_id(s, ps);
}

static void bind_to_any(struct cm_subject *s)
{
	create(s, RDMA_PS_TCP);
	CM_MUST(rdma_bind_addr(s->id, cm_addr("0.0.0.0", 0)));
}

static void bind_one(struct cm_subject *s, enum rdma_port_space ps)
{
	create(s, ps);
	CM_MUST(rdma_bind_addr(s->id, cm_addr(FAKE_ROCE_IP, 0)));
	make_qp(s, s->id);
}

static void ask_address(struct cm_subject *s, enum rdma_port_space ps)
{
	create(s, ps);
	CM_MUST(rdma_resolve_addr(s->id, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), CM_TIMEOUT_MS));
}

static void resolve_address(struct cm_subject *s, enum rdma_port_space ps)
{
	ask_address(s, ps);
	take(s->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	make_qp(s, s->id);
}

static void resolve_both(struct cm_subject *s, enum rdma_port_space ps)
{
	resolve_address(s, ps);
	CM_MUST(rdma_resolve_route(s->id, CM_TIMEOUT_MS));
	take(s->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void listen_first(struct cm_subject *s, enum rdma_port_space ps)
{
	s->id = s->listener = new_id(s, ps);
	CM_MUST(rdma_bind_addr(s->listener, cm_addr(FAKE_ROCE_IP, CM_PORT)));
	CM_MUST(rdma_listen(s->listener, 0));
}

static void request(struct cm_subject *s, enum rdma_port_space ps)
{
	listen_first(s, ps);
	resolve_both(s, ps);
	CM_MUST(rdma_connect(s->client, param(s)));
	s->server = take(s->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
}

static void accept_request(struct cm_subject *s)
{
	make_qp(s, s->server);
	CM_MUST(rdma_accept(s->server, param(s)));
}

static void confirm(struct cm_subject *s)
{
	if (s->qp) {
		take(s->channel, RDMA_CM_EVENT_ESTABLISHED);
		return;
	}
	take(s->channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CM_MUST(rdma_establish(s->client));
}

static void connect_all(struct cm_subject *s)
{
	request(s, RDMA_PS_TCP);
	accept_request(s);
	confirm(s);
	take(s->channel, RDMA_CM_EVENT_ESTABLISHED);
}

/* --- the states ----------------------------------------------------------------------------------
 */

static void reach_new(struct cm_subject *s)
{
	create(s, RDMA_PS_TCP);
}

static void reach_bound(struct cm_subject *s)
{
	bind_one(s, RDMA_PS_TCP);
}

static void reach_address_query(struct cm_subject *s)
{
	fake_hold(FAKE_ADDR);
	ask_address(s, RDMA_PS_TCP);
}

static void reach_address(struct cm_subject *s)
{
	resolve_address(s, RDMA_PS_TCP);
}

static void reach_route_query(struct cm_subject *s)
{
	fake_hold(FAKE_ROUTE);
	resolve_address(s, RDMA_PS_TCP);
	CM_MUST(rdma_resolve_route(s->id, CM_TIMEOUT_MS));
}

static void reach_route(struct cm_subject *s)
{
	resolve_both(s, RDMA_PS_TCP);
}

static void reach_connecting(struct cm_subject *s)
{
	request(s, RDMA_PS_TCP);
	s->id = s->client;
}

static void reach_connected(struct cm_subject *s)
{
	connect_all(s);
	s->id = s->client;
}

static void reach_served(struct cm_subject *s)
{
	connect_all(s);
	s->id = s->server;
}

static void reach_accepted(struct cm_subject *s)
{
	fake_hold(FAKE_RTU);
	request(s, RDMA_PS_TCP);
	accept_request(s);
	confirm(s);
	s->id = s->server;
}

static void reach_requested(struct cm_subject *s)
{
	request(s, RDMA_PS_TCP);
	s->id = s->server;
	make_qp(s, s->server);
}

static void reach_listening(struct cm_subject *s)
{
	listen_first(s, RDMA_PS_TCP);
}

static void reach_rejected(struct cm_subject *s)
{
	request(s, RDMA_PS_TCP);
	CM_MUST(rdma_reject(s->server, NULL, 0));
	take(s->channel, RDMA_CM_EVENT_REJECTED);
	s->id = s->client;
}

static void reach_disconnected(struct cm_subject *s)
{
	connect_all(s);
	CM_MUST(rdma_disconnect(s->client));
	take(s->channel, RDMA_CM_EVENT_DISCONNECTED);
	CM_MUST(rdma_disconnect(s->server));
	take(s->channel, RDMA_CM_EVENT_DISCONNECTED);
	s->id = s->client;
}

static void reach_failed(struct cm_subject *s)
{
	request(s, RDMA_PS_TCP);
	accept_request(s);
	fake_fail_next("ibv_modify_qp", ENOMEM);
	take(s->channel, RDMA_CM_EVENT_CONNECT_ERROR);
	take(s->channel, RDMA_CM_EVENT_REJECTED);
	s->id = s->client;
}

static void reach_removed(struct cm_subject *s)
{
	resolve_both(s, RDMA_PS_TCP);
	if (s->sync)
		CM_MUST(rdma_migrate_id(s->id, NULL));
	fake_device_remove(FAKE_ROCE);
	take(s->id->channel, RDMA_CM_EVENT_DEVICE_REMOVAL);
}

static void reach_dgram_route(struct cm_subject *s)
{
	resolve_both(s, RDMA_PS_UDP);
}

static void reach_dgram_connecting(struct cm_subject *s)
{
	request(s, RDMA_PS_UDP);
	s->id = s->client;
}

static void reach_dgram_connected(struct cm_subject *s)
{
	request(s, RDMA_PS_UDP);
	accept_request(s);
	take(s->channel, RDMA_CM_EVENT_ESTABLISHED);
	s->id = s->client;
}

static void reach_dgram_served(struct cm_subject *s)
{
	reach_dgram_connected(s);
	s->id = s->server;
}

static void reach_dgram_requested(struct cm_subject *s)
{
	request(s, RDMA_PS_UDP);
	s->id = s->server;
	make_qp(s, s->server);
}

static void reach_dgram_listening(struct cm_subject *s)
{
	listen_first(s, RDMA_PS_UDP);
}

static void reach_member(struct cm_subject *s)
{
	bind_one(s, RDMA_PS_UDP);
	CM_MUST(rdma_join_multicast(s->id, cm_addr(GROUP, 0), s));
	take(s->channel, RDMA_CM_EVENT_MULTICAST_JOIN);
}

static void reach_joining(struct cm_subject *s)
{
	fake_hold(FAKE_JOIN);
	bind_one(s, RDMA_PS_UDP);
	CM_MUST(rdma_join_multicast(s->id, cm_addr(GROUP, 0), s));
}

/* --- what they allow ---------------------------------------------------------------------------
 */

static int resolve_addr(struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), CM_TIMEOUT_MS);
}

static int resolve_route(struct rdma_cm_id *id)
{
	return rdma_resolve_route(id, CM_TIMEOUT_MS);
}

static int connect_id(struct rdma_cm_id *id)
{
	struct rdma_conn_param external = { .qp_num = 77 };

	return rdma_connect(id, id->qp ? NULL : &external);
}

static int join(struct rdma_cm_id *id)
{
	return rdma_join_multicast(id, cm_addr(OTHER_GROUP, 0), NULL);
}

const struct cm_state cm_states[] = {
	{ "new", reach_new, CM_HAS_NO_QP, resolve_addr },
	{ "bound to any address", bind_to_any, CM_HAS_NO_QP, resolve_addr },
	{ "bound", reach_bound, CM_HAS_DEVICE, resolve_addr },
	{ "resolving its address", reach_address_query, CM_HAS_NO_QP },
	{ "with an address", reach_address, CM_HAS_DEVICE, resolve_route },
	{ "resolving its route", reach_route_query, CM_HAS_DEVICE },
	{ "with a route", reach_route, CM_HAS_DEVICE | CM_CONNECTS, connect_id },
	{ "connecting", reach_connecting, CM_HAS_DEVICE },
	{ "connected", reach_connected, CM_HAS_DEVICE, rdma_disconnect },
	{ "requested", reach_requested, CM_HAS_DEVICE | CM_UNACCEPTED },
	{ "accepted", reach_accepted, CM_HAS_DEVICE },
	{ "served", reach_served, CM_HAS_DEVICE, rdma_disconnect },
	{ "listening", reach_listening, CM_HAS_DEVICE | CM_HAS_NO_QP },
	{ "rejected", reach_rejected, CM_HAS_DEVICE },
	{ "disconnected", reach_disconnected, CM_HAS_DEVICE },
	{ "failed", reach_failed, CM_HAS_DEVICE | CM_FAILED | CM_NEEDS_QP },
	{ "removed", reach_removed, CM_REMOVED },
	{ "with a route for datagrams", reach_dgram_route,
		CM_HAS_DEVICE | CM_DATAGRAM | CM_CONNECTS, connect_id },
	{ "asking for datagrams", reach_dgram_connecting, CM_HAS_DEVICE | CM_DATAGRAM },
	{ "ready for datagrams", reach_dgram_connected, CM_HAS_DEVICE | CM_DATAGRAM },
	{ "asked for datagrams", reach_dgram_requested,
		CM_HAS_DEVICE | CM_DATAGRAM | CM_UNACCEPTED },
	{ "serving datagrams", reach_dgram_served, CM_HAS_DEVICE | CM_DATAGRAM },
	{ "listening for datagrams", reach_dgram_listening,
		CM_HAS_DEVICE | CM_DATAGRAM | CM_HAS_NO_QP },
	{ "joining", reach_joining, CM_HAS_DEVICE | CM_DATAGRAM | CM_MEMBER },
	{ "a member", reach_member, CM_HAS_DEVICE | CM_DATAGRAM | CM_MEMBER, join },
};

const size_t cm_num_states = sizeof(cm_states) / sizeof(cm_states[0]);
const struct cm_state *const cm_connecting = &cm_states[7];
const struct cm_state *const cm_connected = &cm_states[8];

void cm_subject_reach(struct cm_subject *s, const struct cm_state *state, bool qp, bool sync)
{
	*s = (struct cm_subject){ .qp = qp, .sync = sync };
	s->channel = rdma_create_event_channel();
	cm_must(s->channel, "rdma_create_event_channel");
	CM_MUST(fcntl(s->channel->fd, F_SETFL, O_NONBLOCK));
	state->reach(s);
	if (sync && s->id->channel == s->channel)
		CM_MUST(rdma_migrate_id(s->id, NULL));
}

static void destroy(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	if (id)
		CM_MUST(rdma_destroy_id(id));
}

/* What was held for them is of no interest any more. */
static void let_go(void)
{
	fake_release(FAKE_ADDR);
	fake_release(FAKE_ROUTE);
	fake_release(FAKE_RTU);
	fake_release(FAKE_JOIN);
}

void cm_subject_end(struct cm_subject *s)
{
	const char *left;

	destroy(s->client);
	destroy(s->server);
	destroy(s->listener);
	let_go();
	rdma_destroy_event_channel(s->channel);
	cm_take_back();
	left = fake_expect_clean();
	cm_must(!left, left);
	if (fake_device_gone(FAKE_ROCE))
		fake_device_add(FAKE_ROCE);
}
