/* What is sent arrives whole, in order, once; what is submitted ends once. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

enum { MESSAGES = 200, WINDOW = 8, BUF = 4096, DEPTH = 8, HELD = 6 };

struct flow {
	unsigned sent, checked;
	unsigned writable, space_when_writable;
	unsigned cancelled, failed;
	int recv_err, recv_wc, send_err, send_wc;
	struct evrdma_buf *held[MESSAGES];
	unsigned held_count;
	struct evrdma_pool *recv_pool;
};

static size_t length_of(unsigned message)
{
	return message * 97 % (BUF + 1);
}

static uint8_t byte_of(unsigned message, size_t i)
{
	return (uint8_t)(message * 7 + i * 13 + (i >> 8));
}

static void check_bytes(unsigned message, const uint8_t *data, size_t len)
{
	size_t i;

	ck_assert_uint_eq(len, length_of(message));
	for (i = 0; i < len; i++)
		if (data[i] != byte_of(message, i))
			ck_abort_msg("message %u, byte %zu: %u instead of %u", message, i, data[i],
				byte_of(message, i));
}

static int send_message(struct endpoint *endpoint, unsigned message)
{
	struct evrdma_buf *buf = evrdma_pool_get(endpoint->fixture->pool);
	uint8_t *data = evrdma_buf_data(buf);
	size_t i;
	int ret;

	for (i = 0; i < length_of(message); i++)
		data[i] = byte_of(message, i);
	ret = endpoint_send_buf(endpoint, buf, length_of(message));
	evrdma_buf_unref(buf);
	return ret;
}

/* --- there and back ------------------------------------------------------------------------- */

static void start_window(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	struct flow *flow = endpoint->fixture->tag;

	if (event == EVRDMA_CONN_CONNECTED && endpoint->is_client)
		while (flow->sent < WINDOW)
			ck_assert_int_eq(send_message(endpoint, flow->sent++), 0);
	endpoint_close_if_down(endpoint, event);
}

static void echo_or_check(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	struct flow *flow = endpoint->fixture->tag;

	ck_assert_int_eq(recv->err, 0);
	if (!endpoint->is_client) {
		ck_assert_int_eq(endpoint_send_buf(endpoint, recv->buf, recv->len), 0);
		return;
	}
	check_bytes(flow->checked++, recv->data, recv->len);
	if (flow->sent < MESSAGES)
		ck_assert_int_eq(send_message(endpoint, flow->sent++), 0);
}

static bool all_checked(struct fixture *f)
{
	return ((struct flow *)f->tag)->checked == MESSAGES;
}

START_TEST(messages_of_all_lengths_come_back_whole_and_in_order)
{
	struct flow flow = { 0 };
	struct fixture *f = fixture_new();

	f->tag = &flow;
	f->on_event = start_window;
	f->on_recv = echo_or_check;
	fixture_connect_pair(f);
	fixture_run_until(f, all_checked, 20000);
	ck_assert_uint_eq(f->client->sends_cancelled, 0);
	fixture_free(f);
}
END_TEST

/* --- a full queue --------------------------------------------------------------------------- */

static void count_writable(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	struct flow *flow = endpoint->fixture->tag;

	if (event == EVRDMA_CONN_WRITABLE) {
		flow->writable++;
		flow->space_when_writable = evrdma_conn_send_space(endpoint->conn);
	}
	endpoint_close_if_down(endpoint, event);
}

static bool is_writable(struct fixture *f)
{
	return ((struct flow *)f->tag)->writable;
}

START_TEST(a_full_queue_says_so_and_WRITABLE_follows_once)
{
	struct flow flow = { 0 };
	struct fixture *f = fixture_new();

	f->tag = &flow;
	f->on_event = count_writable;
	f->options.send_depth = DEPTH;
	f->options.low_water = DEPTH;
	fixture_connect_pair(f);
	endpoint_send(f->client, DEPTH, 16);
	ck_assert_uint_eq(evrdma_conn_send_space(f->client->conn), 0);
	ck_assert_int_eq(send_message(f->client, 1), -EAGAIN);
	fixture_run_until(f, is_writable, 10000);
	ck_assert_uint_eq(flow.space_when_writable, DEPTH);
	ck_assert_int_eq(send_message(f->client, 1), 0);
	fixture_free(f);
	ck_assert_uint_eq(flow.writable, 1);
}
END_TEST

