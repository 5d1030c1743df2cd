/* The fake verbs: data moves, and fails, as it does on a device. */
#include "unit/fake_raw.h"

#include <errno.h>
#include <string.h>

struct rc {
	struct raw_verbs v;
	struct ibv_qp *a;
	struct ibv_qp *b;
};

static struct rc rc;

static void rc_open(uint8_t rnr_retry)
{
	memset(&rc, 0, sizeof(rc));
	raw_verbs_open(&rc.v, FAKE_ROCE);
	rc.a = raw_qp(&rc.v, IBV_QPT_RC);
	rc.b = raw_qp(&rc.v, IBV_QPT_RC);
	raw_join(rc.a, rc.b, rnr_retry);
}

static void rc_close(void)
{
	ck_assert_int_eq(ibv_destroy_qp(rc.a), 0);
	ck_assert_int_eq(ibv_destroy_qp(rc.b), 0);
	raw_verbs_close(&rc.v);
}

static void to_error(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

START_TEST(a_send_fills_the_receive_with_its_immediate)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	rc_open(7);
	wr = raw_send_wr(&rc.v, &sge, 1, 0, 5);
	memcpy(rc.v.buf, "hello", 5);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = 0x11223344;
	ck_assert_int_eq(raw_post_recv(&rc.v, rc.b, 2, 100, 50), 0);
	ck_assert_int_eq(raw_post(rc.a, &wr), 0);
	wc = raw_wc(&rc.v);
	ck_assert_uint_eq(wc.wr_id, 2);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
	ck_assert_uint_eq(wc.byte_len, 5);
	ck_assert_uint_eq(wc.imm_data, 0x11223344);
	ck_assert(wc.wc_flags & IBV_WC_WITH_IMM);
	ck_assert_mem_eq(rc.v.buf + 100, "hello", 5);
	ck_assert_uint_eq(raw_wc(&rc.v).wr_id, 1);
	ck_assert(raw_no_wc(&rc.v));
	rc_close();
}
END_TEST

START_TEST(a_message_may_be_empty)
{
	rc_open(7);
	ck_assert_int_eq(raw_post_recv(&rc.v, rc.b, 2, 100, 0), 0);
	ck_assert_int_eq(raw_post_send(&rc.v, rc.a, 1, 0, 0), 0);
	ck_assert_uint_eq(raw_wc(&rc.v).byte_len, 0);
	ck_assert_int_eq(raw_wc(&rc.v).status, IBV_WC_SUCCESS);
	rc_close();
}
END_TEST

START_TEST(rdma_moves_bytes_both_ways)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	rc_open(7);
	wr = raw_send_wr(&rc.v, &sge, 1, 0, 4);
	memcpy(rc.v.buf, "data", 4);
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = (uintptr_t)(rc.v.buf + 1000);
	wr.wr.rdma.rkey = rc.v.mr->rkey;
	ck_assert_int_eq(raw_post(rc.a, &wr), 0);
	ck_assert_int_eq(raw_wc(&rc.v).opcode, IBV_WC_RDMA_WRITE);
	ck_assert_mem_eq(rc.v.buf + 1000, "data", 4);
	wr = raw_send_wr(&rc.v, &sge, 2, 2000, 4);
	wr.opcode = IBV_WR_RDMA_READ;
	wr.wr.rdma.remote_addr = (uintptr_t)(rc.v.buf + 1000);
	wr.wr.rdma.rkey = rc.v.mr->rkey;
	ck_assert_int_eq(raw_post(rc.b, &wr), 0);
	ck_assert_int_eq(raw_wc(&rc.v).opcode, IBV_WC_RDMA_READ);
	ck_assert_mem_eq(rc.v.buf + 2000, "data", 4);
	rc_close();
}
END_TEST

START_TEST(an_atomic_adds_and_returns_what_was_there)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	uint64_t value = 40, old;

	rc_open(7);
	wr = raw_send_wr(&rc.v, &sge, 1, 64, 8);
	memcpy(rc.v.buf, &value, sizeof(value));
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = (uintptr_t)rc.v.buf;
	wr.wr.atomic.rkey = rc.v.mr->rkey;
	wr.wr.atomic.compare_add = 2;
	ck_assert_int_eq(raw_post(rc.a, &wr), 0);
	ck_assert_int_eq(raw_wc(&rc.v).status, IBV_WC_SUCCESS);
	memcpy(&old, rc.v.buf + 64, sizeof(old));
	memcpy(&value, rc.v.buf, sizeof(value));
	ck_assert_uint_eq(old, 40);
	ck_assert_uint_eq(value, 42);
	rc_close();
}
END_TEST

