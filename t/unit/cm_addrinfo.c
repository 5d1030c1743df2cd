#include "unit/cm_unit.h"

#include <arpa/inet.h>
#include <infiniband/ib.h>
#include <netdb.h>
#include <string.h>

static struct rdma_addrinfo *res;

static void tear_down(void)
{
	rdma_freeaddrinfo(res);
	res = NULL;
	cm_tear_down();
}

START_TEST(an_address_to_connect_to_is_a_destination)
{
	struct sockaddr_in *in;

	ck_assert_ok(rdma_getaddrinfo("192.0.2.9", "7471", NULL, &res));
	in = (struct sockaddr_in *)res->ai_dst_addr;
	ck_assert(!res->ai_src_addr && !res->ai_src_len && !res->ai_flags && !res->ai_next);
	ck_assert(res->ai_family == AF_INET && res->ai_dst_len == sizeof(*in));
	ck_assert(in->sin_port == htons(7471) && in->sin_addr.s_addr == inet_addr("192.0.2.9"));
	ck_assert(res->ai_qp_type == IBV_QPT_RC && res->ai_port_space == RDMA_PS_TCP);
	ck_assert(!res->ai_route_len && !res->ai_connect_len);
}
END_TEST

START_TEST(an_address_to_listen_on_is_a_source)
{
	const struct rdma_addrinfo hints = {
		.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_UDP, .ai_qp_type = IBV_QPT_UD
	};

	ck_assert_ok(rdma_getaddrinfo(NULL, "7174", &hints, &res));
	ck_assert(res->ai_src_addr && !res->ai_dst_addr && res->ai_flags == RAI_PASSIVE);
	ck_assert_uint_eq(((struct sockaddr_in *)res->ai_src_addr)->sin_port, htons(7174));
	ck_assert(res->ai_qp_type == IBV_QPT_UD && res->ai_port_space == RDMA_PS_UDP);
}
END_TEST

START_TEST(the_type_follows_from_the_port_space)
{
	const struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_UDP };

	ck_assert_ok(rdma_getaddrinfo("192.0.2.9", "1", &hints, &res));
	ck_assert_int_eq(res->ai_qp_type, IBV_QPT_UD);
}
END_TEST

START_TEST(a_source_in_the_hints_goes_along)
{
	struct rdma_addrinfo hints = { .ai_src_len = sizeof(struct sockaddr_in) };

	hints.ai_src_addr = cm_addr("192.0.2.1", 5);
	ck_assert_ok(rdma_getaddrinfo("192.0.2.9", "7471", &hints, &res));
	ck_assert_mem_eq(res->ai_src_addr, hints.ai_src_addr, sizeof(struct sockaddr_in));
	ck_assert_ptr_ne(res->ai_src_addr, hints.ai_src_addr);
}
END_TEST

START_TEST(known_addresses_are_copied_without_a_look_up)
{
	struct rdma_addrinfo hints = { .ai_family = AF_INET,
		.ai_port_space = RDMA_PS_TCP,
		.ai_qp_type = IBV_QPT_RC,
		.ai_dst_len = sizeof(struct sockaddr_in) };

	hints.ai_dst_addr = cm_addr("192.0.2.9", 9);
	ck_assert_ok(rdma_getaddrinfo(NULL, NULL, &hints, &res));
	ck_assert_mem_eq(res->ai_dst_addr, hints.ai_dst_addr, sizeof(struct sockaddr_in));
	ck_assert(res->ai_family == AF_INET && res->ai_port_space == RDMA_PS_TCP);
}
END_TEST

START_TEST(a_gid_is_an_address_of_infiniband)
{
	const struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST | RAI_FAMILY,
		.ai_family = AF_IB,
		.ai_port_space = RDMA_PS_TCP };
	const struct sockaddr_ib *sib;
	struct in6_addr gid;

	inet_pton(AF_INET6, FAKE_IB_GID, &gid);
	ck_assert_ok(rdma_getaddrinfo(FAKE_IB_GID, "7471", &hints, &res));
	sib = (const struct sockaddr_ib *)res->ai_dst_addr;
	ck_assert(res->ai_family == AF_IB && res->ai_dst_len == sizeof(*sib));
	ck_assert_mem_eq(&sib->sib_addr, &gid, sizeof(gid));
	ck_assert_uint_eq(be64toh(sib->sib_sid), RDMA_IB_IP_PS_TCP | 7471);
	ck_assert_uint_eq(be64toh(sib->sib_sid_mask), UINT64_MAX);
	ck_assert_uint_eq(sib->sib_pkey, 0xffff);
}
END_TEST

