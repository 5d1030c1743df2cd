#include "rs/hostile.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	PATIENCE_MS = 60000,
	TIMEOUT_MS = 2000,
	QUEUE = 56, /* of some devices 64 is the most */
	SOURCE = 8192, /* bytes that it sends from, the last of them for iWARP's messages */
	MESSAGES_AT = SOURCE - QUEUE * EVR_IMM_MESSAGE_LEN,
	TARGET_AT = SOURCE,
	INBOX_AT = SOURCE + 64,
	RING_AT = SOURCE * 2,
};

struct hostile_place hostile_place;

void hostile_rest(unsigned int ms)
{
	do {
		if (hostile_place.turn)
			hostile_place.turn();
		usleep(1000);
	} while (ms-- > 1);
}

/* --- its beginning and its end --------------------------------------------------------------- */

void hostile_open(struct hostile *hostile)
{
	*hostile = (struct hostile){ .channel = rdma_create_event_channel() };
	ck_assert_ptr_nonnull(hostile->channel);
	ck_assert_int_eq(fcntl(hostile->channel->fd, F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(posix_memalign((void **)&hostile->memory, 4096, HOSTILE_MEMORY), 0);
	memset(hostile->memory, 0, HOSTILE_MEMORY);
}

static void close_id(struct hostile *hostile)
{
	if (hostile->id->qp)
		rdma_destroy_qp(hostile->id);
	if (hostile->mr)
		ibv_dereg_mr(hostile->mr);
	if (hostile->cq)
		ibv_destroy_cq(hostile->cq);
	rdma_destroy_id(hostile->id);
	hostile->id = NULL;
	hostile->mr = NULL;
	hostile->cq = NULL;
}

void hostile_close(struct hostile *hostile)
{
	if (hostile->id)
		close_id(hostile);
	if (hostile->listener)
		rdma_destroy_id(hostile->listener);
	rdma_destroy_event_channel(hostile->channel);
	free(hostile->memory);
}

/* --- what it says of itself ------------------------------------------------------------------ */

struct evr_conndata hostile_conndata(const struct hostile *hostile)
{
	return (struct evr_conndata){
		.big_endian = htons(1) == 1,
		.credits = HOSTILE_CREDITS,
		.target_addr = (uintptr_t)(hostile->memory + TARGET_AT),
		.target_rkey = hostile->mr->rkey,
		.data = {
			.addr = (uintptr_t)(hostile->memory + RING_AT),
			.rkey = hostile->mr->rkey,
			.len = HOSTILE_RING,
		},
	};
}

size_t hostile_encode(const struct hostile *hostile, uint8_t data[HOSTILE_DATA_MAX])
{
	struct evr_conndata conn = hostile_conndata(hostile);

	return (size_t)evr_conndata_encode(&conn, 0, data, HOSTILE_DATA_MAX);
}

/* --- events ---------------------------------------------------------------------------------- */

static void keep(struct hostile *hostile, const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		hostile->id = event->id;
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST ||
		(event->event == RDMA_CM_EVENT_ESTABLISHED && event->param.conn.private_data))
		evr_conndata_decode(&hostile->theirs, 0, event->param.conn.private_data,
			event->param.conn.private_data_len);
}

enum rdma_cm_event_type hostile_await(struct hostile *hostile)
{
	struct pollfd pfd = { .fd = hostile->channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	while (rdma_get_cm_event(hostile->channel, &event)) {
		ck_assert_int_eq(errno, EAGAIN);
		if (hostile_place.turn)
			hostile_rest(1);
		else
			ck_assert_int_eq(poll(&pfd, 1, PATIENCE_MS), 1);
	}
	type = event->event;
	keep(hostile, event);
	rdma_ack_cm_event(event);
	return type;
}

void hostile_await_type(struct hostile *hostile, enum rdma_cm_event_type type)
{
	while (hostile_await(hostile) != type)
		;
}

/* --- its queue pair -------------------------------------------------------------------------- */

static void post_receive(struct hostile *hostile)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)(hostile->memory + INBOX_AT),
		.length = EVR_IMM_MESSAGE_LEN,
		.lkey = hostile->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;

	ibv_post_recv(hostile->id->qp, &wr, &bad);
}

static void make_qp(struct hostile *hostile)
{
	struct ibv_qp_init_attr attr = {
		.cap = { QUEUE, HOSTILE_CREDITS * 2, 1, 1, EVR_IMM_MESSAGE_LEN },
		.qp_type = IBV_QPT_RC,
	};
	int i;

	hostile->iwarp = hostile->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	hostile->cq = ibv_create_cq(hostile->id->verbs, QUEUE + HOSTILE_CREDITS * 2, NULL, NULL, 0);
	ck_assert_ptr_nonnull(hostile->cq);
	attr.send_cq = attr.recv_cq = hostile->cq;
	ck_assert_int_eq(rdma_create_qp(hostile->id, NULL, &attr), 0);
	hostile->mr = ibv_reg_mr(hostile->id->qp->pd, hostile->memory, HOSTILE_MEMORY,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	ck_assert_ptr_nonnull(hostile->mr);
	for (i = 0; i < HOSTILE_CREDITS * 2; i++)
		post_receive(hostile);
}

/* Flushed receives are no messages. */
static void poll_cq(struct hostile *hostile)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(hostile->cq, 1, &wc) == 1) {
		if (!wc.wr_id)
			hostile->sent++;
		else if (wc.status == IBV_WC_SUCCESS)
			hostile->received++;
	}
}

