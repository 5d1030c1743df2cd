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

struct rdma_conn_param *errors_data(struct errors_stage *s, const void *data, uint8_t len)
{
	s->param = (struct rdma_conn_param){
		.private_data = data, .private_data_len = len, .retry_count = 7, .qp_num = 77
	};
	return &s->param;
}

struct rdma_conn_param *errors_depths(struct errors_stage *s, uint8_t resources, uint8_t depth)
{
	errors_data(s, NULL, 0);
	s->param.responder_resources = resources;
	s->param.initiator_depth = depth;
	return &s->param;
}

struct ibv_qp_init_attr *errors_attr(struct errors_stage *s, enum ibv_qp_type type)
{
	s->attr = (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = type,
	};
	return &s->attr;
}

struct ibv_qp_init_attr_ex *errors_attr_ex(struct errors_stage *s, uint32_t comp_mask)
{
	memset(&s->attr_ex, 0, sizeof(s->attr_ex));
	memcpy(&s->attr_ex, errors_attr(s, IBV_QPT_RC), sizeof(s->attr));
	s->attr_ex.comp_mask = comp_mask;
	return &s->attr_ex;
}

struct rdma_cm_join_mc_attr_ex *errors_join(
	struct errors_stage *s, uint32_t comp_mask, uint32_t flags, struct sockaddr *addr)
{
	s->join = (struct rdma_cm_join_mc_attr_ex){ comp_mask, flags, addr };
	return &s->join;
}

struct ibv_ece *errors_ece(struct errors_stage *s, uint32_t vendor_id, uint32_t comp_mask)
{
	s->ece = (struct ibv_ece){ .vendor_id = vendor_id, .comp_mask = comp_mask };
	return &s->ece;
}

struct rdma_addrinfo *errors_hints(struct errors_stage *s, int flags, int family)
{
	s->hints = (struct rdma_addrinfo){ .ai_flags = flags, .ai_family = family };
	return &s->hints;
}

struct rdma_addrinfo *errors_ep(struct errors_stage *s, int flags, const char *ip)
{
	struct sockaddr *addr = ip ? errors_addr(ip, flags & RAI_PASSIVE ? 0 : 7) : NULL;
	socklen_t len = ip ? sizeof(struct sockaddr_in) : 0;

	s->hints = (struct rdma_addrinfo){
		.ai_flags = flags,
		.ai_family = AF_INET,
		.ai_qp_type = IBV_QPT_RC,
		.ai_port_space = RDMA_PS_TCP,
	};
	if (flags & RAI_PASSIVE) {
		s->hints.ai_src_addr = addr;
		s->hints.ai_src_len = len;
	} else {
		s->hints.ai_dst_addr = addr;
		s->hints.ai_dst_len = len;
	}
	return &s->hints;
}

struct ibv_srq_init_attr *errors_srq(struct errors_stage *s)
{
	s->srq = (struct ibv_srq_init_attr){ .attr = { .max_wr = 4, .max_sge = 1 } };
	return &s->srq;
}

struct ibv_srq_init_attr_ex *errors_srq_ex(struct errors_stage *s, enum ibv_srq_type type)
{
	s->srq_ex = (struct ibv_srq_init_attr_ex){
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = type,
	};
	return &s->srq_ex;
}

