#include "unit/unit.h"

#include "proto/credit.h"
#include "proto/sendq.h"

#include <errno.h>
#include <stdint.h>

/* --- the messages that we may send ----------------------------------------------------------- */

static struct evr_credit_out out;

static void send_messages(unsigned int n)
{
	while (n--) {
		ck_assert_uint_gt(evr_credit_out_left(&out), 0);
		evr_credit_out_take(&out);
	}
}

/* Some receives are left for control messages, which the peer may have no others for. */
START_TEST(a_queue_of_messages_goes_before_the_first_limit)
{
	evr_credit_out_init(&out, 384);
	send_messages(380);
	ck_assert_uint_eq(evr_credit_out_left(&out), 0);
	ck_assert_int_eq(evr_credit_out_limit(&out, 385), 1);
	ck_assert_uint_eq(evr_credit_out_left(&out), 1);
}
END_TEST

START_TEST(of_a_short_queue_more_than_half_goes)
{
	uint16_t size;

	for (size = 1; size <= 16; size++) {
		evr_credit_out_init(&out, size);
		ck_assert_uint_eq(evr_credit_out_left(&out), size - size / 4);
	}
}
END_TEST

START_TEST(the_old_limit_is_no_news)
{
	evr_credit_out_init(&out, 16);
	ck_assert_int_eq(evr_credit_out_limit(&out, 16), 0);
	send_messages(3);
	ck_assert_int_eq(evr_credit_out_limit(&out, 16), 0);
	ck_assert_uint_eq(evr_credit_out_left(&out), 9);
}
END_TEST

START_TEST(a_limit_beyond_the_queue_is_refused)
{
	evr_credit_out_init(&out, 16);
	send_messages(3);
	ck_assert_int_eq(evr_credit_out_limit(&out, 19), 1);
	ck_assert_int_eq(evr_credit_out_limit(&out, 20), -ERANGE);
	ck_assert_int_eq(evr_credit_out_limit(&out, 0xffff), -ERANGE);
	ck_assert_uint_eq(evr_credit_out_left(&out), 12);
}
END_TEST

START_TEST(a_limit_that_goes_back_is_refused)
{
	evr_credit_out_init(&out, 16);
	send_messages(8);
	ck_assert_int_eq(evr_credit_out_limit(&out, 20), 1);
	ck_assert_int_eq(evr_credit_out_limit(&out, 19), -ERANGE);
	ck_assert_int_eq(evr_credit_out_limit(&out, 8), -ERANGE);
	ck_assert_int_eq(evr_credit_out_limit(&out, 7), -ERANGE);
	ck_assert_uint_eq(evr_credit_out_left(&out), 8);
}
END_TEST

/* librdmacm adds without cutting: above 16 bits there is a carry. */
START_TEST(limits_go_round_with_and_without_the_carry)
{
	uint32_t sent = 0, turn;

	evr_credit_out_init(&out, 300);
	for (turn = 0; turn < 1000; turn++) {
		send_messages(100 + turn % 190);
		sent += 100 + turn % 190;
		ck_assert_int_eq(evr_credit_out_limit(
					 &out, (sent & 0xffff) + 300 + (turn % 2 ? 0x10000 : 0)),
			1);
		ck_assert_uint_eq(evr_credit_out_left(&out), 300 - EVR_SENDQ_CONTROL);
	}
}
END_TEST

START_TEST(the_largest_queue_works)
{
	evr_credit_out_init(&out, 0xffff);
	send_messages(0xffff - EVR_SENDQ_CONTROL);
	ck_assert_uint_eq(evr_credit_out_left(&out), 0);
	ck_assert_int_eq(evr_credit_out_limit(&out, 0x1fffe - EVR_SENDQ_CONTROL), 1);
	ck_assert_uint_eq(evr_credit_out_left(&out), 0xffff - EVR_SENDQ_CONTROL);
}
END_TEST

/* --- the messages that the peer may send ----------------------------------------------------- */

START_TEST(a_message_without_credit_is_refused)
{
	struct evr_credit_in in;
	int i;

	evr_credit_in_init(&in, 16);
	for (i = 0; i < 16; i++)
		ck_assert_int_eq(evr_credit_in_take(&in), 0);
	ck_assert_int_eq(evr_credit_in_take(&in), -ENOBUFS);
	ck_assert_uint_eq(evr_credit_in_give(&in), 32);
	ck_assert_int_eq(evr_credit_in_take(&in), 0);
}
END_TEST

START_TEST(credits_are_due_when_half_of_the_queue_was_used)
{
	struct evr_credit_in in;
	int i;

	evr_credit_in_init(&in, 17);
	for (i = 0; i < 8; i++) {
		ck_assert(!evr_credit_in_is_due(&in));
		evr_credit_in_take(&in);
	}
	ck_assert(evr_credit_in_is_due(&in));
	ck_assert_uint_eq(evr_credit_in_give(&in), 25);
	ck_assert(!evr_credit_in_is_due(&in));
}
END_TEST