START_TEST(without_a_receive_and_retries_the_connection_dies)
{
	rc_open(0);
	ck_assert_int_eq(raw_post_send(&rc.v, rc.a, 1, 0, 5), 0);
	ck_assert_int_eq(raw_wc(&rc.v).status, IBV_WC_RNR_RETRY_EXC_ERR);
	ck_assert_int_eq(rc.a->state, IBV_QPS_ERR);
	rc_close();
}
END_TEST

START_TEST(with_endless_retries_a_send_waits_for_the_receive)
{
	rc_open(7);
	ck_assert_int_eq(raw_post_send(&rc.v, rc.a, 1, 0, 5), 0);
	ck_assert(raw_no_wc(&rc.v));
	ck_assert_uint_eq(fake_not_ready(), 1);
	ck_assert_int_eq(raw_post_recv(&rc.v, rc.b, 2, 100, 5), 0);
	ck_assert_uint_eq(raw_wc(&rc.v).wr_id, 2);
	ck_assert_uint_eq(raw_wc(&rc.v).wr_id, 1);
	rc_close();
}
END_TEST

START_TEST(the_rnr_timer_can_be_set_while_a_queue_pair_is_connected)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = 12 }, now;
	struct ibv_qp_init_attr init;

	rc_open(7);
	ck_assert_int_eq(ibv_modify_qp(rc.a, &attr, IBV_QP_MIN_RNR_TIMER), 0);
	ck_assert_int_eq(ibv_query_qp(rc.a, &now, IBV_QP_MIN_RNR_TIMER, &init), 0);
	ck_assert_int_eq(now.min_rnr_timer, 12);
	to_error(rc.a);
	ck_assert_int_eq(ibv_modify_qp(rc.a, &attr, IBV_QP_MIN_RNR_TIMER), EINVAL);
	rc_close();
}
END_TEST

START_TEST(the_error_state_flushes_all_that_is_posted)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	rc_open(7);
	wr = raw_send_wr(&rc.v, &sge, 1, 0, 5);
	wr.send_flags = 0;
	ck_assert_int_eq(raw_post(rc.a, &wr), 0);
	ck_assert_int_eq(raw_post_recv(&rc.v, rc.a, 2, 100, 5), 0);
	to_error(rc.a);
	ck_assert_int_eq(raw_wc(&rc.v).status, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(raw_wc(&rc.v).status, IBV_WC_WR_FLUSH_ERR);
	ck_assert(raw_no_wc(&rc.v));
	/* As on rxe, what is posted late waits for the next change to the error state. */
	ck_assert_int_eq(raw_post_recv(&rc.v, rc.a, 3, 100, 5), 0);
	ck_assert(raw_no_wc(&rc.v));
	to_error(rc.a);
	ck_assert_uint_eq(raw_wc(&rc.v).wr_id, 3);
	rc_close();
}
END_TEST

START_TEST(work_towards_a_peer_that_left_ends_when_time_does)
{
	rc_open(7);
	to_error(rc.b);
	ck_assert_int_eq(raw_post_send(&rc.v, rc.a, 1, 0, 5), 0);
	ck_assert(raw_no_wc(&rc.v));
	ck_assert_uint_eq(fake_time_out_work(), 1);
	ck_assert_int_eq(raw_wc(&rc.v).status, IBV_WC_RETRY_EXC_ERR);
	rc_close();
}
END_TEST

static enum ibv_wc_status status_of_bad_send(uint32_t lkey, uint32_t len)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = raw_send_wr(&rc.v, &sge, 1, RAW_BUF - 10, len);

	sge.lkey = lkey;
	ck_assert_int_eq(raw_post(rc.a, &wr), 0);
	return raw_wc(&rc.v).status;
}

START_TEST(memory_that_is_not_registered_is_not_sent)
{
	rc_open(7);
	ck_assert_int_eq(status_of_bad_send(rc.v.mr->lkey + 1, 5), IBV_WC_LOC_PROT_ERR);
	rc_close();
	rc_open(7);
	ck_assert_int_eq(status_of_bad_send(rc.v.mr->lkey, 11), IBV_WC_LOC_PROT_ERR);
	rc_close();
}
END_TEST

