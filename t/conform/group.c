/* Datagram endpoints and multicast groups. */
#include "conform/suite.h"
#include "conform/member.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <string.h>

enum { MANY = 32, DEPTH = 4 };

START_TEST(an_endpoint_that_is_ready_knows_its_mtu_and_number)
{
	struct fixture *f = fixture_new();
	struct member m;
	size_t mtu;

	member_init(&m, f, 0);
	ck_assert_uint_eq(evrdma_dgram_get_mtu(m.dgram), 0);
	ck_assert_uint_eq(evrdma_dgram_get_qp_num(m.dgram), 0);
	member_open(&m);
	member_run_until_ready(&m);
	mtu = evrdma_dgram_get_mtu(m.dgram);
	ck_assert_uint_ge(mtu, 256);
	ck_assert_uint_eq(mtu & (mtu - 1), 0);
	ck_assert_uint_ne(evrdma_dgram_get_qp_num(m.dgram), 0);
	fixture_free(f);
}
END_TEST

START_TEST(a_datagram_arrives_with_its_bytes_its_number_and_its_sender)
{
	struct fixture *f = fixture_new();
	struct member sender, receiver;
	const uint32_t imm = 0x01020304;

	member_join(&receiver, f, 0, GROUP_A, 0);
	member_join(&sender, f, 0, GROUP_A, EVRDMA_MCAST_OPT_SENDONLY);
	ck_assert_uint_eq(evrdma_mcast_get_qp_num(sender.group), 0xffffff);
	ck_assert_int_eq(member_send(&sender, 200, &imm), 0);
	member_run_until_received(&receiver, 1);
	ck_assert_uint_eq(receiver.len, 200);
	ck_assert(receiver.has_imm);
	ck_assert_uint_eq(receiver.imm, imm);
	ck_assert_uint_eq(receiver.src_qp, evrdma_dgram_get_qp_num(sender.dgram));
	ck_assert(receiver.has_grh);
	ck_assert_int_eq(member_send(&sender, 0, NULL), 0);
	member_run_until_received(&receiver, 2);
	ck_assert_uint_eq(receiver.len, 0);
	ck_assert(!receiver.has_imm);
	fixture_free(f);
}
END_TEST

START_TEST(a_member_that_only_sends_receives_none)
{
	struct fixture *f = fixture_new();
	struct member sender, receiver;
	unsigned i;

	member_join(&receiver, f, 0, GROUP_A, 0);
	member_join(&sender, f, 0, GROUP_A, EVRDMA_MCAST_OPT_SENDONLY);
	for (i = 0; i < MANY; i++)
		ck_assert_int_eq(member_send(&sender, 64, NULL), 0);
	member_run_until_received(&receiver, MANY);
	ck_assert_uint_eq(sender.received, 0);
	fixture_free(f);
	ck_assert_uint_eq(sender.sent_ok, MANY);
}
END_TEST

START_TEST(a_full_member_receives_its_own)
{
	struct fixture *f = fixture_new();
	struct member m;

	member_join(&m, f, 0, GROUP_A, 0);
	ck_assert_int_eq(member_send(&m, 64, NULL), 0);
	member_run_until_received(&m, 1);
	ck_assert_uint_eq(m.src_qp, evrdma_dgram_get_qp_num(m.dgram));
	fixture_free(f);
}
END_TEST

START_TEST(an_endpoint_leaves_one_group_and_stays_in_the_other)
{
	struct fixture *f = fixture_new();
	struct member both, a, b;

	member_join(&both, f, 0, GROUP_A, 0);
	member_join_too(&both, GROUP_B, 0);
	member_join(&a, f, 0, GROUP_A, EVRDMA_MCAST_OPT_SENDONLY);
	member_join(&b, f, 0, GROUP_B, EVRDMA_MCAST_OPT_SENDONLY);
	ck_assert_int_eq(member_send(&a, 10, NULL), 0);
	ck_assert_int_eq(member_send(&b, 11, NULL), 0);
	member_run_until_received(&both, 2);
	evrdma_mcast_close(both.group);
	member_run_until_group_closed(&both);
	ck_assert_int_eq(member_send(&a, 10, NULL), 0);
	ck_assert_int_eq(member_send(&b, 11, NULL), 0);
	member_run_until_received(&both, 3);
	ck_assert_uint_eq(both.len, 11);
	fixture_free(f);
}
END_TEST

