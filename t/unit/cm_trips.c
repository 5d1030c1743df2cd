/* What the kernel is not asked for again. */
#include "unit/cm_unit.h"

static struct cm_pair pair;

static void set_up(void)
{
	cm_set_up();
	pair = (struct cm_pair){ 0 };
}

static void tear_down(void)
{
	cm_pair_end(&pair);
	cm_tear_down();
}

static void request_with_qp(void)
{
	cm_pair_start(&pair, RDMA_PS_TCP);
	cm_pair_request(&pair, NULL);
	cm_make_qp(pair.server);
}

/* What came with the request was all that there is to say: RTR and RTS are left. */
START_TEST(an_accepted_queue_pair_goes_through_init_once)
{
	unsigned asked, moved;

	request_with_qp();
	asked = fake_calls("INIT_QP_ATTR");
	moved = fake_calls("ibv_modify_qp");
	ck_assert_ok(rdma_accept(pair.server, NULL));
	ck_assert_uint_eq(fake_calls("INIT_QP_ATTR"), asked + 2);
	ck_assert_uint_eq(fake_calls("ibv_modify_qp"), moved + 2);
	ck_assert_int_eq(pair.server->qp->state, IBV_QPS_RTS);
}
END_TEST

START_TEST(a_queue_pair_that_was_reset_meanwhile_goes_through_init_again)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

	request_with_qp();
	ck_assert_int_eq(ibv_modify_qp(pair.server->qp, &reset, IBV_QP_STATE), 0);
	ck_assert_ok(rdma_accept(pair.server, NULL));
	ck_assert_int_eq(pair.server->qp->state, IBV_QPS_RTS);
	cm_await(pair.channel, RDMA_CM_EVENT_ESTABLISHED);
	cm_await(pair.channel, RDMA_CM_EVENT_ESTABLISHED);
}
END_TEST

START_TEST(a_second_queue_pair_of_the_same_request_has_an_init_of_its_own)
{
	request_with_qp();
	rdma_destroy_qp(pair.server);
	cm_make_qp(pair.server);
	ck_assert_ok(rdma_accept(pair.server, NULL));
	cm_await(pair.channel, RDMA_CM_EVENT_ESTABLISHED);
	cm_await(pair.channel, RDMA_CM_EVENT_ESTABLISHED);
}
END_TEST

START_TEST(a_queue_pair_in_the_error_state_is_left_there)
{
	unsigned moved;

	cm_pair_connect(&pair);
	ck_assert_ok(rdma_disconnect(pair.client));
	cm_await(pair.channel, RDMA_CM_EVENT_DISCONNECTED);
	moved = fake_calls("ibv_modify_qp");
	rdma_disconnect(pair.client);
	ck_assert_uint_eq(fake_calls("ibv_modify_qp"), moved);
	ck_assert_int_eq(pair.client->qp->state, IBV_QPS_ERR);
}
END_TEST

START_TEST(a_port_that_was_named_is_not_asked_for)
{
	struct rdma_event_channel *channel = cm_channel();
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);
	unsigned asked;

	ck_assert_ok(rdma_bind_addr(id, cm_addr("0.0.0.0", CM_PORT)));
	asked = fake_calls("QUERY");
	ck_assert_ok(rdma_listen(id, 0));
	ck_assert_uint_eq(fake_calls("QUERY"), asked);
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
}
END_TEST

static void use_once(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

	ck_assert_ok(rdma_bind_addr(id, cm_addr(FAKE_ROCE_IP, 0)));
	cm_destroy(id);
	cm_expect_none(channel);
}

START_TEST(a_device_that_is_used_again_and_again_is_opened_once)
{
	struct rdma_event_channel *channel = cm_channel();
	int i;

	for (i = 0; i < 20; i++)
		use_once(channel);
	rdma_destroy_event_channel(channel);
	channel = cm_channel();
	use_once(channel);
	ck_assert_uint_eq(fake_calls("ibv_open_device"), 1);
	ck_assert_uint_eq(fake_calls("ioctl"), 0);
	rdma_destroy_event_channel(channel);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		an_accepted_queue_pair_goes_through_init_once,
		a_queue_pair_that_was_reset_meanwhile_goes_through_init_again,
		a_second_queue_pair_of_the_same_request_has_an_init_of_its_own,
		a_queue_pair_in_the_error_state_is_left_there,
		a_port_that_was_named_is_not_asked_for,
		a_device_that_is_used_again_and_again_is_opened_once,
	};

	return unit_main("cm_trips", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