START_TEST(a_send_is_refused_when_there_is_no_way_to_make_it)
{
	struct fixture *f = fixture_new();
	struct endpoint *unconnected = fixture_endpoint_new(f, true);
	struct evrdma_buf *buf = evrdma_pool_get(f->pool);

	ck_assert_int_eq(endpoint_send_buf(unconnected, buf, 1), -ENOTCONN);
	ck_assert_uint_eq(evrdma_conn_send_space(unconnected->conn), 0);
	fixture_connect_pair(f);
	ck_assert_int_eq(endpoint_send_buf(f->client, buf, BUF + 1), -EMSGSIZE);
	ck_assert_int_eq(evrdma_conn_disconnect(f->client->conn), 0);
	ck_assert_int_eq(endpoint_send_buf(f->client, buf, 1), -ENOTCONN);
	evrdma_conn_close(f->server->conn);
	ck_assert_int_eq(endpoint_send_buf(f->server, buf, 1), -ENOTCONN);
	evrdma_buf_unref(buf);
	fixture_free(f);
}
END_TEST

/* --- buffers -------------------------------------------------------------------------------- */

static void hold(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	struct flow *flow = endpoint->fixture->tag;

	ck_assert_int_eq(recv->err, 0);
	check_bytes(flow->held_count, recv->data, recv->len);
	flow->held[flow->held_count++] = evrdma_buf_ref(recv->buf);
}

static bool some_held(struct fixture *f)
{
	return ((struct flow *)f->tag)->held_count == HELD;
}

static void check_held(struct flow *flow)
{
	unsigned i;

	for (i = 0; i < flow->held_count; i++)
		check_bytes(i, evrdma_buf_data(flow->held[i]), length_of(i));
}

static void release_held(struct flow *flow)
{
	while (flow->held_count)
		evrdma_buf_unref(flow->held[--flow->held_count]);
}

/* The fixture's pool is for sending; this one has only so many buffers to receive into. */
static struct fixture *fixture_with_recv_pool(struct flow *flow, size_t bufs)
{
	struct fixture *f = fixture_new();

	flow->recv_pool = evrdma_pool_new(f->base, BUF, bufs);
	ck_assert_ptr_nonnull(flow->recv_pool);
	f->tag = flow;
	f->on_recv = hold;
	f->options.recv_pool = flow->recv_pool;
	f->options.recv_depth = HELD;
	return f;
}

START_TEST(a_held_buffer_keeps_its_bytes_while_more_arrive)
{
	struct flow flow = { 0 };
	struct fixture *f = fixture_with_recv_pool(&flow, 0);
	unsigned i;

	fixture_connect_pair(f);
	for (i = 0; i < HELD; i++)
		ck_assert_int_eq(send_message(f->client, i), 0);
	fixture_run_until(f, some_held, 10000);
	f->on_recv = NULL;
	endpoint_send(f->client, HELD, BUF);
	fixture_free(f);
	check_held(&flow);
	release_held(&flow);
}
END_TEST

static bool one_more_came(struct fixture *f)
{
	return f->server->received == HELD + 1;
}

/* Both sides keep HELD posted, so the pool is empty while the server holds what it got. */
START_TEST(a_message_waits_for_a_buffer_to_come_back_to_its_pool)
{
	struct flow flow = { 0 };
	struct fixture *f = fixture_with_recv_pool(&flow, 2 * HELD);
	unsigned i;

	fixture_connect_pair(f);
	for (i = 0; i <= HELD; i++)
		ck_assert_int_eq(send_message(f->client, i), 0);
	fixture_run_until(f, some_held, 10000);
	errno = 0;
	ck_assert_ptr_null(evrdma_pool_get(flow.recv_pool));
	ck_assert_int_eq(errno, ENOBUFS);
	ck_assert_uint_eq(f->server->received, HELD);
	f->on_recv = NULL;
	evrdma_buf_unref(flow.held[--flow.held_count]);
	fixture_run_until(f, one_more_came, 10000);
	release_held(&flow);
	fixture_free(f);
}
END_TEST

/* --- the caller's own receives -------------------------------------------------------------- */

static void count_cancelled(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	struct flow *flow = endpoint->fixture->tag;

	flow->cancelled += recv->err == ECANCELED;
	flow->failed += recv->err && recv->err != ECANCELED;
	flow->recv_err = recv->err;
	flow->recv_wc = recv->wc_status;
	if (!recv->err)
		check_bytes(1, recv->data, recv->len);
}

