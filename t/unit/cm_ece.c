/* What two sides tell each other of enhanced connection establishment, and make of it. */
#include "unit/cm_unit.h"

#include "cm/cm.h"

enum { OURS = 5, THEIRS = 9 };

static struct cm_pair pair;

static void tear_down(void)
{
	cm_pair_end(&pair);
	cm_tear_down();
}

/* What queue pairs made from now on have of their own. */
static void have(uint32_t vendor, uint32_t options)
{
	*fake_device_ece(FAKE_ROCE) = (struct ibv_ece){ .vendor_id = vendor, .options = options };
}

static void expect_ece(struct rdma_cm_id *id, uint32_t vendor, uint32_t options)
{
	struct ibv_ece got = { 0 };

	if (id->qp)
		ck_assert_int_eq(ibv_query_ece(id->qp, &got), 0);
	else
		ck_assert_ok(rdma_get_remote_ece(id, &got));
	ck_assert_uint_eq(got.vendor_id, vendor);
	ck_assert_uint_eq(got.options, options);
}

/* From a client whose queue pair is not the id's, so that it sees what is answered. */
static void ask_plainly(uint32_t vendor, uint32_t options)
{
	struct ibv_ece ece = { .vendor_id = vendor, .options = options };
	struct rdma_conn_param param = { .qp_num = 77 };

	cm_pair_start(&pair, RDMA_PS_TCP);
	if (vendor)
		ck_assert_ok(rdma_set_local_ece(pair.client, &ece));
	ck_assert_ok(rdma_connect(pair.client, &param));
	pair.server = cm_await(pair.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
}

static void answer_with_qp(void)
{
	cm_make_qp(pair.server);
	ck_assert_ok(rdma_accept(pair.server, NULL));
	cm_await(pair.channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
}

/* --- the side that accepts ---------------------------------------------------------------- */

START_TEST(a_peer_that_named_no_vendor_is_told_none)
{
	have(OURS, 0);
	ask_plainly(0, 0);
	answer_with_qp();
	expect_ece(pair.client, 0, 0);
}
END_TEST

START_TEST(a_peer_of_the_same_vendor_is_told_what_the_queue_pair_took)
{
	have(OURS, 6);
	ask_plainly(OURS, 4);
	answer_with_qp();
	expect_ece(pair.server, OURS, 4);
	expect_ece(pair.client, OURS, 4);
}
END_TEST

START_TEST(a_peer_of_another_vendor_has_its_own_name_back_and_no_options)
{
	have(OURS, 6);
	ask_plainly(THEIRS, 4);
	answer_with_qp();
	expect_ece(pair.server, OURS, 0);
	expect_ece(pair.client, THEIRS, 0);
}
END_TEST

START_TEST(a_queue_pair_of_the_callers_answers_under_the_peers_name)
{
	struct ibv_ece ece = { .vendor_id = OURS, .options = 4 };
	struct rdma_conn_param param = { .qp_num = 78 };

	ask_plainly(THEIRS, 6);
	expect_ece(pair.server, THEIRS, 6);
	ck_assert_ok(rdma_set_local_ece(pair.server, &ece));
	ck_assert_ok(rdma_accept(pair.server, &param));
	cm_await(pair.channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	expect_ece(pair.client, THEIRS, 4);
}
END_TEST

START_TEST(a_device_that_takes_no_options_accepts_all_the_same)
{
	have(OURS, 0);
	ask_plainly(OURS, 4);
	fake_fail_next("ibv_set_ece", EOPNOTSUPP);
	answer_with_qp();
	expect_ece(pair.client, OURS, 0);
}
END_TEST

START_TEST(options_that_cannot_be_set_fail_the_queue_pair)
{
	struct ibv_qp_init_attr attr = cm_qp_attr(IBV_QPT_RC);

	have(OURS, 0);
	ask_plainly(OURS, 4);
	fake_fail_next("ibv_set_ece", EIO);
	ck_assert_fails(rdma_create_qp(pair.server, NULL, &attr), EIO);
	ck_assert_uint_eq(fake_live(FAKE_QP) + fake_live(FAKE_CQ), 0);
}
END_TEST

/* --- the side that connects ---------------------------------------------------------------- */

static void ask_with_qp(void)
{
	have(OURS, 6);
	cm_pair_start(&pair, RDMA_PS_TCP);
	cm_pair_request(&pair, NULL);
	expect_ece(pair.server, OURS, 6);
}

/* What any peer may answer, which ours does not. */
static void answer(uint32_t vendor, uint32_t options)
{
	const struct evr_cm_id *server = evr_cm_id(pair.server);
	const struct evr_ucma_ece ece = { vendor, options };
	const struct evr_ucma_conn_param param = { .qp_num = 78, .valid = 1 };

	ck_assert_int_eq(evr_ucma_accept(evr_cm_fd(server), server->handle, evr_cm_uid(server),
				 &param, &ece),
		0);
}

START_TEST(a_device_that_takes_no_options_connects_all_the_same)
{
	ask_with_qp();
	answer(OURS, 4);
	fake_fail_next("ibv_set_ece", EOPNOTSUPP);
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_ESTABLISHED), pair.client);
	cm_await(pair.channel, RDMA_CM_EVENT_ESTABLISHED);
}
END_TEST

START_TEST(two_of_one_vendor_agree_on_what_the_answer_says)
{
	ask_with_qp();
	answer(OURS, 4);
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_ESTABLISHED), pair.client);
	expect_ece(pair.client, OURS, 4);
	cm_await(pair.channel, RDMA_CM_EVENT_ESTABLISHED);
}
END_TEST

START_TEST(an_answer_without_a_vendor_clears_the_options)
{
	ask_with_qp();
	answer(0, 0);
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_ESTABLISHED), pair.client);
	expect_ece(pair.client, OURS, 0);
	cm_await(pair.channel, RDMA_CM_EVENT_ESTABLISHED);
}
END_TEST

START_TEST(an_answer_of_another_vendor_is_none)
{
	struct rdma_cm_event *event;

	ask_with_qp();
	answer(THEIRS, 4);
	event = cm_expect(pair.channel, RDMA_CM_EVENT_CONNECT_ERROR);
	ck_assert_int_eq(event->status, -1);
	ck_assert_ok(rdma_ack_cm_event(event));
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_REJECTED), pair.server);
}
END_TEST

START_TEST(options_of_the_answer_that_cannot_be_set_fail_the_connection)
{
	ask_with_qp();
	answer(OURS, 4);
	fake_fail_next("ibv_set_ece", EIO);
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_CONNECT_ERROR), pair.client);
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_REJECTED), pair.server);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_peer_that_named_no_vendor_is_told_none,
		a_peer_of_the_same_vendor_is_told_what_the_queue_pair_took,
		a_peer_of_another_vendor_has_its_own_name_back_and_no_options,
		a_queue_pair_of_the_callers_answers_under_the_peers_name,
		a_device_that_takes_no_options_accepts_all_the_same,
		options_that_cannot_be_set_fail_the_queue_pair,
		a_device_that_takes_no_options_connects_all_the_same,
		two_of_one_vendor_agree_on_what_the_answer_says,
		an_answer_without_a_vendor_clears_the_options,
		an_answer_of_another_vendor_is_none,
		options_of_the_answer_that_cannot_be_set_fail_the_connection,
	};

	return unit_main("cm_ece", tests, sizeof(tests) / sizeof(tests[0]), cm_set_up, tear_down);
}
