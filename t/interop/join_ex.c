#include "interop/join_ex.h"

#include "interop/end.h"

#include <stdlib.h>

#define GROUP "239.77.8.1"
#define OTHER_GROUP "239.77.8.2"

enum { FULL = RDMA_MC_JOIN_FLAG_FULLMEMBER, SEND_ONLY = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER };

static struct end sender, receiver;

static void open_pair(void)
{
	end_open(&sender, join_ex_testbed.ip);
	end_open(&receiver, join_ex_testbed.ip);
}

static void close_pair(void)
{
	end_close(&receiver);
	end_close(&sender);
}

static void open_members(uint32_t sender_flags)
{
	open_pair();
	end_make_qp(&receiver);
	end_join(&receiver, GROUP, FULL);
	end_make_qp(&sender);
	end_join(&sender, GROUP, sender_flags);
}

static void leave_and_close(void)
{
	end_leave(&sender, GROUP);
	end_leave(&receiver, GROUP);
	close_pair();
}

/* Each datagram once at the receiver, and what the sender has by then. */
static void pass_data(unsigned sender_receives)
{
	end_send(&sender);
	end_await_all(&receiver);
	end_send_fence(&receiver, &sender);
	end_send_fence(&sender, &receiver);
	ck_assert_uint_eq(end_received(&receiver), END_DATAGRAMS);
	ck_assert_uint_eq(end_received(&sender), sender_receives);
}

/* --- who receives what ---------------------------------------------------------------------- */

/* The control of the next one. */
START_TEST(a_full_member_receives_what_it_sends_itself)
{
	open_members(FULL);
	pass_data(END_DATAGRAMS);
	leave_and_close();
}
END_TEST

START_TEST(a_send_only_member_reaches_the_members_and_receives_nothing)
{
	open_members(SEND_ONLY);
	pass_data(0);
	leave_and_close();
}
END_TEST

START_TEST(a_full_member_that_left_receives_nothing)
{
	open_members(SEND_ONLY);
	pass_data(0);
	end_leave(&receiver, GROUP);
	end_send(&sender);
	end_send_fence(&sender, &receiver);
	ck_assert_uint_eq(end_received(&receiver), END_DATAGRAMS);
	end_leave(&sender, GROUP);
	close_pair();
}
END_TEST

/* --- an id without a queue pair ------------------------------------------------------------- */

START_TEST(a_queue_pair_of_the_users_own_receives_what_comes_after_it_was_attached)
{
	open_members(SEND_ONLY);
	end_leave(&receiver, GROUP);
	end_close(&receiver);
	end_open(&receiver, join_ex_testbed.ip);
	end_join(&receiver, GROUP, FULL);
	end_make_own_qp(&receiver);
	end_send(&sender);
	end_send_fence(&sender, &receiver);
	ck_assert_uint_eq(end_received(&receiver), 0);
	end_attach(&receiver);
	pass_data(0);
	end_detach(&receiver);
	leave_and_close();
}
END_TEST

START_TEST(a_queue_pair_of_the_users_own_sends_for_a_send_only_id)
{
	open_pair();
	end_make_qp(&receiver);
	end_join(&receiver, GROUP, FULL);
	end_join(&sender, GROUP, SEND_ONLY);
	end_make_own_qp(&sender);
	pass_data(0);
	leave_and_close();
}
END_TEST

START_TEST(a_queue_pair_that_the_id_gets_after_the_join_is_not_attached)
{
	open_pair();
	end_join(&receiver, GROUP, FULL);
	end_make_qp(&receiver);
	end_make_qp(&sender);
	end_join(&sender, GROUP, SEND_ONLY);
	end_send(&sender);
	end_send_fence(&sender, &receiver);
	ck_assert_uint_eq(end_received(&receiver), 0);
	end_attach(&receiver);
	pass_data(0);
	end_detach(&receiver);
	leave_and_close();
}
END_TEST

/* --- the kernel's list ---------------------------------------------------------------------- */

START_TEST(a_send_only_member_is_not_in_the_list_of_memberships)
{
	end_open(&sender, join_ex_testbed.ip);
	end_make_qp(&sender);
	end_join(&sender, GROUP, SEND_ONLY);
	ck_assert(!join_ex_testbed.is_listed(GROUP));
	end_send(&sender);
	ck_assert(!join_ex_testbed.is_listed(GROUP));
	end_leave(&sender, GROUP);
	end_close(&sender);
}
END_TEST

START_TEST(a_full_member_is_in_the_list_of_memberships_until_it_leaves)
{
	end_open(&receiver, join_ex_testbed.ip);
	end_make_qp(&receiver);
	end_join(&receiver, GROUP, FULL);
	ck_assert(join_ex_testbed.is_listed(GROUP));
	end_leave(&receiver, GROUP);
	ck_assert(!join_ex_testbed.is_listed(GROUP));
	end_close(&receiver);
}
END_TEST

/* --- errors --------------------------------------------------------------------------------- */

static void expect_error(struct rdma_cm_join_mc_attr_ex attr, int error)
{
	ck_assert_fails(rdma_join_multicast_ex(sender.id, &attr, NULL), error);
	ck_assert_fails(rdma_leave_multicast(sender.id, end_addr(GROUP, 0)), EADDRNOTAVAIL);
}

START_TEST(a_mask_without_the_address_or_the_flags_is_invalid)
{
	struct rdma_cm_join_mc_attr_ex attr = end_attr(GROUP, SEND_ONLY);

	end_open(&sender, join_ex_testbed.ip);
	attr.comp_mask = 0;
	expect_error(attr, EINVAL);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
	expect_error(attr, EINVAL);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	expect_error(attr, EINVAL);
	end_close(&sender);
}
END_TEST

