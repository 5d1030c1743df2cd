/*
 * Datagrams of strangers: their headers and messages (lib/proto/dgram.c), and a datagram rsocket
 * that meets them, by UDP and by its queue pair, between the calls of a user. See README.
 */
#include "fuzz/fuzz.h"

#include "fake/fake.h"
#include "proto/bytes.h"
#include "proto/dgram.h"
#include "util/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	IPV6 = 1, /* bits of the first byte */
	CONNECTED = 2,
	UNIT = 16, /* by which a step may be longer than its bytes */
	LARGEST = 4096,
	READING_US = 1001, /* what each reading of the clock takes: it looks at UDP each time */
	PASSING_US = 2000000,
	STRANGERS_MOST = 8, /* address handles of those it was told of, and ids */
};

static struct {
	int fd, udp;
	struct sockaddr_in addr; /* of the rsocket, as the stranger sees it */
	struct sockaddr_in own;	 /* the stranger's */
	struct sockaddr_storage heard;
	socklen_t heard_len;
	uint32_t qpn; /* the rsocket's */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	uint8_t memory[LARGEST];
	size_t len; /* what was sent last */
} fixture;

/* --- the clock, in the place of the library's ------------------------------------------------ */

static uint64_t now_us;

uint64_t evr_clock_now_us(void)
{
	return now_us += READING_US;
}

/* --- headers and messages -------------------------------------------------------------------- */

static bool is_told(int error)
{
	return error == -EMSGSIZE || error == -EAFNOSUPPORT || error == -EBADMSG ||
	       error == -EPROTO;
}

/* What was understood is what is sent. */
static void try_header(const uint8_t *bytes, size_t len)
{
	uint8_t again[EVR_DGRAM_LEN6];
	struct evr_dgram_header header;
	int ret = evr_dgram_decode(&header, bytes, len);

	if (ret < 0) {
		fuzz_check(is_told(ret));
		return;
	}
	fuzz_check((size_t)ret <= len);
	fuzz_check(evr_dgram_encode(&header, again, sizeof(again)) == ret);
	fuzz_check(memcmp(again, bytes, (size_t)ret) == 0);
}

static void try_message(const uint8_t *bytes, size_t len)
{
	struct evr_dgram_message message, same;
	uint8_t again[EVR_DGRAM_UDP_LEN6];
	int ret = evr_dgram_message_decode(&message, bytes, len);

	if (ret < 0) {
		fuzz_check(is_told(ret));
		return;
	}
	fuzz_check((size_t)ret <= len);
	fuzz_check(message.op != EVR_DGRAM_CONTROL || (size_t)ret == len);
	fuzz_check(evr_dgram_message_encode(&message, again, sizeof(again)) == ret);
	fuzz_check(evr_dgram_message_decode(&same, again, (size_t)ret) == ret);
	fuzz_check(same.qpn == message.qpn && same.op == message.op);
	fuzz_check(memcmp(same.addr, message.addr, sizeof(same.addr)) == 0);
}

/* In memory of its length, for the address sanitizer to see what is read. */
static void try_bytes(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	fuzz_check(copy);
	memcpy(copy, bytes, len);
	try_header(copy, len);
	try_message(copy, len);
	free(copy);
}

/* --- the stranger ---------------------------------------------------------------------------- */

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = port,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

static void open_udp(void)
{
	socklen_t len = sizeof(fixture.own);

	fixture.own = loopback(0);
	fixture.udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	fuzz_check(fixture.udp >= 0);
	fuzz_check(!bind(fixture.udp, (struct sockaddr *)&fixture.own, sizeof(fixture.own)));
	fuzz_check(!getsockname(fixture.udp, (struct sockaddr *)&fixture.own, &len));
}

static void make_ah(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh.sgid_index = (uint8_t)fake_gid_of_ip(FAKE_ROCE),
	};

	attr.grh.dgid.raw[10] = attr.grh.dgid.raw[11] = 0xff;
	inet_pton(AF_INET, FAKE_ROCE_IP, &attr.grh.dgid.raw[12]);
	fixture.ah = ibv_create_ah(fixture.id->pd, &attr);
	fuzz_check(fixture.ah);
}

