/* The fake kernel CM's questions, options, and the older commands for IP addresses alone. */
#include "unit/fake_raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <stddef.h>
#include <string.h>

static int query(int fd, uint32_t id, uint32_t option, void *resp, size_t size)
{
	struct rdma_ucm_query cmd = { .response = (uintptr_t)resp, .id = id, .option = option };

	memset(resp, 0, size);
	return raw_command(fd, RDMA_USER_CM_CMD_QUERY, &cmd, sizeof(cmd), size);
}

static int set_option(
	int fd, uint32_t id, uint32_t level, uint32_t name, const void *value, uint32_t len)
{
	struct rdma_ucm_set_option cmd = {
		.optval = (uintptr_t)value, .id = id, .level = level, .optname = name, .optlen = len
	};

	return raw_command(fd, RDMA_USER_CM_CMD_SET_OPTION, &cmd, sizeof(cmd), 0);
}

START_TEST(a_bound_id_tells_its_address_and_device)
{
	struct rdma_ucm_query_addr_resp resp;
	const struct sockaddr_in *src = (const struct sockaddr_in *)&resp.src_addr;
	int fd = raw_open();
	uint32_t id = raw_create(fd, 1, RDMA_PS_TCP);

	ck_assert_int_eq(query(fd, id, RDMA_USER_CM_QUERY_ADDR, &resp, sizeof(resp)), 0);
	ck_assert_uint_eq(resp.port_num, 0);
	ck_assert_int_eq(raw_bind(fd, id, FAKE_ROCE_IP, 0), 0);
	ck_assert_int_eq(query(fd, id, RDMA_USER_CM_QUERY_ADDR, &resp, sizeof(resp)), 0);
	ck_assert_uint_eq(resp.port_num, 1);
	ck_assert_uint_eq(resp.node_guid, fake_device_attr(FAKE_ROCE)->node_guid);
	ck_assert_uint_eq(resp.src_size, sizeof(*src));
	ck_assert_uint_eq(src->sin_addr.s_addr, inet_addr(FAKE_ROCE_IP));
	ck_assert_uint_ge(ntohs(src->sin_port), 32768);
	ck_assert_int_eq(query(fd, id, RDMA_USER_CM_QUERY_ADDR, &resp, 8), -ENOSPC);
	ck_assert_int_eq(query(fd, id, 9, &resp, sizeof(resp)), -ENOSYS);
	raw_close(fd);
}
END_TEST

START_TEST(both_ends_of_a_connection_agree_on_the_ports)
{
	struct rdma_ucm_query_addr_resp client, server;
	int fd = raw_open();
	struct raw_pair pair = raw_connected(fd, FAKE_ROCE_IP, 17, 18);

	query(fd, pair.client, RDMA_USER_CM_QUERY_ADDR, &client, sizeof(client));
	query(fd, pair.server, RDMA_USER_CM_QUERY_ADDR, &server, sizeof(server));
	ck_assert_mem_eq(&client.src_addr, &server.dst_addr, sizeof(struct sockaddr_in));
	ck_assert_mem_eq(&client.dst_addr, &server.src_addr, sizeof(struct sockaddr_in));
	raw_close(fd);
}
END_TEST

START_TEST(a_resolved_id_has_gids_and_a_path)
{
	struct rdma_ucm_query_addr_resp gids;
	const struct sockaddr_ib *src = (const struct sockaddr_ib *)&gids.src_addr;
	union {
		struct rdma_ucm_query_path_resp resp;
		char bytes[sizeof(struct rdma_ucm_query_path_resp) +
			   sizeof(struct ib_path_rec_data)];
	} path;
	int fd = raw_open();
	uint32_t id = raw_resolved(fd, 1, RDMA_PS_TCP, FAKE_ROCE_IP);

	ck_assert_int_eq(query(fd, id, RDMA_USER_CM_QUERY_GID, &gids, sizeof(gids)), 0);
	ck_assert_uint_eq(src->sib_family, AF_IB);
	ck_assert_uint_eq(src->sib_addr.sib_raw[10], 0xff);
	ck_assert_uint_eq(src->sib_addr.sib_raw[12], 192);
	ck_assert_int_eq(query(fd, id, RDMA_USER_CM_QUERY_PATH, &path, sizeof(path)), 0);
	ck_assert_uint_eq(path.resp.num_paths, 1);
	ck_assert_uint_eq(path.resp.path_data[0].flags,
		IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL);
	raw_close(fd);
}
END_TEST

