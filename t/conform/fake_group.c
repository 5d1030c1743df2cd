/* Groups that cannot be joined, and one that goes while it is still sent to. */
#include "conform/fake.h"
#include "conform/fixture.h"
#include "conform/member.h"

#include <errno.h>
#include <rdma/rdma_cma.h>

enum { TURNS = 8 };

START_TEST(a_join_that_fails_is_told_and_the_endpoint_stays)
{
	struct fixture *f = fixture_new();
	struct sockaddr_in sin;
	struct member m;

	fixture_address(&sin, GROUP_A, 0);
	member_init(&m, f, 0);
	member_open(&m);
	member_run_until_ready(&m);
	fake_answer(FAKE_JOIN, -ENETUNREACH);
	member_try_join(&m, (struct sockaddr *)&sin, 0);
	member_run_until_group_failed(&m);
	ck_assert_int_eq(m.group_err, ENETUNREACH);
	evrdma_mcast_close(m.group);
	member_run_until_group_closed(&m);
	member_join_too(&m, GROUP_A, 0);
	ck_assert_uint_eq(m.errors, 0);
	fixture_free(f);
}
END_TEST

START_TEST(the_deadline_ends_a_join_whose_answer_is_withheld)
{
	struct fixture *f = fixture_new();
	struct sockaddr_in sin;
	struct member m;

	fixture_address(&sin, GROUP_A, 0);
	member_init(&m, f, 0);
	m.join_timeout_ms = 30;
	member_reopen(&m);
	member_run_until_ready(&m);
	fake_hold(FAKE_JOIN);
	member_try_join(&m, (struct sockaddr *)&sin, 0);
	member_run_until_group_failed(&m);
	ck_assert_int_eq(m.group_err, ETIMEDOUT);
	/* An answer that is late finds nobody. */
	fake_release(FAKE_JOIN);
	fixture_run_a_little(f);
	ck_assert_uint_eq(m.joined, 0);
	evrdma_mcast_close(m.group);
	member_run_until_group_closed(&m);
	member_join_too(&m, GROUP_A, 0);
	ck_assert_uint_eq(m.errors, 0);
	fixture_free(f);
}
END_TEST

START_TEST(an_address_handle_outlives_its_group_until_the_last_send)
{
	struct fixture *f = fixture_new();
	struct member m;
	unsigned handles;
	int turn;

	member_join(&m, f, 0, GROUP_A, EVRDMA_MCAST_OPT_SENDONLY);
	handles = fake_live(FAKE_AH);
	fake_work_by_hand(true);
	ck_assert_int_eq(member_send(&m, 64, NULL), 0);
	evrdma_mcast_close(m.group);
	for (turn = 0; turn < TURNS; turn++) {
		fixture_run_turns(f, 1);
		ck_assert_uint_eq(fake_live(FAKE_AH), handles);
		ck_assert_uint_eq(m.groups_closed, 0);
	}
	ck_assert_uint_eq(fake_live(FAKE_MEMBERSHIP), 0);
	fake_work_by_hand(false);
	member_run_until_group_closed(&m);
	/* It is kept for who comes back. */
	member_join_too(&m, GROUP_A, EVRDMA_MCAST_OPT_SENDONLY);
	ck_assert_uint_eq(fake_live(FAKE_AH), handles);
	fixture_free(f);
	ck_assert_uint_eq(fake_live(FAKE_AH), 0);
	ck_assert_uint_eq(m.sent_ok, 1);
}
END_TEST

TCase *fake_group_case(void)
{
	TCase *tc = tcase_create("fake_group");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	if (fake_testbed_kind == FAKE_IWARP)
		return tc;
	if (!testbed_has(TESTBED_DATAGRAMS | TESTBED_GROUPS))
		return tc;
	tcase_add_test(tc, a_join_that_fails_is_told_and_the_endpoint_stays);
	tcase_add_test(tc, the_deadline_ends_a_join_whose_answer_is_withheld);
	tcase_add_test(tc, an_address_handle_outlives_its_group_until_the_last_send);
	return tc;
}
