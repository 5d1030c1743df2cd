#include "unit/ep_unit.h"

enum { PATIENCE_MS = 10000 };

struct rdma_addrinfo ep_answer(const char *ip, int flags, enum ibv_qp_type type)
{
	struct sockaddr *addr = cm_addr(ip, CM_PORT);
	socklen_t len = addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						   : sizeof(struct sockaddr_in6);
	struct rdma_addrinfo res = {
		.ai_flags = flags,
		.ai_family = addr->sa_family,
		.ai_qp_type = type,
		.ai_port_space = RDMA_PS_TCP,
	};

	if (type == IBV_QPT_UD)
		res.ai_port_space = RDMA_PS_UDP;
	else if (type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV)
		res.ai_port_space = RDMA_PS_IB;
	if (flags & RAI_PASSIVE) {
		res.ai_src_addr = addr;
		res.ai_src_len = len;
	} else {
		res.ai_dst_addr = addr;
		res.ai_dst_len = len;
	}
	return res;
}

struct rdma_cm_id *ep_make(const char *ip, int flags, enum ibv_qp_type type)
{
	struct rdma_addrinfo res = ep_answer(ip, flags, type);
	struct ibv_qp_init_attr attr = cm_qp_attr(type);
	struct rdma_cm_id *id = NULL;

	ck_assert_ok(rdma_create_ep(&id, &res, NULL, &attr));
	if (flags & RAI_PASSIVE)
		ck_assert_ok(rdma_listen(id, 0));
	return id;
}

struct ibv_srq_init_attr ep_srq_attr(void)
{
	return (struct ibv_srq_init_attr){ .attr = { .max_wr = EP_SRQ_DEPTH, .max_sge = 1 } };
}

void ep_make_srq(struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr attr = ep_srq_attr();

	ck_assert_ok(rdma_create_srq(id, NULL, &attr));
}

struct rdma_cm_id *ep_ask(const char *ip, struct rdma_conn_param *param)
{
	struct rdma_cm_id *client = cm_id(cm_channel(), RDMA_PS_TCP);

	cm_resolve(client, ip);
	cm_make_qp(client);
	ck_assert_ok(rdma_connect(client, param));
	return client;
}

void ep_ask_end(struct rdma_cm_id *client)
{
	struct rdma_event_channel *channel = client->channel;

	cm_destroy(client);
	rdma_destroy_event_channel(channel);
}

pthread_t ep_start(void *(*side)(void *arg), void *arg)
{
	pthread_t thread;

	fake_wait_for_others(PATIENCE_MS);
	ck_assert_int_eq(pthread_create(&thread, NULL, side, arg), 0);
	return thread;
}

void ep_finish(pthread_t thread)
{
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	fake_wait_for_others(0);
}
