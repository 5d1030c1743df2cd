/* Brings ids into the states that the table asks for, and takes everything away again. */
#define _GNU_SOURCE /* strerrorname_np */
#include "errors/errors.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/ib.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { WAIT_MS = 5000, RESOLVE_MS = 2000 };

#define GROUP "239.77.9.1"

const char *errors_ip;

/* --- props --------------------------------------------------------------------------------- */

struct sockaddr *errors_addr(const char *ip, uint16_t port)
{
	static struct sockaddr_in6 ring[4];
	static unsigned turn;
	struct sockaddr_in6 *in6 = &ring[turn++ % 4];
	struct sockaddr_in *in = (struct sockaddr_in *)in6;

	memset(in6, 0, sizeof(*in6));
	if (inet_pton(AF_INET, ip, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
	} else {
		inet_pton(AF_INET6, ip, &in6->sin6_addr);
		in6->sin6_family = AF_INET6;
	}
	in6->sin6_port = htons(port);
	return (struct sockaddr *)in6;
}

struct sockaddr *errors_family(sa_family_t family)
{
	static struct sockaddr_storage any;

	any.ss_family = family;
	return (struct sockaddr *)&any;
}

struct rdma_conn_param *errors_data(struct errors_fixture *f, const void *data, uint8_t len)
{
	f->param = (struct rdma_conn_param){
		.private_data = data, .private_data_len = len, .retry_count = 7, .qp_num = 77
	};
	return &f->param;
}

struct rdma_conn_param *errors_depths(struct errors_fixture *f, uint8_t resources, uint8_t depth)
{
	errors_data(f, NULL, 0);
	f->param.responder_resources = resources;
	f->param.initiator_depth = depth;
	return &f->param;
}

struct ibv_qp_init_attr *errors_attr(struct errors_fixture *f, enum ibv_qp_type type)
{
	f->attr = (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = type,
	};
	return &f->attr;
}

struct ibv_qp_init_attr_ex *errors_attr_ex(struct errors_fixture *f, uint32_t comp_mask)
{
	memset(&f->attr_ex, 0, sizeof(f->attr_ex));
	memcpy(&f->attr_ex, errors_attr(f, IBV_QPT_RC), sizeof(f->attr));
	f->attr_ex.comp_mask = comp_mask;
	return &f->attr_ex;
}

struct rdma_cm_join_mc_attr_ex *errors_join(
	struct errors_fixture *f, uint32_t comp_mask, uint32_t flags, struct sockaddr *addr)
{
	f->join = (struct rdma_cm_join_mc_attr_ex){ comp_mask, flags, addr };
	return &f->join;
}

struct ibv_ece *errors_ece(struct errors_fixture *f, uint32_t vendor_id, uint32_t comp_mask)
{
	f->ece = (struct ibv_ece){ .vendor_id = vendor_id, .comp_mask = comp_mask };
	return &f->ece;
}

struct rdma_addrinfo *errors_hints(struct errors_fixture *f, int flags, int family)
{
	f->hints = (struct rdma_addrinfo){ .ai_flags = flags, .ai_family = family };
	return &f->hints;
}

struct rdma_addrinfo *errors_ep(struct errors_fixture *f, int flags, const char *ip)
{
	struct sockaddr *addr = ip ? errors_addr(ip, flags & RAI_PASSIVE ? 0 : 7) : NULL;
	socklen_t len = ip ? sizeof(struct sockaddr_in) : 0;