static void open_qp(void)
{
	struct sockaddr_in addr = loopback(0);
	struct ibv_qp_init_attr attr = fuzz_qp_attr(IBV_QPT_UD);

	fixture.channel = fuzz_channel();
	fuzz_check(!rdma_create_id(fixture.channel, &fixture.id, NULL, RDMA_PS_UDP));
	fuzz_check(!rdma_bind_addr(fixture.id, (struct sockaddr *)&addr));
	fixture.cq = ibv_create_cq(fixture.id->verbs, 8, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = fixture.cq;
	fuzz_check(fixture.cq && !rdma_create_qp(fixture.id, NULL, &attr));
	fixture.mr = ibv_reg_mr(
		fixture.id->pd, fixture.memory, LARGEST, IBV_ACCESS_LOCAL_WRITE);
	fuzz_check(fixture.mr);
	make_ah();
}

static void close_qp(void)
{
	if (!fixture.id)
		return;
	ibv_destroy_ah(fixture.ah);
	rdma_destroy_qp(fixture.id);
	ibv_dereg_mr(fixture.mr);
	ibv_destroy_cq(fixture.cq);
	rdma_destroy_id(fixture.id);
	rdma_destroy_event_channel(fixture.channel);
	fixture.id = NULL;
}

static void send_by_udp(void)
{
	ssize_t ret = sendto(fixture.udp, fixture.memory, fixture.len, 0,
		(struct sockaddr *)&fixture.addr, sizeof(fixture.addr));

	fuzz_check(ret == (ssize_t)fixture.len || errno == ECONNREFUSED);
}

static void send_by_qp(void)
{
	struct ibv_sge sge = {
		(uintptr_t)fixture.memory, (uint32_t)fixture.len, fixture.mr->lkey,
	};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { fixture.ah, fixture.qpn, RDMA_UDP_QKEY },
	}, *bad;
	struct ibv_wc wc;

	fuzz_check(!ibv_post_send(fixture.id->qp, &wr, &bad));
	fuzz_check(ibv_poll_cq(fixture.cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
}

/* --- the rsocket ----------------------------------------------------------------------------- */

static void open_rsocket(int family)
{
	struct sockaddr_storage any = { .ss_family = (sa_family_t)family };
	socklen_t len = sizeof(any);

	fixture.fd = rsocket(family, SOCK_DGRAM, 0);
	fuzz_check(fixture.fd >= 0);
	fuzz_check(!rbind(fixture.fd, (struct sockaddr *)&any, len));
	fuzz_check(!rgetsockname(fixture.fd, (struct sockaddr *)&any, &len));
	fixture.addr = loopback(((struct sockaddr_in *)&any)->sin_port);
}

static void connect_rsocket(int family)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = fixture.own.sin_port };
	int ret;

	in6.sin6_addr.s6_addr[10] = in6.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&in6.sin6_addr.s6_addr[12], &fixture.own.sin_addr, 4);
	if (family == AF_INET6)
		ret = rconnect(fixture.fd, (struct sockaddr *)&in6, sizeof(in6));
	else
		ret = rconnect(fixture.fd, (struct sockaddr *)&fixture.own, sizeof(fixture.own));
	fuzz_check(!ret);
}

/* What is received is what the stranger sent, without a header. */
static void receive(void)
{
	uint8_t got[LARGEST];
	ssize_t ret;

	do {
		fixture.heard_len = sizeof(fixture.heard);
		ret = rrecvfrom(fixture.fd, got, sizeof(got), MSG_DONTWAIT,
			(struct sockaddr *)&fixture.heard, &fixture.heard_len);
		fuzz_trace("received: %zd", ret);
		fuzz_check(ret <= (ssize_t)fixture.len);
		if (ret > 0)
			fuzz_check(!memcmp(got, fixture.memory + fixture.len - ret, (size_t)ret));
	} while (ret >= 0 && fake_live(FAKE_QP) && fixture.heard_len);
}

/* To whom it heard last, whoever that says it is. */
static void answer(void)
{
	ssize_t ret = rsendto(fixture.fd, "answer", 6, MSG_DONTWAIT,
		fixture.heard_len ? (struct sockaddr *)&fixture.heard : NULL, fixture.heard_len);

	fuzz_trace("answered: %zd", ret);
}

/* An honest message tells the queue pair of the stranger, and it is told the rsocket's. */
static void meet(void)
{
	struct evr_dgram_message message = { .version = 4, .qpn = fixture.id->qp->qp_num };
	uint8_t bytes[LARGEST];
	ssize_t ret;

	memcpy(message.addr, &fixture.own.sin_addr, 4);
	fixture.len = (size_t)evr_dgram_message_encode(&message, fixture.memory, LARGEST);
	send_by_udp();
	receive();
	ret = recv(fixture.udp, bytes, sizeof(bytes), 0);
	fuzz_check(evr_dgram_message_decode(&message, bytes, (size_t)ret) == ret);
	fuzz_check(message.op == EVR_DGRAM_CONTROL);
	fixture.qpn = message.qpn;
}

/* --- steps ----------------------------------------------------------------------------------- */

static void build(uint8_t how)
{
	int family = how & IPV6 ? AF_INET6 : AF_INET;

	memset(&fixture, 0, sizeof(fixture));
	fuzz_begin();
	fake_port_attr(FAKE_ROCE)->active_mtu = IBV_MTU_4096;
	open_udp();
	open_rsocket(family);
	if (how & CONNECTED)
		connect_rsocket(family);
	open_qp();
	meet();
}

static void tear_down(void)
{
	fuzz_check(fake_live(FAKE_AH) <= STRANGERS_MOST);
	fuzz_check(!rclose(fixture.fd));
	close_qp();
	close(fixture.udp);
	fuzz_end();
}

static void unplug(void)
{
	close_qp();
	fake_device_remove(FAKE_ROCE);
}

static void run(uint8_t step)
{
	switch (step % 8) {
	case 0:
	case 1:
		send_by_udp();
		break;
	case 2:
	case 3:
		if (fixture.id)
			send_by_qp();
		break;
	case 4:
		answer();
		break;
	case 5:
		now_us += PASSING_US;
		break;
	case 6:
		rshutdown(fixture.fd, SHUT_RD);
		break;
	default:
		if (fixture.id)
			unplug();
		break;
	}
	receive();
}

/* A step, how long it is, and its bytes; of odd ones the length counts units, most of them zero. */
static size_t run_next(const uint8_t *data, size_t size)
{
	size_t there = size - 2, len = data[1];

	fixture.len = data[0] & 1 ? len * UNIT : len;
	if (len > there)
		len = there;
	memset(fixture.memory, 0, sizeof(fixture.memory));
	memcpy(fixture.memory, data + 2, len);
	fuzz_trace("step %u, %zu bytes", data[0] % 8u, fixture.len);
	try_bytes(fixture.memory, fixture.len);
	run(data[0]);
	return 2 + len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t at = 1;

	if (size < 1)
		return 0;
	build(data[0]);
	while (size - at >= 2)
		at += run_next(data + at, size - at);
	tear_down();
	return 0;
}
