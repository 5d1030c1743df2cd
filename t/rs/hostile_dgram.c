#include "rs/hostile_dgram.h"

#include <arpa/inet.h>
#include <check.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/dgram.h"

enum { TIMEOUT_MS = 2000, PATIENCE_MS = 60000, LEAST_MTU = 128 };

const char *hostile_dgram_ip;

struct sockaddr_in hostile_dgram_addr(const char *ip, uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = port };

	ck_assert_int_eq(inet_pton(AF_INET, ip, &addr.sin_addr), 1);
	return addr;
}

/* --- its beginning and its end --------------------------------------------------------------- */

static int bound_socket(struct sockaddr_in *addr)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t len = sizeof(*addr);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)addr, sizeof(*addr)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)addr, &len), 0);
	return fd;
}

static void await(struct hostile_dgram *hostile, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	ck_assert_int_eq(rdma_get_cm_event(hostile->channel, &event), 0);
	ck_assert_int_eq(event->event, type);
	rdma_ack_cm_event(event);
}

static void resolve(struct hostile_dgram *hostile)
{
	hostile->channel = rdma_create_event_channel();
	ck_assert_ptr_nonnull(hostile->channel);
	ck_assert_int_eq(rdma_create_id(hostile->channel, &hostile->id, NULL, RDMA_PS_UDP), 0);
	ck_assert_int_eq(rdma_resolve_addr(hostile->id, NULL, (struct sockaddr *)&hostile->victim,
				 TIMEOUT_MS),
		0);
	await(hostile, RDMA_CM_EVENT_ADDR_RESOLVED);
	ck_assert_int_eq(rdma_resolve_route(hostile->id, TIMEOUT_MS), 0);
	await(hostile, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void make_qp(struct hostile_dgram *hostile)
{
	struct ibv_context *verbs = hostile->id->verbs;
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1 },
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_port_attr port;

	hostile->cq = ibv_create_cq(verbs, 2, NULL, NULL, 0);
	ck_assert_ptr_nonnull(hostile->cq);
	attr.send_cq = attr.recv_cq = hostile->cq;
	ck_assert_int_eq(rdma_create_qp(hostile->id, NULL, &attr), 0);
	hostile->mr = ibv_reg_mr(hostile->id->qp->pd, hostile->memory, HOSTILE_DGRAM_MOST,
		IBV_ACCESS_LOCAL_WRITE);
	ck_assert_ptr_nonnull(hostile->mr);
	ck_assert_int_eq(ibv_query_port(verbs, hostile->id->port_num, &port), 0);
	hostile->mtu = (size_t)LEAST_MTU << port.active_mtu;
}

static uint8_t gid_index(const struct hostile_dgram *hostile)
{
	const struct ibv_sa_path_rec *path = hostile->id->route.path_rec;
	union ibv_gid gid;
	uint8_t i = 0;

	do {
		ck_assert_int_eq(
			ibv_query_gid(hostile->id->verbs, hostile->id->port_num, i, &gid), 0);
	} while (memcmp(&gid, &path->sgid, sizeof(gid)) != 0 && ++i);
	return i;
}

static struct ibv_ah *make_ah(
	const struct hostile_dgram *hostile, const struct hostile_dgram_way *way)
{
	const struct ibv_sa_path_rec *path = hostile->id->route.path_rec;
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = hostile->id->port_num,
		.dlid = be16toh(path->dlid),
		.grh = { .dgid = path->dgid,
			.sgid_index = gid_index(hostile),
			.hop_limit = way->odd_route ? 1 : path->hop_limit,
			.flow_label = way->odd_route ? 0xfffff : 0,
			.traffic_class = way->odd_route ? 0xff : 0 },
	};
	struct ibv_ah *ah = ibv_create_ah(hostile->id->qp->pd, &attr);

	ck_assert_ptr_nonnull(ah);
	return ah;
}

