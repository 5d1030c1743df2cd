/* Endpoints: rdma_create_ep() and rdma_destroy_ep(). */
#include "unit/ep_unit.h"

#include <string.h>

enum { HEADER = 36 };

static struct rdma_cm_id *id;

static void tear_down(void)
{
	rdma_destroy_ep(id);
	cm_tear_down();
}

static int create(struct rdma_addrinfo *res)
{
	struct ibv_qp_init_attr attr = cm_qp_attr(IBV_QPT_RC);

	return rdma_create_ep(&id, res, NULL, &attr);
}

START_TEST(an_active_endpoint_is_resolved_and_has_a_queue_pair)
{
	struct rdma_addrinfo res = ep_answer(FAKE_ROCE_IP, 0, IBV_QPT_RC);
	struct ibv_qp_init_attr attr = cm_qp_attr(IBV_QPT_UD);

	attr.cap.max_recv_wr = 0;
	ck_assert_ok(rdma_create_ep(&id, &res, NULL, &attr));
	ck_assert(id->verbs && id->route.num_paths == 1 && id->qp && id->qp->pd == id->pd);
	ck_assert_int_eq(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	ck_assert_int_eq(attr.qp_type, IBV_QPT_RC);
	ck_assert(attr.send_cq == id->send_cq && attr.recv_cq == id->recv_cq);
	ck_assert_fails(rdma_migrate_id(id, NULL), EINVAL);
}
END_TEST

START_TEST(without_attributes_there_is_no_queue_pair)
{
	struct rdma_addrinfo res = ep_answer(FAKE_ROCE_IP6, 0, IBV_QPT_RC);

	ck_assert_ok(rdma_create_ep(&id, &res, NULL, NULL));
	ck_assert(!id->qp && !id->send_cq && id->route.num_paths == 1);
	rdma_destroy_id(id);
	id = NULL;
}
END_TEST

START_TEST(the_kind_of_id_follows_the_answer)
{
	struct rdma_addrinfo res = ep_answer(FAKE_ROCE_IP, 0, IBV_QPT_UD);
	struct ibv_qp_init_attr attr = cm_qp_attr(IBV_QPT_UD);

	ck_assert_ok(rdma_create_ep(&id, &res, NULL, &attr));
	ck_assert(id->ps == RDMA_PS_UDP && id->qp_type == IBV_QPT_UD);
	ck_assert_int_eq(id->qp->state, IBV_QPS_RTS);
	rdma_destroy_ep(id);
	res.ai_qp_type = 0;
	attr = cm_qp_attr(IBV_QPT_RC);
	ck_assert_ok(rdma_create_ep(&id, &res, NULL, &attr));
	ck_assert_int_eq(id->qp->qp_type, IBV_QPT_UD);
}
END_TEST

START_TEST(the_source_address_is_taken_too)
{
	struct rdma_addrinfo res = ep_answer(FAKE_ROCE_IP, 0, IBV_QPT_RC);
	struct sockaddr *src = cm_addr(FAKE_ROCE_IP, 4321);

	res.ai_src_addr = src;
	res.ai_src_len = sizeof(struct sockaddr_in);
	ck_assert_ok(create(&res));
	ck_assert_uint_eq(ntohs(rdma_get_src_port(id)), 4321);
}
END_TEST

START_TEST(a_passive_endpoint_is_bound_and_has_no_queue_pair)
{
	id = ep_make("0.0.0.0", RAI_PASSIVE, IBV_QPT_RC);
	ck_assert(!id->verbs && !id->qp && !id->event);
	ck_assert_uint_eq(ntohs(rdma_get_src_port(id)), CM_PORT);
}
END_TEST

START_TEST(its_attributes_go_with_either_way_to_destroy_it)
{
	id = ep_make(FAKE_ROCE_IP, RAI_PASSIVE, IBV_QPT_RC);
	ck_assert_ptr_nonnull(id->verbs);
	ck_assert_ok(rdma_destroy_id(id));
	id = NULL;
}
END_TEST

START_TEST(its_domain_is_that_of_the_requests)
{
	struct rdma_addrinfo res = ep_answer("0.0.0.0", RAI_PASSIVE, IBV_QPT_RC);
	struct ibv_qp_init_attr attr = cm_qp_attr(IBV_QPT_RC);
	struct rdma_cm_id *client, *server;
	struct ibv_context **devices = rdma_get_devices(NULL);
	struct ibv_pd *pd = ibv_alloc_pd(devices[0]);

	ck_assert_ok(rdma_create_ep(&id, &res, pd, &attr));
	ck_assert_ptr_eq(id->pd, pd);
	ck_assert_ok(rdma_listen(id, 0));
	client = ep_ask(FAKE_ROCE_IP, NULL);
	ck_assert_ok(rdma_get_request(id, &server));
	ck_assert(server->qp->pd == pd && server->pd == pd);
	rdma_destroy_ep(server);
	ep_ask_end(client);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
	rdma_free_devices(devices);
}
END_TEST

START_TEST(a_domain_of_another_device_is_refused)
{
	struct rdma_addrinfo res = ep_answer(FAKE_ROCE_IP, RAI_PASSIVE, IBV_QPT_RC);
	struct ibv_qp_init_attr attr = cm_qp_attr(IBV_QPT_RC);
	struct ibv_context foreign_context = { 0 };
	struct ibv_pd foreign = { .context = &foreign_context };

	ck_assert_fails(rdma_create_ep(&id, &res, &foreign, &attr), EINVAL);
	res = ep_answer(FAKE_ROCE_IP, 0, IBV_QPT_RC);
	ck_assert_fails(rdma_create_ep(&id, &res, &foreign, &attr), EINVAL);
	ck_assert_ptr_null(id);
}
END_TEST

START_TEST(bad_answers_are_refused)
{
	static uint8_t data[UINT8_MAX + 1];
	struct rdma_addrinfo good = ep_answer(FAKE_ROCE_IP, 0, IBV_QPT_RC), bad = good;

	ck_assert_fails(rdma_create_ep(NULL, &good, NULL, NULL), EINVAL);
	ck_assert_fails(create(NULL), EINVAL);
	bad.ai_dst_len = 1;
	ck_assert_fails(create(&bad), EINVAL);
	bad = good;
	bad.ai_dst_addr = NULL;
	ck_assert_fails(create(&bad), EINVAL);
	bad.ai_flags = RAI_PASSIVE;
	ck_assert_fails(create(&bad), EINVAL);
	bad = good;
	bad.ai_src_len = sizeof(struct sockaddr_in);
	ck_assert_fails(create(&bad), EINVAL);
	bad = good;
	bad.ai_route_len = 1;
	ck_assert_fails(create(&bad), EINVAL);
	bad = good;
	bad.ai_connect_len = 1;
	ck_assert_fails(create(&bad), EINVAL);
	bad.ai_connect = data;
	bad.ai_connect_len = sizeof(data);
	ck_assert_fails(create(&bad), EINVAL);
	bad = good;
	bad.ai_port_space = 5;
	ck_assert_fails(create(&bad), EINVAL);
	rdma_destroy_ep(NULL);
}
END_TEST

START_TEST(what_cannot_be_resolved_says_why)
{
	struct rdma_addrinfo res = ep_answer(FAKE_ROCE_IP, 0, IBV_QPT_RC);

	fake_answer(FAKE_ADDR, -EHOSTUNREACH);
	ck_assert_fails(create(&res), EHOSTUNREACH);
	fake_answer(FAKE_ROUTE, -ETIMEDOUT);
	ck_assert_fails(create(&res), ETIMEDOUT);
	res = ep_answer("203.0.113.77", RAI_PASSIVE, IBV_QPT_RC);
	ck_assert_fails(create(&res), EADDRNOTAVAIL);
	ck_assert_ptr_null(id);
}
END_TEST

/* Of the lookup of the route, nothing is done when the answer brought one. */
START_TEST(a_route_that_came_with_the_answer_is_used)
{
	struct rdma_addrinfo res = ep_answer(FAKE_ROCE_IP, 0, IBV_QPT_RC);
	struct ibv_path_data path = { .flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
					       IBV_PATH_FLAG_BIDIRECTIONAL };

	res.ai_route = &path;
	res.ai_route_len = sizeof(path);
	ck_assert_ok(create(&res));
	ck_assert_int_eq(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	ck_assert_uint_eq(fake_calls("RESOLVE_ROUTE"), 0);
	rdma_destroy_ep(id);
	id = NULL;
	path.flags = 0;
	ck_assert_fails(create(&res), EINVAL);
}
END_TEST

static struct rdma_cm_id *with_header(uint8_t len)
{
	static uint8_t header[UINT8_MAX];
	struct rdma_addrinfo res = ep_answer(FAKE_ROCE_IP, 0, IBV_QPT_RC);

	memset(header, 'h', sizeof(header));
	res.ai_connect = header;
	res.ai_connect_len = len;
	ck_assert_ok(create(&res));
	return id;
}

/* The other side is of the other kind, so that nothing waits for anything. */
START_TEST(connect_data_of_the_answer_goes_before_the_callers)
{
	struct rdma_conn_param param = { .private_data = "mine", .private_data_len = 4 };
	struct rdma_cm_id *listener = cm_id(cm_channel(), RDMA_PS_TCP), *server;
	struct rdma_event_channel *channel = listener->channel;
	struct rdma_cm_event *event;

	ck_assert_ok(rdma_bind_addr(listener, cm_addr("0.0.0.0", CM_PORT)));
	ck_assert_ok(rdma_listen(listener, 0));
	with_header(HEADER);
	ck_assert_ok(rdma_migrate_id(id, channel));
	ck_assert_ok(rdma_connect(id, &param));
	event = cm_expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = event->id;
	ck_assert_int_eq(strspn(event->param.conn.private_data, "h"), HEADER);
	ck_assert_str_eq((const char *)event->param.conn.private_data + HEADER, "mine");
	ck_assert_ok(rdma_ack_cm_event(event));
	cm_destroy(server);
	cm_destroy(listener);
	rdma_destroy_ep(id);
	id = NULL;
	rdma_destroy_event_channel(channel);
}
END_TEST

START_TEST(data_that_does_not_fit_a_byte_with_it_is_refused)
{
	static const uint8_t data[UINT8_MAX];
	struct rdma_conn_param param = { .private_data = data };

	with_header(HEADER);
	param.private_data_len = UINT8_MAX - HEADER + 1;
	ck_assert_fails(rdma_connect(id, &param), EINVAL);
	ck_assert_uint_eq(fake_calls("CONNECT"), 0);
	param.private_data_len = UINT8_MAX - HEADER;
	ck_assert_fails(rdma_connect(id, &param), EINVAL);
	ck_assert_uint_eq(fake_calls("CONNECT"), 1);
}
END_TEST

static void sweep(struct rdma_addrinfo *res, unsigned least)
{
	unsigned n;

	bool failed = true;

	for (n = 0; failed; n++) {
		fake_fail_nth(FAKE_ANY, n + 1, EOVERFLOW);
		if (create(res))
			ck_assert(errno == EOVERFLOW || errno == ENODEV);
		failed = fake_failed();
		rdma_destroy_ep(id);
		id = NULL;
		cm_take_back();
		ck_assert_pstr_eq(fake_expect_clean(), NULL);
		if (fake_device_gone(FAKE_ROCE))
			fake_device_add(FAKE_ROCE);
	}
	fake_fail_nth(FAKE_ANY, 0, 0);
	ck_assert_uint_gt(n, least);
}

START_TEST(whatever_fails_leaves_nothing_behind)
{
	struct rdma_addrinfo active = ep_answer(FAKE_ROCE_IP, 0, IBV_QPT_RC);
	struct rdma_addrinfo passive = ep_answer(FAKE_ROCE_IP, RAI_PASSIVE, IBV_QPT_RC);
	char header[HEADER] = { 0 };

	active.ai_connect = header;
	active.ai_connect_len = sizeof(header);
	sweep(&active, 15);
	sweep(&passive, 5);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		an_active_endpoint_is_resolved_and_has_a_queue_pair,
		without_attributes_there_is_no_queue_pair,
		the_kind_of_id_follows_the_answer,
		the_source_address_is_taken_too,
		a_passive_endpoint_is_bound_and_has_no_queue_pair,
		its_attributes_go_with_either_way_to_destroy_it,
		its_domain_is_that_of_the_requests,
		a_domain_of_another_device_is_refused,
		bad_answers_are_refused,
		what_cannot_be_resolved_says_why,
		a_route_that_came_with_the_answer_is_used,
		connect_data_of_the_answer_goes_before_the_callers,
		data_that_does_not_fit_a_byte_with_it_is_refused,
		whatever_fails_leaves_nothing_behind,
	};

	return unit_main("cm_ep", tests, sizeof(tests) / sizeof(tests[0]), cm_set_up, tear_down);
}