START_TEST(limits_that_are_given_go_round)
{
	struct evr_credit_in in;
	uint32_t i;

	evr_credit_in_init(&in, 0xfffe);
	for (i = 1; i < 300000; i++) {
		ck_assert_int_eq(evr_credit_in_take(&in), 0);
		if (evr_credit_in_is_due(&in))
			ck_assert_uint_eq(evr_credit_in_give(&in), (i + 0xfffe) & 0xffff);
	}
}
END_TEST

/* --- the send queue -------------------------------------------------------------------------- */

static struct evr_sendq_work works[EVR_SENDQ_MIN];
static struct evr_sendq queue;

static const struct evr_sendq_work data = { .bytes = 10, .ring = 10, .places = 1 };
static const struct evr_sendq_work pair = { .bytes = 10, .ring = 10, .places = 2 };
static const struct evr_sendq_work control = { .places = 1, .control = true };

static bool push(const struct evr_sendq_work *work)
{
	bool signaled = false;

	ck_assert(evr_sendq_has(&queue, work->control, work->places));
	evr_sendq_push(&queue, work, &signaled);
	return signaled;
}

START_TEST(four_places_are_kept_for_control)
{
	int i;

	evr_sendq_init(&queue, works, EVR_SENDQ_MIN, 4096, false);
	for (i = 0; i < EVR_SENDQ_MIN - EVR_SENDQ_CONTROL; i++)
		push(&data);
	ck_assert(!evr_sendq_has(&queue, false, 1));
	for (i = 0; i < EVR_SENDQ_CONTROL; i++)
		ck_assert(push(&control));
	ck_assert(!evr_sendq_has(&queue, true, 1));
	evr_sendq_complete(&queue, 0);
	ck_assert(evr_sendq_has(&queue, false, 1) && !evr_sendq_has(&queue, false, 2));
	ck_assert(!evr_sendq_has(&queue, true, 1));
	evr_sendq_complete(&queue, 12);
	ck_assert(evr_sendq_has(&queue, false, 12) && evr_sendq_has(&queue, true, 1));
}
END_TEST

START_TEST(a_full_queue_always_has_a_signal_on_its_way)
{
	int signals = 0, i;

	evr_sendq_init(&queue, works, EVR_SENDQ_MIN, 4096, false);
	for (i = 0; i < 12; i++)
		signals += push(&data);
	ck_assert_int_eq(signals, 3);
	evr_sendq_init(&queue, works, EVR_SENDQ_MIN, 4096, false);
	for (i = 0, signals = 0; i < 6; i++)
		signals += push(&pair);
	ck_assert_int_eq(signals, 3);
}
END_TEST

START_TEST(a_quarter_of_the_ring_is_signalled)
{
	evr_sendq_init(&queue, works, EVR_SENDQ_MIN, 40, false);
	ck_assert(!push(&data));
	ck_assert(push(&data));
	ck_assert(!push(&data));
	evr_sendq_init(&queue, works, EVR_SENDQ_MIN, 4096, true);
	ck_assert(push(&data));
	ck_assert(push(&data));
}
END_TEST

START_TEST(a_completion_stands_for_all_before_it)
{
	evr_sendq_init(&queue, works, EVR_SENDQ_MIN, 4096, false);
	push(&data);
	push(&data);
	push(&data);
	evr_sendq_complete(&queue, 1);
	ck_assert_uint_eq(queue.done_bytes, 20);
	ck_assert_uint_eq(evr_sendq_reap_ring(&queue), 20);
	ck_assert_uint_eq(evr_sendq_reap_ring(&queue), 0);
	evr_sendq_complete(&queue, 0);
	evr_sendq_complete(&queue, 1);
	evr_sendq_complete(&queue, 3);
	evr_sendq_complete(&queue, UINT32_MAX);
	ck_assert_uint_eq(queue.count, 1);
	evr_sendq_complete(&queue, 2);
	ck_assert_uint_eq(queue.count, 0);
	ck_assert_uint_eq(queue.done_bytes, queue.handed_bytes);
}
END_TEST

START_TEST(numbers_of_work_go_round)
{
	int i;

	evr_sendq_init(&queue, works, EVR_SENDQ_MIN, 4096, false);
	queue.next = UINT32_MAX - 20;
	for (i = 0; i < 100; i++) {
		push(&data);
		push(&control);
		evr_sendq_complete(&queue, queue.next - 1);
		ck_assert_uint_eq(queue.count, 0);
	}
	ck_assert_uint_eq(queue.done_bytes, 1000);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_queue_of_messages_goes_before_the_first_limit,
		of_a_short_queue_more_than_half_goes,
		the_old_limit_is_no_news,
		a_limit_beyond_the_queue_is_refused,
		a_limit_that_goes_back_is_refused,
		limits_go_round_with_and_without_the_carry,
		the_largest_queue_works,
		a_message_without_credit_is_refused,
		credits_are_due_when_half_of_the_queue_was_used,
		limits_that_are_given_go_round,
		four_places_are_kept_for_control,
		a_full_queue_always_has_a_signal_on_its_way,
		a_quarter_of_the_ring_is_signalled,
		a_completion_stands_for_all_before_it,
		numbers_of_work_go_round,
	};

	return unit_main("proto_credit", tests, sizeof(tests) / sizeof(tests[0]), NULL, NULL);
}
