/* Connections. */
#include "unit/cm_scenario.h"
#include "unit/cm_step.h"

#include <errno.h>
#include <rdma/rdma_verbs.h>

enum { OWN_CQES = 16, SRQ_DEPTH = 4 };

static int connect_both(struct cm_fixture *f, const char *ip)
{
	if (cm_step_listen_and_resolve(f, RDMA_PS_TCP, ip) || cm_step_make_qp(f->client))
		return -1;
	if (cm_step_ask(f, NULL) || cm_step_answer(f))
		return -1;
	if (cm_step_take(f, RDMA_CM_EVENT_ESTABLISHED) ||
		cm_step_take(f, RDMA_CM_EVENT_ESTABLISHED))
		return -1;
	return cm_step_hang_up(f);
}

int cm_scenario_connection(struct cm_fixture *f)
{
	return connect_both(f, FAKE_ROCE_IP);
}

int cm_scenario_connection_over_ipv6(struct cm_fixture *f)
{
	if (cm_step_open_channel(&f->channel) ||
		rdma_create_id(f->channel, &f->listener, NULL, RDMA_PS_TCP))
		return -1;
	if (rdma_bind_addr(f->listener, cm_step_at(FAKE_ROCE_IP6, CM_STEP_PORT)) ||
		rdma_listen(f->listener, 0))
		return -1;
	if (rdma_create_id(f->channel, &f->client, NULL, RDMA_PS_TCP))
		return -1;
	if (cm_step_resolve(f, cm_step_at(FAKE_ROCE_IP6, CM_STEP_PORT)) ||
		cm_step_make_qp(f->client) || cm_step_ask(f, NULL) || cm_step_answer(f))
		return -1;
	return cm_step_take(f, RDMA_CM_EVENT_ESTABLISHED);
}

int cm_scenario_connection_over_iwarp(struct cm_fixture *f)
{
	return connect_both(f, FAKE_IWARP_IP);
}

int cm_scenario_connection_over_infiniband(struct cm_fixture *f)
{
	return connect_both(f, FAKE_IB_IP);
}

int cm_scenario_connection_of_gids(struct cm_fixture *f)
{
	if (cm_step_open_channel(&f->channel) ||
		rdma_create_id(f->channel, &f->listener, NULL, RDMA_PS_TCP))
		return -1;
	if (rdma_bind_addr(f->listener, cm_step_at_gid("::")) || rdma_listen(f->listener, 0))
		return -1;
	if (rdma_create_id(f->channel, &f->client, NULL, RDMA_PS_TCP))
		return -1;
	if (cm_step_resolve(f, cm_step_at_gid(FAKE_IB_GID)) || cm_step_make_qp(f->client) ||
		cm_step_ask(f, NULL) || cm_step_answer(f))
		return -1;
	if (cm_step_take(f, RDMA_CM_EVENT_ESTABLISHED) ||
		cm_step_take(f, RDMA_CM_EVENT_ESTABLISHED))
		return -1;
	return cm_step_hang_up(f);
}

int cm_scenario_connection_of_one_vendor(struct cm_fixture *f)
{
	*fake_device_ece(FAKE_ROCE) = (struct ibv_ece){ .vendor_id = 5, .options = 6 };
	return connect_both(f, FAKE_ROCE_IP);
}

int cm_scenario_rejection(struct cm_fixture *f)
{
	if (cm_step_listen_and_resolve(f, RDMA_PS_TCP, FAKE_ROCE_IP) || cm_step_make_qp(f->client))
		return -1;
	if (cm_step_ask(f, NULL) || rdma_reject(f->server, "no", 2))
		return -1;
	return cm_step_take(f, RDMA_CM_EVENT_REJECTED);
}

/* --- shared receive queues --- */

static int make_srq_and_qp(struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = SRQ_DEPTH, .max_sge = 1 } };

	return rdma_create_srq(id, NULL, &attr) || cm_step_make_qp(id) ? -1 : 0;
}

int cm_scenario_shared_queues(struct cm_fixture *f)
{
	if (cm_step_listen_and_resolve(f, RDMA_PS_TCP, FAKE_ROCE_IP) || make_srq_and_qp(f->client))
		return -1;
	if (cm_step_ask(f, NULL) || make_srq_and_qp(f->server) || rdma_accept(f->server, NULL))
		return -1;
	return cm_step_take(f, RDMA_CM_EVENT_ESTABLISHED);
}

/* --- queue pairs of the caller's --- */

static int make_own_qp(struct cm_fixture *f, struct rdma_cm_id *id, struct ibv_qp **qp)
{
	struct ibv_qp_init_attr attr = cm_step_qp_attr(IBV_QPT_RC);

	if (!f->own_pd)
		f->own_pd = ibv_alloc_pd(id->verbs);
	if (f->own_pd && !f->own_cq)
		f->own_cq = ibv_create_cq(id->verbs, OWN_CQES, NULL, NULL, 0);
	if (!f->own_cq)
		return -1;
	attr.send_cq = attr.recv_cq = f->own_cq;
	*qp = ibv_create_qp(f->own_pd, &attr);
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

int cm_scenario_own_queue_pairs(struct cm_fixture *f)
{
	struct ibv_ece ece = { .vendor_id = 5, .options = 6 };
	struct rdma_conn_param param = { 0 };

	if (cm_step_listen_and_resolve(f, RDMA_PS_TCP, FAKE_ROCE_IP) ||
		make_own_qp(f, f->client, &f->own_qp[0]))
		return -1;
	param.qp_num = f->own_qp[0]->qp_num;
	if (rdma_set_local_ece(f->client, &ece) || cm_step_ask(f, &param))
		return -1;
	if (rdma_get_remote_ece(f->server, &ece) || rdma_set_local_ece(f->server, &ece))
		return -1;
	if (make_own_qp(f, f->server, &f->own_qp[1]) ||
		move_own_qp_all_the_way(f->server, f->own_qp[1]))
		return -1;
	param.qp_num = f->own_qp[1]->qp_num;
	if (rdma_accept(f->server, &param) || cm_step_take(f, RDMA_CM_EVENT_CONNECT_RESPONSE))
		return -1;
	if (move_own_qp_all_the_way(f->client, f->own_qp[0]) || rdma_establish(f->client))
		return -1;
	return cm_step_take(f, RDMA_CM_EVENT_ESTABLISHED);
}