struct ibv_qp_attr *errors_state(struct errors_stage *s, enum ibv_qp_state state)
{
	s->qp_attr = (struct ibv_qp_attr){ .qp_state = state };
	return &s->qp_attr;
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

int errors_ask(const struct errors_case *c, struct errors_stage *s)
{
	int ret;

	errno = 0;
	ret = c->call(s);
	return ret == -1 && errno ? errno : ret;
}

/* --- steps --------------------------------------------------------------------------------- */

/* The first step that fails is kept, and what comes after it is left out. */
#define STEP(s, call)                                                                              \
	do {                                                                                       \
		if (!(s)->trouble && (call))                                                       \
			(s)->trouble = #call;                                                      \
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

static int open_channel(struct errors_stage *s)
{
	s->channel = rdma_create_event_channel();
	return s->channel ? fcntl(s->channel->fd, F_SETFL, O_NONBLOCK) : -1;
}

static int make_qp(struct errors_stage *s, struct rdma_cm_id *id)
{
	return rdma_create_qp(id, NULL, errors_attr(s, id->qp_type));
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

static int start_listener(struct errors_stage *s, enum rdma_port_space ps)
{
	return rdma_create_id(s->channel, &s->listener, NULL, ps) ||
	       bind_to(s->listener, errors_ip) || rdma_listen(s->listener, 4);
}

static int ask(struct errors_stage *s)
{
	return rdma_connect(s->id, errors_depths(s, 1, 1)) ||
	       await(s->channel, RDMA_CM_EVENT_CONNECT_REQUEST, &s->peer);
}

static int answer(struct errors_stage *s)
{
	return make_qp(s, s->peer) || rdma_accept(s->peer, errors_depths(s, 1, 1)) ||
	       await(s->channel, RDMA_CM_EVENT_ESTABLISHED, NULL) ||
	       await(s->channel, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

static int refuse(struct errors_stage *s)
{
	return rdma_reject(s->peer, NULL, 0) || await(s->channel, RDMA_CM_EVENT_REJECTED, NULL);
}

/* On iWARP the other side has ended as well by the time it answers. */
static int end(struct errors_stage *s)
{
	if (rdma_disconnect(s->id) || await(s->channel, RDMA_CM_EVENT_DISCONNECTED, NULL))
		return -1;
	rdma_disconnect(s->peer);
	return await(s->channel, RDMA_CM_EVENT_DISCONNECTED, NULL);
}

static int join(struct errors_stage *s)
{
	return rdma_join_multicast(s->id, errors_addr(GROUP, 0), NULL) ||
	       await(s->channel, RDMA_CM_EVENT_MULTICAST_JOIN, NULL);
}

static void swap_sides(struct errors_stage *s)
{
	struct rdma_cm_id *id = s->id;

	s->id = s->peer;
	s->peer = id;
}

/* --- scenes -------------------------------------------------------------------------------- */

static void set_routed(struct errors_stage *s)
{
	STEP(s, start_listener(s, s->id->ps));
	STEP(s, resolve(s->id, ntohs(rdma_get_src_port(s->listener))));
	STEP(s, find_route(s->id));
}

/* iWARP has nobody to listen for datagrams. */
static void set_datagram_route(struct errors_stage *s)
{
	STEP(s, resolve(s->id, 7));
	STEP(s, find_route(s->id));
}

static void set_connection(struct errors_stage *s, enum errors_scene scene)
{
	set_routed(s);
	if (scene > ROUTED)
		STEP(s, make_qp(s, s->id));
	if (scene > READY)
		STEP(s, ask(s));
	if (scene == ANSWERING)
		STEP(s, make_qp(s, s->peer));
	if (scene == REJECTED)
		STEP(s, refuse(s));
	if (scene >= CONNECTED && scene <= DISCONNECTED)
		STEP(s, answer(s));
	if (scene == DISCONNECTED)
		STEP(s, end(s));
	if (scene == REQUESTED || scene == ANSWERING || scene == ACCEPTED)
		swap_sides(s);
}

static void set_datagram(struct errors_stage *s, enum errors_scene scene)
{
	if (scene == UD_BOUND || scene == MEMBER)
		STEP(s, bind_to(s->id, errors_ip));
	if (scene == UD_ROUTED)
		set_datagram_route(s);
	if (scene >= UD_READY && scene <= UD_ANSWERING)
		set_routed(s);
	if (scene >= UD_READY)
		STEP(s, make_qp(s, s->id));
	if (scene == MEMBER)
		STEP(s, join(s));
	if (scene != UD_REQUESTED && scene != UD_ANSWERING)
		return;
	STEP(s, ask(s));
	if (scene == UD_ANSWERING)
		STEP(s, make_qp(s, s->peer));
	swap_sides(s);
}

static void set_synchronous(struct errors_stage *s, enum errors_scene scene)
{
	STEP(s, rdma_create_id(NULL, &s->id, NULL, RDMA_PS_TCP));
	STEP(s, fcntl(s->id->channel->fd, F_SETFL, O_NONBLOCK));
	if (scene > SYNC)
		STEP(s, bind_to(s->id, errors_ip));
	if (scene == SYNC_LISTENING)
		STEP(s, rdma_listen(s->id, 4));
}

bool errors_set(struct errors_stage *s, enum errors_scene scene)
{
	memset(s, 0, sizeof(*s));
	if (scene >= CHANNEL)
		STEP(s, open_channel(s));
	if (scene >= SYNC)
		set_synchronous(s, scene);
	else if (scene >= FRESH)
		STEP(s, rdma_create_id(s->channel, &s->id, NULL,
				scene < UD_FRESH ? RDMA_PS_TCP : RDMA_PS_UDP));
	if (scene == ANYWHERE)
		STEP(s, bind_to(s->id, "0.0.0.0"));
	if (scene == BOUND || scene == LISTENING)
		STEP(s, bind_to(s->id, errors_ip));
	if (scene == LISTENING)
		STEP(s, rdma_listen(s->id, 4));
	if (scene == RESOLVED)
		STEP(s, resolve(s->id, 7));
	if (scene >= ROUTED && scene <= DISCONNECTED)
		set_connection(s, scene);
	if (scene >= UD_FRESH && scene <= MEMBER)
		set_datagram(s, scene);
	return !s->trouble;
}

static void clear_id(struct errors_stage *s, struct rdma_cm_id *id)
{
	if (!id)
		return;
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	STEP(s, rdma_destroy_id(id));
}

bool errors_clear(struct errors_stage *s)
{
	rdma_freeaddrinfo(s->res);
	clear_id(s, s->other);
	clear_id(s, s->id);
	clear_id(s, s->peer);
	clear_id(s, s->listener);
	if (s->channel)
		rdma_destroy_event_channel(s->channel);
	return !s->trouble;
}
