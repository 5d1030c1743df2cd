/* What only InfiniBand has: addresses that are GIDs, and the port spaces IB and IPOIB. */
#include "unit/cm_unit.h"

#include <arpa/inet.h>
#include <infiniband/ib.h>
#include <string.h>

enum { IPOIB_QKEY = 0x0b1b, DATA_LEN = 92 };

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;

static void set_up(void)
{
	cm_set_up();
	fake_device_add(FAKE_IB);
	channel = cm_channel();
}

static void tear_down(void)
{
	cm_destroy(id);
	id = NULL;
	rdma_destroy_event_channel(channel);
	cm_tear_down();
}

static struct sockaddr_ib make_addr(const char *gid, uint64_t service)
{
	struct sockaddr_ib sib = {
		.sib_family = AF_IB,
		.sib_pkey = 0xffff,
		.sib_sid = htobe64(service),
		.sib_sid_mask = UINT64_MAX,
	};

	ck_assert_int_eq(inet_pton(AF_INET6, gid, &sib.sib_addr), 1);
	return sib;
}

static int bind_to(struct rdma_cm_id *to, const char *gid, uint64_t service)
{
	struct sockaddr_ib sib = make_addr(gid, service);

	return rdma_bind_addr(to, (struct sockaddr *)&sib);
}

static int resolve(const char *gid, uint64_t service)
{
	struct sockaddr_ib sib = make_addr(gid, service);

	return rdma_resolve_addr(id, NULL, (struct sockaddr *)&sib, CM_TIMEOUT_MS);
}

static void check_gid(const void *raw, const char *gid)
{
	struct in6_addr expected;

	ck_assert_int_eq(inet_pton(AF_INET6, gid, &expected), 1);
	ck_assert_mem_eq(raw, &expected, sizeof(expected));
}

START_TEST(binding_to_a_gid_binds_to_its_port)
{
	const struct sockaddr_ib *src;

	id = cm_id(channel, RDMA_PS_IB);
	ck_assert_ok(bind_to(id, FAKE_IB_GID, 0));
	src = (const struct sockaddr_ib *)rdma_get_local_addr(id);
	ck_assert(id->verbs && id->pd && id->port_num == 1);
	ck_assert_int_eq(src->sib_family, AF_IB);
	check_gid(&src->sib_addr, FAKE_IB_GID);
	check_gid(&id->route.addr.addr.ibaddr.sgid, FAKE_IB_GID);
	ck_assert_uint_eq(id->route.addr.addr.ibaddr.pkey, 0xffff);
	ck_assert_uint_eq(be64toh(src->sib_sid) & RDMA_IB_IP_PS_MASK, RDMA_IB_PS_IB);
	ck_assert_uint_ne(rdma_get_src_port(id), 0);
}
END_TEST

START_TEST(a_gid_that_nobody_here_has_is_no_address_to_bind_to)
{
	id = cm_id(channel, RDMA_PS_IB);
	ck_assert_fails(bind_to(id, "fe80::99", 0), ENODEV);
	ck_assert_fails(resolve("fe80::99", RDMA_IB_PS_IB | CM_PORT), ENODEV);
	ck_assert(!id->verbs && !rdma_get_src_port(id));
}
END_TEST