START_TEST(without_the_flags_a_gid_is_an_ipv6_address)
{
	const struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST, .ai_family = AF_IB };

	ck_assert_ok(rdma_getaddrinfo(FAKE_IB_GID, "7471", &hints, &res));
	ck_assert_int_eq(res->ai_family, AF_INET6);
}
END_TEST

START_TEST(a_gid_to_listen_on_is_a_source)
{
	const struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE | RAI_NUMERICHOST | RAI_FAMILY,
		.ai_family = AF_IB,
		.ai_port_space = RDMA_PS_IB };
	const struct sockaddr_ib *sib;

	ck_assert_ok(rdma_getaddrinfo(FAKE_IB_GID, NULL, &hints, &res));
	sib = (const struct sockaddr_ib *)res->ai_src_addr;
	ck_assert(!res->ai_dst_addr && res->ai_src_len == sizeof(*sib));
	ck_assert(res->ai_flags == RAI_PASSIVE && res->ai_port_space == RDMA_PS_IB);
	ck_assert_uint_eq(be64toh(sib->sib_sid), RDMA_IB_PS_IB);
	ck_assert_uint_eq(be64toh(sib->sib_sid_mask), RDMA_IB_IP_PS_MASK);
}
END_TEST

START_TEST(the_family_of_the_hints_limits_what_is_found)
{
	const struct rdma_addrinfo v4 = { .ai_flags = RAI_PASSIVE, .ai_family = AF_INET };
	const struct rdma_addrinfo v6 = { .ai_flags = RAI_PASSIVE, .ai_family = AF_INET6 };

	ck_assert_ok(rdma_getaddrinfo(NULL, "7471", &v4, &res));
	ck_assert_int_eq(res->ai_family, AF_INET);
	rdma_freeaddrinfo(res);
	res = NULL;
	ck_assert_ok(rdma_getaddrinfo(NULL, "7471", &v6, &res));
	ck_assert_int_eq(res->ai_family, AF_INET6);
}
END_TEST

/* A loopback address of each family is found, whatever names the machine has. */
START_TEST(there_is_one_result_and_no_route_or_name_with_it)
{
	const struct rdma_addrinfo hints = { .ai_flags = RAI_NOROUTE | RAI_DNS };

	ck_assert_ok(rdma_getaddrinfo(NULL, "7471", &hints, &res));
	ck_assert(!res->ai_next && !res->ai_src_canonname && !res->ai_dst_canonname);
	ck_assert(!res->ai_route && !res->ai_route_len && !res->ai_connect && !res->ai_connect_len);
}
END_TEST

START_TEST(datagrams_of_ip_over_infiniband_are_datagrams)
{
	const struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_IPOIB };

	ck_assert_ok(rdma_getaddrinfo("192.0.2.9", "1", &hints, &res));
	ck_assert(res->ai_qp_type == IBV_QPT_UD && res->ai_port_space == RDMA_PS_IPOIB);
}
END_TEST

/* --- services of InfiniBand --- */

static const struct rdma_addrinfo by_sa = { .ai_flags = RAI_SA };

static void add_services(void)
{
	fake_device_add(FAKE_IB);
	fake_newer_kernel(true);
	fake_service_add(RDMA_IB_PS_IB | 0x1d2f, "MyService", FAKE_IB_GID);
	fake_service_add(RDMA_IB_PS_IB | 0x1d30, "MyService", FAKE_IB_GID);
}

START_TEST(a_service_is_found_through_the_ports_of_infiniband)
{
	const struct sockaddr_ib *src, *dst;

	add_services();
	ck_assert_ok(rdma_getaddrinfo(NULL, "MyService", &by_sa, &res));
	src = (const struct sockaddr_ib *)res->ai_src_addr;
	dst = (const struct sockaddr_ib *)res->ai_dst_addr;
	ck_assert(res->ai_flags == RAI_SA && res->ai_family == AF_IB);
	ck_assert(res->ai_port_space == RDMA_PS_IB && res->ai_qp_type == IBV_QPT_RC);
	ck_assert(src->sib_family == AF_IB && !src->sib_sid && !src->sib_sid_mask);
	ck_assert_mem_eq(&src->sib_addr, &dst->sib_addr, sizeof(src->sib_addr));
	ck_assert_uint_eq(be64toh(dst->sib_sid), RDMA_IB_PS_IB | 0x1d2f);
	ck_assert(res->ai_next && res->ai_next->ai_src_addr && !res->ai_next->ai_next);
}
END_TEST

