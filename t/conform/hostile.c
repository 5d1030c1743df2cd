#include "conform/hostile.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conform/fixture.h"

enum { TIMEOUT_MS = 2000, LEN = 64 };

static pid_t peers[HOSTILE_PEERS];
static int pipe_ends[2];
static unsigned gone;

/* --- the peer, in a process of its own ------------------------------------------------------- */

struct peer {
	struct rdma_event_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct sockaddr_in sin;
	unsigned sent;
};

static uint8_t message[LEN];

static bool await(struct peer *peer, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	bool came;

	if (rdma_get_cm_event(peer->channel, &event))
		_exit(2);
	came = event->event == type;
	rdma_ack_cm_event(event);
	return came;
}

static void get_memory(struct peer *peer, struct rdma_cm_id *id)
{
	if (peer->pd)
		return;
	peer->pd = ibv_alloc_pd(id->verbs);
	peer->cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	peer->mr = ibv_reg_mr(peer->pd, message, LEN, 0);
	if (!peer->mr || !peer->cq)
		_exit(3);
}

static bool connect_id(struct peer *peer, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct ibv_qp_init_attr init = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&peer->sin, TIMEOUT_MS) ||
		!await(peer, RDMA_CM_EVENT_ADDR_RESOLVED) || rdma_resolve_route(id, TIMEOUT_MS) ||
		!await(peer, RDMA_CM_EVENT_ROUTE_RESOLVED))
		return false;
	get_memory(peer, id);
	init.send_cq = init.recv_cq = peer->cq;
	return !rdma_create_qp(id, peer->pd, &init) && !rdma_connect(id, &param) &&
	       await(peer, RDMA_CM_EVENT_ESTABLISHED);
}

static void send_one(struct peer *peer, struct rdma_cm_id *id)
{
	struct ibv_sge sge = { (uintptr_t)message, LEN, peer->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	peer->sent += !ibv_post_send(id->qp, &wr, &bad);
}

static void connect_send_and_go(struct peer *peer)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(peer->channel, &id, NULL, RDMA_PS_TCP))
		_exit(4);
	if (connect_id(peer, id))
		send_one(peer, id);
	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

static _Noreturn void be_hostile(unsigned each)
{
	struct peer peer = { .channel = rdma_create_event_channel() };
	uint16_t port;
	unsigned i;

	if (!peer.channel || read(pipe_ends[0], &port, sizeof(port)) != sizeof(port))
		_exit(1);
	fixture_address(&peer.sin, testbed.ip, port);
	for (i = 0; i < each; i++)
		connect_send_and_go(&peer);
	_exit(peer.sent < each - each / 100 ? 5 : 0);
}

/* --- the server ----------------------------------------------------------------------------- */

void hostile_start(unsigned each)
{
	int i;

	ck_assert_int_eq(pipe(pipe_ends), 0);
	for (i = 0; i < HOSTILE_PEERS; i++) {
		peers[i] = fork();
		if (!peers[i])
			be_hostile(each);
	}
}

void hostile_let_go(struct fixture *f)
{
	uint16_t port = evrdma_listener_get_port(f->listener);
	int i;

	for (i = 0; i < HOSTILE_PEERS; i++)
		ck_assert_int_eq(write(pipe_ends[1], &port, sizeof(port)), sizeof(port));
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

bool hostile_are_gone(struct fixture *f)
{
	int status;

	while (waitpid(-1, &status, WNOHANG) > 0) {
		ck_assert_int_eq(status, 0);
		gone++;
	}
	return gone == HOSTILE_PEERS && !f->live;
}
