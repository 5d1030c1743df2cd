/* Replies to those whose hardware address nobody knows: the loop goes on meanwhile. */
#include "conform/fake.h"
#include "conform/member.h"

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

enum {
	PATIENCE_MS = 20000,
	HEADER_BYTES = 40,
	SOURCE_AT = 32,
	SUM_AT = 30,
	IPV4_AT = 20,
	SEND_DEPTH = 8,
	MOST_HELD = SEND_DEPTH / 2
};

/* What a datagram said of its sender; another address may be put there. */
static struct {
	struct evrdma_recv recv;
	struct ibv_wc wc;
	uint8_t header[HEADER_BYTES];
} came;

static struct {
	unsigned good, failed;
	int err;
	enum evrdma_step step;
} told;

static void keep(struct evrdma_dgram *dgram, const struct evrdma_recv *recv, void *arg)
{
	came.recv = *recv;
	came.wc = *recv->wc;
	memcpy(came.header, recv->grh, HEADER_BYTES);
	came.recv.wc = &came.wc;
	came.recv.grh = came.header;
}

static bool has_come(struct fixture *f)
{
	return came.recv.len;
}

static void set_checksum(void)
{
	uint32_t sum = 0;
	size_t i;

	came.header[SUM_AT] = came.header[SUM_AT + 1] = 0;
	for (i = IPV4_AT; i < HEADER_BYTES; i += 2)
		sum += (uint32_t)came.header[i] << 8 | came.header[i + 1];
	sum = ~((sum & 0xffff) + (sum >> 16));
	came.header[SUM_AT] = (uint8_t)(sum >> 8);
	came.header[SUM_AT + 1] = (uint8_t)sum;
}

static void say_it_comes_from(const char *ip)
{
	inet_pton(AF_INET, ip, came.header + SOURCE_AT);
	set_checksum();
}

static const char *nobody(void)
{
	return "192.0.2.77";
}

static void on_sent(struct evrdma_dgram *dgram, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	const struct fixture *f = arg;

	ck_assert(!f->in_call);
	told.good += !error;
	told.failed += error != NULL;
	if (error) {
		told.err = error->err;
		told.step = error->step;
	}
}

/* An endpoint that has received its own datagram, from a group. */
static struct fixture *fixture_with_sender(struct member *m)
{
	struct fixture *f = fixture_new();
	struct sockaddr_in group;

	memset(&came, 0, sizeof(came));
	memset(&told, 0, sizeof(told));
	fake_asked_in_vain();
	member_init(m, f, 0);
	m->send_depth = SEND_DEPTH;
	member_reopen(m);
	member_run_until_ready(m);
	fixture_address(&group, GROUP_A, 0);
	member_try_join(m, (struct sockaddr *)&group, 0);
	member_run_until_joined(m);
	evrdma_dgram_setcb(m->dgram, keep, NULL, NULL);
	ck_assert_int_eq(member_send(m, 10, NULL), 0);
	fixture_run_until(f, has_come, PATIENCE_MS);
	return f;
}

static int reply(struct member *m)
{
	struct evrdma_buf *buf = evrdma_pool_get(m->f->pool);
	int ret;

	ck_assert_ptr_nonnull(buf);
	m->f->in_call = true;
	ret = evrdma_dgram_reply(m->dgram, &came.recv, buf, 8, NULL, on_sent, m->f);
	m->f->in_call = false;
	evrdma_buf_unref(buf);
	return ret;
}

static bool all_is_told(struct fixture *f)
{
	return told.good + told.failed == 2;
}

static bool one_is_good(struct fixture *f)
{
	return told.good == 1;
}

static bool two_are_good(struct fixture *f)
{
	return told.good == 2;
}

static bool three_are_good(struct fixture *f)
{
	return told.good == 3;
}

static bool one_has_failed(struct fixture *f)
{
	return told.failed;
}

