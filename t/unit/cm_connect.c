#include "unit/cm_unit.h"

#include <string.h>

static struct cm_pair pair;

static void tear_down(void)
{
	cm_pair_end(&pair);
	cm_tear_down();
}

START_TEST(two_sides_connect_and_disconnect)
{
	cm_pair_connect(&pair);
	ck_assert_int_eq(pair.client->qp->state, IBV_QPS_RTS);
	ck_assert_int_eq(pair.server->qp->state, IBV_QPS_RTS);
	ck_assert_ok(rdma_disconnect(pair.client));
	ck_assert_int_eq(pair.client->qp->state, IBV_QPS_ERR);
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_DISCONNECTED), pair.server);
	ck_assert_int_eq(pair.server->qp->state, IBV_QPS_RTS);
	ck_assert_ok(rdma_disconnect(pair.server));
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_DISCONNECTED), pair.client);
}
END_TEST

START_TEST(a_request_brings_an_id_that_knows_where_it_is)
{
	int context;

	cm_pair_start(&pair, RDMA_PS_TCP);
	pair.listener->context = &context;
	cm_pair_request(&pair, NULL);
	ck_assert(pair.server->context == &context && pair.server->channel == pair.channel);
	ck_assert(pair.server->verbs && pair.server->pd && pair.server->port_num == 1);
	ck_assert(pair.server->ps == RDMA_PS_TCP && pair.server->qp_type == IBV_QPT_RC);
	ck_assert_int_eq(pair.server->route.num_paths, 1);
	ck_assert_uint_eq(rdma_get_src_port(pair.server), rdma_get_dst_port(pair.client));
	ck_assert_uint_eq(rdma_get_dst_port(pair.server), rdma_get_src_port(pair.client));
}
END_TEST

