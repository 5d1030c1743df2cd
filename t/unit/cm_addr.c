#include "unit/cm_unit.h"

#include <arpa/inet.h>
#include <infiniband/ib.h>
#include <string.h>

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;

static void set_up(void)
{
	cm_set_up();
	channel = cm_channel();
	id = cm_id(channel, RDMA_PS_TCP);
}

static void tear_down(void)
{
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
	cm_tear_down();
}

START_TEST(binding_to_an_address_binds_to_its_device)
{
	struct sockaddr_in *src = (struct sockaddr_in *)rdma_get_local_addr(id);

	ck_assert_ok(rdma_bind_addr(id, cm_addr(FAKE_ROCE_IP, 0)));
	ck_assert(id->verbs && id->pd && id->pd->context == id->verbs);
	ck_assert_uint_eq(id->port_num, 1);
	ck_assert_uint_eq(src->sin_addr.s_addr, inet_addr(FAKE_ROCE_IP));
	ck_assert_uint_ne(rdma_get_src_port(id), 0);
	ck_assert_uint_eq(rdma_get_dst_port(id), 0);
}
END_TEST

START_TEST(binding_to_any_address_takes_no_device)
{
	ck_assert_ok(rdma_bind_addr(id, cm_addr("::", CM_PORT)));
	ck_assert(!id->verbs && !id->pd && !id->port_num);
	ck_assert_uint_eq(rdma_get_src_port(id), htons(CM_PORT));
	ck_assert_uint_eq(fake_live(FAKE_CONTEXT), 0);
}
END_TEST

START_TEST(bad_addresses_are_refused_with_their_errno)
{
	struct sockaddr unknown = { .sa_family = AF_UNIX };

	ck_assert_fails(rdma_bind_addr(id, NULL), EINVAL);
	ck_assert_fails(rdma_bind_addr(NULL, cm_addr(FAKE_ROCE_IP, 0)), EINVAL);
	ck_assert_fails(rdma_bind_addr(id, &unknown), EINVAL);
	ck_assert_fails(rdma_bind_addr(id, cm_addr("192.0.2.77", 0)), EADDRNOTAVAIL);
	ck_assert_fails(rdma_bind_addr(id, cm_addr(FAKE_NO_RDMA_IP, 0)), ENODEV);
	ck_assert_fails(rdma_resolve_addr(id, NULL, NULL, 1), EINVAL);
	ck_assert_fails(rdma_resolve_addr(id, NULL, &unknown, 1), EINVAL);
	ck_assert_fails(rdma_resolve_addr(id, &unknown, cm_addr(FAKE_ROCE_IP, 1), 1), EINVAL);
	ck_assert_fails(rdma_resolve_addr(NULL, NULL, cm_addr(FAKE_ROCE_IP, 1), 1), EINVAL);
	ck_assert_fails(rdma_resolve_addr(id, NULL, cm_addr(FAKE_NO_ROUTE_IP, 1), 1), ENETUNREACH);
	ck_assert_int_eq(rdma_get_peer_addr(id)->sa_family, 0);
}
END_TEST

START_TEST(a_port_in_use_is_refused)
{
	struct rdma_cm_id *other = cm_id(channel, RDMA_PS_TCP);

	ck_assert_ok(rdma_bind_addr(id, cm_addr(FAKE_ROCE_IP, CM_PORT)));
	ck_assert_fails(rdma_bind_addr(other, cm_addr(FAKE_ROCE_IP, CM_PORT)), EADDRINUSE);
	ck_assert_fails(rdma_bind_addr(id, cm_addr(FAKE_ROCE_IP, CM_PORT + 1)), EINVAL);
	cm_destroy(other);
}
END_TEST

START_TEST(addresses_are_there_at_once_and_the_device_with_the_event)
{
	ck_assert_ok(rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), CM_TIMEOUT_MS));
	ck_assert_uint_eq(rdma_get_dst_port(id), htons(CM_PORT));
	ck_assert(!id->verbs && !id->port_num);
	ck_assert_ptr_eq(cm_await(channel, RDMA_CM_EVENT_ADDR_RESOLVED), id);
	ck_assert(id->verbs && id->pd && id->port_num == 1);
	ck_assert_int_eq(rdma_get_local_addr(id)->sa_family, AF_INET);
	ck_assert_uint_ne(id->route.addr.addr.ibaddr.sgid.global.interface_id, 0);
	ck_assert(!id->route.path_rec && !id->route.num_paths);
}
END_TEST

