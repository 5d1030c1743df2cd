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

/* --- paths ----------------------------------------------------------------------------------- */

static struct ibv_path_data path_to(const char *gid, uint32_t flags)
{
	struct ibv_path_data data = { .flags = flags,
		.path = { .mtu = 4, .reversible_numpath = IBV_PATH_RECORD_REVERSIBLE | 1 } };

	ck_assert_int_eq(inet_pton(AF_INET6, gid, &data.path.dgid), 1);
	data.path.sgid = data.path.dgid;
	return data;
}

enum { USED = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL };

static socklen_t get_paths(int fd, struct ibv_path_data *paths, socklen_t room)
{
	ck_assert_ok(rgetsockopt(fd, SOL_RDMA, RDMA_ROUTE, paths, &room));
	return room;
}

static struct rs_pair connect_with(const struct ibv_path_data *paths, socklen_t len)
{
	struct sockaddr_ib sib = place(FAKE_IB_GID, CM_PORT);
	struct rs_pair pair = { .listener = listen_one(CM_PORT), .client = open_one() };

	if (len)
		ck_assert_ok(rsetsockopt(pair.client, SOL_RDMA, RDMA_ROUTE, paths, len));
	ck_assert_fails(
		rconnect(pair.client, (struct sockaddr *)&sib, sizeof(sib)), EINPROGRESS);
	while (!rs_events(pair.listener, POLLIN))
		rs_events(pair.client, POLLOUT);
	pair.server = raccept(pair.listener, NULL, NULL);
	ck_assert_int_eq(rs_await(pair.client, POLLOUT), POLLOUT);
	return pair;
}

START_TEST(paths_come_back_as_they_were_set)
{
	struct ibv_path_data set[2] = { path_to(FAKE_IB_GID, USED), path_to("fe80::9", 0) };
	struct ibv_path_data got[3];
	int fd = open_one();

	ck_assert_uint_eq(get_paths(fd, got, sizeof(got)), 0);
	ck_assert_ok(rsetsockopt(fd, SOL_RDMA, RDMA_ROUTE, set, sizeof(set)));
	ck_assert_uint_eq(get_paths(fd, got, sizeof(got)), sizeof(set));
	ck_assert_mem_eq(got, set, sizeof(set));
	ck_assert_uint_eq(get_paths(fd, got, sizeof(set) - 1), sizeof(set[0]));
	ck_assert_ok(rsetsockopt(fd, SOL_RDMA, RDMA_ROUTE, &set[1], sizeof(set[1])));
	ck_assert_uint_eq(get_paths(fd, got, sizeof(got)), sizeof(set[1]));
	ck_assert_mem_eq(got, &set[1], sizeof(set[1]));
	ck_assert_ok(rclose(fd));
}
END_TEST

START_TEST(what_is_no_path_is_refused)
{
	struct ibv_path_data many[17] = { path_to(FAKE_IB_GID, USED) };
	int fd = open_one(), dgram = rsocket(AF_INET, SOCK_DGRAM, 0);
	socklen_t len = sizeof(many);

	ck_assert_fails(rsetsockopt(fd, SOL_RDMA, RDMA_ROUTE, many, 0), EINVAL);
	ck_assert_fails(rsetsockopt(fd, SOL_RDMA, RDMA_ROUTE, many, sizeof(many[0]) + 1), EINVAL);
	ck_assert_fails(rsetsockopt(fd, SOL_RDMA, RDMA_ROUTE, many, sizeof(many)), EINVAL);
	ck_assert_fails(rsetsockopt(fd, SOL_RDMA, RDMA_ROUTE, NULL, sizeof(many[0])), EFAULT);
	ck_assert_fails(rgetsockopt(fd, SOL_RDMA, RDMA_ROUTE, NULL, &len), EFAULT);
	ck_assert_fails(rsetsockopt(dgram, SOL_RDMA, RDMA_ROUTE, many, sizeof(many[0])), ENOTSUP);
	ck_assert_fails(rgetsockopt(dgram, SOL_RDMA, RDMA_ROUTE, many, &len), ENOTSUP);
	ck_assert_ok(rclose(fd));
	ck_assert_ok(rclose(dgram));
}
END_TEST

START_TEST(paths_that_were_set_stand_in_for_the_lookup)
{
	const struct ibv_path_data path = path_to(FAKE_IB_GID, USED);
	struct rs_pair pair = connect_with(&path, sizeof(path));

	ck_assert_uint_eq(fake_calls("RESOLVE_ROUTE"), 0);
	ck_assert_fails(rsetsockopt(pair.client, SOL_RDMA, RDMA_ROUTE, &path, sizeof(path)),
		EINVAL);
	ck_assert_ok(rfcntl(pair.server, F_SETFL, O_RDWR | O_NONBLOCK));
	rs_pass(pair.client, pair.server, 1000);
	rs_close(&pair);
}
END_TEST

/* What one has found is what another may be given. */
START_TEST(the_path_that_was_taken_is_got_and_can_be_set)
{
	struct rs_pair pair = connect_with(NULL, 0);
	struct ibv_path_data got[2], again[2];

	ck_assert_uint_eq(fake_calls("RESOLVE_ROUTE"), 1);
	ck_assert_uint_eq(get_paths(pair.client, got, sizeof(got)), sizeof(got[0]));
	ck_assert_uint_eq(got[0].flags, USED);
	ck_assert_uint_eq(got[0].path.dlid, htobe16(7));
	ck_assert_uint_eq(got[0].path.pkey, 0xffff);
	ck_assert_uint_eq(got[0].path.reversible_numpath, IBV_PATH_RECORD_REVERSIBLE | 1);
	ck_assert_uint_eq(got[0].path.mtu >> 6, 2);
	rs_close(&pair);
	pair = connect_with(got, sizeof(got[0]));
	ck_assert_uint_eq(fake_calls("RESOLVE_ROUTE"), 1);
	ck_assert_uint_eq(get_paths(pair.client, again, sizeof(again)), sizeof(again[0]));
	ck_assert_mem_eq(again, got, sizeof(again[0]));
	rs_close(&pair);
}
END_TEST

START_TEST(a_path_that_makes_no_sense_ends_the_attempt)
{
	const struct ibv_path_data path = path_to(FAKE_IB_GID, 0);
	struct sockaddr_ib sib = place(FAKE_IB_GID, CM_PORT);
	int fd = rsocket(AF_IB, SOCK_STREAM, 0);

	ck_assert_ok(rsetsockopt(fd, SOL_RDMA, RDMA_ROUTE, &path, sizeof(path)));
	ck_assert_fails(rconnect(fd, (struct sockaddr *)&sib, sizeof(sib)), EINVAL);
	ck_assert_ok(rclose(fd));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_stream_connects_two_gids,
		a_request_begins_with_36_zeroes,
		what_has_no_gid_is_told,
		paths_come_back_as_they_were_set,
		what_is_no_path_is_refused,
		paths_that_were_set_stand_in_for_the_lookup,
		the_path_that_was_taken_is_got_and_can_be_set,
		a_path_that_makes_no_sense_ends_the_attempt,
	};

	return unit_main("rs_ib", tests, sizeof(tests) / sizeof(tests[0]), set_up, cm_tear_down);
}
