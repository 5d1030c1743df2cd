#include "unit/cm_scenario.h"

#include "kern/sys.h"
#include "kern/ucma_abi.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/ib.h>
#include <string.h>

enum { PORT = 7471, TIMEOUT_MS = 1000, DEPTH = 4 };

#define GROUP "239.1.2.3"
#define OTHER_GROUP "239.1.2.4"

/* --- steps ----------------------------------------------------------------------------------- */

/* An address, valid until the fourth call after. */
static struct sockaddr *at(const char *ip, uint16_t port)
{
	static struct sockaddr_storage ring[4];
	static unsigned turn;
	struct sockaddr_storage *addr = &ring[turn++ % 4];
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;
	struct sockaddr_in *in = (struct sockaddr_in *)addr;

	memset(addr, 0, sizeof(*addr));
	addr->ss_family = strchr(ip, ':') ? AF_INET6 : AF_INET;
	in->sin_port = htons(port);
	if (addr->ss_family == AF_INET)
		inet_pton(AF_INET, ip, &in->sin_addr);
	else
		inet_pton(AF_INET6, ip, &in6->sin6_addr);
	return (struct sockaddr *)addr;
}

static struct sockaddr *at_gid(const char *gid)
{
	static struct sockaddr_ib ring[2];
	static unsigned turn;
	struct sockaddr_ib *sib = &ring[turn++ % 2];

	*sib = (struct sockaddr_ib){ .sib_family = AF_IB,
		.sib_pkey = htobe16(0xffff),
		.sib_sid = htobe64(RDMA_IB_IP_PS_TCP | PORT),
		.sib_sid_mask = UINT64_MAX };
	inet_pton(AF_INET6, gid, &sib->sib_addr);
	return (struct sockaddr *)sib;
}

static int open_channel(struct rdma_event_channel **channel)
{
	*channel = rdma_create_event_channel();
	if (!*channel)
		return -1;
	return fcntl((*channel)->fd, F_SETFL, O_NONBLOCK);
}

/* The other side dropped us: its failure is not told here, but that it refused is. */
static bool is_refusal(const struct rdma_cm_event *event)
{
	return event->event == RDMA_CM_EVENT_REJECTED || event->event == RDMA_CM_EVENT_UNREACHABLE;
}

/* The event that has to come; another one, or none, is a failure that was delivered. */
static int take_from(
	struct cm_world *w, struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	int ret, error;

	if (rdma_get_cm_event(channel, &event))
		return -1;
	error = errno;
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		w->server = event->id;
	ret = event->event == type && !event->status ? 0 : -1;
	w->refused = ret && is_refusal(event);
	if (event->event == RDMA_CM_EVENT_REJECTED && type == RDMA_CM_EVENT_REJECTED)
		ret = w->refused = 0;
	rdma_ack_cm_event(event);
	errno = error;
	return ret;
}

static int take(struct cm_world *w, enum rdma_cm_event_type type)
{
	return take_from(w, w->channel, type);
}

static struct ibv_qp_init_attr qp_attr(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1 },
		.qp_type = type,
	};
}

static int make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = qp_attr(id->qp_type);

	return rdma_create_qp(id, NULL, &attr);
}

static int start_listening(
	struct cm_world *w, struct rdma_event_channel *channel, enum rdma_port_space ps)
{
	if (rdma_create_id(channel, &w->listener, NULL, ps))
		return -1;
	if (rdma_bind_addr(w->listener, at("0.0.0.0", PORT)))
		return -1;
	return rdma_listen(w->listener, 0);
}

static int resolve(struct cm_world *w, struct sockaddr *dst)
{
	if (rdma_resolve_addr(w->client, NULL, dst, TIMEOUT_MS) ||
		take(w, RDMA_CM_EVENT_ADDR_RESOLVED))
		return -1;
	if (rdma_resolve_route(w->client, TIMEOUT_MS) || take(w, RDMA_CM_EVENT_ROUTE_RESOLVED))
		return -1;
	return 0;
}

static int listen_and_resolve(struct cm_world *w, enum rdma_port_space ps, const char *ip)
{
	if (open_channel(&w->channel) || start_listening(w, w->channel, ps))
		return -1;
	if (rdma_create_id(w->channel, &w->client, NULL, ps))
		return -1;
	return resolve(w, at(ip, PORT));
}