/* Of two memberships with one address the kernel would end the wrong one. */
START_TEST(a_group_is_joined_once_and_again_after_its_end)
{
	struct fixture *f = fixture_new();
	struct sockaddr_in sin;
	struct member m, sender;

	fixture_address(&sin, GROUP_A, 0);
	member_join(&m, f, 0, GROUP_A, 0);
	member_join(&sender, f, 0, GROUP_A, EVRDMA_MCAST_OPT_SENDONLY);
	ck_assert(!evrdma_mcast_join(m.dgram, (struct sockaddr *)&sin, 0, NULL, NULL));
	ck_assert_int_eq(errno, EADDRINUSE);
	evrdma_mcast_close(m.group);
	member_join_too(&m, GROUP_A, 0);
	ck_assert_int_eq(member_send(&sender, 10, NULL), 0);
	member_run_until_received(&m, 1);
	fixture_free(f);
}
END_TEST

/* --- refusals ------------------------------------------------------------------------------- */

START_TEST(an_endpoint_refuses_what_it_cannot_send)
{
	struct fixture *f = fixture_new();
	struct member m, other;
	struct evrdma_buf *buf = evrdma_pool_get(f->pool);
	size_t mtu;

	member_join(&m, f, 0, GROUP_A, 0);
	member_join(&other, f, 0, GROUP_A, 0);
	mtu = evrdma_dgram_get_mtu(m.dgram);
	ck_assert_int_eq(member_send(&m, mtu + 1, NULL), -EMSGSIZE);
	ck_assert_int_eq(evrdma_dgram_send(m.dgram, other.group, buf, 1, NULL, NULL, NULL), -EXDEV);
	evrdma_mcast_close(m.group);
	ck_assert_int_eq(member_send(&m, 1, NULL), -ENOTCONN);
	evrdma_buf_unref(buf);
	fixture_free(f);
}
END_TEST

START_TEST(a_join_that_cannot_begin_says_so)
{
	struct fixture *f = fixture_new();
	struct sockaddr nothing = { .sa_family = AF_UNSPEC };
	struct sockaddr_in sin;
	struct member m;

	fixture_address(&sin, GROUP_A, 0);
	member_init(&m, f, 0);
	ck_assert(!evrdma_mcast_join(m.dgram, (struct sockaddr *)&sin, 0, NULL, NULL));
	ck_assert_int_eq(errno, ENOTCONN);
	ck_assert_int_eq(evrdma_dgram_open(m.dgram, NULL, NULL), -EINVAL);
	member_open(&m);
	ck_assert_int_eq(evrdma_dgram_open(m.dgram, NULL, (struct sockaddr *)&sin), -EALREADY);
	member_run_until_ready(&m);
	ck_assert(!evrdma_mcast_join(m.dgram, (struct sockaddr *)&sin, 2, NULL, NULL));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert(!evrdma_mcast_join(m.dgram, &nothing, 0, NULL, NULL));
	ck_assert_int_eq(errno, EAFNOSUPPORT);
	evrdma_dgram_close(m.dgram);
	ck_assert(!evrdma_mcast_join(m.dgram, (struct sockaddr *)&sin, 0, NULL, NULL));
	ck_assert_int_eq(errno, ENOTCONN);
	fixture_free(f);
}
END_TEST

static const struct sockaddr_in6 six = { .sin6_family = AF_INET6,
	.sin6_addr.s6_addr = { 0xff, 0x12, [15] = 1 } };

static void open_on_ip6(struct member *m, struct fixture *f)
{
	struct sockaddr_in6 src = { .sin6_family = AF_INET6 };

	ck_assert_int_eq(inet_pton(AF_INET6, testbed.ip6, &src.sin6_addr), 1);
	member_init(m, f, 0);
	ck_assert_int_eq(evrdma_dgram_open(m->dgram, (struct sockaddr *)&src, NULL), 0);
	member_run_until_ready(m);
}

START_TEST(a_group_of_a_kind_that_the_device_lacks_is_not_supported)
{
	struct fixture *f = fixture_new();
	struct member m;

	open_on_ip6(&m, f);
	member_try_join(&m, (const struct sockaddr *)&six, 0);
	member_run_until_group_failed(&m);
	ck_assert_int_eq(m.group_err, EOPNOTSUPP);
	ck_assert_int_eq(m.joined, 0);
	fixture_free(f);
}
END_TEST