void hostile_dgram_open(struct hostile_dgram *hostile, const struct sockaddr_in *victim)
{
	*hostile = (struct hostile_dgram){ .victim = *victim };
	hostile->own = hostile_dgram_addr(hostile_dgram_ip, 0);
	hostile->udp = bound_socket(&hostile->own);
	ck_assert_int_eq(
		posix_memalign((void **)&hostile->memory, 4096, HOSTILE_DGRAM_MOST), 0);
	resolve(hostile);
	make_qp(hostile);
	hostile->ah = make_ah(hostile, &(struct hostile_dgram_way){ 0 });
}

void hostile_dgram_close(struct hostile_dgram *hostile)
{
	ibv_destroy_ah(hostile->ah);
	rdma_destroy_qp(hostile->id);
	ibv_dereg_mr(hostile->mr);
	ibv_destroy_cq(hostile->cq);
	rdma_destroy_id(hostile->id);
	rdma_destroy_event_channel(hostile->channel);
	free(hostile->memory);
	close(hostile->udp);
}

/* --- by UDP ---------------------------------------------------------------------------------- */

static void send_from(int fd, struct hostile_dgram *hostile, const void *bytes, size_t len)
{
	ck_assert_int_eq(sendto(fd, bytes, len, 0, (struct sockaddr *)&hostile->victim,
				 sizeof(hostile->victim)),
		(ssize_t)len);
}

void hostile_dgram_say_by_udp(struct hostile_dgram *hostile, const void *bytes, size_t len)
{
	send_from(hostile->udp, hostile, bytes, len);
}

void hostile_dgram_say_from(
	struct hostile_dgram *hostile, const char *ip, const void *bytes, size_t len)
{
	struct sockaddr_in addr = hostile_dgram_addr(ip, 0);
	int fd = bound_socket(&addr);

	send_from(fd, hostile, bytes, len);
	close(fd);
}

void hostile_dgram_ask(struct hostile_dgram *hostile)
{
	struct evr_dgram_message message = { .version = 4, .qpn = hostile->id->qp->qp_num };
	uint8_t bytes[EVR_DGRAM_UDP_LEN4 + 1];

	memcpy(message.addr, &hostile->own.sin_addr, sizeof(hostile->own.sin_addr));
	ck_assert_int_eq(evr_dgram_message_encode(&message, bytes, sizeof(bytes)),
		EVR_DGRAM_UDP_LEN4);
	bytes[EVR_DGRAM_UDP_LEN4] = 'x';
	hostile_dgram_say_by_udp(hostile, bytes, sizeof(bytes));
}

void hostile_dgram_take_answer(struct hostile_dgram *hostile)
{
	struct pollfd pfd = { .fd = hostile->udp, .events = POLLIN };
	struct evr_dgram_message message;
	uint8_t bytes[64];
	ssize_t len;

	ck_assert_int_eq(poll(&pfd, 1, PATIENCE_MS), 1);
	len = recv(hostile->udp, bytes, sizeof(bytes), 0);
	ck_assert_int_ge(len, 0);
	ck_assert_int_eq(evr_dgram_message_decode(&message, bytes, (size_t)len), (int)len);
	ck_assert_int_eq(message.op, EVR_DGRAM_CONTROL);
	hostile->qpn = message.qpn;
}

/* --- by the queue pair ----------------------------------------------------------------------- */

static void await_sent(struct hostile_dgram *hostile)
{
	struct ibv_wc wc;
	int num;

	do {
		num = ibv_poll_cq(hostile->cq, 1, &wc);
		ck_assert_int_ge(num, 0);
	} while (!num);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
}

void hostile_dgram_say_by_qp(struct hostile_dgram *hostile, const struct hostile_dgram_way *way,
	const void *bytes, size_t len)
{
	struct ibv_ah *ah = way->odd_route ? make_ah(hostile, way) : NULL;
	struct ibv_sge sge = {
		(uintptr_t)hostile->memory, (uint32_t)len, hostile->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.opcode = way->imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { ah ? ah : hostile->ah, hostile->qpn,
			RDMA_UDP_QKEY ^ way->qkey_change },
	}, *bad;

	memcpy(hostile->memory, bytes, len);
	ck_assert_int_eq(ibv_post_send(hostile->id->qp, &wr, &bad), 0);
	await_sent(hostile);
	if (ah)
		ibv_destroy_ah(ah);
}