	f->hints = (struct rdma_addrinfo){
		.ai_flags = flags,
		.ai_family = AF_INET,
		.ai_qp_type = IBV_QPT_RC,
		.ai_port_space = RDMA_PS_TCP,
	};
	if (flags & RAI_PASSIVE) {
		f->hints.ai_src_addr = addr;
		f->hints.ai_src_len = len;
	} else {
		f->hints.ai_dst_addr = addr;
		f->hints.ai_dst_len = len;
	}
	return &f->hints;
}

struct ibv_srq_init_attr *errors_srq(struct errors_fixture *f)
{
	f->srq = (struct ibv_srq_init_attr){ .attr = { .max_wr = 4, .max_sge = 1 } };
	return &f->srq;
}

struct ibv_srq_init_attr_ex *errors_srq_ex(struct errors_fixture *f, enum ibv_srq_type type)
{
	f->srq_ex = (struct ibv_srq_init_attr_ex){
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = type,
	};
	return &f->srq_ex;
}

struct ibv_qp_attr *errors_state(struct errors_fixture *f, enum ibv_qp_state state)
{
	f->qp_attr = (struct ibv_qp_attr){ .qp_state = state };
	return &f->qp_attr;
}

int errors_made(const void *ptr)
{
	return ptr ? 0 : -1;
}

const char *errors_name(int answer)
{
	static char text[64];
	const char *name = answer > 0 ? strerrorname_np(answer) : NULL;

	if (name)
		return name;
	snprintf(text, sizeof(text), answer < 0 ? "returned %d" : "%d", answer);
	return text;
}

int errors_ask(const struct errors_case *c, struct errors_fixture *f)
{
	int ret;

	errno = 0;
	ret = c->call(f);
	return ret == -1 && errno ? errno : ret;
}

/* --- steps --------------------------------------------------------------------------------- */

/* The first step that fails is kept, and what comes after it is left out. */
#define STEP(f, call)                                                                              \
	do {                                                                                       \
		if (!(f)->trouble && (call))                                                       \
			(f)->trouble = #call;                                                      \
	} while (0)

static int await(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
	struct rdma_cm_id **request)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	bool expected;

	if (poll(&fd, 1, WAIT_MS) != 1 || rdma_get_cm_event(channel, &event))
		return -1;
	expected = event->event == type;
	if (request)
		*request = event->id;
	return rdma_ack_cm_event(event) || !expected;
}

static int open_channel(struct errors_fixture *f)
{
	f->channel = rdma_create_event_channel();
	return f->channel ? fcntl(f->channel->fd, F_SETFL, O_NONBLOCK) : -1;
}

static int make_qp(struct errors_fixture *f, struct rdma_cm_id *id)
{
	return rdma_create_qp(id, NULL, errors_attr(f, id->qp_type));
}