static int ask(struct cm_world *w, struct rdma_conn_param *param)
{
	return rdma_connect(w->client, param) || take(w, RDMA_CM_EVENT_CONNECT_REQUEST) ? -1 : 0;
}

static int answer(struct cm_world *w)
{
	return make_qp(w->server) || rdma_accept(w->server, NULL) ? -1 : 0;
}

/* On iWARP there is nothing left to answer. */
static int hang_up(struct cm_world *w)
{
	bool answers = w->client->verbs->device->transport_type == IBV_TRANSPORT_IB;

	if (rdma_disconnect(w->client) || take(w, RDMA_CM_EVENT_DISCONNECTED))
		return -1;
	if (answers && rdma_disconnect(w->server))
		return -1;
	return take(w, RDMA_CM_EVENT_DISCONNECTED);
}

/* --- connections ------------------------------------------------------------------------------ */

static int connect_both(struct cm_world *w, const char *ip)
{
	if (listen_and_resolve(w, RDMA_PS_TCP, ip) || make_qp(w->client))
		return -1;
	if (ask(w, NULL) || answer(w))
		return -1;
	if (take(w, RDMA_CM_EVENT_ESTABLISHED) || take(w, RDMA_CM_EVENT_ESTABLISHED))
		return -1;
	return hang_up(w);
}

static int connection(struct cm_world *w)
{
	return connect_both(w, FAKE_ROCE_IP);
}

static int connection_over_ipv6(struct cm_world *w)
{
	if (open_channel(&w->channel) ||
		rdma_create_id(w->channel, &w->listener, NULL, RDMA_PS_TCP))
		return -1;
	if (rdma_bind_addr(w->listener, at(FAKE_ROCE_IP6, PORT)) || rdma_listen(w->listener, 0))
		return -1;
	if (rdma_create_id(w->channel, &w->client, NULL, RDMA_PS_TCP))
		return -1;
	if (resolve(w, at(FAKE_ROCE_IP6, PORT)) || make_qp(w->client) || ask(w, NULL) || answer(w))
		return -1;
	return take(w, RDMA_CM_EVENT_ESTABLISHED);
}

static int connection_over_iwarp(struct cm_world *w)
{
	return connect_both(w, FAKE_IWARP_IP);
}

static int connection_over_infiniband(struct cm_world *w)
{
	return connect_both(w, FAKE_IB_IP);
}

static int connection_of_gids(struct cm_world *w)
{
	if (open_channel(&w->channel) ||
		rdma_create_id(w->channel, &w->listener, NULL, RDMA_PS_TCP))
		return -1;
	if (rdma_bind_addr(w->listener, at_gid("::")) || rdma_listen(w->listener, 0))
		return -1;
	if (rdma_create_id(w->channel, &w->client, NULL, RDMA_PS_TCP))
		return -1;
	if (resolve(w, at_gid(FAKE_IB_GID)) || make_qp(w->client) || ask(w, NULL) || answer(w))
		return -1;
	if (take(w, RDMA_CM_EVENT_ESTABLISHED) || take(w, RDMA_CM_EVENT_ESTABLISHED))
		return -1;
	return hang_up(w);
}

static int connection_of_one_vendor(struct cm_world *w)
{
	*fake_device_ece(FAKE_ROCE) = (struct ibv_ece){ .vendor_id = 5, .options = 6 };
	return connect_both(w, FAKE_ROCE_IP);
}

static int rejection(struct cm_world *w)
{
	if (listen_and_resolve(w, RDMA_PS_TCP, FAKE_ROCE_IP) || make_qp(w->client))
		return -1;
	if (ask(w, NULL) || rdma_reject(w->server, "no", 2))
		return -1;
	return take(w, RDMA_CM_EVENT_REJECTED);
}

/* --- queue pairs of the caller's ---------------------------------------------------------------
 */

static int make_own_qp(struct cm_world *w, struct rdma_cm_id *id, struct ibv_qp **qp)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);

	if (!w->own_pd)
		w->own_pd = ibv_alloc_pd(id->verbs);
	if (w->own_pd && !w->own_cq)
		w->own_cq = ibv_create_cq(id->verbs, 4 * DEPTH, NULL, NULL, 0);
	if (!w->own_cq)
		return -1;
	attr.send_cq = attr.recv_cq = w->own_cq;
	*qp = ibv_create_qp(w->own_pd, &attr);
	return *qp ? 0 : -1;
}

