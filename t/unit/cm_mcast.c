#include "unit/cm_unit.h"

#include "kern/ucma_abi.h"

#include <pthread.h>
#include <string.h>

#define GROUP "239.1.2.3"

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;

static void set_up(void)
{
	cm_set_up();
	channel = cm_channel();
	id = cm_id(channel, RDMA_PS_UDP);
	ck_assert_ok(rdma_bind_addr(id, cm_addr(FAKE_ROCE_IP, 0)));
}

static void tear_down(void)
{
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
	cm_tear_down();
}

static struct rdma_cm_join_mc_attr_ex join_attr(enum rdma_cm_mc_join_flags flags)
{
	return (struct rdma_cm_join_mc_attr_ex){
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = flags,
		.addr = cm_addr(GROUP, 0),
	};
}

START_TEST(a_member_is_attached_when_the_join_is_read_and_detached_when_it_leaves)
{
	int context;
	struct rdma_cm_event *event;

	cm_make_qp(id);
	ck_assert_ok(rdma_join_multicast(id, cm_addr(GROUP, 0), &context));
	ck_assert_uint_eq(fake_live(FAKE_ATTACHMENT), 0);
	event = cm_expect(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	ck_assert(event->id == id && event->param.ud.private_data == &context);
	ck_assert_uint_eq(event->param.ud.qp_num, 0xffffff);
	ck_assert_uint_eq(event->param.ud.qkey, RDMA_UDP_QKEY);
	ck_assert_uint_eq(fake_live(FAKE_ATTACHMENT), 1);
	ck_assert_ok(rdma_ack_cm_event(event));
	ck_assert_ok(rdma_leave_multicast(id, cm_addr(GROUP, 0)));
	ck_assert_uint_eq(fake_live(FAKE_ATTACHMENT) + fake_live(FAKE_MEMBERSHIP), 0);
}
END_TEST

START_TEST(a_sender_is_not_attached)
{
	struct rdma_cm_join_mc_attr_ex attr = join_attr(RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);

	cm_make_qp(id);
	ck_assert_ok(rdma_join_multicast_ex(id, &attr, NULL));
	cm_await(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	ck_assert_uint_eq(fake_live(FAKE_ATTACHMENT), 0);
	ck_assert_uint_eq(fake_live(FAKE_MEMBERSHIP), 1);
	ck_assert_ok(rdma_leave_multicast(id, cm_addr(GROUP, 0)));
}
END_TEST

START_TEST(an_id_without_a_queue_pair_joins_and_is_not_attached)
{
	ck_assert_ok(rdma_join_multicast(id, cm_addr(GROUP, 0), NULL));
	cm_await(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	ck_assert_uint_eq(fake_live(FAKE_ATTACHMENT), 0);
	ck_assert_ok(rdma_leave_multicast(id, cm_addr(GROUP, 0)));
}
END_TEST

START_TEST(bad_attributes_are_refused)
{
	struct rdma_cm_join_mc_attr_ex attr = join_attr(RDMA_MC_JOIN_FLAG_FULLMEMBER);
	struct sockaddr strange = { .sa_family = AF_UNIX };

	ck_assert_fails(rdma_join_multicast_ex(NULL, &attr, NULL), EINVAL);
	ck_assert_fails(rdma_join_multicast_ex(id, NULL, NULL), EINVAL);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_RESERVED;
	ck_assert_fails(rdma_join_multicast_ex(id, &attr, NULL), ENOTSUP);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
	ck_assert_fails(rdma_join_multicast_ex(id, &attr, NULL), EINVAL);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	ck_assert_fails(rdma_join_multicast_ex(id, &attr, NULL), EINVAL);
	attr = join_attr(RDMA_MC_JOIN_FLAG_RESERVED);
	ck_assert_fails(rdma_join_multicast_ex(id, &attr, NULL), EINVAL);
	ck_assert_fails(rdma_join_multicast(id, &strange, NULL), EINVAL);
	ck_assert_fails(rdma_join_multicast(id, NULL, NULL), EINVAL);
	ck_assert_fails(rdma_leave_multicast(NULL, cm_addr(GROUP, 0)), EINVAL);
	ck_assert_fails(rdma_leave_multicast(id, NULL), EINVAL);
	ck_assert_fails(rdma_leave_multicast(id, &strange), EINVAL);
}
END_TEST

START_TEST(an_unbound_id_cannot_join)
{
	struct rdma_cm_id *unbound = cm_id(channel, RDMA_PS_UDP);

	ck_assert_fails(rdma_join_multicast(unbound, cm_addr(GROUP, 0), NULL), EINVAL);
	ck_assert_fails(rdma_leave_multicast(unbound, cm_addr(GROUP, 0)), EADDRNOTAVAIL);
	cm_destroy(unbound);
}
END_TEST

START_TEST(what_the_kernel_says_of_a_group_is_told)
{
	ck_assert_fails(rdma_join_multicast(id, cm_addr("ff12::1", 0), NULL), 524);
	ck_assert_uint_eq(fake_live(FAKE_MEMBERSHIP), 0);
	ck_assert_fails(rdma_leave_multicast(id, cm_addr("ff12::1", 0)), EADDRNOTAVAIL);
}
END_TEST

START_TEST(a_join_that_fails_later_is_an_error_with_the_context)
{
	int context;
	struct rdma_cm_event *event;

	fake_answer(FAKE_JOIN, -ENETUNREACH);
	ck_assert_ok(rdma_join_multicast(id, cm_addr(GROUP, 0), &context));
	event = cm_expect(channel, RDMA_CM_EVENT_MULTICAST_ERROR);
	ck_assert_int_eq(event->status, -ENETUNREACH);
	ck_assert_ptr_eq(event->param.ud.private_data, &context);
	ck_assert_ok(rdma_ack_cm_event(event));
	ck_assert_ok(rdma_leave_multicast(id, cm_addr(GROUP, 0)));
}
END_TEST

START_TEST(a_queue_pair_that_cannot_be_attached_is_an_error_with_the_context)
{
	int context;
	struct rdma_cm_event *event;

	cm_make_qp(id);
	ck_assert_ok(rdma_join_multicast(id, cm_addr(GROUP, 0), &context));
	fake_fail_next("ibv_attach_mcast", ENOMEM);
	event = cm_expect(channel, RDMA_CM_EVENT_MULTICAST_ERROR);
	ck_assert_int_eq(errno, ENOMEM);
	ck_assert(event->status == -1 && event->param.ud.private_data == &context);
	ck_assert_ok(rdma_ack_cm_event(event));
	ck_assert_ok(rdma_leave_multicast(id, cm_addr(GROUP, 0)));
}
END_TEST

START_TEST(leaving_before_the_join_is_read_takes_the_event_away)
{
	ck_assert_ok(rdma_join_multicast(id, cm_addr(GROUP, 0), NULL));
	ck_assert_ok(rdma_leave_multicast(id, cm_addr(GROUP, 0)));
	cm_expect_none(channel);
}
END_TEST

START_TEST(a_membership_that_the_kernel_keeps_is_kept)
{
	ck_assert_ok(rdma_join_multicast(id, cm_addr(GROUP, 0), NULL));
	fake_fail_next("LEAVE_MCAST", EACCES);
	ck_assert_fails(rdma_leave_multicast(id, cm_addr(GROUP, 0)), EACCES);
	cm_await(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	ck_assert_ok(rdma_leave_multicast(id, cm_addr(GROUP, 0)));
}
END_TEST

START_TEST(several_groups_are_told_apart)
{
	int one, two;
	struct rdma_cm_event *event;

	ck_assert_ok(rdma_join_multicast(id, cm_addr(GROUP, 0), &one));
	ck_assert_ok(rdma_join_multicast(id, cm_addr("239.1.2.4", 0), &two));
	cm_await(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	ck_assert_ok(rdma_leave_multicast(id, cm_addr(GROUP, 0)));
	event = cm_expect(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	ck_assert_ptr_eq(event->param.ud.private_data, &two);
	ck_assert_ok(rdma_ack_cm_event(event));
}
END_TEST

START_TEST(a_queue_pair_leaves_its_groups_when_it_goes)
{
	cm_make_qp(id);
	ck_assert_ok(rdma_join_multicast(id, cm_addr(GROUP, 0), NULL));
	cm_await(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	rdma_destroy_qp(id);
	ck_assert_uint_eq(fake_live(FAKE_QP) + fake_live(FAKE_ATTACHMENT), 0);
	ck_assert_uint_eq(fake_live(FAKE_MEMBERSHIP), 1);
}
END_TEST

static void *ack_in_a_thread(void *event)
{
	rdma_ack_cm_event(event);
	return NULL;
}

START_TEST(leaving_waits_for_events_that_another_thread_still_has)
{
	struct rdma_cm_event *event;
	pthread_t thread;

	ck_assert_ok(rdma_join_multicast(id, cm_addr(GROUP, 0), NULL));
	event = cm_expect(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	ck_assert_int_eq(pthread_create(&thread, NULL, ack_in_a_thread, event), 0);
	ck_assert_ok(rdma_leave_multicast(id, cm_addr(GROUP, 0)));
	pthread_join(thread, NULL);
}
END_TEST

START_TEST(a_second_answer_takes_the_place_of_the_first)
{
	const struct evr_ucma_resp_event again = { .event = RDMA_CM_EVENT_MULTICAST_JOIN,
		.param.ud.ah_attr.grh.dgid = { 0xff, 0x0e, 9 } };

	cm_make_qp(id);
	ck_assert_ok(rdma_join_multicast(id, cm_addr(GROUP, 0), NULL));
	cm_await(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	ck_assert_int_eq(fake_inject_event(id, 1, &again), 0);
	cm_await(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	ck_assert_uint_eq(fake_live(FAKE_ATTACHMENT), 1);
	ck_assert_ok(rdma_leave_multicast(id, cm_addr(GROUP, 0)));
	ck_assert_uint_eq(fake_live(FAKE_ATTACHMENT), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_member_is_attached_when_the_join_is_read_and_detached_when_it_leaves,
		a_sender_is_not_attached,
		an_id_without_a_queue_pair_joins_and_is_not_attached,
		bad_attributes_are_refused,
		an_unbound_id_cannot_join,
		what_the_kernel_says_of_a_group_is_told,
		a_join_that_fails_later_is_an_error_with_the_context,
		a_queue_pair_that_cannot_be_attached_is_an_error_with_the_context,
		leaving_before_the_join_is_read_takes_the_event_away,
		a_membership_that_the_kernel_keeps_is_kept,
		several_groups_are_told_apart,
		a_queue_pair_leaves_its_groups_when_it_goes,
		leaving_waits_for_events_that_another_thread_still_has,
		a_second_answer_takes_the_place_of_the_first,
	};

	return unit_main("cm_mcast", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
