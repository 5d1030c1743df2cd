/* What a test can make the fake do: fail, hold back, lose, invent, unplug. */
#include "unit/fake_raw.h"

#include "kern/sys.h"

#include <errno.h>
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

START_TEST(from_the_nth_call_on_all_fail)
{
	int fd = raw_open();

	fake_fail_from(FAKE_KERNEL, 2, EACCES);
	ck_assert_uint_gt(raw_create(fd, 1, RDMA_PS_TCP), 0);
	ck_assert_int_eq(raw_open(), -EACCES);
	ck_assert_int_eq(raw_open(), -EACCES);
	ck_assert_str_eq(fake_failed(), "open");
	fake_fail_from(FAKE_KERNEL, 0, 0);
	ck_assert_int_eq(raw_close(raw_open()), 0);
	raw_close(fd);
}
END_TEST

static void unplug(void *count)
{
	fake_device_remove(FAKE_ROCE);
	++*(int *)count;
}

START_TEST(anything_may_change_before_the_nth_call)
{
	int fd = raw_open(), count = 0;
	uint32_t id = raw_resolved(fd, 1, RDMA_PS_TCP, FAKE_ROCE_IP);

	fake_at_nth(FAKE_KERNEL, 1, unplug, &count);
	ck_assert_int_eq(raw_connect(fd, id, 17, NULL, 0), -ENXIO);
	ck_assert_int_eq(count, 1);
	ck_assert_str_eq(fake_failed(), "CONNECT");
	raw_expect(fd, RAW_DEVICE_REMOVAL);
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

START_TEST(a_later_call_fails_by_name)
{
	int fd;

	fake_fail_later("open", 2, EMFILE);
	fd = raw_open();
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(raw_open(), -EMFILE);
	raw_close(fd);
	fake_fail_later("open", 1, EMFILE);
	fake_fail_later("open", 0, 0);
	fd = raw_open();
	ck_assert_int_ge(fd, 0);
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

int main(void)
{
	const TTest *const tests[] = {
		the_nth_call_fails_and_is_counted,
		from_the_nth_call_on_all_fail,
		anything_may_change_before_the_nth_call,
		a_call_fails_by_name,
		a_later_call_fails_by_name,
		what_is_left_is_named,
		held_answers_come_when_they_are_released,
		what_is_held_for_a_dead_id_is_dropped,
		a_silent_host_is_unreachable_only_when_time_is_up,
		a_lost_disconnect_times_out,
		any_event_can_be_invented,
		an_unplugged_device_takes_its_ids_along,
		work_goes_by_hand_and_in_the_chosen_order,
		the_handles_on_a_context_are_listed,
	};

	return fake_main("fake_control", tests, sizeof(tests) / sizeof(tests[0]));
}