static int move_own_qp(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	if (rdma_init_qp_attr(id, &attr, &mask))
		return -1;
	errno = ibv_modify_qp(qp, &attr, mask);
	return errno ? -1 : 0;
}

static int move_own_qp_all_the_way(struct rdma_cm_id *id, struct ibv_qp *qp)
{
	if (move_own_qp(id, qp, IBV_QPS_INIT) || move_own_qp(id, qp, IBV_QPS_RTR))
		return -1;
	return move_own_qp(id, qp, IBV_QPS_RTS);
}

static int own_queue_pairs(struct cm_world *w)
{
	struct ibv_ece ece = { .vendor_id = 5, .options = 6 };
	struct rdma_conn_param param = { 0 };

	if (listen_and_resolve(w, RDMA_PS_TCP, FAKE_ROCE_IP) ||
		make_own_qp(w, w->client, &w->own_qp[0]))
		return -1;
	param.qp_num = w->own_qp[0]->qp_num;
	if (rdma_set_local_ece(w->client, &ece) || ask(w, &param))
		return -1;
	if (rdma_get_remote_ece(w->server, &ece) || rdma_set_local_ece(w->server, &ece))
		return -1;
	if (make_own_qp(w, w->server, &w->own_qp[1]) ||
		move_own_qp_all_the_way(w->server, w->own_qp[1]))
		return -1;
	param.qp_num = w->own_qp[1]->qp_num;
	if (rdma_accept(w->server, &param) || take(w, RDMA_CM_EVENT_CONNECT_RESPONSE))
		return -1;
	if (move_own_qp_all_the_way(w->client, w->own_qp[0]) || rdma_establish(w->client))
		return -1;
	return take(w, RDMA_CM_EVENT_ESTABLISHED);
}

/* --- datagrams and groups -----------------------------------------------------------------------
 */

static int datagrams(struct cm_world *w)
{
	if (listen_and_resolve(w, RDMA_PS_UDP, FAKE_ROCE_IP) || make_qp(w->client))
		return -1;
	if (ask(w, NULL) || answer(w))
		return -1;
	return take(w, RDMA_CM_EVENT_ESTABLISHED);
}

static int refused_datagrams(struct cm_world *w)
{
	struct rdma_cm_event *event;
	int ret;

	if (listen_and_resolve(w, RDMA_PS_UDP, FAKE_ROCE_IP) || make_qp(w->client))
		return -1;
	if (ask(w, NULL) || rdma_reject(w->server, NULL, 0))
		return -1;
	if (rdma_get_cm_event(w->channel, &event))
		return -1;
	ret = event->event == RDMA_CM_EVENT_UNREACHABLE ? 0 : -1;
	rdma_ack_cm_event(event);
	return ret;
}

static int join_send_only(struct cm_world *w, const char *group)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		.addr = at(group, 0),
	};

	return rdma_join_multicast_ex(w->client, &attr, w) || take(w, RDMA_CM_EVENT_MULTICAST_JOIN)
		       ? -1
		       : 0;
}

static int memberships(struct cm_world *w)
{
	if (open_channel(&w->channel) || rdma_create_id(w->channel, &w->client, NULL, RDMA_PS_UDP))
		return -1;
	if (rdma_bind_addr(w->client, at(FAKE_ROCE_IP, 0)) || make_qp(w->client))
		return -1;
	if (rdma_join_multicast(w->client, at(GROUP, 0), w) ||
		take(w, RDMA_CM_EVENT_MULTICAST_JOIN))
		return -1;
	if (join_send_only(w, OTHER_GROUP) || rdma_leave_multicast(w->client, at(GROUP, 0)))
		return -1;
	return rdma_join_multicast(w->client, at(GROUP, 0), w);
}

/* --- synchronous ids: the other side acts within our call ----------------------------------------
 */

static struct {
	const struct evr_sys *under;
	struct evr_sys table;
	struct cm_world *world;
	enum evr_ucma_op op; /* right after this command, once */
	int (*act)(struct cm_world *w);
} peer;

static bool drop_id(struct rdma_cm_id **id)
{
	if (!*id)
		return true;
	rdma_destroy_qp(*id);
	if (rdma_destroy_id(*id))
		return false;
	*id = NULL;
	return true;
}

/* When it fails it goes, and whoever waits for it is told; a request may not have come at all. */
static void let_peer_act(void)
{
	struct cm_world *w = peer.world;

	peer.world = NULL;
	if (!peer.act(w))
		return;
	w->peer_error = errno == EAGAIN ? 0 : errno;
	drop_id(w->server ? &w->server : &w->listener);
}