static int resolve(struct rdma_cm_id *id, uint16_t port)
{
	if (rdma_resolve_addr(id, NULL, errors_addr(errors_ip, port), RESOLVE_MS))
		return -1;
	return await(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
}

static int find_route(struct rdma_cm_id *id)
{
	return rdma_resolve_route(id, RESOLVE_MS) ||
	       await(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
}

static int bind_to(struct rdma_cm_id *id, const char *ip)
{
	return rdma_bind_addr(id, errors_addr(ip, 0));
}

static int start_listener(struct errors_fixture *f, enum rdma_port_space ps)
{
	return rdma_create_id(f->channel, &f->listener, NULL, ps) ||
	       bind_to(f->listener, errors_ip) || rdma_listen(f->listener, 4);
}

static int ask(struct errors_fixture *f)
{
	return rdma_connect(f->id, errors_depths(f, 1, 1)) ||
	       await(f->channel, RDMA_CM_EVENT_CONNECT_REQUEST, &f->peer);
}

static int answer(struct errors_fixture *f)
{
	return make_qp(f, f->peer) || rdma_accept(f->peer, errors_depths(f, 1, 1)) ||
	       await(f->channel, RDMA_CM_EVENT_ESTABLISHED, NULL) ||
	       await(f->channel, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

static int refuse(struct errors_fixture *f)
{
	return rdma_reject(f->peer, NULL, 0) || await(f->channel, RDMA_CM_EVENT_REJECTED, NULL);
}

/* On iWARP the other side has ended as well by the time it answers. */
static int end(struct errors_fixture *f)
{
	if (rdma_disconnect(f->id) || await(f->channel, RDMA_CM_EVENT_DISCONNECTED, NULL))
		return -1;
	rdma_disconnect(f->peer);
	return await(f->channel, RDMA_CM_EVENT_DISCONNECTED, NULL);
}

static int join(struct errors_fixture *f)
{
	return rdma_join_multicast(f->id, errors_addr(GROUP, 0), NULL) ||
	       await(f->channel, RDMA_CM_EVENT_MULTICAST_JOIN, NULL);
}

static void swap_ends(struct errors_fixture *f)
{
	struct rdma_cm_id *id = f->id;

	f->id = f->peer;
	f->peer = id;
}

/* --- scenarios ----------------------------------------------------------------------------- */

static void set_routed(struct errors_fixture *f)
{
	STEP(f, start_listener(f, f->id->ps));
	STEP(f, resolve(f->id, ntohs(rdma_get_src_port(f->listener))));
	STEP(f, find_route(f->id));
}

/* iWARP has nobody to listen for datagrams. */
static void set_datagram_route(struct errors_fixture *f)
{
	STEP(f, resolve(f->id, 7));
	STEP(f, find_route(f->id));
}

static void set_connection(struct errors_fixture *f, enum errors_scenario scenario)
{
	set_routed(f);
	if (scenario > ROUTED)
		STEP(f, make_qp(f, f->id));
	if (scenario > READY)
		STEP(f, ask(f));
	if (scenario == ANSWERING)
		STEP(f, make_qp(f, f->peer));
	if (scenario == REJECTED)
		STEP(f, refuse(f));
	if (scenario >= CONNECTED && scenario <= DISCONNECTED)
		STEP(f, answer(f));
	if (scenario == DISCONNECTED)
		STEP(f, end(f));
	if (scenario == REQUESTED || scenario == ANSWERING || scenario == ACCEPTED)
		swap_ends(f);
}

static void set_datagram(struct errors_fixture *f, enum errors_scenario scenario)
{
	if (scenario == UD_BOUND || scenario == MEMBER)
		STEP(f, bind_to(f->id, errors_ip));
	if (scenario == UD_ROUTED)
		set_datagram_route(f);
	if (scenario >= UD_READY && scenario <= UD_ANSWERING)
		set_routed(f);
	if (scenario >= UD_READY)
		STEP(f, make_qp(f, f->id));
	if (scenario == MEMBER)
		STEP(f, join(f));
	if (scenario != UD_REQUESTED && scenario != UD_ANSWERING)
		return;
	STEP(f, ask(f));
	if (scenario == UD_ANSWERING)
		STEP(f, make_qp(f, f->peer));
	swap_ends(f);
}

static void set_synchronous(struct errors_fixture *f, enum errors_scenario scenario)
{
	STEP(f, rdma_create_id(NULL, &f->id, NULL, RDMA_PS_TCP));
	STEP(f, fcntl(f->id->channel->fd, F_SETFL, O_NONBLOCK));
	if (scenario > SYNC)
		STEP(f, bind_to(f->id, errors_ip));
	if (scenario == SYNC_LISTENING)
		STEP(f, rdma_listen(f->id, 4));
}

bool errors_set(struct errors_fixture *f, enum errors_scenario scenario)
{
	memset(f, 0, sizeof(*f));
	if (scenario >= CHANNEL)
		STEP(f, open_channel(f));
	if (scenario >= SYNC)
		set_synchronous(f, scenario);
	else if (scenario >= FRESH)
		STEP(f, rdma_create_id(f->channel, &f->id, NULL,
				scenario < UD_FRESH ? RDMA_PS_TCP : RDMA_PS_UDP));
	if (scenario == ANYWHERE)
		STEP(f, bind_to(f->id, "0.0.0.0"));
	if (scenario == BOUND || scenario == LISTENING)
		STEP(f, bind_to(f->id, errors_ip));
	if (scenario == LISTENING)
		STEP(f, rdma_listen(f->id, 4));
	if (scenario == RESOLVED)
		STEP(f, resolve(f->id, 7));
	if (scenario >= ROUTED && scenario <= DISCONNECTED)
		set_connection(f, scenario);
	if (scenario >= UD_FRESH && scenario <= MEMBER)
		set_datagram(f, scenario);
	return !f->trouble;
}

static void clear_id(struct errors_fixture *f, struct rdma_cm_id *id)
{
	if (!id)
		return;
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	STEP(f, rdma_destroy_id(id));
}

bool errors_clear(struct errors_fixture *f)
{
	rdma_freeaddrinfo(f->res);
	clear_id(f, f->other);
	clear_id(f, f->id);
	clear_id(f, f->peer);
	clear_id(f, f->listener);
	if (f->channel)
		rdma_destroy_event_channel(f->channel);
	return !f->trouble;
}