START_TEST(a_reply_to_a_forged_address_holds_nobody_up)
{
	struct member m;
	struct fixture *f = fixture_with_sender(&m);

	ck_assert_int_eq(reply(&m), 0);
	fixture_run_until(f, one_is_good, PATIENCE_MS);
	fake_hold(FAKE_ADDR);
	say_it_comes_from(nobody());
	ck_assert_int_eq(reply(&m), 0);
	say_it_comes_from(testbed.ip);
	ck_assert_int_eq(reply(&m), 0);
	fixture_run_until(f, two_are_good, PATIENCE_MS);
	ck_assert_uint_eq(told.failed, 0);
	fake_release(FAKE_ADDR);
	fixture_run_until(f, one_has_failed, PATIENCE_MS);
	ck_assert_int_eq(told.err, ETIMEDOUT);
	ck_assert_int_eq(told.step, EVRDMA_STEP_ADDR);
	ck_assert_uint_eq(fake_asked_in_vain(), 0);
	fixture_free(f);
}
END_TEST

START_TEST(who_was_asked_for_in_vain_is_not_asked_for_again)
{
	struct member m;
	struct fixture *f = fixture_with_sender(&m);

	say_it_comes_from(nobody());
	ck_assert_int_eq(reply(&m), 0);
	ck_assert_int_eq(reply(&m), 0);
	fixture_run_until(f, all_is_told, PATIENCE_MS);
	ck_assert_uint_eq(told.failed, 2);
	ck_assert_int_eq(reply(&m), -ETIMEDOUT);
	fixture_free(f);
}
END_TEST

START_TEST(replies_to_a_neighbour_are_sent_when_it_is_found)
{
	struct member m;
	struct fixture *f = fixture_with_sender(&m);

	say_it_comes_from("192.0.2.250");
	ck_assert_int_eq(reply(&m), 0);
	ck_assert_int_eq(reply(&m), 0);
	fixture_run_until(f, all_is_told, PATIENCE_MS);
	ck_assert_uint_eq(told.good, 2);
	fixture_free(f);
}
END_TEST

/* Each entry that is passed over costs calls of the kernel. */
START_TEST(the_table_of_GIDs_is_searched_once_for_many_replies)
{
	struct member m;
	struct fixture *f = fixture_with_sender(&m);
	unsigned searches = fake_calls("ibv_init_ah_from_wc");

	ck_assert_int_eq(reply(&m), 0);
	fixture_run_until(f, one_is_good, PATIENCE_MS);
	ck_assert_int_eq(reply(&m), 0);
	say_it_comes_from("192.0.2.250");
	ck_assert_int_eq(reply(&m), 0);
	fixture_run_until(f, three_are_good, PATIENCE_MS);
	ck_assert_uint_eq(fake_calls("ibv_init_ah_from_wc"), searches + 1);
	fixture_free(f);
}
END_TEST

/* Half of the room is for those who are known. */
START_TEST(forged_addresses_do_not_take_all_the_room)
{
	struct member m;
	struct fixture *f = fixture_with_sender(&m);
	char ip[] = "192.0.2.60";
	unsigned i;

	fake_hold(FAKE_ADDR);
	for (i = 0; i < MOST_HELD; i++) {
		ip[sizeof(ip) - 2] = (char)('1' + i);
		say_it_comes_from(ip);
		ck_assert_int_eq(reply(&m), 0);
	}
	say_it_comes_from(nobody());
	ck_assert_int_eq(reply(&m), -EBUSY);
	for (i = MOST_HELD; i < SEND_DEPTH; i++)
		ck_assert_int_eq(member_send(&m, 10, NULL), 0);
	ck_assert_int_eq(member_send(&m, 10, NULL), -EAGAIN);
	fixture_free(f);
	ck_assert_uint_eq(told.failed, MOST_HELD);
	ck_assert_int_eq(told.err, ECANCELED);
}
END_TEST

/* --- when the hardware address under the endpoint is another one ----------------------------- */

static unsigned changes;

static void note_change(struct evrdma_dgram *dgram, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg)
{
	changes += event == EVRDMA_DGRAM_ADDR_CHANGED;
	ck_assert(!error);
}

static bool change_is_told(struct fixture *f)
{
	return changes;
}

