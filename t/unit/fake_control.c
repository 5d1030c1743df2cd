/* What a test can make the fake do: fail, hold back, lose, invent, unplug. */
#include "unit/fake_raw.h"

#include "kern/sys.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <stddef.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>

START_TEST(the_nth_call_fails_and_is_counted)
{
	int fd;

	fake_fail_nth(FAKE_ANY, 2, EMFILE);
	fd = raw_open();
	ck_assert_ptr_null(fake_failed());
	ck_assert_int_eq(raw_open(), -EMFILE);
	ck_assert_str_eq(fake_failed(), "open");
	ck_assert_uint_eq(fake_calls("open"), 2);
	raw_close(fd);
}
END_TEST

START_TEST(a_call_fails_by_name)
{
	int fd = raw_open();
	uint32_t id = raw_resolved(fd, 1, RDMA_PS_TCP, FAKE_ROCE_IP);

	fake_fail_next("CONNECT", ENOMEM);
	ck_assert_int_eq(raw_connect(fd, id, 17, NULL, 0), -ENOMEM);
	ck_assert_int_eq(raw_connect(fd, id, 17, NULL, 0), 0);
	ck_assert_uint_eq(fake_calls("CONNECT"), 2);
	fake_fail_next("ibv_get_device_list", ENOMEM);
	ck_assert_ptr_null(ibv_get_device_list(NULL));
	ck_assert_int_eq(errno, ENOMEM);
	raw_close(fd);
}
END_TEST

START_TEST(what_is_left_is_named)
{
	int fd = raw_open();

	raw_create(fd, 1, RDMA_PS_TCP);
	ck_assert_str_eq(fake_expect_clean(), "left: 1 CM files, 1 ids");
	raw_close(fd);
	ck_assert_ptr_null(fake_expect_clean());
}
END_TEST

START_TEST(held_answers_come_when_they_are_released)
{
	int fd = raw_open();
	uint32_t id = raw_create(fd, 1, RDMA_PS_TCP);

	fake_hold(FAKE_ADDR);
	ck_assert_int_eq(raw_resolve(fd, id, FAKE_ROCE_IP, 1), 0);
	ck_assert(!raw_readable(fd));
	ck_assert_uint_eq(fake_held(FAKE_ADDR), 1);
	ck_assert_int_eq(raw_resolve(fd, id, FAKE_ROCE_IP, 1), -EINVAL);
	ck_assert_uint_eq(fake_release(FAKE_ADDR), 1);
	raw_expect(fd, RAW_ADDR_RESOLVED);
	fake_answer(FAKE_ROUTE, -EIO);
	ck_assert_int_eq(raw_route(fd, id), 0);
	ck_assert_int_eq((int)raw_expect(fd, RAW_ROUTE_ERROR).status, -EIO);
	ck_assert_int_eq(raw_route(fd, id), 0);
	raw_expect(fd, RAW_ROUTE_RESOLVED);
	raw_close(fd);
}
END_TEST

START_TEST(what_is_held_for_a_dead_id_is_dropped)
{
	int fd = raw_open();
	uint32_t id = raw_create(fd, 1, RDMA_PS_TCP);

	fake_hold(FAKE_ADDR);
	ck_assert_int_eq(raw_resolve(fd, id, FAKE_ROCE_IP, 1), 0);
	ck_assert_int_eq(raw_destroy(fd, id), 0);
	ck_assert_uint_eq(fake_release(FAKE_ADDR), 1);
	ck_assert(!raw_readable(fd));
	raw_close(fd);
}
END_TEST

START_TEST(a_silent_host_is_unreachable_only_when_time_is_up)
{
	int fd = raw_open();
	uint32_t id = raw_resolved(fd, 1, RDMA_PS_TCP, FAKE_ROCE_SILENT_IP);

	ck_assert_int_eq(raw_connect(fd, id, 17, NULL, 0), 0);
	ck_assert_uint_eq(fake_release(FAKE_REQ), 0);
	ck_assert(!raw_readable(fd));
	ck_assert_uint_eq(fake_time_out(FAKE_REQ), 1);
	ck_assert_int_eq((int)raw_expect(fd, RAW_UNREACHABLE).status, -ETIMEDOUT);
	raw_close(fd);
}
END_TEST

