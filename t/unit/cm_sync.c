/* Ids without a channel: each call waits for its answer. */
#include "unit/cm_unit.h"

#include <arpa/inet.h>
#include <limits.h>

static struct rdma_cm_id *client, *listener;

static void set_up(void)
{
	cm_set_up();
	ck_assert_ok(rdma_create_id(NULL, &client, NULL, RDMA_PS_TCP));
	ck_assert_ok(rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP));
	ck_assert_ok(rdma_bind_addr(listener, cm_addr("0.0.0.0", CM_PORT)));
	ck_assert_ok(rdma_listen(listener, 0));
}

static void tear_down(void)
{
	cm_destroy(client);
	cm_destroy(listener);
	cm_tear_down();
}

static void resolve(void)
{
	ck_assert_ok(
		rdma_resolve_addr(client, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), CM_TIMEOUT_MS));
	ck_assert_int_eq(client->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	ck_assert_ok(rdma_resolve_route(client, CM_TIMEOUT_MS));
	ck_assert_int_eq(client->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

START_TEST(a_synchronous_id_has_a_channel_of_its_own)
{
	ck_assert_ptr_nonnull(client->channel);
	ck_assert_ptr_ne(client->channel, listener->channel);
}
END_TEST

START_TEST(resolving_returns_with_the_result_in_place)
{
	resolve();
	ck_assert(client->verbs && client->route.num_paths == 1);
}
END_TEST

START_TEST(the_status_of_the_answer_is_the_errno_of_the_call)
{
	fake_answer(FAKE_ADDR, -EHOSTUNREACH);
	ck_assert_fails(rdma_resolve_addr(client, NULL, cm_addr(FAKE_ROCE_IP, 1), 1), EHOSTUNREACH);
	ck_assert_int_eq(client->event->event, RDMA_CM_EVENT_ADDR_ERROR);
	ck_assert_ok(rdma_resolve_addr(client, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), 1));
	fake_answer(FAKE_ROUTE, -ETIMEDOUT);
	ck_assert_fails(rdma_resolve_route(client, CM_TIMEOUT_MS), ETIMEDOUT);
}
END_TEST

START_TEST(a_failure_of_our_own_keeps_its_errno)
{
	fake_fail_next("ibv_open_device", ENOMEM);
	ck_assert_fails(rdma_resolve_addr(client, NULL, cm_addr(FAKE_ROCE_IP, 1), 1), ENOMEM);
	ck_assert_int_eq(client->event->status, -1);
}
END_TEST

START_TEST(nobody_listening_is_connection_refused)
{
	ck_assert_ok(rdma_resolve_addr(client, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT + 1), 1));
	ck_assert_ok(rdma_resolve_route(client, CM_TIMEOUT_MS));
	cm_make_qp(client);
	ck_assert_fails(rdma_connect(client, NULL), ECONNREFUSED);
	ck_assert_int_eq(client->event->event, RDMA_CM_EVENT_REJECTED);
}
END_TEST

/* The child of a synchronous listener is synchronous as well. */
START_TEST(a_request_to_a_synchronous_listener_brings_a_synchronous_id)
{
	struct rdma_event_channel *channel = cm_channel();
	struct rdma_cm_id *asking = cm_id(channel, RDMA_PS_TCP), *server;

	cm_resolve(asking, FAKE_ROCE_IP);
	cm_make_qp(asking);
	ck_assert_ok(rdma_connect(asking, NULL));
	server = cm_await(listener->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ck_assert_ptr_ne(server->channel, listener->channel);
	ck_assert_fails(rdma_migrate_id(server, NULL), EINVAL);
	ck_assert_ok(rdma_reject(server, NULL, 0));
	cm_await(channel, RDMA_CM_EVENT_REJECTED);
	cm_destroy(server);
	cm_destroy(asking);
	rdma_destroy_event_channel(channel);
}
END_TEST

START_TEST(a_join_waits_for_the_group)
{
	struct rdma_cm_id *member;
	struct sockaddr_in group = { .sin_family = AF_INET };

	inet_pton(AF_INET, "239.4.5.6", &group.sin_addr);
	ck_assert_ok(rdma_create_id(NULL, &member, NULL, RDMA_PS_UDP));
	ck_assert_ok(rdma_bind_addr(member, cm_addr(FAKE_ROCE_IP, 0)));
	cm_make_qp(member);
	ck_assert_ok(rdma_join_multicast(member, (struct sockaddr *)&group, NULL));
	ck_assert_int_eq(member->event->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	cm_destroy(member);
}
END_TEST

START_TEST(any_status_is_an_errno)
{
	fake_answer(FAKE_ADDR, -EPERM);
	ck_assert_fails(rdma_resolve_addr(client, NULL, cm_addr(FAKE_ROCE_IP, 1), 1), EPERM);
	fake_answer(FAKE_ADDR, INT_MIN);
	ck_assert_fails(rdma_resolve_addr(client, NULL, cm_addr(FAKE_ROCE_IP, 1), 1), EIO);
}
END_TEST

START_TEST(a_request_is_no_answer_to_a_join)
{
	struct rdma_cm_id *member;

	ck_assert_ok(rdma_create_id(NULL, &member, NULL, RDMA_PS_UDP));
	ck_assert_ok(rdma_bind_addr(member, cm_addr(FAKE_ROCE_IP, 0)));
	ck_assert_int_eq(fake_inject(member, RDMA_CM_EVENT_CONNECT_REQUEST, 0), 0);
	ck_assert_ok(rdma_join_multicast(member, cm_addr("239.4.5.6", 0), NULL));
	ck_assert_int_eq(member->event->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	cm_destroy(member);
	ck_assert_uint_eq(fake_live(FAKE_ID), 2);
}
END_TEST

/* The event of the join is still on the id: nobody else would acknowledge it. */
START_TEST(leaving_does_not_wait_for_what_the_join_left)
{
	struct sockaddr *group;
	struct rdma_cm_id *member;

	ck_assert_ok(rdma_create_id(NULL, &member, NULL, RDMA_PS_UDP));
	ck_assert_ok(rdma_bind_addr(member, cm_addr(FAKE_ROCE_IP, 0)));
	cm_make_qp(member);
	group = cm_addr("239.4.5.6", 0);
	ck_assert_ok(rdma_join_multicast(member, group, NULL));
	ck_assert_ok(rdma_leave_multicast(member, group));
	ck_assert_ptr_null(member->event);
	cm_destroy(member);
}
END_TEST

START_TEST(what_is_no_answer_is_passed_over)
{
	fake_inject(client, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	fake_inject(client, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	resolve();
}
END_TEST

START_TEST(a_device_that_leaves_is_no_answer)
{
	resolve();
	fake_hold(FAKE_REQ);
	cm_make_qp(client);
	fake_inject(client, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	ck_assert_fails(rdma_connect(client, NULL), ENODEV);
	ck_assert_int_eq(client->event->event, RDMA_CM_EVENT_DEVICE_REMOVAL);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_synchronous_id_has_a_channel_of_its_own,
		resolving_returns_with_the_result_in_place,
		the_status_of_the_answer_is_the_errno_of_the_call,
		a_failure_of_our_own_keeps_its_errno,
		nobody_listening_is_connection_refused,
		a_request_to_a_synchronous_listener_brings_a_synchronous_id,
		a_join_waits_for_the_group,
		any_status_is_an_errno,
		a_request_is_no_answer_to_a_join,
		leaving_does_not_wait_for_what_the_join_left,
		what_is_no_answer_is_passed_over,
		a_device_that_leaves_is_no_answer,
	};

	return unit_main("cm_sync", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
