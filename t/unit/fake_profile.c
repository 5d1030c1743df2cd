/* The rows of the fake's devices: what each says of itself is what it does. */
#include "unit/fake_raw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct raw_verbs v;
static struct ibv_qp *a, *b;

static void become(const char *profile)
{
	ck_assert_int_eq(setenv("EVR_FAKE_PROFILE", profile, 1), 0);
	fake_install();
	memset(&v, 0, sizeof(v));
	raw_verbs_open(&v, FAKE_ROCE);
}

static void join(void)
{
	a = raw_qp(&v, IBV_QPT_RC);
	b = raw_qp(&v, IBV_QPT_RC);
	raw_join(a, b, 7);
}

static void leave(void)
{
	ck_assert_int_eq(ibv_destroy_qp(a), 0);
	ck_assert_int_eq(ibv_destroy_qp(b), 0);
	raw_verbs_close(&v);
}

static void to_error(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

static int entries_given(int asked)
{
	struct ibv_cq *cq = ibv_create_cq(v.context, asked, NULL, NULL, 0);
	int given;

	ck_assert_ptr_nonnull(cq);
	given = cq->cqe;
	ck_assert_int_eq(ibv_destroy_cq(cq), 0);
	return given;
}

START_TEST(queues_are_as_long_as_the_device_makes_them)
{
	become("rxe");
	ck_assert_int_eq(entries_given(64), 64);
	raw_verbs_close(&v);
	become("mlx5");
	ck_assert_int_eq(entries_given(64), 127);
	raw_verbs_close(&v);
	become("odd");
	ck_assert_int_eq(entries_given(64), 63);
	ck_assert_int_eq(entries_given(65), 127);
	raw_verbs_close(&v);
}
END_TEST

START_TEST(a_vendor_may_be_told_and_nothing_taken)
{
	struct ibv_ece ece = { 0 };

	become("mlx5");
	join();
	ck_assert_int_eq(ibv_query_ece(a, &ece), 0);
	ck_assert_uint_eq(ece.vendor_id, 0x15b3);
	ck_assert_int_eq(ibv_set_ece(a, &ece), EOPNOTSUPP);
	leave();
	become("bnxt_re");
	join();
	ck_assert_int_eq(ibv_query_ece(a, &ece), EOPNOTSUPP);
	leave();
}
END_TEST

START_TEST(a_small_message_is_in_its_buffer_once_it_is_polled)
{
	become("mlx5");
	join();
	memset(v.buf, 0x11, 8);
	ck_assert_int_eq(raw_post_recv(&v, b, 2, 100, 8), 0);
	ck_assert_int_eq(raw_post_send(&v, a, 1, 0, 8), 0);
	ck_assert_uint_ne(v.buf[100], 0x11);
	raw_wc(&v);
	raw_wc(&v);
	ck_assert_uint_eq(v.buf[107], 0x11);
	leave();
}
END_TEST

START_TEST(completions_go_with_their_queue_pair_or_stay)
{
	become("mlx5");
	join();
	ck_assert_int_eq(raw_post_recv(&v, a, 1, 0, 8), 0);
	to_error(a);
	ck_assert_uint_eq(fake_unpolled(), 1);
	leave();
	become("rxe");
	join();
	ck_assert_int_eq(raw_post_recv(&v, a, 1, 0, 8), 0);
	to_error(a);
	ck_assert_int_eq(ibv_destroy_qp(a), 0);
	ck_assert_uint_eq(raw_wc(&v).wr_id, 1);
	ck_assert_int_eq(ibv_destroy_qp(b), 0);
	raw_verbs_close(&v);
}
END_TEST

START_TEST(a_flush_may_wait_for_a_poll_and_say_nothing)
{
	struct ibv_cq *cq;
	void *context;

	become("bnxt_re");
	join();
	ck_assert_int_eq(ibv_req_notify_cq(v.cq, 0), 0);
	ck_assert_int_eq(raw_post_recv(&v, a, 1, 0, 8), 0);
	to_error(a);
	ck_assert_int_eq(ibv_get_cq_event(v.channel, &cq, &context), -1);
	ck_assert_uint_eq(fake_unpolled(), 0);
	ck_assert_int_eq(raw_wc(&v).status, IBV_WC_WR_FLUSH_ERR);
	leave();
}
END_TEST

static void send_quietly(uint64_t wr_id, uint32_t len)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = raw_send_wr(&v, &sge, wr_id, 0, len);

	wr.send_flags = 0;
	ck_assert_int_eq(raw_post(a, &wr), 0);
}

/* The first send was fine, but nobody knows that. */
START_TEST(the_oldest_send_may_be_blamed)
{
	struct ibv_wc wc;

	become("bnxt_re");
	join();
	ck_assert_int_eq(raw_post_recv(&v, b, 9, 100, 8), 0);
	send_quietly(1, 8);
	ck_assert_uint_eq(raw_wc(&v).wr_id, 9);
	send_quietly(2, 8);
	ck_assert_uint_eq(fake_time_out_work(), 1);
	wc = raw_wc(&v);
	ck_assert(wc.wr_id == 1 && wc.status == IBV_WC_RNR_RETRY_EXC_ERR);
	wc = raw_wc(&v);
	ck_assert(wc.wr_id == 2 && wc.status == IBV_WC_WR_FLUSH_ERR);
	leave();
}
END_TEST

START_TEST(a_removal_may_wait_for_nobody)
{
	become("mlx5");
	join();
	fake_device_remove(FAKE_ROCE);
	ck_assert(fake_device_gone(FAKE_ROCE));
	ck_assert_int_eq(ibv_destroy_qp(a), EIO);
	ck_assert_int_eq(ibv_dereg_mr(v.mr), EIO);
	ck_assert_uint_eq(fake_live(FAKE_QP), 0);
	ck_assert_int_eq(fake_lost_descriptors(), 3);
	fake_device_add(FAKE_ROCE);
	ck_assert_int_eq(ibv_close_device(v.context), 0);
	ck_assert_int_eq(fake_lost_descriptors(), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		queues_are_as_long_as_the_device_makes_them,
		a_vendor_may_be_told_and_nothing_taken,
		a_small_message_is_in_its_buffer_once_it_is_polled,
		completions_go_with_their_queue_pair_or_stay,
		a_flush_may_wait_for_a_poll_and_say_nothing,
		the_oldest_send_may_be_blamed,
		a_removal_may_wait_for_nobody,
	};

	return fake_main("fake_profile", tests, sizeof(tests) / sizeof(tests[0]));
}