START_TEST(a_service_has_the_kind_that_was_asked_for)
{
	const struct rdma_addrinfo hints = {
		.ai_flags = RAI_SA, .ai_port_space = RDMA_PS_UDP, .ai_qp_type = IBV_QPT_UD
	};

	add_services();
	ck_assert_ok(rdma_getaddrinfo(NULL, "20913455", &hints, &res));
	ck_assert(res->ai_port_space == RDMA_PS_UDP && res->ai_qp_type == IBV_QPT_UD);
	ck_assert_ptr_null(res->ai_next);
}
END_TEST

START_TEST(a_result_of_a_service_can_be_connected_to)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;

	add_services();
	ck_assert_ok(rdma_getaddrinfo(NULL, "MyService", &by_sa, &res));
	channel = cm_channel();
	id = cm_id(channel, (enum rdma_port_space)res->ai_port_space);
	ck_assert_ok(rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, CM_TIMEOUT_MS));
	cm_await(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ck_assert_ok(rdma_resolve_route(id, CM_TIMEOUT_MS));
	cm_await(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
}
END_TEST

START_TEST(services_fail_with_what_the_last_port_said)
{
	const struct rdma_addrinfo passive = { .ai_flags = RAI_SA | RAI_PASSIVE };

	ck_assert_fails(rdma_getaddrinfo(NULL, "MyService", &by_sa, &res), EOPNOTSUPP);
	add_services();
	ck_assert_fails(rdma_getaddrinfo(NULL, "nobody", &by_sa, &res), ENOENT);
	fake_answer(FAKE_SERVICE, -ETIMEDOUT);
	ck_assert_fails(rdma_getaddrinfo(NULL, "MyService", &by_sa, &res), ETIMEDOUT);
	ck_assert_fails(rdma_getaddrinfo("192.0.2.9", "MyService", &by_sa, &res), EOPNOTSUPP);
	ck_assert_fails(rdma_getaddrinfo(NULL, NULL, &by_sa, &res), EINVAL);
	ck_assert_fails(rdma_getaddrinfo(NULL, "MyService", &passive, &res), EINVAL);
	fake_port_attr(FAKE_IB)->state = IBV_PORT_DOWN;
	ck_assert_fails(rdma_getaddrinfo(NULL, "MyService", &by_sa, &res), EOPNOTSUPP);
	ck_assert_ptr_null(res);
}
END_TEST

START_TEST(errors_are_of_either_kind)
{
	const struct rdma_addrinfo numeric = { .ai_flags = RAI_NUMERICHOST };

	ck_assert_fails(rdma_getaddrinfo(NULL, NULL, NULL, &res), EINVAL);
	ck_assert_fails(rdma_getaddrinfo("192.0.2.9", NULL, NULL, NULL), EINVAL);
	ck_assert_int_eq(rdma_getaddrinfo("no-number", NULL, &numeric, &res), EAI_NONAME);
	ck_assert_ptr_null(res);
	rdma_freeaddrinfo(NULL);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		an_address_to_connect_to_is_a_destination,
		an_address_to_listen_on_is_a_source,
		the_type_follows_from_the_port_space,
		a_source_in_the_hints_goes_along,
		known_addresses_are_copied_without_a_look_up,
		a_gid_is_an_address_of_infiniband,
		without_the_flags_a_gid_is_an_ipv6_address,
		a_gid_to_listen_on_is_a_source,
		the_family_of_the_hints_limits_what_is_found,
		there_is_one_result_and_no_route_or_name_with_it,
		datagrams_of_ip_over_infiniband_are_datagrams,
		a_service_is_found_through_the_ports_of_infiniband,
		a_service_has_the_kind_that_was_asked_for,
		a_result_of_a_service_can_be_connected_to,
		services_fail_with_what_the_last_port_said,
		errors_are_of_either_kind,
	};

	return unit_main(
		"cm_addrinfo", tests, sizeof(tests) / sizeof(tests[0]), cm_set_up, tear_down);
}
