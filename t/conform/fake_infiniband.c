/* What only InfiniBand has: IPv6, raw and assigned groups, IPoIB, own datagrams kept away. */
#include "conform/fake.h"
#include "conform/member.h"
#include "conform/fixture.h"

#include <arpa/inet.h>
#include <endian.h>
#include <infiniband/ib.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <string.h>

static void have_infiniband(void)
{
	if (fake_testbed_kind != FAKE_IB)
		fake_device_add(FAKE_IB);
}

static struct fixture *fixture_with_infiniband(struct member *m, unsigned flags)
{
	struct fixture *f;

	have_infiniband();
	f = fixture_new();
	member_init(m, f, flags);
	m->ip = FAKE_IB_IP;
	return f;
}

static void open_and_join(struct member *m, const struct sockaddr *group)
{
	member_open(m);
	member_run_until_ready(m);
	member_try_join(m, group, 0);
	member_run_until_joined(m);
}

static void check_own_datagram(struct member *m)
{
	ck_assert_int_eq(member_send(m, 100, NULL), 0);
	member_run_until_received(m, 1);
	ck_assert_uint_eq(m->src_qp, evrdma_dgram_get_qp_num(m->dgram));
}

START_TEST(an_IPv6_group_is_joined_and_passes_datagrams)
{
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6,
		.sin6_addr.s6_addr = { 0xff, 0x12, [15] = 9 } };
	struct member m;
	struct fixture *f = fixture_with_infiniband(&m, 0);

	open_and_join(&m, (struct sockaddr *)&sin6);
	ck_assert_uint_eq(evrdma_mcast_get_ah_attr(m.group)->grh.dgid.raw[15], 9);
	check_own_datagram(&m);
	fixture_free(f);
}
END_TEST

START_TEST(a_raw_group_is_joined_by_its_GID)
{
	static const uint8_t mgid[16] = { 0xff, 0x12, 0x40, 0x1b, [15] = 0x42 };
	struct sockaddr_ib sib = { .sib_family = AF_IB };
	struct member m;
	struct fixture *f = fixture_with_infiniband(&m, 0);

	memcpy(&sib.sib_addr, mgid, sizeof(mgid));
	open_and_join(&m, (struct sockaddr *)&sib);
	ck_assert_mem_eq(evrdma_mcast_get_ah_attr(m.group)->grh.dgid.raw, mgid, sizeof(mgid));
	ck_assert_int_eq(evrdma_mcast_get_addr(m.group)->sa_family, AF_IB);
	check_own_datagram(&m);
	fixture_free(f);
}
END_TEST

START_TEST(an_assigned_group_has_a_GID_after_the_join)
{
	struct sockaddr_in zero;
	struct member m;
	struct fixture *f = fixture_with_infiniband(&m, 0);

	fixture_address(&zero, "0.0.0.0", 0);
	open_and_join(&m, (struct sockaddr *)&zero);
	ck_assert_uint_eq(evrdma_mcast_get_ah_attr(m.group)->grh.dgid.raw[0], 0xff);
	ck_assert_uint_ne(evrdma_mcast_get_ah_attr(m.group)->dlid, 0);
	check_own_datagram(&m);
	fixture_free(f);
}
END_TEST

static void join_over_ipoib(struct member *m, const struct sockaddr *group)
{
	m->port_space = RDMA_PS_IPOIB;
	member_reopen(m);
	member_run_until_ready(m);
	member_try_join(m, group, 0);
	member_run_until_joined(m);
}

START_TEST(an_IPoIB_endpoint_joins_its_groups)
{
	struct sockaddr_in sin;
	struct member m;
	struct fixture *f = fixture_with_infiniband(&m, 0);

	fixture_address(&sin, GROUP_A, 0);
	join_over_ipoib(&m, (struct sockaddr *)&sin);
	ck_assert_uint_eq(evrdma_mcast_get_ah_attr(m.group)->grh.dgid.raw[3], 0x1b);
	fixture_free(f);
}
END_TEST

static void answer(struct evrdma_dgram *dgram, const struct evrdma_recv *recv, void *arg)
{
	ck_assert_int_eq(evrdma_dgram_reply(dgram, recv, recv->buf, 0, NULL, NULL, NULL), 0);
}

