/* What a device does with the work that is posted on it, one step at a time. */
#include "conform/fake.h"
#include "conform/fixture.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>
#include <sys/mman.h>

enum { PATIENCE_MS = 20000, MEMORY = 4096, LEN = 64 };

static struct ibv_qp *qp_of(const struct endpoint *endpoint)
{
	return evrdma_conn_get_cm_id(endpoint->conn)->qp;
}

/* --- reads ---------------------------------------------------------------------------------- */

struct reads {
	unsigned char memory[MEMORY];
	struct evrdma_buf *exposed, *local;
	struct evrdma_seg seg;
	struct evrdma_work work;
	char done[8]; /* a letter for each piece of work that is over */
};

static void note_read(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg)
{
	strcat(((struct reads *)arg)->done, error ? "x" : "r");
}

static void note_send(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg)
{
	strcat(((struct reads *)arg)->done, error ? "x" : "s");
}

static void leave_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static struct fixture *reads_start(struct reads *reads)
{
	struct fixture *f = fixture_new();

	memset(reads, 0, sizeof(*reads));
	f->on_event = leave_open;
	f->options.inline_bytes = 8;
	fixture_connect_pair(f);
	reads->exposed = evrdma_buf_new_reference(
		reads->memory, MEMORY, EVRDMA_BUF_OPT_REMOTE_READ, NULL, NULL);
	reads->local = evrdma_pool_get(f->pool);
	reads->seg = (struct evrdma_seg){ reads->local, 0, LEN };
	reads->work =
		(struct evrdma_work){ .op = EVRDMA_OP_READ, .segs = &reads->seg, .seg_count = 1 };
	ck_assert_int_eq(
		evrdma_conn_expose(f->server->conn, reads->exposed, &reads->work.remote), 0);
	fake_work_by_hand(true);
	return f;
}

static void reads_end(struct fixture *f, struct reads *reads)
{
	evrdma_buf_unref(reads->local);
	evrdma_buf_unref(reads->exposed);
	fake_work_by_hand(false);
	fixture_free(f);
}

static void submit_read_and_send(struct fixture *f, struct reads *reads)
{
	const struct evrdma_work send = {
		.op = EVRDMA_OP_SEND, .inline_data = "behind", .inline_len = 7
	};

	ck_assert_int_eq(evrdma_conn_submit(f->client->conn, &reads->work, note_read, reads), 0);
	ck_assert_int_eq(evrdma_conn_submit(f->client->conn, &send, note_send, reads), 0);
	fixture_run_a_little(f);
}

/* On iWARP the send is complete before the answer is here; it is told behind the read. */
START_TEST(only_its_own_completion_ends_a_read)
{
	struct reads reads;
	struct fixture *f = reads_start(&reads);

	submit_read_and_send(f, &reads);
	ck_assert_str_eq(reads.done, "");
	ck_assert_uint_eq(fake_step_qp(qp_of(f->client), 1), 1);
	fixture_run_a_little(f);
	ck_assert_str_eq(reads.done, testbed.is_iwarp ? "" : "r");
	ck_assert_uint_eq(fake_step_qp(qp_of(f->client), 1), 1);
	fixture_run_a_little(f);
	ck_assert_str_eq(reads.done, "rs");
	reads_end(f, &reads);
}
END_TEST

/* What the device has said is over stays so, though what is before it is not. */
START_TEST(a_send_that_arrived_is_not_cancelled_with_the_read_before_it)
{
	struct reads reads;
	struct fixture *f = reads_start(&reads);

	submit_read_and_send(f, &reads);
	ck_assert_uint_eq(fake_step_qp(qp_of(f->client), 1), 1);
	fixture_run_a_little(f);
	evrdma_conn_close(f->client->conn);
	fixture_run_until(f, fixture_client_is_closed, PATIENCE_MS);
	ck_assert_str_eq(reads.done, testbed.is_iwarp ? "xs" : "rx");
	reads_end(f, &reads);
}
END_TEST