static void post_receives(struct endpoint *endpoint, unsigned n)
{
	while (n--) {
		struct evrdma_buf *buf = evrdma_pool_get(endpoint->fixture->pool);

		ck_assert_int_eq(evrdma_conn_recv(endpoint->conn, buf), 0);
		evrdma_buf_unref(buf);
	}
}

static void accept_with_receives(struct fixture *f, struct evrdma_request *request)
{
	struct endpoint *endpoint = fixture_endpoint_new(f, false);

	post_receives(endpoint, DEPTH);
	ck_assert_int_eq(evrdma_conn_accept(endpoint->conn, request), 0);
}

static bool server_got_one(struct fixture *f)
{
	return f->server && f->server->received == 1;
}

static void set_own_receives(struct fixture *f, struct flow *flow)
{
	f->tag = flow;
	f->on_recv = count_cancelled;
	f->on_request = accept_with_receives;
	f->options.recv_pool = NULL;
	f->options.recv_depth = DEPTH;
}

START_TEST(own_receives_end_once_each_with_a_message_or_cancelled)
{
	struct flow flow = { 0 };
	struct fixture *f = fixture_new();
	struct evrdma_buf *buf;

	set_own_receives(f, &flow);
	fixture_connect_pair(f);
	ck_assert_int_eq(send_message(f->client, 1), 0);
	fixture_run_until(f, server_got_one, 10000);
	post_receives(f->server, 1);
	buf = evrdma_pool_get(f->pool);
	ck_assert_int_eq(evrdma_conn_recv(f->server->conn, buf), -EAGAIN);
	evrdma_conn_close(f->server->conn);
	ck_assert_int_eq(evrdma_conn_recv(f->server->conn, buf), -ENOTCONN);
	evrdma_buf_unref(buf);
	fixture_run_until(f, fixture_none_live, 10000);
	ck_assert_uint_eq(flow.cancelled, DEPTH);
	ck_assert_uint_eq(flow.failed, 0);
	fixture_free(f);
}
END_TEST

START_TEST(own_receives_of_a_connection_that_never_was_are_cancelled)
{
	struct flow flow = { 0 };
	struct fixture *f = fixture_new();

	set_own_receives(f, &flow);
	post_receives(fixture_endpoint_new(f, true), DEPTH);
	evrdma_conn_close(f->client->conn);
	ck_assert_uint_eq(flow.cancelled, 0);
	fixture_run_until(f, fixture_none_live, 10000);
	ck_assert_uint_eq(flow.cancelled, DEPTH);
	fixture_free(f);
}
END_TEST

START_TEST(own_receives_do_not_go_with_a_pool)
{
	struct fixture *f = fixture_new();
	struct evrdma_buf *buf = evrdma_pool_get(f->pool);

	ck_assert_int_eq(evrdma_conn_recv(fixture_endpoint_new(f, true)->conn, buf), -EINVAL);
	evrdma_buf_unref(buf);
	fixture_free(f);
}
END_TEST

/* --- what does not fit ---------------------------------------------------------------------- */

static void accept_with_small_buffer(struct fixture *f, struct evrdma_request *request)
{
	struct flow *flow = f->tag;
	struct endpoint *endpoint = fixture_endpoint_new(f, false);
	struct evrdma_buf *buf = evrdma_pool_get(flow->recv_pool);

	ck_assert_int_eq(evrdma_conn_recv(endpoint->conn, buf), 0);
	evrdma_buf_unref(buf);
	ck_assert_int_eq(evrdma_conn_accept(endpoint->conn, request), 0);
}

static void keep_send_error(struct endpoint *endpoint, const struct evrdma_error *error)
{
	struct flow *flow = endpoint->fixture->tag;

	flow->send_err = error ? error->err : 0;
	flow->send_wc = error ? error->wc_status : 0;
}

/* rxe does not say what is wrong; but the text of the error then does. */
static bool is_too_long(int err, int wc_status, enum ibv_wc_status vague)
{
	const struct evrdma_error error = {
		.err = err, .step = EVRDMA_STEP_TRANSFER, .cm_event = -1, .wc_status = wc_status
	};
	char text[EVRDMA_ERROR_TEXT_MAX];

	if (err == EMSGSIZE)
		return true;
	return err == EIO && wc_status == (int)vague &&
	       strstr(evrdma_error_text(&error, text, sizeof(text)), "larger than its buffer");
}