START_TEST(a_lost_disconnect_times_out)
{
	int fd = raw_open();
	struct raw_pair pair = raw_connected(fd, FAKE_ROCE_IP, 17, 18);

	fake_hold(FAKE_DREQ);
	ck_assert_int_eq(raw_disconnect(fd, pair.client), 0);
	ck_assert_uint_eq(fake_time_out(FAKE_DREQ), 1);
	ck_assert_int_eq((int)raw_expect(fd, RAW_DISCONNECTED).status, -ETIMEDOUT);
	ck_assert(!raw_readable(fd));
	raw_close(fd);
}
END_TEST

START_TEST(any_event_can_be_invented)
{
	int fd = raw_open();
	uint32_t id = raw_create(fd, 77, RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;

	ck_assert_int_eq(fake_inject((void *)78, RAW_DISCONNECTED, 0), -ENOENT);
	ck_assert_int_eq(fake_inject_data((void *)77, RAW_REJECTED, 28, "why", 4), 0);
	event = raw_expect(fd, RAW_REJECTED);
	ck_assert_uint_eq(event.id, id);
	ck_assert_str_eq((char *)event.param.conn.private_data, "why");
	ck_assert_int_eq(raw_destroy(fd, id), 1);
	raw_close(fd);
}
END_TEST

START_TEST(an_unplugged_device_takes_its_ids_along)
{
	static struct raw_verbs v;
	int fd = raw_open();
	struct raw_pair pair = raw_connected(fd, FAKE_ROCE_IP, 17, 18);
	struct ibv_device **list;
	int n;

	raw_verbs_open(&v, FAKE_ROCE);
	fake_device_remove(FAKE_ROCE);
	raw_expect(fd, RAW_DEVICE_REMOVAL);
	raw_expect(fd, RAW_DEVICE_REMOVAL);
	raw_expect(fd, RAW_DEVICE_REMOVAL);
	ck_assert(!raw_readable(fd));
	ck_assert_int_eq(raw_disconnect(fd, pair.client), -ENXIO);
	ck_assert_int_ge(raw_destroy(fd, pair.client), 0);
	list = ibv_get_device_list(&n);
	ibv_free_device_list(list);
	ck_assert_int_eq(n, 0);
	ck_assert(!fake_device_gone(FAKE_ROCE));
	raw_verbs_close(&v);
	ck_assert(fake_device_gone(FAKE_ROCE));
	fake_device_add(FAKE_ROCE);
	raw_resolved(fd, 1, RDMA_PS_TCP, FAKE_ROCE_IP);
	raw_close(fd);
}
END_TEST

START_TEST(work_goes_by_hand_and_in_the_chosen_order)
{
	static struct raw_verbs v;
	struct ibv_qp *a, *b, *c, *d;

	raw_verbs_open(&v, FAKE_ROCE);
	a = raw_qp(&v, IBV_QPT_RC);
	b = raw_qp(&v, IBV_QPT_RC);
	c = raw_qp(&v, IBV_QPT_RC);
	d = raw_qp(&v, IBV_QPT_RC);
	raw_join(a, b, 7);
	raw_join(c, d, 7);
	fake_work_by_hand(true);
	fake_work_order(FAKE_NEWEST_QP_FIRST);
	ck_assert_int_eq(raw_post_recv(&v, b, 20, 0, 0), 0);
	ck_assert_int_eq(raw_post_recv(&v, d, 40, 0, 0), 0);
	ck_assert_int_eq(raw_post_send(&v, a, 10, 0, 0), 0);
	ck_assert_int_eq(raw_post_send(&v, c, 30, 0, 0), 0);
	ck_assert(raw_no_wc(&v));
	ck_assert_uint_eq(fake_step(1), 1);
	ck_assert_uint_eq(raw_wc(&v).wr_id, 40);
	ck_assert_uint_eq(raw_wc(&v).wr_id, 30);
	ck_assert_uint_eq(fake_step_qp(c, 5), 0);
	ck_assert_uint_eq(fake_step_qp(a, 5), 1);
	ck_assert_uint_eq(raw_wc(&v).wr_id, 20);
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	ibv_destroy_qp(c);
	ibv_destroy_qp(d);
	raw_verbs_close(&v);
}
END_TEST

static int count_handles(struct ibv_context *context, uint16_t object, uint32_t driver_id)
{
	uint32_t total = 0, handles[4];
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[3];
	} cmd = { .hdr = { .length = sizeof(cmd),
			  .object_id = UVERBS_OBJECT_DEVICE,
			  .method_id = UVERBS_METHOD_INFO_HANDLES,
			  .num_attrs = 3,
			  .driver_id = driver_id } };
	int err;

	cmd.attrs[0] = (struct ib_uverbs_attr){
		.attr_id = UVERBS_ATTR_INFO_OBJECT_ID, .len = sizeof(uint64_t), .data = object
	};
	cmd.attrs[1] = (struct ib_uverbs_attr){ .attr_id = UVERBS_ATTR_INFO_TOTAL_HANDLES,
		.len = sizeof(total),
		.data = (uintptr_t)&total };
	cmd.attrs[2] = (struct ib_uverbs_attr){ .attr_id = UVERBS_ATTR_INFO_HANDLES_LIST,
		.len = sizeof(handles),
		.data = (uintptr_t)handles };
	err = evr_sys->ioctl(context->cmd_fd, RDMA_VERBS_IOCTL, &cmd);
	return err ? err : (int)total;
}