START_TEST(a_gid_is_resolved_to_a_path)
{
	id = cm_id(channel, RDMA_PS_IB);
	ck_assert_ok(resolve(FAKE_IB_GID, RDMA_IB_PS_IB | CM_PORT));
	ck_assert_uint_eq(rdma_get_dst_port(id), htons(CM_PORT));
	cm_await(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ck_assert(id->verbs && id->qp_type == IBV_QPT_RC);
	check_gid(&id->route.addr.addr.ibaddr.dgid, FAKE_IB_GID);
	ck_assert_ok(rdma_resolve_route(id, CM_TIMEOUT_MS));
	cm_await(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	ck_assert_int_eq(id->route.num_paths, 1);
	check_gid(&id->route.path_rec[0].dgid, FAKE_IB_GID);
	ck_assert_uint_eq(id->route.path_rec[0].dlid, htobe16(7));
}
END_TEST

/* Without IP addresses in the request there is that much more room in it. */
START_TEST(ids_with_gids_connect_with_all_their_private_data)
{
	uint8_t data[DATA_LEN];
	struct rdma_conn_param param = {
		.private_data = data, .private_data_len = sizeof(data), .retry_count = 7
	};
	struct rdma_cm_id *listener = cm_id(channel, RDMA_PS_IB);
	struct rdma_cm_event *event;

	memset(data, 0x5a, sizeof(data));
	ck_assert_ok(bind_to(listener, FAKE_IB_GID, RDMA_IB_PS_IB | CM_PORT));
	ck_assert_ok(rdma_listen(listener, 0));
	id = cm_id(channel, RDMA_PS_IB);
	ck_assert_ok(resolve(FAKE_IB_GID, RDMA_IB_PS_IB | CM_PORT));
	cm_await(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ck_assert_ok(rdma_resolve_route(id, CM_TIMEOUT_MS));
	cm_await(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cm_make_qp(id);
	ck_assert_ok(rdma_connect(id, &param));
	event = cm_expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ck_assert_uint_eq(event->param.conn.private_data_len, DATA_LEN);
	ck_assert_mem_eq(event->param.conn.private_data, data, sizeof(data));
	ck_assert(event->id->ps == RDMA_PS_IB && event->id->verbs == id->verbs);
	ck_assert_int_eq(rdma_get_local_addr(event->id)->sa_family, AF_IB);
	cm_make_qp(event->id);
	ck_assert_ok(rdma_accept(event->id, NULL));
	cm_await(channel, RDMA_CM_EVENT_ESTABLISHED);
	rdma_destroy_qp(event->id);
	ck_assert_ok(rdma_destroy_id(event->id));
	ck_assert_ok(rdma_ack_cm_event(event));
	cm_destroy(listener);
}
END_TEST

START_TEST(only_infiniband_has_ip_over_infiniband)
{
	id = cm_id(channel, RDMA_PS_IPOIB);
	ck_assert_int_eq(id->qp_type, IBV_QPT_UD);
	ck_assert_fails(rdma_bind_addr(id, cm_addr(FAKE_ROCE_IP, 0)), EINVAL);
	cm_destroy(id);
	id = cm_id(channel, RDMA_PS_IPOIB);
	ck_assert_ok(rdma_bind_addr(id, cm_addr(FAKE_IB_IP, 0)));
	ck_assert(id->verbs && id->port_num == 1);
}
END_TEST

START_TEST(members_of_ip_over_infiniband_have_its_queue_key)
{
	struct rdma_cm_event *event;

	id = cm_id(channel, RDMA_PS_IPOIB);
	ck_assert_ok(rdma_bind_addr(id, cm_addr(FAKE_IB_IP, 0)));
	cm_make_qp(id);
	ck_assert_ok(rdma_join_multicast(id, cm_addr("239.0.0.1", 0), &channel));
	event = cm_expect(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	ck_assert_uint_eq(event->param.ud.qkey, IPOIB_QKEY);
	ck_assert_ptr_eq(event->param.ud.private_data, &channel);
	ck_assert_ok(rdma_ack_cm_event(event));
	ck_assert_ok(rdma_leave_multicast(id, cm_addr("239.0.0.1", 0)));
}
END_TEST

START_TEST(a_group_is_named_by_its_gid)
{
	struct sockaddr_ib group = make_addr("ff12:401b::17", 0);

	id = cm_id(channel, RDMA_PS_UDP);
	ck_assert_ok(rdma_bind_addr(id, cm_addr(FAKE_IB_IP, 0)));
	cm_make_qp(id);
	ck_assert_ok(rdma_join_multicast(id, (struct sockaddr *)&group, NULL));
	cm_await(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	ck_assert_uint_eq(fake_live(FAKE_ATTACHMENT), 1);
	ck_assert_ok(rdma_leave_multicast(id, (struct sockaddr *)&group));
	ck_assert_fails(rdma_leave_multicast(id, (struct sockaddr *)&group), EADDRNOTAVAIL);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		binding_to_a_gid_binds_to_its_port,
		a_gid_that_nobody_here_has_is_no_address_to_bind_to,
		a_gid_is_resolved_to_a_path,
		ids_with_gids_connect_with_all_their_private_data,
		only_infiniband_has_ip_over_infiniband,
		members_of_ip_over_infiniband_have_its_queue_key,
		a_group_is_named_by_its_gid,
	};

	return unit_main("cm_ib", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