START_TEST(a_message_larger_than_its_buffer_ends_both_sides)
{
	struct flow flow = { 0 };
	struct fixture *f = fixture_new();

	set_own_receives(f, &flow);
	flow.recv_pool = evrdma_pool_new(f->base, 64, 0);
	f->on_request = accept_with_small_buffer;
	f->on_sent = keep_send_error;
	fixture_connect_pair(f);
	endpoint_send(f->client, 1, 65);
	fixture_run_until(f, fixture_none_live, 20000);
	ck_assert_uint_eq(f->closed, 2);
	ck_assert_uint_eq(flow.cancelled + flow.failed, 1);
	ck_assert_msg(is_too_long(flow.recv_err, flow.recv_wc, IBV_WC_LOC_QP_OP_ERR), "%d, wc %d",
		flow.recv_err, flow.recv_wc);
	if (!testbed.is_iwarp)
		ck_assert_msg(is_too_long(flow.send_err, flow.send_wc, IBV_WC_REM_OP_ERR),
			"%d, wc %d", flow.send_err, flow.send_wc);
	fixture_free(f);
}
END_TEST

/* --- the pool itself ------------------------------------------------------------------------ */

START_TEST(a_pool_keeps_its_limit_and_its_alignment)
{
	struct fixture *f = fixture_new();
	struct evrdma_pool *pool = evrdma_pool_new(f->base, 100, 2);
	struct evrdma_buf *a = evrdma_pool_get(pool), *b = evrdma_pool_get(pool);

	ck_assert_uint_eq(evrdma_pool_buf_size(pool), 100);
	ck_assert_uint_eq(evrdma_buf_size(a), 100);
	ck_assert_uint_eq((uintptr_t)evrdma_buf_data(b) % 64, 0);
	ck_assert_ptr_ne(evrdma_buf_data(a), evrdma_buf_data(b));
	ck_assert(!evrdma_pool_get(pool) && errno == ENOBUFS);
	evrdma_buf_unref(evrdma_buf_ref(a));
	ck_assert(!evrdma_pool_get(pool) && errno == ENOBUFS);
	evrdma_buf_unref(a);
	a = evrdma_pool_get(pool);
	ck_assert_ptr_nonnull(a);
	evrdma_pool_free(pool);
	memset(evrdma_buf_data(a), 1, 100);
	evrdma_buf_unref(a);
	evrdma_buf_unref(b);
	ck_assert(!evrdma_pool_new(f->base, 0, 0) && errno == EINVAL);
	ck_assert(!evrdma_pool_new(f->base, ((size_t)1 << 30) + 1, 0) && errno == EINVAL);
	fixture_free(f);
}
END_TEST

START_TEST(a_held_buffer_outlives_the_base)
{
	struct fixture *f = fixture_new();
	struct evrdma_buf *buf = evrdma_pool_get(f->pool);

	fixture_free(f);
	memset(evrdma_buf_data(buf), 0x17, evrdma_buf_size(buf));
	evrdma_buf_unref(buf);
}
END_TEST

TCase *transfer_case(void)
{
	TCase *tc = tcase_create("transfer");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, messages_of_all_lengths_come_back_whole_and_in_order);
	tcase_add_test(tc, a_full_queue_says_so_and_WRITABLE_follows_once);
	tcase_add_test(tc, a_send_is_refused_when_there_is_no_way_to_make_it);
	tcase_add_test(tc, a_held_buffer_keeps_its_bytes_while_more_arrive);
	/* iWARP has no way to tell a sender to wait. */
	if (!testbed.is_iwarp)
		tcase_add_test(tc, a_message_waits_for_a_buffer_to_come_back_to_its_pool);
	tcase_add_test(tc, own_receives_end_once_each_with_a_message_or_cancelled);
	tcase_add_test(tc, own_receives_of_a_connection_that_never_was_are_cancelled);
	tcase_add_test(tc, own_receives_do_not_go_with_a_pool);
	tcase_add_test(tc, a_message_larger_than_its_buffer_ends_both_sides);
	tcase_add_test(tc, a_pool_keeps_its_limit_and_its_alignment);
	tcase_add_test(tc, a_held_buffer_outlives_the_base);
	return tc;
}