START_TEST(the_route_is_told_in_the_old_form_too)
{
	struct rdma_ucm_query_route_resp resp = { 0 };
	int fd = raw_open();
	uint32_t id = raw_resolved(fd, 1, RDMA_PS_TCP, FAKE_ROCE_IP);
	struct rdma_ucm_query cmd = { .response = (uintptr_t)&resp, .id = id };

	ck_assert_int_eq(
		raw_command(fd, RDMA_USER_CM_CMD_QUERY_ROUTE, &cmd, sizeof(cmd), sizeof(resp)), 0);
	ck_assert_uint_eq(resp.num_paths, 1);
	ck_assert_uint_eq(resp.port_num, 1);
	ck_assert_uint_eq(resp.ib_route[0].mtu, IBV_MTU_1024);
	ck_assert_uint_eq(
		resp.ibdev_index, (uint32_t)0); /* the first device plugged in since the reset */
	raw_close(fd);
}
END_TEST

START_TEST(options_are_checked_as_in_the_kernel)
{
	int fd = raw_open(), on = 1;
	uint32_t rc = raw_create(fd, 1, RDMA_PS_TCP), ud = raw_create(fd, 2, RDMA_PS_UDP);
	uint8_t small = 20;

	ck_assert_int_eq(set_option(fd, rc, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &small, 1), 0);
	ck_assert_int_eq(set_option(fd, rc, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &on, 4), -EINVAL);
	ck_assert_int_eq(
		set_option(fd, rc, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &small, 1), 0);
	ck_assert_int_eq(
		set_option(fd, ud, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &small, 1), -EINVAL);
	ck_assert_int_eq(set_option(fd, rc, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, 4), 0);
	ck_assert_int_eq(set_option(fd, rc, RDMA_OPTION_ID, 77, &on, 4), -ENOSYS);
	ck_assert_int_eq(set_option(fd, rc, 9, 0, &on, 4), -ENOSYS);
	raw_close(fd);
}
END_TEST

START_TEST(reused_addresses_bind_but_do_not_listen_twice)
{
	int fd = raw_open(), on = 1;
	uint32_t a = raw_create(fd, 1, RDMA_PS_TCP), b = raw_create(fd, 2, RDMA_PS_TCP);

	set_option(fd, a, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on));
	set_option(fd, b, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on));
	ck_assert_int_eq(raw_bind(fd, a, FAKE_ROCE_IP, 80), 0);
	ck_assert_int_eq(raw_bind(fd, b, FAKE_ROCE_IP, 80), 0);
	ck_assert_int_eq(raw_listen(fd, a, 0), -EADDRINUSE);
	raw_destroy(fd, b);
	ck_assert_int_eq(raw_listen(fd, a, 0), 0);
	raw_close(fd);
}
END_TEST

START_TEST(a_ready_made_path_stands_in_for_the_route)
{
	struct ib_path_rec_data path = { .flags = IB_PATH_GMP | IB_PATH_PRIMARY |
						  IB_PATH_BIDIRECTIONAL };
	int fd = raw_open();
	uint32_t id = raw_create(fd, 1, RDMA_PS_TCP);

	ck_assert_int_eq(
		set_option(fd, id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)),
		-EINVAL);
	ck_assert_int_eq(raw_resolve(fd, id, FAKE_ROCE_IP, 1), 0);
	raw_expect(fd, RAW_ADDR_RESOLVED);
	ck_assert_int_eq(
		set_option(fd, id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)), 0);
	raw_expect(fd, RAW_ROUTE_RESOLVED);
	ck_assert_int_eq(raw_route(fd, id), -EINVAL);
	raw_close(fd);
}
END_TEST

