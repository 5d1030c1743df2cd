/* What sets iWARP and InfiniBand apart from RoCE. */
#include "unit/fake_raw.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <string.h>

START_TEST(iwarp_moves_the_queue_pairs_itself_and_keeps_private_data_exact)
{
	static struct raw_verbs v;
	struct rdma_ucm_event_resp event;
	struct ibv_qp *a, *b;
	uint32_t client;
	int fd = raw_open();

	fake_device_add(FAKE_IWARP);
	raw_verbs_open(&v, FAKE_IWARP);
	a = raw_qp(&v, IBV_QPT_RC);
	b = raw_qp(&v, IBV_QPT_RC);
	raw_listener(fd, RDMA_PS_TCP, FAKE_IWARP_IP);
	client = raw_resolved(fd, 2, RDMA_PS_TCP, FAKE_IWARP_IP);
	ck_assert_int_eq(raw_connect(fd, client, 9999, NULL, 0), -EINVAL);
	ck_assert_int_eq(raw_connect(fd, client, a->qp_num, "abc", 3), 0);
	event = raw_expect(fd, RAW_CONNECT_REQUEST);
	ck_assert_uint_eq(event.param.conn.private_data_len, 3);
	ck_assert_int_eq(raw_accept(fd, event.id, 3, b->qp_num, NULL, 0), 0);
	ck_assert_uint_eq(raw_expect(fd, RAW_ESTABLISHED).uid, 3);
	ck_assert_uint_eq(raw_expect(fd, RAW_ESTABLISHED).uid, 2);
	ck_assert_int_eq(raw_post_recv(&v, b, 20, 100, 5), 0);
	ck_assert_int_eq(raw_post_send(&v, a, 10, 0, 5), 0);
	ck_assert_uint_eq(raw_wc(&v).wr_id, 20);
	ck_assert_int_eq(raw_disconnect(fd, client), 0);
	raw_expect(fd, RAW_DISCONNECTED);
	raw_expect(fd, RAW_DISCONNECTED);
	ck_assert_int_eq(raw_disconnect(fd, client), 0);
	ck_assert_int_eq(b->state, IBV_QPS_ERR);
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	raw_verbs_close(&v);
	raw_close(fd);
}
END_TEST

START_TEST(iwarp_refuses_with_an_errno)
{
	static struct raw_verbs v;
	uint32_t client;
	struct ibv_qp *qp;
	int fd = raw_open();

	fake_device_add(FAKE_IWARP);
	raw_verbs_open(&v, FAKE_IWARP);
	qp = raw_qp(&v, IBV_QPT_RC);
	client = raw_resolved(fd, 2, RDMA_PS_TCP, FAKE_IWARP_IP);
	ck_assert_int_eq(raw_connect(fd, client, qp->qp_num, NULL, 0), 0);
	ck_assert_int_eq((int)raw_expect(fd, RAW_REJECTED).status, -ECONNREFUSED);
	ibv_destroy_qp(qp);
	raw_verbs_close(&v);
	raw_close(fd);
}
END_TEST

static struct sockaddr_ib make_ib(const char *gid, uint64_t service)
{
	struct sockaddr_ib ib = { .sib_family = AF_IB, .sib_sid = htobe64(service) };

	inet_pton(AF_INET6, gid, &ib.sib_addr);
	ib.sib_sid_mask = UINT64_MAX;
	return ib;
}

static int bind_ib(int fd, uint32_t id, const struct sockaddr_ib *ib)
{
	struct rdma_ucm_bind cmd = { .id = id, .addr_size = sizeof(*ib) };

	memcpy(&cmd.addr, ib, sizeof(*ib));
	return raw_command(fd, RDMA_USER_CM_CMD_BIND, &cmd, sizeof(cmd), 0);
}

START_TEST(only_infiniband_has_gid_addresses)
{
	int fd = raw_open();
	struct sockaddr_ib any = make_ib("::", 0x01060000 | RAW_PORT);
	struct sockaddr_ib own = make_ib(FAKE_IB_GID, 0x01060000 | RAW_PORT);
	uint32_t a = raw_create(fd, 1, RDMA_PS_TCP), b = raw_create(fd, 2, RDMA_PS_TCP);

	ck_assert_int_eq(bind_ib(fd, a, &any), 0);
	ck_assert_int_eq(bind_ib(fd, b, &own), -ENODEV);
	raw_destroy(fd, a);
	fake_device_add(FAKE_IB);
	ck_assert_int_eq(bind_ib(fd, b, &own), 0);
	raw_close(fd);
}
END_TEST