static void expect_no_join(struct member *m, const void *group, int err)
{
	errno = 0;
	ck_assert_ptr_null(evrdma_mcast_join(m->dgram, group, 0, NULL, NULL));
	ck_assert_int_eq(errno, err);
}

/* RoCE has GIDs of both families, and a datagram goes from one to another of its own. */
START_TEST(a_group_of_another_family_than_the_endpoint_is_refused)
{
	struct fixture *f = fixture_new();
	struct member on_ip4, on_ip6;
	struct sockaddr_in four;

	fixture_address(&four, GROUP_A, 0);
	open_on_ip6(&on_ip6, f);
	expect_no_join(&on_ip6, &four, EAFNOSUPPORT);
	member_init(&on_ip4, f, 0);
	member_open(&on_ip4);
	member_run_until_ready(&on_ip4);
	expect_no_join(&on_ip4, &six, EAFNOSUPPORT);
	fixture_free(f);
}
END_TEST

START_TEST(an_address_of_one_host_is_no_group)
{
	static const char *const hosts[] = { "10.9.8.7", "127.0.0.1", "223.255.255.255",
		"240.0.0.1", "255.255.255.255" };
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_ib sib = { .sib_family = AF_IB };
	struct fixture *f = fixture_new();
	struct sockaddr_in sin;
	struct member m;
	size_t i;

	member_init(&m, f, 0);
	member_open(&m);
	member_run_until_ready(&m);
	for (i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		fixture_address(&sin, hosts[i], 0);
		expect_no_join(&m, &sin, EINVAL);
	}
	expect_no_join(&m, &sin6, EINVAL);
	sib.sib_addr.sib_raw[0] = 0xfe;
	expect_no_join(&m, &sib, EINVAL);
	fixture_free(f);
}
END_TEST

START_TEST(an_assigned_group_is_for_InfiniBand_only)
{
	struct fixture *f = fixture_new();
	struct sockaddr_in zero;
	struct member m;

	fixture_address(&zero, "0.0.0.0", 0);
	member_init(&m, f, 0);
	member_open(&m);
	member_run_until_ready(&m);
	member_try_join(&m, (struct sockaddr *)&zero, 0);
	member_run_until_group_failed(&m);
	ck_assert_int_eq(m.group_err, EINVAL);
	fixture_free(f);
}
END_TEST

START_TEST(a_device_that_cannot_block_its_own_datagrams_says_so)
{
	struct fixture *f = fixture_new();
	struct member m;

	member_init(&m, f, EVRDMA_DGRAM_OPT_NO_LOOPBACK);
	member_open(&m);
	member_run_until_failed(&m);
	ck_assert_int_eq(m.err, EOPNOTSUPP);
	ck_assert_int_eq(m.step, EVRDMA_STEP_DEVICE);
	fixture_free(f);
}
END_TEST

START_TEST(an_address_that_is_not_ours_opens_nothing)
{
	struct fixture *f = fixture_new();
	struct sockaddr_in sin;
	struct member m;

	fixture_address(&sin, "10.254.253.252", 0);
	member_init(&m, f, 0);
	ck_assert_int_eq(evrdma_dgram_open(m.dgram, (struct sockaddr *)&sin, NULL), 0);
	member_run_until_failed(&m);
	ck_assert_int_eq(m.err, EADDRNOTAVAIL);
	fixture_free(f);
}
END_TEST

/* --- a full queue, and the end with work in flight ------------------------------------------ */

START_TEST(an_endpoint_whose_queue_is_full_says_so_and_WRITABLE_follows)
{
	struct fixture *f = fixture_new();
	struct member m;
	unsigned i;

	member_init(&m, f, 0);
	m.send_depth = DEPTH;
	member_reopen(&m);
	member_run_until_ready(&m);
	member_join_too(&m, GROUP_A, EVRDMA_MCAST_OPT_SENDONLY);
	for (i = 0; i < DEPTH; i++)
		ck_assert_int_eq(member_send(&m, 64, NULL), 0);
	ck_assert_int_eq(member_send(&m, 64, NULL), -EAGAIN);
	member_run_until_writable(&m);
	ck_assert_int_eq(member_send(&m, 64, NULL), 0);
	fixture_free(f);
	ck_assert_uint_eq(m.sent_ok + m.sent_cancelled, DEPTH + 1);
}
END_TEST