START_TEST(a_mask_beyond_what_is_known_is_not_supported)
{
	struct rdma_cm_join_mc_attr_ex attr = end_attr(GROUP, SEND_ONLY);

	end_open(&sender, join_ex_testbed.ip);
	attr.comp_mask |= RDMA_CM_JOIN_MC_ATTR_RESERVED;
	expect_error(attr, ENOTSUP);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_RESERVED;
	expect_error(attr, ENOTSUP);
	attr.comp_mask = UINT32_MAX;
	expect_error(attr, ENOTSUP);
	end_close(&sender);
}
END_TEST

START_TEST(a_reserved_flag_is_invalid)
{
	end_open(&sender, join_ex_testbed.ip);
	expect_error(end_attr(GROUP, RDMA_MC_JOIN_FLAG_RESERVED), EINVAL);
	expect_error(end_attr(GROUP, RDMA_MC_JOIN_FLAG_RESERVED | SEND_ONLY), EINVAL);
	expect_error(end_attr(GROUP, UINT32_MAX), EINVAL);
	end_close(&sender);
}
END_TEST

START_TEST(a_family_that_is_no_address_is_invalid)
{
	struct rdma_cm_join_mc_attr_ex attr = end_attr(GROUP, SEND_ONLY);
	struct sockaddr strange = { .sa_family = AF_UNIX };

	attr.addr = &strange;
	end_open(&sender, join_ex_testbed.ip);
	expect_error(attr, EINVAL);
	ck_assert_fails(rdma_leave_multicast(sender.id, &strange), EINVAL);
	end_close(&sender);
}
END_TEST

START_TEST(an_unbound_id_cannot_join)
{
	end_open(&sender, NULL);
	expect_error(end_attr(GROUP, FULL), EINVAL);
	expect_error(end_attr(GROUP, SEND_ONLY), EINVAL);
	end_close(&sender);
}
END_TEST

START_TEST(a_group_that_was_not_joined_cannot_be_left)
{
	end_open(&sender, join_ex_testbed.ip);
	end_join(&sender, GROUP, SEND_ONLY);
	ck_assert_fails(rdma_leave_multicast(sender.id, end_addr(OTHER_GROUP, 0)), EADDRNOTAVAIL);
	ck_assert_fails(rdma_leave_multicast(sender.id, end_addr(GROUP, 1)), EADDRNOTAVAIL);
	end_leave(&sender, GROUP);
	ck_assert_fails(rdma_leave_multicast(sender.id, end_addr(GROUP, 0)), EADDRNOTAVAIL);
	end_close(&sender);
}
END_TEST

START_TEST(null_pointers_are_invalid)
{
	struct rdma_cm_join_mc_attr_ex attr = end_attr(GROUP, SEND_ONLY);

	end_open(&sender, join_ex_testbed.ip);
	ck_assert_fails(rdma_join_multicast_ex(NULL, &attr, NULL), EINVAL);
	ck_assert_fails(rdma_join_multicast_ex(sender.id, NULL, NULL), EINVAL);
	attr.addr = NULL;
	expect_error(attr, EINVAL);
	end_close(&sender);
}
END_TEST

START_TEST(a_device_without_multicast_says_so)
{
	end_open(&sender, join_ex_testbed.ip);
	expect_error(end_attr(GROUP, FULL), ENOSYS);
	expect_error(end_attr(GROUP, SEND_ONLY), ENOSYS);
	end_close(&sender);
}
END_TEST

/* --- the suite ------------------------------------------------------------------------------ */

static void add_errors(TCase *tcase)
{
	tcase_add_test(tcase, a_mask_without_the_address_or_the_flags_is_invalid);
	tcase_add_test(tcase, a_mask_beyond_what_is_known_is_not_supported);
	tcase_add_test(tcase, a_reserved_flag_is_invalid);
	tcase_add_test(tcase, a_family_that_is_no_address_is_invalid);
	tcase_add_test(tcase, an_unbound_id_cannot_join);
	if (join_ex_testbed.own_core)
		tcase_add_test(tcase, null_pointers_are_invalid);
}

static void add_groups(TCase *tcase)
{
	tcase_add_test(tcase, a_full_member_receives_what_it_sends_itself);
	tcase_add_test(tcase, a_send_only_member_reaches_the_members_and_receives_nothing);
	tcase_add_test(tcase, a_full_member_that_left_receives_nothing);
	tcase_add_test(
		tcase, a_queue_pair_of_the_users_own_receives_what_comes_after_it_was_attached);
	tcase_add_test(tcase, a_queue_pair_of_the_users_own_sends_for_a_send_only_id);
	tcase_add_test(tcase, a_queue_pair_that_the_id_gets_after_the_join_is_not_attached);
	tcase_add_test(tcase, a_group_that_was_not_joined_cannot_be_left);
	if (!join_ex_testbed.is_listed)
		return;
	tcase_add_test(tcase, a_send_only_member_is_not_in_the_list_of_memberships);
	tcase_add_test(tcase, a_full_member_is_in_the_list_of_memberships_until_it_leaves);
}

int join_ex_run(SFun setup, SFun teardown)
{
	Suite *suite = suite_create("join_ex");
	TCase *tcase = tcase_create("join_ex");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	add_errors(tcase);
	if (join_ex_testbed.has_groups)
		add_groups(tcase);
	else
		tcase_add_test(tcase, a_device_without_multicast_says_so);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
