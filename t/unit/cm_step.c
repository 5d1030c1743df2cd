#include "unit/cm_step.h"

#include "kern/sys.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/ib.h>
#include <rdma/rdma_verbs.h>
#include <string.h>

enum { DEPTH = 4 };

/* An address, valid until the fourth call after. */
struct sockaddr *cm_step_at(const char *ip, uint16_t port)
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

struct sockaddr *cm_step_at_gid(const char *gid)
{
	static struct sockaddr_ib ring[2];
	static unsigned turn;
	struct sockaddr_ib *sib = &ring[turn++ % 2];

	*sib = (struct sockaddr_ib){ .sib_family = AF_IB,
		.sib_pkey = htobe16(0xffff),
		.sib_sid = htobe64(RDMA_IB_IP_PS_TCP | CM_STEP_PORT),
		.sib_sid_mask = UINT64_MAX };
	inet_pton(AF_INET6, gid, &sib->sib_addr);
	return (struct sockaddr *)sib;
}

int cm_step_open_channel(struct rdma_event_channel **channel)
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
int cm_step_take_from(
	struct cm_fixture *f, struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	int ret, error;

	if (rdma_get_cm_event(channel, &event))
		return -1;
	error = errno;
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		f->server = event->id;
	ret = event->event == type && !event->status ? 0 : -1;
	f->refused = ret && is_refusal(event);
	if (event->event == RDMA_CM_EVENT_REJECTED && type == RDMA_CM_EVENT_REJECTED)
		ret = f->refused = 0;
	rdma_ack_cm_event(event);
	errno = error;
	return ret;
}

int cm_step_take(struct cm_fixture *f, enum rdma_cm_event_type type)
{
	return cm_step_take_from(f, f->channel, type);
}

struct ibv_qp_init_attr cm_step_qp_attr(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1 },
		.qp_type = type,
	};
}

int cm_step_make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = cm_step_qp_attr(id->qp_type);

	return rdma_create_qp(id, NULL, &attr);
}

int cm_step_start_listening(
	struct cm_fixture *f, struct rdma_event_channel *channel, enum rdma_port_space ps)
{
	if (rdma_create_id(channel, &f->listener, NULL, ps))
		return -1;
	if (rdma_bind_addr(f->listener, cm_step_at("0.0.0.0", CM_STEP_PORT)))
		return -1;
	return rdma_listen(f->listener, 0);
}

int cm_step_resolve(struct cm_fixture *f, struct sockaddr *dst)
{
	if (rdma_resolve_addr(f->client, NULL, dst, CM_STEP_TIMEOUT_MS) ||
		cm_step_take(f, RDMA_CM_EVENT_ADDR_RESOLVED))
		return -1;
	if (rdma_resolve_route(f->client, CM_STEP_TIMEOUT_MS) ||
		cm_step_take(f, RDMA_CM_EVENT_ROUTE_RESOLVED))
		return -1;
	return 0;
}

int cm_step_listen_and_resolve(struct cm_fixture *f, enum rdma_port_space ps, const char *ip)
{
	if (cm_step_open_channel(&f->channel) || cm_step_start_listening(f, f->channel, ps))
		return -1;
	if (rdma_create_id(f->channel, &f->client, NULL, ps))
		return -1;
	return cm_step_resolve(f, cm_step_at(ip, CM_STEP_PORT));
}

int cm_step_ask(struct cm_fixture *f, struct rdma_conn_param *param)
{
	return rdma_connect(f->client, param) || cm_step_take(f, RDMA_CM_EVENT_CONNECT_REQUEST) ? -1
												: 0;
}

int cm_step_answer(struct cm_fixture *f)
{
	return cm_step_make_qp(f->server) || rdma_accept(f->server, NULL) ? -1 : 0;
}

/* On iWARP there is nothing left to answer. */
int cm_step_hang_up(struct cm_fixture *f)
{
	bool answers = f->client->verbs->device->transport_type == IBV_TRANSPORT_IB;

	if (rdma_disconnect(f->client) || cm_step_take(f, RDMA_CM_EVENT_DISCONNECTED))
		return -1;
	if (answers && rdma_disconnect(f->server))
		return -1;
	return cm_step_take(f, RDMA_CM_EVENT_DISCONNECTED);
}

/* --- the other side, within our call --- */

static struct {
	const struct evr_sys *under;
	struct evr_sys table;
	struct cm_fixture *fixture;
	enum evr_ucma_op op; /* right after this command, once */
	struct rdma_cm_id **id;
	int (*act)(struct cm_fixture *f);
} peer;

bool cm_step_drop_id(struct rdma_cm_id **id)
{
	if (!*id)
		return true;
	rdma_destroy_qp(*id);
	rdma_destroy_srq(*id);
	if (rdma_destroy_id(*id))
		return false;
	*id = NULL;
	return true;
}

/* When it fails it goes, and whoever waits for it is told; a request may not have come at all. */
static void let_peer_act(void)
{
	struct cm_fixture *f = peer.fixture;

	peer.fixture = NULL;
	if (!peer.act(f))
		return;
	f->peer_error = errno == EAGAIN ? 0 : errno;
	cm_step_drop_id(*peer.id ? peer.id : &f->listener);
}

static ssize_t peer_write(int fd, const void *buf, size_t len)
{
	const struct evr_ucma_hdr *hdr = buf;
	ssize_t ret = peer.under->write(fd, buf, len);

	if (ret >= 0 && peer.fixture && hdr->op == peer.op)
		let_peer_act();
	return ret;
}

void cm_step_when(enum evr_ucma_op op, struct cm_fixture *f, struct rdma_cm_id **id,
	int (*act)(struct cm_fixture *f))
{
	peer.under = evr_sys;
	peer.table = *evr_sys;
	peer.table.write = peer_write;
	peer.op = op;
	peer.fixture = f;
	peer.id = id;
	peer.act = act;
	evr_sys = &peer.table;
}

void cm_step_leave_peer_out(void)
{
	if (peer.under)
		evr_sys = peer.under;
	memset(&peer, 0, sizeof(peer));
}