/* The member's own callbacks check that every send ended before the endpoint closed. */
START_TEST(a_group_is_left_with_sends_in_flight_that_all_end)
{
	struct fixture *f = fixture_new();
	struct member m;
	unsigned i;

	member_join(&m, f, 0, GROUP_A, 0);
	for (i = 0; i < MANY; i++)
		ck_assert_int_eq(member_send(&m, 64, NULL), 0);
	evrdma_mcast_close(m.group);
	evrdma_mcast_close(m.group);
	member_run_until_group_closed(&m);
	ck_assert_uint_eq(m.sent_ok + m.sent_cancelled, MANY);
	ck_assert_uint_eq(m.group_errors, 0);
	fixture_free(f);
}
END_TEST

START_TEST(an_endpoint_closed_first_closes_its_groups_before_itself)
{
	struct fixture *f = fixture_new();
	struct member m;
	unsigned i;

	member_join(&m, f, 0, GROUP_A, 0);
	member_join_too(&m, GROUP_B, 0);
	for (i = 0; i < MANY; i++)
		ck_assert_int_eq(member_send(&m, 64, NULL), 0);
	evrdma_dgram_close(m.dgram);
	member_run_until_closed(&m);
	ck_assert_uint_eq(m.groups_closed, 2);
	ck_assert_uint_eq(m.group_errors, 0);
	ck_assert_uint_eq(m.sent_ok + m.sent_cancelled, MANY);
	fixture_free(f);
}
END_TEST

START_TEST(a_group_closed_while_it_joins_was_never_joined)
{
	struct fixture *f = fixture_new();
	struct sockaddr_in sin;
	struct member m;

	fixture_address(&sin, GROUP_A, 0);
	member_init(&m, f, 0);
	member_open(&m);
	member_run_until_ready(&m);
	member_try_join(&m, (struct sockaddr *)&sin, 0);
	ck_assert_ptr_null(evrdma_mcast_get_ah_attr(m.group));
	ck_assert_uint_eq(evrdma_mcast_get_qp_num(m.group), 0);
	evrdma_mcast_close(m.group);
	member_run_until_group_closed(&m);
	ck_assert_uint_eq(m.joined, 0);
	fixture_free(f);
}
END_TEST

TCase *group_case(void)
{
	TCase *tc = tcase_create("group");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	if (!testbed_has(TESTBED_DATAGRAMS | TESTBED_GROUPS))
		return tc; /* which has no datagrams */
	tcase_add_test(tc, an_endpoint_that_is_ready_knows_its_mtu_and_number);
	tcase_add_test(tc, a_datagram_arrives_with_its_bytes_its_number_and_its_sender);
	tcase_add_test(tc, a_member_that_only_sends_receives_none);
	tcase_add_test(tc, a_full_member_receives_its_own);
	tcase_add_test(tc, an_endpoint_leaves_one_group_and_stays_in_the_other);
	tcase_add_test(tc, a_group_is_joined_once_and_again_after_its_end);
	tcase_add_test(tc, an_endpoint_refuses_what_it_cannot_send);
	tcase_add_test(tc, a_join_that_cannot_begin_says_so);
	tcase_add_test(tc, an_address_of_one_host_is_no_group);
	tcase_add_test(tc, an_address_that_is_not_ours_opens_nothing);
	tcase_add_test(tc, an_endpoint_whose_queue_is_full_says_so_and_WRITABLE_follows);
	tcase_add_test(tc, a_group_is_left_with_sends_in_flight_that_all_end);
	tcase_add_test(tc, an_endpoint_closed_first_closes_its_groups_before_itself);
	tcase_add_test(tc, a_group_closed_while_it_joins_was_never_joined);
	/* InfiniBand has all groups. */
	if (testbed.is_infiniband)
		return tc;
	tcase_add_test(tc, a_group_of_a_kind_that_the_device_lacks_is_not_supported);
	tcase_add_test(tc, a_group_of_another_family_than_the_endpoint_is_refused);
	tcase_add_test(tc, an_assigned_group_is_for_InfiniBand_only);
	tcase_add_test(tc, a_device_that_cannot_block_its_own_datagrams_says_so);
	return tc;
}