START_TEST(a_message_too_long_for_its_receive_ends_both_sides)
{
	rc_open(7);
	ck_assert_int_eq(raw_post_recv(&rc.v, rc.b, 2, 100, 4), 0);
	ck_assert_int_eq(raw_post_send(&rc.v, rc.a, 1, 0, 5), 0);
	/* As rxe has it. */
	ck_assert_int_eq(raw_wc(&rc.v).status, IBV_WC_LOC_QP_OP_ERR);
	ck_assert_int_eq(raw_wc(&rc.v).status, IBV_WC_REM_OP_ERR);
	ck_assert_int_eq(rc.a->state, IBV_QPS_ERR);
	ck_assert_int_eq(rc.b->state, IBV_QPS_ERR);
	rc_close();
}
END_TEST

START_TEST(a_wrong_rkey_is_a_remote_access_error)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_async_event event;

	rc_open(7);
	wr = raw_send_wr(&rc.v, &sge, 1, 0, 4);
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = (uintptr_t)rc.v.buf;
	wr.wr.rdma.rkey = rc.v.mr->rkey ^ 1;
	ck_assert_int_eq(raw_post(rc.a, &wr), 0);
	ck_assert_int_eq(raw_wc(&rc.v).status, IBV_WC_REM_ACCESS_ERR);
	ck_assert_int_eq(ibv_get_async_event(rc.v.context, &event), 0);
	ck_assert_int_eq(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
	ck_assert_ptr_eq(event.element.qp, rc.b);
	ibv_ack_async_event(&event);
	rc_close();
}
END_TEST

START_TEST(send_entries_come_back_when_a_later_completion_is_polled)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	int i;

	rc_open(7);
	wr = raw_send_wr(&rc.v, &sge, 1, 0, 0);
	for (i = 0; i < RAW_DEPTH; i++) {
		wr.send_flags = i == RAW_DEPTH - 1 ? IBV_SEND_SIGNALED : 0;
		ck_assert_int_eq(raw_post_recv(&rc.v, rc.b, 2, 0, 0), 0);
		ck_assert_int_eq(raw_post(rc.a, &wr), 0);
	}
	ck_assert_int_eq(raw_post(rc.a, &wr), ENOMEM);
	for (i = 0; i < RAW_DEPTH; i++)
		ck_assert_uint_eq(raw_wc(&rc.v).wr_id, 2);
	ck_assert_int_eq(raw_post(rc.a, &wr), ENOMEM);
	ck_assert_uint_eq(raw_wc(&rc.v).wr_id, 1);
	ck_assert_int_eq(raw_post(rc.a, &wr), 0);
	rc_close();
}
END_TEST

START_TEST(an_armed_queue_wakes_once_and_only_for_what_is_new)
{
	struct ibv_cq *cq;
	void *context;

	rc_open(7);
	ck_assert_int_eq(raw_post_recv(&rc.v, rc.b, 2, 0, 0), 0);
	ck_assert_int_eq(raw_post_recv(&rc.v, rc.b, 3, 0, 0), 0);
	ck_assert_int_eq(raw_post_send(&rc.v, rc.a, 1, 0, 0), 0);
	ck_assert_int_eq(ibv_req_notify_cq(rc.v.cq, 0), 0);
	ck_assert(!raw_readable(rc.v.channel->fd));
	ck_assert_int_eq(ibv_get_cq_event(rc.v.channel, &cq, &context), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(raw_post_send(&rc.v, rc.a, 1, 0, 0), 0);
	ck_assert(raw_readable(rc.v.channel->fd));
	ck_assert_int_eq(ibv_get_cq_event(rc.v.channel, &cq, &context), 0);
	ck_assert_ptr_eq(cq, rc.v.cq);
	ck_assert_ptr_eq(context, &rc.v);
	ck_assert(!raw_readable(rc.v.channel->fd));
	ibv_ack_cq_events(cq, 1);
	rc_close();
}
END_TEST

START_TEST(what_completes_just_before_the_arming_wakes_nobody)
{
	rc_open(7);
	fake_work_by_hand(true);
	fake_step_before_arming(1);
	ck_assert_int_eq(raw_post_recv(&rc.v, rc.b, 2, 0, 0), 0);
	ck_assert_int_eq(raw_post_send(&rc.v, rc.a, 1, 0, 0), 0);
	ck_assert_uint_eq(fake_unpolled(), 0);
	ck_assert_int_eq(ibv_req_notify_cq(rc.v.cq, 0), 0);
	ck_assert_uint_eq(fake_unpolled(), 2);
	ck_assert(!raw_readable(rc.v.channel->fd));
	rc_close();
}
END_TEST

START_TEST(what_is_left_in_a_queue_that_failed_waits_for_nobody)
{
	struct ibv_wc wc[2];

	rc_open(7);
	ck_assert_int_eq(raw_post_recv(&rc.v, rc.b, 2, 0, 0), 0);
	ck_assert_int_eq(raw_post_send(&rc.v, rc.a, 1, 0, 0), 0);
	ck_assert(!fake_poll_failed(rc.v.cq));
	fake_break_cq(rc.v.cq);
	ck_assert_uint_eq(fake_unpolled(), 2);
	ck_assert_int_lt(ibv_poll_cq(rc.v.cq, 2, wc), 0);
	ck_assert_int_lt(ibv_poll_cq(rc.v.cq, 2, wc), 0);
	ck_assert(fake_poll_failed(rc.v.cq));
	ck_assert_uint_eq(fake_unpolled(), 0);
	rc_close();
}
END_TEST

START_TEST(a_queue_that_overruns_is_reported)
{
	int i;

	rc_open(7);
	ck_assert_int_eq(ibv_resize_cq(rc.v.cq, 3), 0);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(raw_post_recv(&rc.v, rc.b, 2, 0, 0), 0);
		ck_assert_int_eq(raw_post_send(&rc.v, rc.a, 1, 0, 0), 0);
	}
	ck_assert_ptr_nonnull(fake_problem());
	fake_reset();
	fake_install();
}
END_TEST