/* A device may take more for anything else. */
START_TEST(a_read_of_more_segments_than_the_device_reads_is_refused)
{
	struct fixture *f = fixture_new();
	struct evrdma_buf *buf = evrdma_pool_get(f->pool);
	const struct evrdma_seg segs[] = { { buf, 0, 8 }, { buf, 16, 8 } };
	struct evrdma_work work = { .op = EVRDMA_OP_READ, .segs = segs, .seg_count = 2 };

	fake_device_attr(fake_testbed_kind)->max_sge_rd = 1;
	f->on_event = leave_open;
	f->options.send_segs = 2;
	fixture_connect_pair(f);
	ck_assert_int_eq(evrdma_conn_submit(f->client->conn, &work, NULL, NULL), -EINVAL);
	work.op = EVRDMA_OP_SEND;
	ck_assert_int_eq(evrdma_conn_submit(f->client->conn, &work, NULL, NULL), 0);
	evrdma_buf_unref(buf);
	fixture_free(f);
}
END_TEST

/* --- receives ------------------------------------------------------------------------------- */

static void accept_with_huge(struct fixture *f, struct evrdma_request *request)
{
	struct endpoint *server = fixture_endpoint_new(f, false);

	ck_assert_int_eq(evrdma_conn_recv(server->conn, f->tag), 0);
	endpoint_accept(server, request);
}

static bool server_got_one(struct fixture *f)
{
	return f->server && f->server->received == 1;
}

static const size_t huge_sizes[] = { (size_t)1 << 31, (size_t)1 << 32, ((size_t)1 << 32) + 16 };

/* The length of what is posted has 32 bits. */
START_TEST(a_message_fits_into_a_buffer_however_large)
{
	const size_t size = huge_sizes[_i];
	struct fixture *f = fixture_new();
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	ck_assert_ptr_ne(memory, MAP_FAILED);
	f->tag = evrdma_buf_new_reference(memory, size, 0, NULL, NULL);
	ck_assert_ptr_nonnull(f->tag);
	f->on_event = leave_open;
	f->on_request = accept_with_huge;
	f->options.recv_pool = NULL;
	fixture_connect_pair(f);
	evrdma_buf_unref(f->tag);
	endpoint_send(f->client, 1, LEN);
	fixture_run_until(f, server_got_one, PATIENCE_MS);
	fixture_free(f);
	munmap(memory, size);
}
END_TEST

/* --- queues that cannot be read -------------------------------------------------------------- */

enum { PAIRS = 2 };

static struct endpoint *endpoints[2 * PAIRS];

static struct fixture *fixture_with_pairs(void)
{
	struct fixture *f = fixture_new();
	int i;

	f->on_event = leave_open;
	/* All in one queue, on whichever device. */
	f->options.send_depth = f->options.recv_depth = 8;
	for (i = 0; i < PAIRS; i++) {
		f->client = f->server = NULL;
		fixture_connect_pair(f);
		endpoints[2 * i] = f->client;
		endpoints[2 * i + 1] = f->server;
	}
	return f;
}

static bool all_down(struct fixture *f)
{
	int i;

	for (i = 0; i < 2 * PAIRS; i++)
		if (!endpoints[i]->down)
			return false;
	return true;
}

/* fixture.c has each told once at most. */
static void expect_all_broken(struct fixture *f)
{
	int i;

	fixture_run_until(f, all_down, PATIENCE_MS);
	for (i = 0; i < 2 * PAIRS; i++)
		ck_assert_int_eq(endpoints[i]->error, EIO);
}

static void expect_no_calls(struct fixture *f, const char *name)
{
	unsigned calls;

	fixture_run_a_little(f);
	calls = fake_calls(name);
	fixture_run_a_little(f);
	ck_assert_uint_eq(fake_calls(name), calls);
}

static bool server_is_down(struct fixture *f)
{
	return f->server && f->server->down;
}