START_TEST(what_the_client_asks_for_is_in_the_request)
{
	struct rdma_conn_param param = { .private_data = "ping",
		.private_data_len = 4,
		.responder_resources = 3,
		.initiator_depth = 2,
		.retry_count = 5,
		.rnr_retry_count = 6,
		.flow_control = 1 };
	const struct rdma_conn_param *got;
	struct rdma_cm_event *event;

	cm_pair_start(&pair, RDMA_PS_TCP);
	cm_make_qp(pair.client);
	ck_assert_ok(rdma_connect(pair.client, &param));
	event = cm_expect(pair.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	pair.server = event->id;
	got = &event->param.conn;
	ck_assert_ptr_eq(event->listen_id, pair.listener);
	ck_assert_uint_ge(got->private_data_len, 4);
	ck_assert_mem_eq(got->private_data, "ping", 5);
	ck_assert(got->responder_resources == 2 && got->initiator_depth == 3);
	ck_assert(got->rnr_retry_count == 6 && got->qp_num == pair.client->qp->qp_num);
	ck_assert_ok(rdma_ack_cm_event(event));
}
END_TEST

START_TEST(depths_are_bounded_by_both_sides)
{
	struct rdma_conn_param param = { .responder_resources = 2, .initiator_depth = 3 };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	cm_pair_start(&pair, RDMA_PS_TCP);
	cm_pair_request(&pair, &param);
	cm_make_qp(pair.server);
	ck_assert_ok(rdma_accept(pair.server, NULL));
	ck_assert_int_eq(ibv_query_qp(pair.server->qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC, &init), 0);
	ck_assert_uint_eq(attr.max_rd_atomic, 2);
	ck_assert_uint_eq(attr.max_dest_rd_atomic, 3);
	cm_await(pair.channel, RDMA_CM_EVENT_ESTABLISHED);
	cm_await(pair.channel, RDMA_CM_EVENT_ESTABLISHED);
}
END_TEST

START_TEST(bad_parameters_are_refused_before_anything_moves)
{
	struct rdma_conn_param deep = { .initiator_depth = 200 };
	struct rdma_conn_param rich = { .responder_resources = 200 };
	struct rdma_cm_id *unbound;

	fake_device_attr(FAKE_ROCE)->max_qp_init_rd_atom = 16;
	fake_device_attr(FAKE_ROCE)->max_qp_rd_atom = 16;
	cm_pair_start(&pair, RDMA_PS_TCP);
	unbound = cm_id(pair.channel, RDMA_PS_TCP);
	ck_assert_fails(rdma_connect(NULL, &deep), EINVAL);
	ck_assert_fails(rdma_connect(unbound, &deep), EINVAL);
	ck_assert_fails(rdma_connect(pair.client, NULL), EINVAL);
	ck_assert_fails(rdma_connect(pair.client, &deep), EINVAL);
	ck_assert_fails(rdma_connect(pair.client, &rich), EINVAL);
	ck_assert_fails(rdma_accept(NULL, NULL), EINVAL);
	ck_assert_fails(rdma_accept(unbound, NULL), EINVAL);
	ck_assert_fails(rdma_disconnect(NULL), EINVAL);
	ck_assert_fails(rdma_disconnect(unbound), EINVAL);
	ck_assert_fails(rdma_disconnect(pair.client), EINVAL);
	cm_destroy(unbound);
}
END_TEST

START_TEST(reject_delivers_private_data_to_the_connecting_side)
{
	struct rdma_cm_event *event;

	cm_pair_start(&pair, RDMA_PS_TCP);
	cm_pair_request(&pair, NULL);
	ck_assert_fails(rdma_reject(NULL, NULL, 0), EINVAL);
	ck_assert_ok(rdma_reject(pair.server, "no", 2));
	event = cm_expect(pair.channel, RDMA_CM_EVENT_REJECTED);
	ck_assert_int_eq(event->status, 28);
	ck_assert_mem_eq(event->param.conn.private_data, "no", 3);
	ck_assert_ok(rdma_ack_cm_event(event));
	ck_assert_int_eq(pair.client->qp->state, IBV_QPS_ERR);
	ck_assert_fails(rdma_reject(pair.server, NULL, 0), EINVAL);
}
END_TEST

START_TEST(a_rejection_for_extensions_says_so)
{
	struct rdma_cm_event *event;

	cm_pair_start(&pair, RDMA_PS_TCP);
	cm_pair_request(&pair, NULL);
	ck_assert_ok(rdma_reject_ece(pair.server, NULL, 0));
	event = cm_expect(pair.channel, RDMA_CM_EVENT_REJECTED);
	ck_assert_int_eq(event->status, 35);
	ck_assert_ok(rdma_ack_cm_event(event));
}
END_TEST

START_TEST(an_accept_that_the_kernel_refuses_rejects_the_peer)
{
	cm_pair_start(&pair, RDMA_PS_TCP);
	cm_pair_request(&pair, NULL);
	cm_make_qp(pair.server);
	fake_fail_next("ACCEPT", EINVAL);
	ck_assert_fails(rdma_accept(pair.server, NULL), EINVAL);
	ck_assert_int_eq(pair.server->qp->state, IBV_QPS_ERR);
}
END_TEST

START_TEST(an_accept_whose_queue_pair_fails_can_still_be_rejected)
{
	cm_pair_start(&pair, RDMA_PS_TCP);
	cm_pair_request(&pair, NULL);
	cm_make_qp(pair.server);
	fake_fail_next("ibv_modify_qp", ENOMEM);
	ck_assert_fails(rdma_accept(pair.server, NULL), ENOMEM);
	ck_assert_ok(rdma_reject(pair.server, NULL, 0));
	cm_await(pair.channel, RDMA_CM_EVENT_REJECTED);
}
END_TEST

/* The answer came, but the queue pair could not follow: one error, and nothing after it. */
START_TEST(a_response_that_cannot_be_served_is_one_connect_error)
{
	struct rdma_cm_event *event;

	cm_pair_start(&pair, RDMA_PS_TCP);
	cm_pair_request(&pair, NULL);
	cm_make_qp(pair.server);
	ck_assert_ok(rdma_accept(pair.server, NULL));
	fake_fail_next("ibv_modify_qp", ENOMEM);
	event = cm_expect(pair.channel, RDMA_CM_EVENT_CONNECT_ERROR);
	ck_assert(event->id == pair.client && event->status == -1 && errno == ENOMEM);
	ck_assert_ok(rdma_ack_cm_event(event));
	ck_assert_int_eq(pair.client->qp->state, IBV_QPS_ERR);
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_REJECTED), pair.server);
	ck_assert_int_eq(fake_inject(pair.client, RDMA_CM_EVENT_DISCONNECTED, 0), 0);
	ck_assert_int_eq(fake_inject(pair.client, RDMA_CM_EVENT_REJECTED, 10), 0);
	cm_expect_none(pair.channel);
}
END_TEST