void hostile_await_messages(struct hostile *hostile, unsigned int num)
{
	int waited;

	for (waited = 0; hostile->received < num; waited++) {
		ck_assert_int_lt(waited, PATIENCE_MS);
		poll_cq(hostile);
		hostile_rest(1);
	}
}

void hostile_await_sent(struct hostile *hostile)
{
	int waited;

	for (waited = 0; hostile->sent < hostile->posted; waited++) {
		ck_assert_int_lt(waited, PATIENCE_MS);
		poll_cq(hostile);
		hostile_rest(1);
	}
}

/* --- as the side that asks ------------------------------------------------------------------- */

static struct sockaddr_in place(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, hostile_place.ip, &addr.sin_addr);
	return addr;
}

void hostile_resolve(struct hostile *hostile, uint16_t port)
{
	struct sockaddr_in addr = place(port);

	ck_assert_int_eq(rdma_create_id(hostile->channel, &hostile->id, NULL, RDMA_PS_TCP), 0);
	ck_assert_int_eq(
		rdma_resolve_addr(hostile->id, NULL, (struct sockaddr *)&addr, TIMEOUT_MS), 0);
	ck_assert_int_eq(hostile_await(hostile), RDMA_CM_EVENT_ADDR_RESOLVED);
	ck_assert_int_eq(rdma_resolve_route(hostile->id, TIMEOUT_MS), 0);
	ck_assert_int_eq(hostile_await(hostile), RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(hostile);
}

static struct rdma_conn_param param_of(const void *data, size_t len)
{
	return (struct rdma_conn_param){
		.private_data = data,
		.private_data_len = (uint8_t)len,
		.initiator_depth = 1,
		.responder_resources = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

void hostile_request(struct hostile *hostile, const void *data, size_t len)
{
	struct rdma_conn_param param = param_of(data, len);

	ck_assert_int_eq(rdma_connect(hostile->id, &param), 0);
}

/* --- as the side that is asked --------------------------------------------------------------- */

uint16_t hostile_listen(struct hostile *hostile)
{
	struct sockaddr_in addr = place(0);

	ck_assert_int_eq(
		rdma_create_id(hostile->channel, &hostile->listener, NULL, RDMA_PS_TCP), 0);
	ck_assert_int_eq(rdma_bind_addr(hostile->listener, (struct sockaddr *)&addr), 0);
	ck_assert_int_eq(rdma_listen(hostile->listener, 1), 0);
	return ntohs(rdma_get_src_port(hostile->listener));
}

void hostile_take_request(struct hostile *hostile)
{
	hostile_await_type(hostile, RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(hostile);
}

void hostile_accept(struct hostile *hostile, const void *data, size_t len)
{
	struct rdma_conn_param param = param_of(data, len);

	ck_assert_int_eq(rdma_accept(hostile->id, &param), 0);
}

/* --- work ------------------------------------------------------------------------------------ */

static void post(
	struct hostile *hostile, struct ibv_send_wr *wr, const uint8_t *bytes, uint32_t len)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)bytes,
		.length = len,
		.lkey = hostile->mr->lkey,
	};
	struct ibv_send_wr *bad;

	wr->send_flags |= IBV_SEND_SIGNALED;
	wr->sg_list = &sge;
	wr->num_sge = len ? 1 : 0;
	hostile->posted += !ibv_post_send(hostile->id->qp, wr, &bad);
}

/* On iWARP an immediate is a message. */
static void say_by_message(struct hostile *hostile, uint32_t imm)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	unsigned int place = hostile->posted % QUEUE;
	uint8_t *message = hostile->memory + MESSAGES_AT + place * EVR_IMM_MESSAGE_LEN;

	evr_imm_to_message(imm, message);
	post(hostile, &wr, message, EVR_IMM_MESSAGE_LEN);
}

void hostile_write(struct hostile *hostile, const struct hostile_write *write)
{
	bool by_imm = write->announced && !hostile->iwarp;
	struct ibv_send_wr wr = {
		.opcode = by_imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
		.imm_data = evr_imm_to_ib(write->imm),
		.wr.rdma = { .remote_addr = write->addr, .rkey = write->rkey },
	};

	if (write->len || by_imm)
		post(hostile, &wr, hostile->memory, write->len);
	if (write->announced && !by_imm)
		say_by_message(hostile, write->imm);
}

void hostile_say(struct hostile *hostile, uint32_t imm)
{
	hostile_write(hostile, &(struct hostile_write){ .announced = true, .imm = imm });
}

void hostile_read(struct hostile *hostile, uint64_t addr, uint32_t rkey, uint32_t len)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_READ,
		.wr.rdma = { .remote_addr = addr, .rkey = rkey },
	};

	post(hostile, &wr, hostile->memory, len);
}

void hostile_send(struct hostile *hostile, uint32_t len)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	post(hostile, &wr, hostile->memory, len);
}