/* A stream of messages with one left out is none. */
START_TEST(a_length_that_cannot_be_ends_the_connection)
{
	struct fixture *f = fixture_new();

	f->on_event = leave_open;
	fixture_connect_pair(f);
	fake_lie_of_length();
	endpoint_send(f->client, 1, LEN);
	endpoint_send(f->client, 2, LEN);
	fixture_run_until(f, server_is_down, PATIENCE_MS);
	ck_assert_int_eq(f->server->error, EIO);
	ck_assert_uint_eq(f->server->received, 0);
	fixture_free(f);
}
END_TEST

/* What the failing poll took with it nobody knows. */
START_TEST(all_on_a_queue_are_told_when_a_poll_of_it_fails)
{
	struct fixture *f = fixture_with_pairs();

	fake_fail_next("ibv_poll_cq", EIO);
	endpoint_send(endpoints[0], 1, LEN);
	expect_all_broken(f);
	fixture_free(f);
}
END_TEST

/* Which of them it took nobody knows: what comes behind is not told as the next. */
START_TEST(no_message_is_told_behind_a_poll_that_failed)
{
	struct fixture *f = fixture_with_pairs();
	unsigned i;

	fake_fail_next("ibv_poll_cq", EIO);
	for (i = 0; i < 3; i++)
		endpoint_send(endpoints[0], i, LEN);
	expect_all_broken(f);
	ck_assert_uint_eq(endpoints[1]->received, 0);
	fixture_free(f);
}
END_TEST

START_TEST(a_queue_that_stays_broken_is_left_alone_and_not_used_again)
{
	struct fixture *f = fixture_with_pairs();
	struct ibv_cq *cq = qp_of(endpoints[0])->send_cq;

	fake_break_cq(cq);
	endpoint_send(endpoints[0], 1, LEN);
	expect_all_broken(f);
	expect_no_calls(f, "ibv_poll_cq");
	f->client = f->server = NULL;
	fixture_connect_pair(f);
	ck_assert_ptr_ne(qp_of(f->client)->send_cq, cq);
	fixture_free(f);
}
END_TEST

static const int channel_errors[] = { EIO, EBADF };

/* As when the device goes without asking: poll says that it is readable, for ever. */
START_TEST(all_on_a_device_are_told_when_its_channel_cannot_be_read)
{
	struct fixture *f = fixture_with_pairs();

	fake_fail_next("ibv_get_cq_event", channel_errors[_i]);
	endpoint_send(endpoints[0], 1, LEN);
	expect_all_broken(f);
	expect_no_calls(f, "ibv_get_cq_event");
	fixture_free(f);
}
END_TEST

/* --- shared queues ---------------------------------------------------------------------------- */

static struct fixture *fixture_with_shared_queue(int drain_timeout_ms)
{
	struct fixture *f = fixture_new();
	struct evrdma_srq *srq = evrdma_srq_new(f->base, f->pool, 8);

	ck_assert_ptr_nonnull(srq);
	f->options.recv_pool = NULL;
	f->options.srq = srq;
	f->options.drain_timeout_ms = drain_timeout_ms;
	fake_hold_last_receive(true);
	fixture_connect_pair(f);
	return f;
}

static void end_shared(struct fixture *f)
{
	fake_hold_last_receive(false);
	fixture_free(f);
}

/* A device that has taken a buffer out of the shared queue would lose it with the QP. */
START_TEST(a_QP_on_a_shared_queue_stays_until_its_last_receive_is_told)
{
	struct fixture *f = fixture_with_shared_queue(PATIENCE_MS);
	struct ibv_qp *client = qp_of(f->client), *server = qp_of(f->server);

	evrdma_conn_close(f->client->conn);
	fixture_run_a_little(f);
	fixture_run_a_little(f);
	ck_assert_uint_eq(fake_live(FAKE_QP), 2);
	fake_async_qp(client, IBV_EVENT_QP_LAST_WQE_REACHED);
	fake_async_qp(server, IBV_EVENT_QP_LAST_WQE_REACHED);
	fixture_run_until(f, fixture_none_live, PATIENCE_MS / 2);
	end_shared(f);
}
END_TEST