/* Its Q_Key is the group's, not that of RDMA_PS_UDP. */
START_TEST(an_IPoIB_endpoint_answers_a_sender)
{
	struct sockaddr_in sin;
	struct member m, other;
	struct fixture *f = fixture_with_infiniband(&m, EVRDMA_DGRAM_OPT_NO_LOOPBACK);

	fixture_address(&sin, GROUP_A, 0);
	member_init(&other, f, EVRDMA_DGRAM_OPT_NO_LOOPBACK);
	other.ip = FAKE_IB_IP;
	join_over_ipoib(&m, (struct sockaddr *)&sin);
	join_over_ipoib(&other, (struct sockaddr *)&sin);
	evrdma_dgram_setcb(other.dgram, answer, NULL, NULL);
	ck_assert_int_eq(member_send(&m, 10, NULL), 0);
	member_run_until_received(&m, 1);
	ck_assert_uint_eq(m.len, 0);
	ck_assert_uint_eq(m.src_qp, evrdma_dgram_get_qp_num(other.dgram));
	fixture_free(f);
}
END_TEST

START_TEST(own_datagrams_stay_away_when_asked_and_others_come)
{
	struct member m, other;
	struct fixture *f = fixture_with_infiniband(&m, EVRDMA_DGRAM_OPT_NO_LOOPBACK);
	struct sockaddr_in sin;

	fixture_address(&sin, GROUP_A, 0);
	open_and_join(&m, (struct sockaddr *)&sin);
	member_init(&other, f, 0);
	other.ip = FAKE_IB_IP;
	open_and_join(&other, (struct sockaddr *)&sin);
	ck_assert_int_eq(member_send(&m, 10, NULL), 0);
	member_run_until_received(&other, 1);
	ck_assert_int_eq(member_send(&other, 11, NULL), 0);
	member_run_until_received(&m, 1);
	ck_assert_uint_eq(m.len, 11);
	fixture_free(f);
}
END_TEST

static unsigned told_listening;

static void note_listening(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	told_listening += event == EVRDMA_LISTENER_LISTENING;
}

static void refuse(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	evrdma_request_reject(request, NULL, 0);
}

static bool device_is_gone(struct fixture *f)
{
	return fake_device_gone(FAKE_IB);
}

static bool listens_again(struct fixture *f)
{
	return told_listening;
}

/* Any port of a service, as 0 in the mask says. */
START_TEST(a_listener_at_a_GID_comes_back_at_its_port)
{
	struct evrdma_listener_options options;
	struct sockaddr_ib sib = { .sib_family = AF_IB,
		.sib_sid = htobe64((uint64_t)RDMA_PS_TCP << 16),
		.sib_sid_mask = htobe64(UINT64_MAX << 16) };
	struct fixture *f;
	uint16_t port;

	told_listening = 0;
	have_infiniband();
	f = fixture_new();
	evrdma_listener_options_init(&options);
	options.relisten_ms = 20;
	inet_pton(AF_INET6, FAKE_IB_GID, &sib.sib_addr);
	/* This one does not come back: its port, the first, is free then. */
	ck_assert_ptr_nonnull(
		evrdma_listener_new(f->base, (struct sockaddr *)&sib, NULL, refuse, f));
	f->listener = evrdma_listener_new(f->base, (struct sockaddr *)&sib, &options, refuse, f);
	ck_assert_ptr_nonnull(f->listener);
	evrdma_listener_set_event_cb(f->listener, note_listening);
	port = evrdma_listener_get_port(f->listener);
	ck_assert_uint_ne(port, 0);
	fake_device_remove(FAKE_IB);
	fixture_run_until(f, device_is_gone, 20000);
	fake_device_add(FAKE_IB);
	fixture_run_until(f, listens_again, 20000);
	ck_assert_uint_eq(evrdma_listener_get_port(f->listener), port);
	fixture_free(f);
}
END_TEST

TCase *infiniband_case(void)
{
	TCase *tc = tcase_create("infiniband");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, an_IPv6_group_is_joined_and_passes_datagrams);
	tcase_add_test(tc, a_raw_group_is_joined_by_its_GID);
	tcase_add_test(tc, an_assigned_group_has_a_GID_after_the_join);
	tcase_add_test(tc, an_IPoIB_endpoint_joins_its_groups);
	tcase_add_test(tc, an_IPoIB_endpoint_answers_a_sender);
	tcase_add_test(tc, own_datagrams_stay_away_when_asked_and_others_come);
	tcase_add_test(tc, a_listener_at_a_GID_comes_back_at_its_port);
	return tc;
}
