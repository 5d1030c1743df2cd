/* The fake kernel CM, through the kernel's own ABI. */
#include "kern/sys.h"
#include "unit/fake_raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

START_TEST(a_file_is_readable_exactly_while_events_wait)
{
	int fd = raw_open();
	uint32_t id = raw_create(fd, 7, RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;

	ck_assert(!raw_readable(fd));
	ck_assert_int_eq(raw_event(fd, &event), -EAGAIN);
	ck_assert_int_eq(raw_resolve(fd, id, FAKE_ROCE_IP, RAW_PORT), 0);
	raw_expect(fd, RAW_ADDR_RESOLVED);
	ck_assert(!raw_readable(fd));
	ck_assert_int_eq(raw_destroy(fd, id), 1);
	raw_close(fd);
}
END_TEST

START_TEST(a_blocking_read_with_nothing_to_come_fails)
{
	int fd = raw_open();
	struct rdma_ucm_event_resp event;

	ck_assert_int_eq(fcntl(fd, F_SETFL, 0), 0);
	ck_assert_int_eq(raw_event(fd, &event), -EDEADLK);
	raw_close(fd);
}
END_TEST

START_TEST(commands_on_strange_ids_fail_as_in_the_kernel)
{
	int fd = raw_open(), other = raw_open();
	uint32_t id = raw_create(fd, 7, RDMA_PS_TCP);

	ck_assert_int_eq(raw_route(fd, id + 1), -ENOENT);
	ck_assert_int_eq(raw_route(other, id), -EINVAL);
	ck_assert_int_eq(raw_route(fd, id), -EINVAL);
	ck_assert_int_eq(raw_connect(fd, id, 1, NULL, 0), -EINVAL);
	ck_assert_int_eq(raw_disconnect(fd, id), -EINVAL);
	ck_assert_int_eq(raw_command(fd, RDMA_USER_CM_CMD_GET_OPTION, &id, sizeof(id), 0), -ENOSYS);
	ck_assert_int_eq(raw_command(fd, 99, &id, sizeof(id), 0), -EINVAL);
	raw_close(fd);
	raw_close(other);
}
END_TEST

START_TEST(ports_conflict_as_in_the_kernel)
{
	int fd = raw_open();
	uint32_t a = raw_create(fd, 1, RDMA_PS_TCP), b = raw_create(fd, 2, RDMA_PS_TCP);

	ck_assert_int_eq(raw_bind(fd, a, FAKE_ROCE_IP, 80), 0);
	ck_assert_int_eq(raw_bind(fd, b, FAKE_ROCE_IP, 80), -EADDRINUSE);
	ck_assert_int_eq(raw_bind(fd, b, "0.0.0.0", 80), -EADDRNOTAVAIL);
	ck_assert_int_eq(raw_bind(fd, b, "192.0.2.77", 80), -ENODEV);
	ck_assert_int_eq(raw_bind(fd, b, FAKE_NO_RDMA_IP, 80), -ENODEV);
	ck_assert_int_eq(raw_bind(fd, b, "0.0.0.0", 0), 0);
	ck_assert_int_eq(raw_bind(fd, b, "0.0.0.0", 0), -EINVAL);
	raw_close(fd);
}
END_TEST

static void expect_addr_error(int fd, const char *ip, int status)
{
	uint32_t id = raw_create(fd, 1, RDMA_PS_TCP);

	ck_assert_int_eq(raw_resolve(fd, id, ip, 1), 0);
	ck_assert_int_eq((int)raw_expect(fd, RAW_ADDR_ERROR).status, status);
	ck_assert_int_eq(raw_resolve(fd, id, FAKE_ROCE_IP, 1), 0);
	raw_expect(fd, RAW_ADDR_RESOLVED);
	raw_destroy(fd, id);
}

START_TEST(an_address_that_does_not_resolve_can_be_followed_by_one_that_does)
{
	int fd = raw_open();
	uint32_t id = raw_create(fd, 1, RDMA_PS_TCP);

	expect_addr_error(fd, "192.0.2.9", -ETIMEDOUT);
	expect_addr_error(fd, FAKE_NO_RDMA_IP, -ENODEV);
	ck_assert_int_eq(raw_resolve(fd, id, FAKE_NO_ROUTE_IP, 1), -ENETUNREACH);
	ck_assert_int_eq(raw_resolve(fd, id, "127.0.0.1", 1), 0);
	raw_expect(fd, RAW_ADDR_RESOLVED);
	raw_close(fd);
}
END_TEST

START_TEST(a_connection_is_made_and_ended)
{
	int fd = raw_open();
	struct raw_pair pair = raw_connected(fd, FAKE_ROCE_IP, 17, 18);

	ck_assert_int_eq(raw_disconnect(fd, pair.client), 0);
	ck_assert_uint_eq(raw_expect(fd, RAW_DISCONNECTED).uid, 3);
	ck_assert(!raw_readable(fd));
	ck_assert_int_eq(raw_disconnect(fd, pair.server), 0);
	ck_assert_uint_eq(raw_expect(fd, RAW_DISCONNECTED).uid, 2);
	ck_assert_int_eq(raw_destroy(fd, pair.client), 4);
	ck_assert_int_eq(raw_destroy(fd, pair.server), 2);
	ck_assert_int_eq(raw_destroy(fd, pair.listener), 1);
	raw_close(fd);
}
END_TEST

START_TEST(ipv6_connects_and_a_v6_wildcard_takes_ipv4)
{
	int fd = raw_open();
	struct raw_pair pair = raw_connected(fd, FAKE_ROCE_IP6, 17, 18);
	uint32_t listener = raw_create(fd, 1, RDMA_PS_TCP), client;

	raw_pair_destroy(fd, &pair);
	ck_assert_int_eq(raw_bind(fd, listener, "::", RAW_PORT), 0);
	ck_assert_int_eq(raw_listen(fd, listener, 0), 0);
	client = raw_resolved(fd, 2, RDMA_PS_TCP, FAKE_ROCE_IP);
	ck_assert_int_eq(raw_connect(fd, client, 17, NULL, 0), 0);
	raw_expect(fd, RAW_CONNECT_REQUEST);
	raw_close(fd);
}
END_TEST

START_TEST(private_data_is_padded_to_the_field)
{
	int fd = raw_open();
	uint32_t client = (raw_listener(fd, RDMA_PS_TCP, FAKE_ROCE_IP),
		raw_resolved(fd, 2, RDMA_PS_TCP, FAKE_ROCE_IP));
	struct rdma_ucm_event_resp event;
	char data[200] = "hello";

	ck_assert_int_eq(raw_connect(fd, client, 17, data, 57), -EINVAL);
	ck_assert_int_eq(raw_connect(fd, client, 17, data, 5), 0);
	event = raw_expect(fd, RAW_CONNECT_REQUEST);
	ck_assert_uint_eq(event.param.conn.private_data_len, 56);
	ck_assert_str_eq((char *)event.param.conn.private_data, "hello");
	ck_assert_uint_eq(event.param.conn.responder_resources, 3);
	ck_assert_uint_eq(event.param.conn.initiator_depth, 2);
	ck_assert_uint_eq(event.param.conn.qp_num, 17);
	ck_assert_int_eq(raw_accept(fd, event.id, 3, 18, "yes", 3), 0);
	event = raw_expect(fd, RAW_CONNECT_RESPONSE);
	ck_assert_uint_eq(event.param.conn.private_data_len, 196);
	ck_assert_str_eq((char *)event.param.conn.private_data, "yes");
	ck_assert_uint_eq(event.param.conn.qp_num, 18);
	raw_close(fd);
}
END_TEST

START_TEST(a_refusal_carries_its_data_and_reason)
{
	int fd = raw_open();
	uint32_t client = (raw_listener(fd, RDMA_PS_TCP, FAKE_ROCE_IP),
		raw_resolved(fd, 2, RDMA_PS_TCP, FAKE_ROCE_IP));
	struct rdma_ucm_event_resp event;
	uint32_t child;

	ck_assert_int_eq(raw_connect(fd, client, 17, NULL, 0), 0);
	child = raw_expect(fd, RAW_CONNECT_REQUEST).id;
	ck_assert_int_eq(raw_reject(fd, child, "no", 2), 0);
	event = raw_expect(fd, RAW_REJECTED);
	ck_assert_int_eq((int)event.status, 28);
	ck_assert_uint_eq(event.param.conn.private_data_len, 148);
	ck_assert_str_eq((char *)event.param.conn.private_data, "no");
	ck_assert_int_eq(raw_reject(fd, child, "no", 2), -EINVAL);
	raw_close(fd);
}
END_TEST

START_TEST(nobody_listening_is_refused_with_reason_8)
{
	int fd = raw_open();
	uint32_t client = raw_resolved(fd, 2, RDMA_PS_TCP, FAKE_ROCE_IP);

	ck_assert_int_eq(raw_connect(fd, client, 17, NULL, 0), 0);
	ck_assert_int_eq((int)raw_expect(fd, RAW_REJECTED).status, 8);
	raw_close(fd);
}
END_TEST

START_TEST(a_full_backlog_refuses)
{
	int fd = raw_open();
	uint32_t listener = raw_create(fd, 1, RDMA_PS_TCP), client, i;

	ck_assert_int_eq(raw_bind(fd, listener, FAKE_ROCE_IP, RAW_PORT), 0);
	ck_assert_int_eq(raw_listen(fd, listener, 1), 0);
	for (i = 0; i < 2; i++) {
		client = raw_create(fd, 10 + i, RDMA_PS_TCP);
		fake_hold(FAKE_REQ);
		ck_assert_int_eq(raw_resolve(fd, client, FAKE_ROCE_IP, RAW_PORT), 0);
		raw_expect(fd, RAW_ADDR_RESOLVED);
		ck_assert_int_eq(raw_route(fd, client), 0);
		raw_expect(fd, RAW_ROUTE_RESOLVED);
		ck_assert_int_eq(raw_connect(fd, client, 17, NULL, 0), 0);
	}
	ck_assert_uint_eq(fake_release(FAKE_REQ), 2);
	raw_expect(fd, RAW_CONNECT_REQUEST);
	ck_assert_uint_eq(raw_expect(fd, RAW_REJECTED).uid, 11);
	raw_close(fd);
}
END_TEST

START_TEST(destroying_one_side_disconnects_the_other)
{
	int fd = raw_open();
	struct raw_pair pair = raw_connected(fd, FAKE_ROCE_IP, 17, 18);

	raw_destroy(fd, pair.server);
	ck_assert_uint_eq(raw_expect(fd, RAW_DISCONNECTED).uid, 2);
	ck_assert_int_eq(raw_disconnect(fd, pair.client), 0);
	ck_assert(!raw_readable(fd));
	raw_close(fd);
}
END_TEST

START_TEST(unread_events_die_with_their_id)
{
	int fd = raw_open();
	uint32_t listener = raw_listener(fd, RDMA_PS_TCP, FAKE_ROCE_IP);
	uint32_t client = raw_resolved(fd, 2, RDMA_PS_TCP, FAKE_ROCE_IP);

	ck_assert_int_eq(raw_connect(fd, client, 17, NULL, 0), 0);
	ck_assert_uint_eq(fake_live(FAKE_ID), 3);
	ck_assert_int_eq(raw_destroy(fd, listener), 0);
	ck_assert_uint_eq(fake_live(FAKE_ID), 1);
	raw_expect(fd, RAW_REJECTED);
	raw_close(fd);
}
END_TEST

START_TEST(an_id_moves_with_its_unread_events_and_wakes_nobody)
{
	int fd = raw_open(), other = raw_open();
	struct pollfd looks = { .fd = other, .events = POLLIN };
	struct rdma_ucm_migrate_resp resp = { 0 };
	uint32_t id = raw_create(fd, 5, RDMA_PS_TCP);
	struct rdma_ucm_migrate_id cmd = {
		.response = (uintptr_t)&resp, .id = id, .fd = (uint32_t)fd
	};

	ck_assert_int_eq(raw_resolve(fd, id, FAKE_ROCE_IP, 1), 0);
	raw_expect(fd, RAW_ADDR_RESOLVED);
	ck_assert_int_eq(raw_route(fd, id), 0);
	ck_assert_int_eq(
		raw_command(other, RDMA_USER_CM_CMD_MIGRATE_ID, &cmd, sizeof(cmd), sizeof(resp)),
		0);
	ck_assert_uint_eq(resp.events_reported, 1);
	ck_assert(!raw_readable(fd));
	/* Who sleeps there goes on sleeping; who looks finds it. */
	ck_assert(!raw_readable(other));
	ck_assert_int_eq(evr_sys->poll(&looks, 1, 0), 1);
	raw_expect(other, RAW_ROUTE_RESOLVED);
	ck_assert_int_eq(raw_destroy(fd, id), -EINVAL);
	ck_assert_int_eq(raw_destroy(other, id), 2);
	raw_close(fd);
	raw_close(other);
}
END_TEST

START_TEST(a_datagram_peer_is_found)
{
	int fd = raw_open();
	uint32_t client = (raw_listener(fd, RDMA_PS_UDP, FAKE_ROCE_IP),
		raw_resolved(fd, 2, RDMA_PS_UDP, FAKE_ROCE_IP));
	struct rdma_ucm_event_resp event;

	ck_assert_int_eq(raw_connect(fd, client, 0, "q", 1), 0);
	event = raw_expect(fd, RAW_CONNECT_REQUEST);
	ck_assert_uint_eq(event.param.ud.private_data_len, 180);
	ck_assert_int_eq(raw_accept(fd, event.id, 3, 99, "a", 1), 0);
	event = raw_expect(fd, RAW_ESTABLISHED);
	ck_assert_uint_eq(event.uid, 2);
	ck_assert_uint_eq(event.param.ud.qp_num, 99);
	ck_assert_uint_eq(event.param.ud.qkey, 0x01234567);
	ck_assert_uint_eq(event.param.ud.private_data_len, 136);
	ck_assert_uint_eq(event.param.ud.ah_attr.is_global, 1);
	raw_close(fd);
}
END_TEST

static int join_group(int fd, uint32_t id, const char *ip, uint32_t *number)
{
	struct rdma_ucm_create_id_resp resp = { 0 };
	struct rdma_ucm_join_mcast cmd = { .response = (uintptr_t)&resp, .uid = 42, .id = id };
	int err;

	cmd.addr_size = sizeof(struct sockaddr_in);
	((struct sockaddr_in *)&cmd.addr)->sin_family = AF_INET;
	inet_pton(AF_INET, ip, &((struct sockaddr_in *)&cmd.addr)->sin_addr);
	err = raw_command(fd, RDMA_USER_CM_CMD_JOIN_MCAST, &cmd, sizeof(cmd), sizeof(resp));
	*number = resp.id;
	return err;
}

START_TEST(a_join_is_answered_and_left)
{
	int fd = raw_open();
	uint32_t id = raw_create(fd, 1, RDMA_PS_UDP), group;
	struct rdma_ucm_destroy_id_resp resp = { 0 };
	struct rdma_ucm_destroy_id leave = { .response = (uintptr_t)&resp };
	struct rdma_ucm_event_resp event;

	ck_assert_int_eq(join_group(fd, id, "239.1.2.3", &group), -EINVAL);
	ck_assert_int_eq(raw_bind(fd, id, FAKE_ROCE_IP, 0), 0);
	ck_assert_int_eq(join_group(fd, id, "0.0.0.0", &group), -EINVAL);
	ck_assert_int_eq(join_group(fd, id, "239.1.2.3", &group), 0);
	event = raw_expect(fd, RAW_MULTICAST_JOIN);
	ck_assert_uint_eq(event.uid, 42);
	ck_assert_uint_eq(event.id, group);
	ck_assert_uint_eq(event.param.ud.qp_num, 0xffffff);
	ck_assert_uint_eq(event.param.ud.ah_attr.grh.dgid[12], 239);
	leave.id = group;
	ck_assert_int_eq(
		raw_command(fd, RDMA_USER_CM_CMD_LEAVE_MCAST, &leave, sizeof(leave), sizeof(resp)),
		0);
	ck_assert_uint_eq(resp.events_reported, 1);
	ck_assert_uint_eq(fake_live(FAKE_MEMBERSHIP), 0);
	raw_close(fd);
}
END_TEST

static int qp_attr(int fd, uint32_t id, uint32_t state, struct ib_uverbs_qp_attr *attr)
{
	struct rdma_ucm_init_qp_attr cmd = {
		.response = (uintptr_t)attr, .id = id, .qp_state = state
	};

	return raw_command(fd, RDMA_USER_CM_CMD_INIT_QP_ATTR, &cmd, sizeof(cmd), sizeof(*attr));
}

START_TEST(queue_pair_attributes_come_with_the_reply)
{
	int fd = raw_open();
	uint32_t client = (raw_listener(fd, RDMA_PS_TCP, FAKE_ROCE_IP),
		raw_resolved(fd, 2, RDMA_PS_TCP, FAKE_ROCE_IP));
	struct ib_uverbs_qp_attr attr;
	uint32_t child;

	ck_assert_int_eq(qp_attr(fd, client, IBV_QPS_INIT, &attr), 0);
	ck_assert_int_eq(raw_connect(fd, client, 17, NULL, 0), 0);
	child = raw_expect(fd, RAW_CONNECT_REQUEST).id;
	ck_assert_int_eq(qp_attr(fd, client, IBV_QPS_RTR, &attr), -EINVAL);
	ck_assert_int_eq(qp_attr(fd, child, IBV_QPS_RTR, &attr), 0);
	ck_assert_uint_eq(attr.dest_qp_num, 17);
	ck_assert_int_eq(raw_accept(fd, child, 3, 18, NULL, 0), 0);
	ck_assert_int_eq(qp_attr(fd, client, IBV_QPS_RTR, &attr), 0);
	ck_assert_uint_eq(attr.dest_qp_num, 18);
	ck_assert_uint_eq(attr.ah_attr.is_global, 1);
	ck_assert_int_eq(qp_attr(fd, client, IBV_QPS_RTS, &attr), 0);
	ck_assert_uint_eq(attr.rnr_retry, 6);
	ck_assert_uint_eq(attr.retry_cnt, 5);
	raw_close(fd);
}
END_TEST

START_TEST(closing_a_file_destroys_its_ids)
{
	int fd = raw_open();

	raw_connected(fd, FAKE_ROCE_IP, 17, 18);
	ck_assert_uint_eq(fake_live(FAKE_ID), 3);
	ck_assert_int_eq(raw_close(fd), 0);
	ck_assert_uint_eq(fake_live(FAKE_ID), 0);
	ck_assert_int_eq(raw_close(fd), -EBADF);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_file_is_readable_exactly_while_events_wait,
		a_blocking_read_with_nothing_to_come_fails,
		commands_on_strange_ids_fail_as_in_the_kernel,
		ports_conflict_as_in_the_kernel,
		an_address_that_does_not_resolve_can_be_followed_by_one_that_does,
		a_connection_is_made_and_ended,
		ipv6_connects_and_a_v6_wildcard_takes_ipv4,
		private_data_is_padded_to_the_field,
		a_refusal_carries_its_data_and_reason,
		nobody_listening_is_refused_with_reason_8,
		a_full_backlog_refuses,
		destroying_one_side_disconnects_the_other,
		unread_events_die_with_their_id,
		an_id_moves_with_its_unread_events_and_wakes_nobody,
		a_datagram_peer_is_found,
		a_join_is_answered_and_left,
		queue_pair_attributes_come_with_the_reply,
		closing_a_file_destroys_its_ids,
	};

	return fake_main("fake_cm", tests, sizeof(tests) / sizeof(tests[0]));
}