static ssize_t peer_write(int fd, const void *buf, size_t len)
{
	const struct evr_ucma_hdr *hdr = buf;
	ssize_t ret = peer.under->write(fd, buf, len);

	if (ret >= 0 && peer.world && hdr->op == peer.op)
		let_peer_act();
	return ret;
}

static void when(enum evr_ucma_op op, struct cm_world *w, int (*act)(struct cm_world *w))
{
	peer.under = evr_sys;
	peer.table = *evr_sys;
	peer.table.write = peer_write;
	peer.op = op;
	peer.world = w;
	peer.act = act;
	evr_sys = &peer.table;
}

static void leave_peer_out(void)
{
	if (peer.under)
		evr_sys = peer.under;
	memset(&peer, 0, sizeof(peer));
}

static int serve(struct cm_world *w)
{
	return take(w, RDMA_CM_EVENT_CONNECT_REQUEST) || answer(w) ? -1 : 0;
}

/* The waiting call says what a refusal is. */
static int connect_and_wait(struct cm_world *w)
{
	int ret;

	when(EVR_UCMA_CONNECT, w, serve);
	ret = rdma_connect(w->client, NULL);
	w->refused = ret && errno == ECONNREFUSED;
	return ret;
}

static int synchronous_client(struct cm_world *w)
{
	if (open_channel(&w->channel) || start_listening(w, w->channel, RDMA_PS_TCP))
		return -1;
	if (rdma_create_id(NULL, &w->client, NULL, RDMA_PS_TCP))
		return -1;
	if (rdma_resolve_addr(w->client, NULL, at(FAKE_ROCE_IP, PORT), TIMEOUT_MS) ||
		rdma_resolve_route(w->client, TIMEOUT_MS) || make_qp(w->client))
		return -1;
	if (connect_and_wait(w) || take(w, RDMA_CM_EVENT_ESTABLISHED))
		return -1;
	if (rdma_disconnect(w->server) || rdma_disconnect(w->client))
		return -1;
	return take(w, RDMA_CM_EVENT_DISCONNECTED);
}

/* --- moving house
 * --------------------------------------------------------------------------------- */

static int to_another_channel(struct cm_world *w)
{
	if (listen_and_resolve(w, RDMA_PS_TCP, FAKE_ROCE_IP) || make_qp(w->client) || ask(w, NULL))
		return -1;
	if (open_channel(&w->other) || rdma_migrate_id(w->server, w->other) || answer(w))
		return -1;
	if (take(w, RDMA_CM_EVENT_ESTABLISHED))
		return -1;
	return take_from(w, w->other, RDMA_CM_EVENT_ESTABLISHED);
}

static int to_a_channel_of_its_own_and_back(struct cm_world *w)
{
	if (open_channel(&w->channel) || rdma_create_id(w->channel, &w->client, NULL, RDMA_PS_TCP))
		return -1;
	if (rdma_resolve_addr(w->client, NULL, at(FAKE_ROCE_IP, PORT), TIMEOUT_MS) ||
		take(w, RDMA_CM_EVENT_ADDR_RESOLVED))
		return -1;
	if (rdma_migrate_id(w->client, NULL) || rdma_resolve_route(w->client, TIMEOUT_MS))
		return -1;
	return rdma_migrate_id(w->client, w->channel);
}

/* --- the rest
 * -------------------------------------------------------------------------------------- */

static int set_options(struct cm_world *w)
{
	uint8_t tos = 4, timeout = 12;
	int on = 1;

	if (open_channel(&w->channel) || rdma_create_id(w->channel, &w->client, NULL, RDMA_PS_TCP))
		return -1;
	if (rdma_set_option(w->client, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)) ||
		rdma_set_option(
			w->client, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)) ||
		rdma_set_option(w->client, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)))
		return -1;
	return rdma_set_option(
		w->client, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout));
}

static int early_data(struct cm_world *w)
{
	if (listen_and_resolve(w, RDMA_PS_TCP, FAKE_ROCE_IP) || make_qp(w->client))
		return -1;
	fake_hold(FAKE_RTU);
	if (ask(w, NULL) || answer(w) || take(w, RDMA_CM_EVENT_ESTABLISHED))
		return -1;
	if (rdma_notify(w->server, IBV_EVENT_COMM_EST))
		return -1;
	return take(w, RDMA_CM_EVENT_ESTABLISHED);
}