static void change_address(struct member *m)
{
	changes = 0;
	evrdma_dgram_setcb(m->dgram, keep, note_change, NULL);
	ck_assert_int_eq(
		fake_inject(evrdma_dgram_get_cm_id(m->dgram), RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
}

static unsigned handles_made(void)
{
	return fake_calls("ibv_create_ah");
}

START_TEST(a_changed_address_is_told_and_no_handle_is_used_again)
{
	struct member m;
	struct fixture *f = fixture_with_sender(&m);
	unsigned made, searches;

	ck_assert_int_eq(reply(&m), 0);
	fixture_run_until(f, one_is_good, PATIENCE_MS);
	made = handles_made();
	searches = fake_calls("ibv_init_ah_from_wc");
	ck_assert_int_eq(reply(&m), 0);
	fixture_run_until(f, two_are_good, PATIENCE_MS);
	ck_assert_uint_eq(handles_made(), made);
	change_address(&m);
	fixture_run_until(f, change_is_told, PATIENCE_MS);
	ck_assert_int_eq(reply(&m), 0);
	fixture_run_until(f, three_are_good, PATIENCE_MS);
	ck_assert_uint_eq(handles_made(), made + 1);
	ck_assert_uint_eq(fake_calls("ibv_init_ah_from_wc"), searches + 1);
	ck_assert_uint_eq(changes, 1);
	fixture_free(f);
}
END_TEST

START_TEST(a_change_before_an_endpoint_is_ready_is_not_told)
{
	struct fixture *f = fixture_new();
	struct sockaddr_in dst;
	struct member m;

	fake_hold(FAKE_ADDR);
	member_init(&m, f, 0);
	fixture_address(&dst, testbed.ip, 0);
	ck_assert_int_eq(evrdma_dgram_open(m.dgram, NULL, (struct sockaddr *)&dst), 0);
	fixture_run_a_little(f);
	change_address(&m);
	fixture_run_a_little(f);
	fake_release(FAKE_ADDR);
	fixture_run_a_little(f);
	ck_assert_uint_eq(changes, 0);
	fixture_free(f);
}
END_TEST

/* --- when its base is shut down -------------------------------------------------------------- */

static void on_over(struct evrdma_base *base, void *arg)
{
	struct fixture *f = arg;

	f->base_closed = true;
}

START_TEST(a_shutdown_waits_for_a_reply_that_is_not_sent_yet)
{
	struct member m;
	struct fixture *f = fixture_with_sender(&m);

	fake_hold(FAKE_ADDR);
	say_it_comes_from("192.0.2.250");
	ck_assert_int_eq(reply(&m), 0);
	ck_assert_int_eq(evrdma_base_shutdown(f->base, PATIENCE_MS, on_over, f), 0);
	fixture_run_a_little(f);
	ck_assert_uint_eq(told.good + told.failed, 0);
	fake_release(FAKE_ADDR);
	fixture_run_until(f, one_is_good, PATIENCE_MS);
	fixture_free(f);
}
END_TEST

TCase *reply_case(void)
{
	TCase *tc = tcase_create("reply");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	/* iWARP has no datagrams, and InfiniBand asks for no hardware address. */
	if (fake_testbed_kind != FAKE_ROCE || !testbed_has(TESTBED_GROUPS))
		return tc;
	tcase_add_test(tc, a_reply_to_a_forged_address_holds_nobody_up);
	tcase_add_test(tc, who_was_asked_for_in_vain_is_not_asked_for_again);
	tcase_add_test(tc, replies_to_a_neighbour_are_sent_when_it_is_found);
	tcase_add_test(tc, the_table_of_GIDs_is_searched_once_for_many_replies);
	tcase_add_test(tc, forged_addresses_do_not_take_all_the_room);
	tcase_add_test(tc, a_changed_address_is_told_and_no_handle_is_used_again);
	tcase_add_test(tc, a_change_before_an_endpoint_is_ready_is_not_told);
	tcase_add_test(tc, a_shutdown_waits_for_a_reply_that_is_not_sent_yet);
	return tc;
}
