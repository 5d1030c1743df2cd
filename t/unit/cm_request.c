/* Requests that a synchronous listener waits for. */
#include "unit/ep_unit.h"

#include <string.h>

static struct rdma_cm_id *listener, *client;

static void set_up(void)
{
	cm_set_up();
	listener = ep_make("0.0.0.0", RAI_PASSIVE, IBV_QPT_RC);
}

static void tear_down(void)
{
	rdma_destroy_ep(listener);
	if (client)
		ep_ask_end(client);
	cm_tear_down();
}

static struct rdma_cm_id *take_request(void)
{
	struct rdma_cm_id *server = NULL;

	ck_assert_ok(rdma_get_request(listener, &server));
	ck_assert_ptr_nonnull(server);
	return server;
}

START_TEST(a_request_brings_a_synchronous_id_with_its_event)
{
	struct rdma_conn_param param = { .private_data = "knock", .private_data_len = 5 };
	struct rdma_cm_id *server;

	client = ep_ask(FAKE_ROCE_IP, &param);
	server = take_request();
	ck_assert_int_eq(server->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	ck_assert_mem_eq(server->event->param.conn.private_data, "knock", 5);
	ck_assert(server->event->id == server && server->event->listen_id == listener);
	ck_assert(server->verbs && server->channel != listener->channel && !listener->event);
	ck_assert_fails(rdma_migrate_id(server, NULL), EINVAL);
	rdma_destroy_ep(server);
	cm_await(client->channel, RDMA_CM_EVENT_REJECTED);
}
END_TEST

START_TEST(its_queue_pair_is_made_of_the_listeners_attributes)
{
	struct rdma_cm_id *server;

	client = ep_ask(FAKE_ROCE_IP, NULL);
	server = take_request();
	ck_assert(server->qp && server->qp->pd == server->pd && server->send_cq && server->recv_cq);
	ck_assert(!listener->qp && !listener->send_cq);
	rdma_destroy_ep(server);
}
END_TEST

START_TEST(without_attributes_there_is_no_queue_pair)
{
	struct rdma_cm_id *plain, *server;

	ck_assert_ok(rdma_create_id(NULL, &plain, NULL, RDMA_PS_TCP));
	ck_assert_ok(rdma_bind_addr(plain, cm_addr(FAKE_ROCE_IP, CM_PORT + 1)));
	ck_assert_ok(rdma_listen(plain, 0));
	client = cm_id(cm_channel(), RDMA_PS_TCP);
	ck_assert_ok(rdma_resolve_addr(client, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT + 1), 1));
	cm_await(client->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ck_assert_ok(rdma_resolve_route(client, 1));
	cm_await(client->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cm_make_qp(client);
	ck_assert_ok(rdma_connect(client, NULL));
	ck_assert_ok(rdma_get_request(plain, &server));
	ck_assert(!server->qp && !server->send_cq);
	cm_destroy(server);
	cm_destroy(plain);
}
END_TEST

START_TEST(bad_arguments_are_refused)
{
	struct rdma_event_channel *channel = cm_channel();
	struct rdma_cm_id *async = cm_id(channel, RDMA_PS_TCP), *server;

	ck_assert_fails(rdma_get_request(NULL, &server), EINVAL);
	ck_assert_fails(rdma_get_request(listener, NULL), EINVAL);
	ck_assert_fails(rdma_get_request(async, &server), EINVAL);
	cm_destroy(async);
	rdma_destroy_event_channel(channel);
}
END_TEST

START_TEST(what_is_no_request_stays_on_the_listener)
{
	struct rdma_cm_id *server = NULL;

	fake_inject(listener, RDMA_CM_EVENT_DISCONNECTED, 0);
	ck_assert_fails(rdma_get_request(listener, &server), EINVAL);
	ck_assert_int_eq(listener->event->event, RDMA_CM_EVENT_DISCONNECTED);
	fake_inject(listener, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	ck_assert_fails(rdma_get_request(listener, &server), ETIMEDOUT);
	fake_inject(listener, RDMA_CM_EVENT_REJECTED, 8);
	ck_assert_fails(rdma_get_request(listener, &server), ECONNREFUSED);
	fake_inject(listener, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	ck_assert_fails(rdma_get_request(listener, &server), ENODEV);
	ck_assert_ptr_null(server);
}
END_TEST

START_TEST(news_of_the_network_is_passed_over)
{
	fake_inject(listener, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	client = ep_ask(FAKE_ROCE_IP, NULL);
	rdma_destroy_ep(take_request());
	ck_assert_ptr_null(listener->event);
}
END_TEST

START_TEST(the_listener_may_go_before_the_child)
{
	struct rdma_cm_id *server;

	client = ep_ask(FAKE_ROCE_IP, NULL);
	server = take_request();
	rdma_destroy_ep(listener);
	listener = NULL;
	ck_assert_int_eq(server->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	rdma_destroy_ep(server);
}
END_TEST

START_TEST(the_listener_may_go_when_the_request_was_only_rejected)
{
	struct rdma_cm_id *server;

	client = ep_ask(FAKE_ROCE_IP, NULL);
	server = take_request();
	ck_assert_ok(rdma_reject(server, "no", 2));
	cm_await(client->channel, RDMA_CM_EVENT_REJECTED);
	rdma_destroy_ep(listener);
	listener = NULL;
	rdma_destroy_ep(server);
}
END_TEST

START_TEST(listener_and_child_may_become_asynchronous)
{
	struct rdma_event_channel *channel = cm_channel();
	struct rdma_cm_id *server;

	client = ep_ask(FAKE_ROCE_IP, NULL);
	server = take_request();
	ck_assert_ok(rdma_migrate_id(listener, channel));
	ck_assert_ok(rdma_migrate_id(server, channel));
	ck_assert_ptr_null(server->event);
	ck_assert_ok(rdma_accept(server, NULL));
	cm_await(client->channel, RDMA_CM_EVENT_ESTABLISHED);
	cm_await(channel, RDMA_CM_EVENT_ESTABLISHED);
	rdma_destroy_ep(server);
	rdma_destroy_ep(listener);
	listener = NULL;
	rdma_destroy_event_channel(channel);
}
END_TEST

START_TEST(a_peer_that_left_before_is_an_aborted_connection)
{
	struct rdma_cm_id *server = NULL;

	ep_ask_end(ep_ask(FAKE_ROCE_IP, NULL));
	ck_assert_fails(rdma_get_request(listener, &server), ECONNABORTED);
	ck_assert_ptr_null(server);
	client = ep_ask(FAKE_ROCE_IP, NULL);
	rdma_destroy_ep(take_request());
}
END_TEST

START_TEST(a_peer_that_leaves_meanwhile_is_found_out_by_accept)
{
	struct rdma_cm_id *server, *first = ep_ask(FAKE_ROCE_IP, NULL);

	server = take_request();
	ep_ask_end(first);
	ck_assert_fails(rdma_accept(server, NULL), EINVAL);
	rdma_destroy_ep(server);
}
END_TEST

START_TEST(a_queue_pair_that_cannot_be_made_refuses_the_peer)
{
	struct rdma_cm_id *server = NULL;

	client = ep_ask(FAKE_ROCE_IP, NULL);
	fake_fail_next("ibv_create_qp", EOVERFLOW);
	ck_assert_fails(rdma_get_request(listener, &server), EOVERFLOW);
	ck_assert_ptr_null(server);
	ck_assert_uint_eq(fake_live(FAKE_ID), 2);
	ck_assert_uint_eq(fake_live(FAKE_FILE), 2);
	cm_await(client->channel, RDMA_CM_EVENT_REJECTED);
}
END_TEST

/* Whatever fails, the peer hears of it, and the next request is served. */
START_TEST(whatever_fails_refuses_the_peer_and_leaves_nothing)
{
	struct rdma_cm_id *server;
	unsigned n;
	int ret;

	for (n = 1;; n++) {
		struct rdma_cm_id *asking = ep_ask(FAKE_ROCE_IP, NULL);

		fake_fail_nth(FAKE_ANY, n, EOVERFLOW);
		ret = rdma_get_request(listener, &server);
		if (!ret)
			rdma_destroy_ep(server);
		else
			ck_assert(errno == EOVERFLOW || errno == EDEADLK);
		cm_await(asking->channel, RDMA_CM_EVENT_REJECTED);
		ep_ask_end(asking);
		ck_assert_uint_eq(fake_live(FAKE_ID), 1);
		ck_assert_uint_eq(fake_live(FAKE_QP) + fake_live(FAKE_CQ), 0);
		if (!ret)
			break;
	}
	fake_fail_nth(FAKE_ANY, 0, 0);
	ck_assert_uint_gt(n, 10);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_request_brings_a_synchronous_id_with_its_event,
		its_queue_pair_is_made_of_the_listeners_attributes,
		without_attributes_there_is_no_queue_pair,
		bad_arguments_are_refused,
		what_is_no_request_stays_on_the_listener,
		news_of_the_network_is_passed_over,
		the_listener_may_go_before_the_child,
		the_listener_may_go_when_the_request_was_only_rejected,
		listener_and_child_may_become_asynchronous,
		a_peer_that_left_before_is_an_aborted_connection,
		a_peer_that_leaves_meanwhile_is_found_out_by_accept,
		a_queue_pair_that_cannot_be_made_refuses_the_peer,
		whatever_fails_refuses_the_peer_and_leaves_nothing,
	};

	return unit_main("cm_request", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