static int notify(int fd, uint32_t id, uint32_t event)
{
	struct rdma_ucm_notify cmd = { .id = id, .event = event };

	return raw_command(fd, RDMA_USER_CM_CMD_NOTIFY, &cmd, sizeof(cmd), 0);
}

START_TEST(seen_data_stands_in_for_a_lost_confirmation)
{
	int fd = raw_open();
	uint32_t client = (raw_listener(fd, RDMA_PS_TCP, FAKE_ROCE_IP),
		raw_resolved(fd, 2, RDMA_PS_TCP, FAKE_ROCE_IP));
	uint32_t child;

	ck_assert_int_eq(raw_connect(fd, client, 17, NULL, 0), 0);
	child = raw_expect(fd, RAW_CONNECT_REQUEST).id;
	ck_assert_int_eq(notify(fd, child, IBV_EVENT_COMM_EST), -EINVAL);
	ck_assert_int_eq(raw_accept(fd, child, 3, 18, NULL, 0), 0);
	raw_expect(fd, RAW_CONNECT_RESPONSE);
	ck_assert_int_eq(notify(fd, child, IBV_EVENT_COMM_EST), 0);
	raw_expect(fd, RAW_ESTABLISHED);
	ck_assert_int_eq(notify(fd, child, IBV_EVENT_COMM_EST), -EISCONN);
	ck_assert_int_eq(raw_confirm(fd, client), 0);
	ck_assert(!raw_readable(fd));
	raw_close(fd);
}
END_TEST

/* Room for either family, as the old commands have it. */
static struct sockaddr_in6 old_addr(const char *ip, uint16_t port)
{
	struct sockaddr_in6 addr = { 0 };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, ip, &in.sin_addr);
	memcpy(&addr, &in, sizeof(in));
	return addr;
}

START_TEST(the_old_commands_for_ip_addresses_work)
{
	int fd = raw_open();
	uint32_t a = raw_create(fd, 1, RDMA_PS_UDP), b = raw_create(fd, 2, RDMA_PS_UDP);
	struct rdma_ucm_create_id_resp resp = { 0 };
	struct rdma_ucm_bind_ip bind = { .addr = old_addr(FAKE_ROCE_IP, 0), .id = a };
	struct rdma_ucm_resolve_ip resolve = {
		.dst_addr = old_addr(FAKE_ROCE_IP, 1), .id = b, .timeout_ms = 1
	};
	struct rdma_ucm_join_ip_mcast join = {
		.response = (uintptr_t)&resp, .uid = 9, .addr = old_addr("239.1.1.1", 0), .id = a
	};

	ck_assert_int_eq(raw_command(fd, RDMA_USER_CM_CMD_BIND_IP, &bind, sizeof(bind), 0), 0);
	ck_assert_int_eq(
		raw_command(fd, RDMA_USER_CM_CMD_RESOLVE_IP, &resolve, sizeof(resolve), 0), 0);
	raw_expect(fd, RAW_ADDR_RESOLVED);
	ck_assert_int_eq(
		raw_command(fd, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &join, sizeof(join), sizeof(resp)),
		0);
	ck_assert_uint_eq(raw_expect(fd, RAW_MULTICAST_JOIN).uid, 9);
	raw_close(fd);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_bound_id_tells_its_address_and_device,
		both_ends_of_a_connection_agree_on_the_ports,
		a_resolved_id_has_gids_and_a_path,
		the_route_is_told_in_the_old_form_too,
		options_are_checked_as_in_the_kernel,
		reused_addresses_bind_but_do_not_listen_twice,
		a_ready_made_path_stands_in_for_the_route,
		seen_data_stands_in_for_a_lost_confirmation,
		the_old_commands_for_ip_addresses_work,
	};

	return fake_main("fake_query", tests, sizeof(tests) / sizeof(tests[0]));
}
