/*
 * Prints what a program can see of an id and of an event without a call, after each event of the
 * scenarios named. The output on one library is to be compared with that on another: so it has no
 * addresses of memory, no numbers of queue pairs, and no ports that the kernel chose.
 * Arguments: the address of the device, scenarios.
 */
#include "interop/fields.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rdma_conn_param param_with(const char *data)
{
	return (struct rdma_conn_param){
		.private_data = data,
		.private_data_len = (uint8_t)strlen(data),
		.responder_resources = 3,
		.initiator_depth = 2,
		.retry_count = 5,
		.rnr_retry_count = 6,
	};
}

static void request(enum rdma_port_space ps, int any)
{
	struct rdma_conn_param param = param_with("ping");

	fields_listen(ps, any);
	fields_resolve(ps);
	fields_make_qp(cast.client);
	fields_must(rdma_connect(cast.client, &param), "rdma_connect");
	fields_await(RDMA_CM_EVENT_CONNECT_REQUEST);
}

static void accept_request(void)
{
	struct rdma_conn_param param = param_with("pong!");

	fields_make_qp(cast.server);
	fields_must(rdma_accept(cast.server, &param), "rdma_accept");
}

static void connection(void)
{
	request(RDMA_PS_TCP, 1);
	accept_request();
	fields_await_both(RDMA_CM_EVENT_ESTABLISHED);
	fields_disconnect();
}

/* With the listener on one address, and all left to the defaults. */
static void bound(void)
{
	fields_listen(RDMA_PS_TCP, 0);
	fields_resolve(RDMA_PS_TCP);
	fields_make_qp(cast.client);
	fields_must(rdma_connect(cast.client, NULL), "rdma_connect");
	fields_await(RDMA_CM_EVENT_CONNECT_REQUEST);
	fields_make_qp(cast.server);
	fields_must(rdma_accept(cast.server, NULL), "rdma_accept");
	fields_await_both(RDMA_CM_EVENT_ESTABLISHED);
	fields_disconnect();
}

/* Listeners that leave their port, or their address too, to the kernel. */
static void chosen(void)
{
	cast.listener = fields_bound(RDMA_PS_TCP, NULL, 1);
	cast.client = fields_bound(RDMA_PS_TCP, fields_addr(0, 0), 2);
	cast.server = fields_bound(RDMA_PS_TCP, fields_addr(1, 0), 3);
	fields_show_ids();
	fields_must(rdma_listen(cast.listener, 4), "rdma_listen");
	fields_must(rdma_listen(cast.client, 4), "rdma_listen");
	fields_must(rdma_listen(cast.server, 4), "rdma_listen");
	fields_show_ids();
}

static void rejection(void)
{
	request(RDMA_PS_TCP, 1);
	fields_must(rdma_reject(cast.server, "no", 2), "rdma_reject");
	fields_await(RDMA_CM_EVENT_REJECTED);
}

/* The kernel of iWARP says at once that nobody listens. */
static void refusal(void)
{
	struct rdma_conn_param param = param_with("anybody?");

	fields_resolve(RDMA_PS_TCP);
	fields_make_qp(cast.client);
	if (!rdma_connect(cast.client, &param))
		fields_await(RDMA_CM_EVENT_REJECTED);
	else
		printf("rdma_connect: %s\n", strerror(errno));
	fields_show_ids();
}

static void move(struct ibv_qp *qp, struct rdma_cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	fields_must(rdma_init_qp_attr(id, &attr, &mask), "rdma_init_qp_attr");
	printf("state %d mask %x access %x port %u pkey %u mtu %d rd %u %u\n", state, mask,
		attr.qp_access_flags, attr.port_num, attr.pkey_index, attr.path_mtu,
		attr.max_rd_atomic, attr.max_dest_rd_atomic);
	errno = ibv_modify_qp(qp, &attr, mask);
	fields_must(errno, "ibv_modify_qp");
}

static struct ibv_qp *own_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp;

	attr.send_cq = attr.recv_cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	fields_must(!attr.send_cq, "ibv_create_cq");
	qp = ibv_create_qp(id->pd, &attr);
	fields_must(!qp, "ibv_create_qp");
	move(qp, id, IBV_QPS_INIT);
	return qp;
}

static void end_qp(struct ibv_qp *qp)
{
	struct ibv_cq *cq = qp->send_cq;

	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
}

static void finish(struct ibv_qp *qp, struct rdma_cm_id *id)
{
	move(qp, id, IBV_QPS_RTR);
	move(qp, id, IBV_QPS_RTS);
}

/* Queue pairs of which the ids know no more than the number. */
static void external(void)
{
	struct rdma_conn_param param = param_with("ping");
	struct ibv_qp *active, *passive;

	fields_listen(RDMA_PS_TCP, 1);
	fields_resolve(RDMA_PS_TCP);
	active = own_qp(cast.client);
	param.qp_num = active->qp_num;
	fields_must(rdma_connect(cast.client, &param), "rdma_connect");
	fields_await(RDMA_CM_EVENT_CONNECT_REQUEST);
	passive = own_qp(cast.server);
	finish(passive, cast.server);
	param.qp_num = passive->qp_num;
	fields_must(rdma_accept(cast.server, &param), "rdma_accept");
	fields_await(RDMA_CM_EVENT_CONNECT_RESPONSE);
	finish(active, cast.client);
	fields_must(rdma_establish(cast.client), "rdma_establish");
	fields_await(RDMA_CM_EVENT_ESTABLISHED);
	end_qp(active);
	end_qp(passive);
}