START_TEST(a_device_that_never_tells_of_the_last_receive_is_waited_for_once)
{
	struct fixture *f = fixture_with_shared_queue(30);

	evrdma_conn_close(f->client->conn);
	fixture_run_until(f, fixture_none_live, PATIENCE_MS);
	f->options.drain_timeout_ms = PATIENCE_MS;
	fixture_connect_pair(f);
	evrdma_conn_close(f->client->conn);
	fixture_run_until(f, fixture_none_live, PATIENCE_MS / 2);
	end_shared(f);
}
END_TEST

static void count_event(struct evrdma_base *base, enum evrdma_device_event event,
	const char *device, int port_num, void *arg)
{
	(*(unsigned *)arg)++;
}

static void expect_told_once(struct fixture *f, unsigned *told)
{
	*told = 0;
	fake_async_port(fake_testbed_kind, IBV_EVENT_PORT_ERR);
	fixture_run_a_little(f);
	ck_assert_uint_eq(*told, 1);
}

static bool one_channel_is_left(struct fixture *f)
{
	return fake_live(FAKE_CHANNEL) == 1;
}

static bool both_are_down(struct fixture *f)
{
	return f->client->down && f->server->down;
}

/* The old ones have not ended: there are two channels, and one descriptor for what happens. */
START_TEST(who_comes_after_a_channel_was_lost_hears_of_the_device_once)
{
	struct fixture *f = fixture_with_shared_queue(300);
	unsigned told;

	f->on_event = leave_open;
	evrdma_base_set_device_cb(f->base, count_event, &told);
	fake_fail_next("ibv_get_cq_event", EIO);
	endpoint_send(f->client, 1, LEN);
	fixture_run_until(f, both_are_down, PATIENCE_MS);
	expect_told_once(f, &told);
	f->client = f->server = NULL;
	fixture_connect_pair(f);
	ck_assert_uint_eq(fake_live(FAKE_CHANNEL), 2);
	expect_told_once(f, &told);
	fixture_run_until(f, one_channel_is_left, PATIENCE_MS);
	expect_told_once(f, &told);
	fake_async_qp(qp_of(f->client), IBV_EVENT_QP_FATAL);
	fixture_run_until(f, fixture_client_is_down, PATIENCE_MS);
	end_shared(f);
}
END_TEST

TCase *posted_case(void)
{
	TCase *tc = tcase_create("posted");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, only_its_own_completion_ends_a_read);
	tcase_add_test(tc, a_send_that_arrived_is_not_cancelled_with_the_read_before_it);
	tcase_add_test(tc, a_read_of_more_segments_than_the_device_reads_is_refused);
	tcase_add_loop_test(tc, a_message_fits_into_a_buffer_however_large, 0, 3);
	tcase_add_test(tc, a_length_that_cannot_be_ends_the_connection);
	tcase_add_test(tc, all_on_a_queue_are_told_when_a_poll_of_it_fails);
	tcase_add_test(tc, no_message_is_told_behind_a_poll_that_failed);
	tcase_add_test(tc, a_queue_that_stays_broken_is_left_alone_and_not_used_again);
	tcase_add_loop_test(tc, all_on_a_device_are_told_when_its_channel_cannot_be_read, 0, 2);
	if (testbed_has(TESTBED_SRQS)) {
		tcase_add_test(tc, a_QP_on_a_shared_queue_stays_until_its_last_receive_is_told);
		tcase_add_test(
			tc, a_device_that_never_tells_of_the_last_receive_is_waited_for_once);
		tcase_add_test(tc, who_comes_after_a_channel_was_lost_hears_of_the_device_once);
	}
	return tc;
}