static int list_of_devices(struct cm_world *w)
{
	struct ibv_context **list = rdma_get_devices(NULL);
	int error = errno;

	rdma_free_devices(list);
	errno = error;
	return list ? 0 : -1;
}

static int look_up(struct rdma_addrinfo **info, int flags, int family, const char *node)
{
	const struct rdma_addrinfo hints = { .ai_flags = flags | RAI_NUMERICHOST,
		.ai_family = family,
		.ai_port_space = RDMA_PS_TCP };

	return rdma_getaddrinfo(node, "7471", &hints, info) ? -1 : 0;
}

static int names(struct cm_world *w)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *copy;

	if (look_up(&w->info[0], RAI_PASSIVE, 0, FAKE_ROCE_IP) ||
		look_up(&w->info[1], RAI_FAMILY, AF_IB, FAKE_IB_GID))
		return -1;
	hints.ai_src_addr = w->info[0]->ai_src_addr;
	hints.ai_src_len = w->info[0]->ai_src_len;
	hints.ai_dst_addr = w->info[1]->ai_dst_addr;
	hints.ai_dst_len = w->info[1]->ai_dst_len;
	if (rdma_getaddrinfo(NULL, NULL, &hints, &copy))
		return -1;
	rdma_freeaddrinfo(copy);
	return 0;
}

/* --- the end
 * ---------------------------------------------------------------------------------------- */

static void drop_own(struct cm_world *w)
{
	int i;

	for (i = 0; i < 2; i++)
		if (w->own_qp[i])
			ibv_destroy_qp(w->own_qp[i]);
	if (w->own_cq)
		ibv_destroy_cq(w->own_cq);
	if (w->own_pd)
		ibv_dealloc_pd(w->own_pd);
}

bool cm_scenario_end(struct cm_world *w)
{
	bool gone;

	leave_peer_out();
	drop_own(w);
	gone = drop_id(&w->client);
	gone &= drop_id(&w->server);
	gone &= drop_id(&w->listener);
	rdma_destroy_event_channel(w->channel);
	rdma_destroy_event_channel(w->other);
	rdma_freeaddrinfo(w->info[0]);
	rdma_freeaddrinfo(w->info[1]);
	fake_release(FAKE_RTU);
	*w = (struct cm_world){ 0 };
	return gone;
}

const struct cm_scenario cm_scenarios[] = {
	{ "a connection", connection, FAKE_ROCE, 60 },
	{ "a connection over IPv6", connection_over_ipv6, FAKE_ROCE, 50 },
	{ "a connection over iWARP", connection_over_iwarp, FAKE_IWARP, 50 },
	{ "a connection over InfiniBand", connection_over_infiniband, FAKE_IB, 60 },
	{ "a connection of GIDs", connection_of_gids, FAKE_IB, 60 },
	{ "a connection within one vendor", connection_of_one_vendor, FAKE_ROCE, 60 },
	{ "a rejection", rejection, FAKE_ROCE, 30, "ibv_modify_qp" },
	{ "queue pairs of the caller's", own_queue_pairs, FAKE_ROCE, 40 },
	{ "a datagram service", datagrams, FAKE_ROCE, 40 },
	{ "a datagram service that refuses", refused_datagrams, FAKE_ROCE, 30 },
	{ "memberships", memberships, FAKE_ROCE, 20 },
	{ "a synchronous client", synchronous_client, FAKE_ROCE, 60 },
	{ "a request served elsewhere", to_another_channel, FAKE_ROCE, 60 },
	{ "to a channel of its own and back", to_a_channel_of_its_own_and_back, FAKE_ROCE, 20 },
	{ "options", set_options, FAKE_ROCE, 8 },
	{ "data before the confirmation", early_data, FAKE_ROCE, 60 },
	{ "the list of devices", list_of_devices, FAKE_ROCE, 5 },
	{ "names", names, FAKE_IB, 5 },
	{ "a service for an id", cm_scenario_service, FAKE_IB, 20 },
	{ "a name for an id", cm_scenario_name, FAKE_IB, 10 },
	{ "services through every port", cm_scenario_services, FAKE_IB, 20 },
};

const size_t cm_num_scenarios = sizeof(cm_scenarios) / sizeof(cm_scenarios[0]);
