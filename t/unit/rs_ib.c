/* Streams between addresses of InfiniBand. */
#include "unit/rs_unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/ib.h>
#include <string.h>

#include "proto/conndata.h"

static void set_up(void)
{
	cm_set_up();
	fake_device_add(FAKE_IB);
}

static struct sockaddr_ib place(const char *gid, uint16_t port)
{
	struct sockaddr_ib sib = {
		.sib_family = AF_IB,
		.sib_pkey = 0xffff,
		.sib_sid = htobe64((uint64_t)RDMA_PS_TCP << 16 | port),
		.sib_sid_mask = UINT64_MAX,
	};

	ck_assert_int_eq(inet_pton(AF_INET6, gid, &sib.sib_addr), 1);
	return sib;
}

static int open_one(void)
{
	int fd = rsocket(AF_IB, SOCK_STREAM | SOCK_NONBLOCK, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static int connect_one(uint16_t port)
{
	struct sockaddr_ib sib = place(FAKE_IB_GID, port);
	int fd = open_one();

	ck_assert_fails(rconnect(fd, (struct sockaddr *)&sib, sizeof(sib)), EINPROGRESS);
	return fd;
}

static int listen_one(uint16_t port)
{
	struct sockaddr_ib sib = place(FAKE_IB_GID, port);
	int fd = open_one();

	ck_assert_ok(rbind(fd, (struct sockaddr *)&sib, sizeof(sib)));
	ck_assert_ok(rlisten(fd, 1));
	return fd;
}

START_TEST(a_stream_connects_two_gids)
{
	struct rs_pair pair = { .listener = listen_one(CM_PORT), .client = connect_one(CM_PORT) };
	struct sockaddr_ib name, expected = place(FAKE_IB_GID, CM_PORT);
	socklen_t len = sizeof(name);

	while (!rs_events(pair.listener, POLLIN))
		rs_events(pair.client, POLLOUT);
	pair.server = raccept(pair.listener, NULL, NULL);
	ck_assert_int_eq(rs_await(pair.client, POLLOUT), POLLOUT);
	ck_assert_ok(rfcntl(pair.server, F_SETFL, O_RDWR | O_NONBLOCK));
	rs_pass(pair.client, pair.server, 300000);
	rs_pass(pair.server, pair.client, 1000);
	ck_assert_fails(rrecv(pair.client, &name, sizeof(name), 0), EAGAIN);
	ck_assert_ok(rgetpeername(pair.client, (struct sockaddr *)&name, &len));
	ck_assert_uint_eq(len, sizeof(name));
	ck_assert_int_eq(name.sib_family, AF_IB);
	ck_assert_mem_eq(&name.sib_addr, &expected.sib_addr, sizeof(name.sib_addr));
	ck_assert_uint_eq(name.sib_sid, expected.sib_sid);
	ck_assert_ok(rgetsockname(pair.server, (struct sockaddr *)&name, &len));
	ck_assert_uint_eq(len, sizeof(name));
	rs_close(&pair);
}
END_TEST

/* Where an IP connection has its addresses, which the CM adds there. */
START_TEST(a_request_begins_with_36_zeroes)
{
	struct rdma_event_channel *channel = cm_channel();
	struct rdma_cm_id *listener = cm_id(channel, RDMA_PS_TCP);
	struct sockaddr_ib sib = place(FAKE_IB_GID, CM_PORT);
	const uint8_t zeroes[36] = { 0 };
	struct evr_conndata conn;
	struct rdma_cm_event *event;
	int fd;

	ck_assert_ok(rdma_bind_addr(listener, (struct sockaddr *)&sib));
	ck_assert_ok(rdma_listen(listener, 1));
	fd = connect_one(CM_PORT);
	rs_events(fd, POLLOUT);
	event = cm_expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ck_assert_mem_eq(event->param.conn.private_data, zeroes, sizeof(zeroes));
	ck_assert_int_eq(evr_conndata_decode(&conn, sizeof(zeroes), event->param.conn.private_data,
				 event->param.conn.private_data_len),
		0);
	cm_destroy(event->id);
	rdma_ack_cm_event(event);
	ck_assert_ok(rclose(fd));
	cm_destroy(listener);
	rdma_destroy_event_channel(channel);
}
END_TEST

START_TEST(what_has_no_gid_is_told)
{
	struct sockaddr_ib sib = place("fe80::99", CM_PORT);
	int fd = open_one();

	ck_assert_fails(rbind(fd, (struct sockaddr *)&sib, sizeof(sib)), ENODEV);
	ck_assert_fails(rbind(fd, (struct sockaddr *)&sib, sizeof(sib) - 1), EINVAL);
	ck_assert_fails(rbind(fd, cm_addr(FAKE_IB_IP, 1), sizeof(sib)), EAFNOSUPPORT);
	ck_assert_fails(rconnect(fd, (struct sockaddr *)&sib, sizeof(sib) - 1), EINVAL);
	ck_assert_fails(rconnect(fd, (struct sockaddr *)&sib, sizeof(sib)), ENODEV);
	ck_assert_ok(rclose(fd));
	ck_assert_fails(rsocket(AF_IB, SOCK_DGRAM, 0), EAFNOSUPPORT);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_stream_connects_two_gids,
		a_request_begins_with_36_zeroes,
		what_has_no_gid_is_told,
	};

	return unit_main("rs_ib", tests, sizeof(tests) / sizeof(tests[0]), set_up, cm_tear_down);
}