START_TEST(the_route_has_its_paths_with_the_event)
{
	cm_resolve(id, FAKE_ROCE_IP);
	ck_assert_int_eq(id->route.num_paths, 1);
	ck_assert_mem_eq(&id->route.path_rec->sgid, &id->route.addr.addr.ibaddr.sgid, 16);
	ck_assert_uint_ne(id->route.path_rec->mtu, 0);
}
END_TEST

START_TEST(a_route_needs_an_address_and_a_time)
{
	ck_assert_fails(rdma_resolve_route(NULL, 1), EINVAL);
	ck_assert_fails(rdma_resolve_route(id, CM_TIMEOUT_MS), EINVAL);
	ck_assert_ok(rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), CM_TIMEOUT_MS));
	cm_await(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ck_assert_fails(rdma_resolve_route(id, 0), EINVAL);
}
END_TEST

START_TEST(the_kernels_failures_arrive_as_error_events)
{
	struct rdma_cm_event *event;

	fake_answer(FAKE_ADDR, -ETIMEDOUT);
	ck_assert_ok(rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), CM_TIMEOUT_MS));
	event = cm_expect(channel, RDMA_CM_EVENT_ADDR_ERROR);
	ck_assert_int_eq(event->status, -ETIMEDOUT);
	rdma_ack_cm_event(event);
	ck_assert(!id->verbs);
}
END_TEST

START_TEST(failures_of_our_own_arrive_as_error_events_too)
{
	const char *const calls[] = { "QUERY", "ibv_open_device", "ibv_query_device",
		"ibv_alloc_pd" };
	struct rdma_cm_event *event;
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct rdma_cm_id *one = cm_id(channel, RDMA_PS_TCP);

		ck_assert_ok(rdma_resolve_addr(one, NULL, cm_addr(FAKE_ROCE_IP, 1), 1));
		fake_fail_next(calls[i], ENOMEM);
		event = cm_expect(channel, RDMA_CM_EVENT_ADDR_ERROR);
		ck_assert_int_eq(errno, ENOMEM);
		ck_assert_int_eq(event->status, -1);
		rdma_ack_cm_event(event);
		ck_assert_uint_eq(fake_live(FAKE_CONTEXT), 0);
		cm_destroy(one);
	}
}
END_TEST

START_TEST(a_route_that_cannot_be_read_is_an_error_event)
{
	ck_assert_ok(rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), CM_TIMEOUT_MS));
	cm_await(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ck_assert_ok(rdma_resolve_route(id, CM_TIMEOUT_MS));
	fake_fail_next("QUERY", EIO);
	cm_await(channel, RDMA_CM_EVENT_ROUTE_ERROR);
	ck_assert_int_eq(id->route.num_paths, 0);
}
END_TEST

START_TEST(iwarp_has_no_paths)
{
	fake_device_add(FAKE_IWARP);
	cm_resolve(id, FAKE_IWARP_IP);
	ck_assert_int_eq(id->route.num_paths, 0);
	ck_assert_int_eq(id->verbs->device->transport_type, IBV_TRANSPORT_IWARP);
}
END_TEST

START_TEST(listening_on_nothing_gets_a_port)
{
	ck_assert_fails(rdma_listen(NULL, 0), EINVAL);
	ck_assert_ok(rdma_listen(id, 3));
	ck_assert_uint_ne(rdma_get_src_port(id), 0);
	ck_assert_fails(rdma_listen(id, 3), EINVAL);
}
END_TEST

START_TEST(ports_of_all_families_are_found)
{
	struct sockaddr_ib *sib = (struct sockaddr_ib *)rdma_get_local_addr(id);

	ck_assert_uint_eq(rdma_get_src_port(NULL), 0);
	ck_assert_uint_eq(rdma_get_src_port(id), 0);
	sib->sib_family = AF_IB;
	sib->sib_sid = htobe64(RDMA_IB_IP_PS_TCP | CM_PORT);
	ck_assert_uint_eq(rdma_get_src_port(id), htons(CM_PORT));
	ck_assert_uint_eq(rdma_get_dst_port(NULL), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		binding_to_an_address_binds_to_its_device,
		binding_to_any_address_takes_no_device,
		bad_addresses_are_refused_with_their_errno,
		a_port_in_use_is_refused,
		addresses_are_there_at_once_and_the_device_with_the_event,
		the_route_has_its_paths_with_the_event,
		a_route_needs_an_address_and_a_time,
		the_kernels_failures_arrive_as_error_events,
		failures_of_our_own_arrive_as_error_events_too,
		a_route_that_cannot_be_read_is_an_error_event,
		iwarp_has_no_paths,
		listening_on_nothing_gets_a_port,
		ports_of_all_families_are_found,
	};

	return unit_main("cm_addr", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