START_TEST(only_infiniband_has_the_ipoib_port_space)
{
	int fd = raw_open();
	uint32_t a = raw_create(fd, 1, RDMA_PS_IPOIB), b = raw_create(fd, 2, RDMA_PS_IPOIB);

	ck_assert_int_eq(raw_bind(fd, a, FAKE_ROCE_IP, 0), -EINVAL);
	fake_device_add(FAKE_IB);
	ck_assert_int_eq(raw_bind(fd, b, FAKE_IB_IP, 0), 0);
	raw_close(fd);
}
END_TEST

static int join_any(int fd, uint32_t id, const struct sockaddr_ib *ib)
{
	struct rdma_ucm_create_id_resp resp = { 0 };
	struct rdma_ucm_join_mcast cmd = {
		.response = (uintptr_t)&resp, .uid = 42, .id = id, .addr_size = sizeof(*ib)
	};

	memcpy(&cmd.addr, ib, sizeof(*ib));
	return raw_command(fd, RDMA_USER_CM_CMD_JOIN_MCAST, &cmd, sizeof(cmd), sizeof(resp));
}

START_TEST(only_infiniband_assigns_groups)
{
	int fd = raw_open();
	uint32_t roce = raw_create(fd, 1, RDMA_PS_UDP), ib = raw_create(fd, 2, RDMA_PS_UDP);
	struct sockaddr_ib zero = make_ib("::", 0), named = make_ib("ff12::1", 0);
	struct rdma_ucm_event_resp event;

	fake_device_add(FAKE_IB);
	ck_assert_int_eq(raw_bind(fd, roce, FAKE_ROCE_IP, 0), 0);
	ck_assert_int_eq(raw_bind(fd, ib, FAKE_IB_IP, 0), 0);
	ck_assert_int_eq(join_any(fd, roce, &zero), -EINVAL);
	ck_assert_int_eq(join_any(fd, roce, &named), -524);
	ck_assert_int_eq(join_any(fd, ib, &zero), 0);
	event = raw_expect(fd, RAW_MULTICAST_JOIN);
	ck_assert_uint_eq(event.param.ud.ah_attr.grh.dgid[0], 0xff);
	ck_assert_uint_ge(event.param.ud.ah_attr.dlid, 0xc000);
	ck_assert_int_eq(join_any(fd, ib, &named), 0);
	event = raw_expect(fd, RAW_MULTICAST_JOIN);
	ck_assert_mem_eq(event.param.ud.ah_attr.grh.dgid, &named.sib_addr, 16);
	raw_close(fd);
}
END_TEST

static struct ibv_qp *blocking_qp(struct raw_verbs *v)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = v->cq,
		.recv_cq = v->cq,
		.cap = { 1, 1, 1, 1, 0 },
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = v->pd,
		.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
	};

	return ibv_create_qp_ex(v->context, &init);
}

START_TEST(only_infiniband_blocks_multicast_to_oneself)
{
	static struct raw_verbs v;
	struct ibv_qp *qp;

	raw_verbs_open(&v, FAKE_ROCE);
	ck_assert_ptr_null(blocking_qp(&v));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	raw_verbs_close(&v);
	fake_device_add(FAKE_IB);
	raw_verbs_open(&v, FAKE_IB);
	qp = blocking_qp(&v);
	ck_assert_ptr_nonnull(qp);
	ibv_destroy_qp(qp);
	raw_verbs_close(&v);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		iwarp_moves_the_queue_pairs_itself_and_keeps_private_data_exact,
		iwarp_refuses_with_an_errno,
		only_infiniband_has_gid_addresses,
		only_infiniband_has_the_ipoib_port_space,
		only_infiniband_assigns_groups,
		only_infiniband_blocks_multicast_to_oneself,
	};

	return fake_main("fake_devices", tests, sizeof(tests) / sizeof(tests[0]));
}