/* Queue pairs of the caller's own: the id knows their numbers only. */
START_TEST(a_connection_can_be_made_without_queue_pairs_on_the_ids)
{
	struct rdma_conn_param param = { .qp_num = 77, .private_data = "x", .private_data_len = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int mask;

	cm_pair_start(&pair, RDMA_PS_TCP);
	ck_assert_ok(rdma_connect(pair.client, &param));
	pair.server = cm_await(pair.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	param.qp_num = 88;
	ck_assert_ok(rdma_accept(pair.server, &param));
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_CONNECT_RESPONSE), pair.client);
	ck_assert_ok(rdma_init_qp_attr(pair.client, &attr, &mask));
	ck_assert_uint_eq(attr.dest_qp_num, 88);
	ck_assert_ok(rdma_establish(pair.client));
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_ESTABLISHED), pair.server);
	ck_assert_fails(rdma_establish(NULL), EINVAL);
}
END_TEST

START_TEST(an_id_with_a_queue_pair_does_not_establish_by_hand)
{
	cm_pair_start(&pair, RDMA_PS_TCP);
	cm_make_qp(pair.client);
	ck_assert_fails(rdma_establish(pair.client), EINVAL);
}
END_TEST

START_TEST(a_silent_peer_is_unreachable)
{
	struct rdma_cm_event *event;

	cm_pair_start(&pair, RDMA_PS_TCP);
	cm_destroy(pair.client);
	pair.client = cm_id(pair.channel, RDMA_PS_TCP);
	cm_resolve(pair.client, FAKE_ROCE_SILENT_IP);
	cm_make_qp(pair.client);
	ck_assert_ok(rdma_connect(pair.client, NULL));
	cm_expect_none(pair.channel);
	ck_assert_uint_eq(fake_time_out(FAKE_REQ), 1);
	event = cm_expect(pair.channel, RDMA_CM_EVENT_UNREACHABLE);
	ck_assert_int_eq(event->status, -ETIMEDOUT);
	ck_assert_ok(rdma_ack_cm_event(event));
}
END_TEST

START_TEST(data_before_established_completes_the_connection)
{
	fake_hold(FAKE_RTU);
	cm_pair_start(&pair, RDMA_PS_TCP);
	cm_pair_request(&pair, NULL);
	cm_make_qp(pair.server);
	ck_assert_ok(rdma_accept(pair.server, NULL));
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_ESTABLISHED), pair.client);
	cm_expect_none(pair.channel);
	ck_assert_ok(rdma_notify(pair.server, IBV_EVENT_COMM_EST));
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_ESTABLISHED), pair.server);
	ck_assert_fails(rdma_notify(pair.server, IBV_EVENT_COMM_EST), EISCONN);
	ck_assert_fails(rdma_notify(NULL, IBV_EVENT_COMM_EST), EINVAL);
}
END_TEST