START_TEST(destroying_a_queue_with_unacked_events_would_hang)
{
	struct ibv_cq *cq;
	void *context;

	rc_open(7);
	ck_assert_int_eq(ibv_req_notify_cq(rc.v.cq, 0), 0);
	ck_assert_int_eq(raw_post_recv(&rc.v, rc.a, 1, 0, 0), 0);
	to_error(rc.a);
	ck_assert_int_eq(ibv_get_cq_event(rc.v.channel, &cq, &context), 0);
	ibv_destroy_qp(rc.a);
	ibv_destroy_qp(rc.b);
	ibv_destroy_cq(cq);
}
END_TEST

START_TEST(what_is_in_use_is_busy)
{
	rc_open(7);
	ck_assert_int_eq(ibv_dealloc_pd(rc.v.pd), EBUSY);
	ck_assert_int_eq(ibv_destroy_cq(rc.v.cq), EBUSY);
	ck_assert_int_eq(ibv_destroy_comp_channel(rc.v.channel), EBUSY);
	rc_close();
}
END_TEST

START_TEST(states_need_their_attributes)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .port_num = 1 };
	struct ibv_qp *qp;

	rc_open(7);
	qp = raw_qp(&rc.v, IBV_QPT_RC);
	ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	attr.qp_state = IBV_QPS_INIT;
	ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
	ck_assert_int_eq(raw_post_recv(&rc.v, qp, 1, 0, 0), EINVAL);
	ck_assert_int_eq(raw_post_send(&rc.v, qp, 1, 0, 0), EINVAL);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	rc_close();
}
END_TEST

static int main_with_abort(const TTest *const *tests, size_t n)
{
	Suite *suite = suite_create("fake_verbs");
	TCase *tcase = tcase_create("verbs");
	TCase *fatal = tcase_create("fatal");
	size_t i;

	tcase_add_checked_fixture(tcase, fake_setup, fake_teardown);
	tcase_add_checked_fixture(fatal, fake_setup, NULL);
	for (i = 0; i < n; i++)
		tcase_add_test(tcase, tests[i]);
	tcase_add_test_raise_signal(fatal, destroying_a_queue_with_unacked_events_would_hang, 6);
	suite_add_tcase(suite, tcase);
	suite_add_tcase(suite, fatal);
	return fake_run(suite);
}

int main(void)
{
	const TTest *const tests[] = {
		a_send_fills_the_receive_with_its_immediate,
		a_message_may_be_empty,
		rdma_moves_bytes_both_ways,
		an_atomic_adds_and_returns_what_was_there,
		without_a_receive_and_retries_the_connection_dies,
		with_endless_retries_a_send_waits_for_the_receive,
		the_rnr_timer_can_be_set_while_a_queue_pair_is_connected,
		the_error_state_flushes_all_that_is_posted,
		work_towards_a_peer_that_left_ends_when_time_does,
		memory_that_is_not_registered_is_not_sent,
		a_message_too_long_for_its_receive_ends_both_sides,
		a_wrong_rkey_is_a_remote_access_error,
		send_entries_come_back_when_a_later_completion_is_polled,
		an_armed_queue_wakes_once_and_only_for_what_is_new,
		what_completes_just_before_the_arming_wakes_nobody,
		what_is_left_in_a_queue_that_failed_waits_for_nobody,
		a_queue_that_overruns_is_reported,
		what_is_in_use_is_busy,
		states_need_their_attributes,
	};

	return main_with_abort(tests, sizeof(tests) / sizeof(tests[0]));
}