START_TEST(the_handles_on_a_context_are_listed)
{
	static struct raw_verbs v;
	uint32_t driver;

	raw_verbs_open(&v, FAKE_ROCE);
	ck_assert_int_eq(
		evr_sys->find_driver_id(ibv_get_device_index(v.context->device), &driver), 0);
	ck_assert_int_eq(count_handles(v.context, UVERBS_OBJECT_PD, driver), 1);
	ck_assert_int_eq(count_handles(v.context, UVERBS_OBJECT_COMP_CHANNEL, driver), 1);
	ck_assert_int_eq(count_handles(v.context, UVERBS_OBJECT_QP, driver), 0);
	ck_assert_int_eq(count_handles(v.context, UVERBS_OBJECT_QP, driver + 1), -EINVAL);
	raw_verbs_close(&v);
}
END_TEST

/* --- the other devices --- */

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
	ck_assert_int_eq(raw_disconnect(fd, client), -EINVAL);
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
	uint32_t id = raw_create(fd, 1, RDMA_PS_IPOIB);

	ck_assert_int_eq(raw_bind(fd, id, FAKE_ROCE_IP, 0), -EINVAL);
	fake_device_add(FAKE_IB);
	ck_assert_int_eq(raw_bind(fd, id, FAKE_IB_IP, 0), 0);
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
		the_nth_call_fails_and_is_counted,
		a_call_fails_by_name,
		what_is_left_is_named,
		held_answers_come_when_they_are_released,
		what_is_held_for_a_dead_id_is_dropped,
		a_silent_host_is_unreachable_only_when_time_is_up,
		a_lost_disconnect_times_out,
		any_event_can_be_invented,
		an_unplugged_device_takes_its_ids_along,
		work_goes_by_hand_and_in_the_chosen_order,
		the_handles_on_a_context_are_listed,
		iwarp_moves_the_queue_pairs_itself_and_keeps_private_data_exact,
		iwarp_refuses_with_an_errno,
		only_infiniband_has_gid_addresses,
		only_infiniband_has_the_ipoib_port_space,
		only_infiniband_assigns_groups,
		only_infiniband_blocks_multicast_to_oneself,
	};

	return fake_main("fake_control", tests, sizeof(tests) / sizeof(tests[0]));
}