START_TEST(a_child_that_cannot_be_filled_is_destroyed_and_its_peer_rejected)
{
	cm_pair_start(&pair, RDMA_PS_TCP);
	cm_make_qp(pair.client);
	ck_assert_ok(rdma_connect(pair.client, NULL));
	fake_fail_next("QUERY", EIO);
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_REJECTED), pair.client);
	cm_expect_none(pair.channel);
	ck_assert_uint_eq(fake_live(FAKE_ID), 2);
}
END_TEST

START_TEST(a_datagram_peer_is_told_how_to_be_reached)
{
	struct rdma_conn_param param = { .private_data = "hi", .private_data_len = 2 };
	struct rdma_cm_event *event;

	cm_pair_start(&pair, RDMA_PS_UDP);
	cm_pair_request(&pair, &param);
	cm_make_qp(pair.server);
	ck_assert_ok(rdma_accept(pair.server, &param));
	event = cm_expect(pair.channel, RDMA_CM_EVENT_ESTABLISHED);
	ck_assert_ptr_eq(event->id, pair.client);
	ck_assert_uint_eq(event->param.ud.qp_num, pair.server->qp->qp_num);
	ck_assert_uint_eq(event->param.ud.qkey, RDMA_UDP_QKEY);
	ck_assert_mem_eq(event->param.ud.private_data, "hi", 2);
	ck_assert_uint_eq(event->param.ud.ah_attr.port_num, 1);
	ck_assert_ok(rdma_ack_cm_event(event));
	cm_expect_none(pair.channel);
}
END_TEST

/* There is nothing that it would have to say. */
START_TEST(a_datagram_service_can_be_asked_without_queue_pair_and_parameters)
{
	cm_pair_start(&pair, RDMA_PS_UDP);
	ck_assert_ok(rdma_connect(pair.client, NULL));
	pair.server = cm_await(pair.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ck_assert_fails(rdma_accept(pair.server, NULL), EINVAL);
	cm_make_qp(pair.server);
	ck_assert_ok(rdma_accept(pair.server, NULL));
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_ESTABLISHED), pair.client);
}
END_TEST

START_TEST(a_datagram_service_that_refuses_says_why)
{
	struct rdma_cm_event *event;

	cm_pair_start(&pair, RDMA_PS_UDP);
	cm_pair_request(&pair, NULL);
	ck_assert_ok(rdma_reject(pair.server, "no", 2));
	event = cm_expect(pair.channel, RDMA_CM_EVENT_UNREACHABLE);
	ck_assert_ptr_eq(event->id, pair.client);
	ck_assert_uint_ge(event->param.ud.private_data_len, 2);
	ck_assert_mem_eq(event->param.ud.private_data, "no", 2);
	ck_assert_ok(rdma_ack_cm_event(event));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		two_sides_connect_and_disconnect,
		a_request_brings_an_id_that_knows_where_it_is,
		what_the_client_asks_for_is_in_the_request,
		depths_are_bounded_by_both_sides,
		bad_parameters_are_refused_before_anything_moves,
		reject_delivers_private_data_to_the_connecting_side,
		a_rejection_for_extensions_says_so,
		an_accept_that_the_kernel_refuses_rejects_the_peer,
		an_accept_whose_queue_pair_fails_can_still_be_rejected,
		a_response_that_cannot_be_served_is_one_connect_error,
		a_connection_can_be_made_without_queue_pairs_on_the_ids,
		an_id_with_a_queue_pair_does_not_establish_by_hand,
		a_silent_peer_is_unreachable,
		data_before_established_completes_the_connection,
		a_child_that_cannot_be_filled_is_destroyed_and_its_peer_rejected,
		a_datagram_peer_is_told_how_to_be_reached,
		a_datagram_service_can_be_asked_without_queue_pair_and_parameters,
		a_datagram_service_that_refuses_says_why,
	};

	return unit_main(
		"cm_connect", tests, sizeof(tests) / sizeof(tests[0]), cm_set_up, tear_down);
}