static void shared_queue(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 8, .max_sge = 1 } };

	fields_resolve(RDMA_PS_TCP);
	fields_must(rdma_create_srq(cast.client, NULL, &attr), "rdma_create_srq");
	fields_show_ids();
	fields_make_qp(cast.client);
	printf("the queue pair's %d\n", cast.client->qp->srq == cast.client->srq);
	rdma_destroy_qp(cast.client);
	rdma_destroy_srq(cast.client);
}

/* From the channel to one of its own, and back. */
static void migration(void)
{
	fields_resolve(RDMA_PS_TCP);
	fields_must(rdma_migrate_id(cast.client, NULL), "rdma_migrate_id");
	fields_show_ids();
	fields_must(rdma_migrate_id(cast.client, cast.channel), "rdma_migrate_id");
	fields_show_ids();
}

static void synchronous(void)
{
	struct rdma_event_channel *channel = cast.channel;

	cast.channel = NULL;
	cast.client = fields_bound(RDMA_PS_TCP, fields_addr(0, 2), 2);
	cast.channel = channel;
	fields_show_ids();
	fields_must(rdma_resolve_addr(cast.client, NULL, fields_addr(0, 1), FIELDS_WAIT_MS),
		"rdma_resolve_addr");
	fields_show_ids();
	fields_must(rdma_resolve_route(cast.client, FIELDS_WAIT_MS), "rdma_resolve_route");
	fields_show_ids();
}

static struct rdma_cm_id *endpoint(int flags, struct sockaddr *src, struct sockaddr *dst)
{
	const socklen_t len = src->sa_family == AF_INET ? sizeof(struct sockaddr_in)
							: sizeof(struct sockaddr_in6);
	struct rdma_addrinfo info = {
		.ai_flags = flags,
		.ai_family = src->sa_family,
		.ai_qp_type = IBV_QPT_RC,
		.ai_port_space = RDMA_PS_TCP,
		.ai_src_len = len,
		.ai_src_addr = src,
		.ai_dst_len = dst ? len : 0,
		.ai_dst_addr = dst,
	};
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_cm_id *id;

	fields_must(rdma_create_ep(&id, &info, NULL, &attr), "rdma_create_ep");
	return id;
}

static void *connect_side(void *arg)
{
	struct rdma_conn_param param = param_with("ping");

	fields_must(rdma_connect(arg, &param), "rdma_connect");
	return NULL;
}

/* The request is shown while the other side waits: what is not settled there is left out. */
static void take_request(void)
{
	struct rdma_cm_id *client = cast.client;

	cast.client = NULL;
	fields_must(rdma_get_request(cast.listener, &cast.server), "rdma_get_request");
	fields_show_event(cast.server->event);
	fields_show_ids();
	fields_must(rdma_accept(cast.server, NULL), "rdma_accept");
	cast.client = client;
}

static void endpoints(void)
{
	pthread_t thread;

	cast.listener = endpoint(RAI_PASSIVE, fields_addr(0, 1), NULL);
	fields_must(rdma_listen(cast.listener, 1), "rdma_listen");
	cast.client = endpoint(0, fields_addr(0, 2), fields_addr(0, 1));
	fields_show_ids();
	fields_must(pthread_create(&thread, NULL, connect_side, cast.client), "a thread");
	take_request();
	pthread_join(thread, NULL);
	fields_show_event(cast.client->event);
	fields_show_event(cast.server->event);
	fields_show_ids();
}

static void datagrams(void)
{
	request(RDMA_PS_UDP, 1);
	accept_request();
	fields_await(RDMA_CM_EVENT_ESTABLISHED);
}

static void datagram_refusal(void)
{
	request(RDMA_PS_UDP, 0);
	fields_must(rdma_reject(cast.server, "no", 2), "rdma_reject");
	fields_await(RDMA_CM_EVENT_UNREACHABLE);
}

static void join_and_leave(enum rdma_cm_mc_join_flags flags)
{
	struct sockaddr_in group = { .sin_family = AF_INET };
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = flags,
		.addr = (struct sockaddr *)&group,
	};

	inet_pton(AF_INET, "239.1.2.3", &group.sin_addr);
	fields_must(rdma_join_multicast_ex(cast.joiner, &attr, (void *)7), "join_multicast_ex");
	fields_await(RDMA_CM_EVENT_MULTICAST_JOIN);
	fields_must(rdma_leave_multicast(cast.joiner, attr.addr), "rdma_leave_multicast");
	fields_show_ids();
}

static void groups(void)
{
	cast.joiner = fields_bound(RDMA_PS_UDP, fields_addr(0, 3), 3);
	fields_make_qp(cast.joiner);
	join_and_leave(RDMA_MC_JOIN_FLAG_FULLMEMBER);
	join_and_leave(RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
}

static const struct {
	const char *name;
	void (*run)(void);
} scenarios[] = {
	{ "connection", connection },
	{ "bound", bound },
	{ "chosen", chosen },
	{ "rejection", rejection },
	{ "refusal", refusal },
	{ "external", external },
	{ "shared_queue", shared_queue },
	{ "migration", migration },
	{ "synchronous", synchronous },
	{ "endpoints", endpoints },
	{ "datagrams", datagrams },
	{ "datagram_refusal", datagram_refusal },
	{ "groups", groups },
};

static void run(const char *ip, unsigned port, const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (strcmp(scenarios[i].name, name))
			continue;
		printf("@%s\n", name);
		fields_open(ip, port);
		scenarios[i].run();
		fields_close();
	}
}

int main(int argc, char **argv)
{
	unsigned port = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	int i;

	alarm(60);
	setlinebuf(stdout);
	for (i = 3; i < argc; i++, port += FIELDS_PORTS)
		run(argv[1], port, argv[i]);
	printf("@end\n");
	return 0;
}
