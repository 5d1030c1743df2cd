/* The receive queue: how long a peer waits for a buffer, when they are posted again, and what is
   counted of it. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

enum { DEPTH = 8, LEN = 64, ROUNDS = 40, PATIENCE_MS = 20000 };

/* --- the wait of a peer ---------------------------------------------------------------------- */

static int rnr_timer(const struct endpoint *endpoint)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ck_assert_int_eq(ibv_query_qp(evrdma_conn_get_cm_id(endpoint->conn)->qp, &attr,
				 IBV_QP_MIN_RNR_TIMER, &init),
		0);
	return attr.min_rnr_timer;
}

static void assert_both_have(struct fixture *f, int code)
{
	fixture_connect_pair(f);
	ck_assert_int_eq(rnr_timer(f->client), code);
	ck_assert_int_eq(rnr_timer(f->server), code);
}

/* 12 is 0.64 ms: the table of the InfiniBand specification, "RNR NAK timer field". */
START_TEST(both_sides_let_a_peer_wait_for_640_us)
{
	struct fixture *f = fixture_new();

	assert_both_have(f, 12);
	fixture_free(f);
}
END_TEST

static void assert_rounded(int us, int code)
{
	struct fixture *f = fixture_new();

	f->options.min_rnr_timer_us = us;
	assert_both_have(f, code);
	fixture_free(f);
}

START_TEST(a_wait_is_rounded_up_to_one_that_there_is)
{
	assert_rounded(1, 1);
	assert_rounded(11, 2);
	assert_rounded(491520, 31);
	assert_rounded(491521, 0);
	assert_rounded(655360, 0);
}
END_TEST

START_TEST(the_wait_of_the_cm_stays_where_none_is_asked_for)
{
	assert_rounded(-1, 0);
}
END_TEST

/* There is none to set: a message that finds no buffer ends the connection. */
START_TEST(an_iwarp_queue_pair_is_left_as_it_is)
{
	assert_rounded(640, 0);
}
END_TEST

/* --- posting again --------------------------------------------------------------------------- */

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static uint64_t chains(struct fixture *f)
{
	struct evrdma_traffic_stats stats;

	evrdma_base_get_traffic_stats(f->base, &stats);
	return stats.receive_chains;
}

static uint64_t chains_before;

static void expect_posted_again(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	if (endpoint->received == 1)
		chains_before = chains(endpoint->fixture);
	else if (endpoint->received > DEPTH / 2)
		ck_assert_uint_gt(chains(endpoint->fixture), chains_before);
}

static bool server_has_all(struct fixture *f)
{
	return f->server->received == DEPTH;
}

static struct fixture *send_a_window(void)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->on_recv = expect_posted_again;
	f->options.recv_depth = DEPTH;
	fixture_connect_pair(f);
	endpoint_send(f->client, DEPTH, LEN);
	fixture_run_until(f, server_has_all, PATIENCE_MS);
	return f;
}

START_TEST(buffers_are_posted_again_before_more_is_told)
{
	fixture_free(send_a_window());
}
END_TEST

static struct evrdma_srq *share(struct fixture *f, uint32_t depth)
{
	struct evrdma_srq *srq = evrdma_srq_new(f->base, f->pool, depth);

	ck_assert_ptr_nonnull(srq);
	f->options.recv_pool = NULL;
	f->options.srq = srq;
	return srq;
}

START_TEST(buffers_of_a_shared_queue_are_too)
{
	struct fixture *f = fixture_new();
	struct evrdma_srq *srq = share(f, DEPTH);

	f->on_event = keep_open;
	f->on_recv = expect_posted_again;
	fixture_connect_pair(f);
	endpoint_send(f->client, DEPTH, LEN);
	fixture_run_until(f, server_has_all, PATIENCE_MS);
	evrdma_srq_free(srq);
	fixture_free(f);
}
END_TEST

/* --- counting -------------------------------------------------------------------------------- */

static void post(struct endpoint *endpoint, unsigned n)
{
	while (n--) {
		struct evrdma_buf *buf = evrdma_pool_get(endpoint->fixture->pool);

		ck_assert_ptr_nonnull(buf);
		ck_assert_int_eq(evrdma_conn_recv(endpoint->conn, buf), 0);
		evrdma_buf_unref(buf);
	}
}

static void accept_with_some_buffers(struct fixture *f, struct evrdma_request *request)
{
	struct endpoint *endpoint = fixture_endpoint_new(f, false);

	post(endpoint, DEPTH);
	endpoint_accept(endpoint, request);
}

static unsigned wanted;

static bool server_has_what_is_wanted(struct fixture *f)
{
	return f->server->received == wanted;
}

static uint64_t count_after(unsigned messages)
{
	struct fixture *f = fixture_new();
	struct evrdma_traffic_stats stats, base;

	f->on_event = keep_open;
	f->on_request = accept_with_some_buffers;
	f->options.recv_pool = NULL;
	fixture_connect_pair(f);
	wanted = messages;
	endpoint_send(f->client, messages, LEN);
	fixture_run_until(f, server_has_what_is_wanted, PATIENCE_MS);
	evrdma_conn_get_stats(f->server->conn, &stats);
	evrdma_base_get_traffic_stats(f->base, &base);
	ck_assert_uint_eq(base.receive_queue_empty, stats.receive_queue_empty);
	fixture_free(f);
	return stats.receive_queue_empty;
}

START_TEST(a_receive_queue_that_is_used_up_is_counted)
{
	ck_assert_uint_eq(count_after(DEPTH), 1);
}
END_TEST

START_TEST(a_receive_queue_with_a_buffer_left_is_not)
{
	ck_assert_uint_eq(count_after(DEPTH - 1), 0);
}
END_TEST

static void answer(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	if (!recv->err)
		endpoint_send(endpoint, 1, LEN);
}

static bool there_were_enough(struct fixture *f)
{
	return f->client->received >= ROUNDS;
}

static struct fixture *ping_pong(struct fixture *f, unsigned window)
{
	f->on_event = keep_open;
	f->on_recv = answer;
	fixture_connect_pair(f);
	endpoint_send(f->client, window, LEN);
	fixture_run_until(f, there_were_enough, PATIENCE_MS);
	return f;
}

START_TEST(a_window_below_the_depth_empties_no_queue)
{
	struct fixture *f = fixture_new();
	struct evrdma_traffic_stats stats;

	f->options.recv_depth = 2 * DEPTH;
	ping_pong(f, DEPTH);
	evrdma_base_get_traffic_stats(f->base, &stats);
	ck_assert_uint_eq(stats.receive_queue_empty, 0);
	fixture_free(f);
}
END_TEST

START_TEST(a_shared_queue_that_is_used_up_is_counted_in_the_base)
{
	struct fixture *f = fixture_new();
	struct evrdma_srq *srq = share(f, 1);
	struct evrdma_traffic_stats stats;

	ping_pong(f, 1);
	evrdma_base_get_traffic_stats(f->base, &stats);
	ck_assert_uint_ge(stats.receive_queue_empty, ROUNDS);
	evrdma_srq_free(srq);
	fixture_free(f);
}
END_TEST

/* --- the case -------------------------------------------------------------------------------- */

static void add_wait_tests(TCase *tc)
{
	if (testbed.is_iwarp) {
		tcase_add_test(tc, an_iwarp_queue_pair_is_left_as_it_is);
		return;
	}
	tcase_add_test(tc, both_sides_let_a_peer_wait_for_640_us);
	tcase_add_test(tc, a_wait_is_rounded_up_to_one_that_there_is);
	tcase_add_test(tc, the_wait_of_the_cm_stays_where_none_is_asked_for);
}

TCase *receive_case(void)
{
	TCase *tc = tcase_create("receive");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	add_wait_tests(tc);
	tcase_add_test(tc, buffers_are_posted_again_before_more_is_told);
	tcase_add_test(tc, a_receive_queue_that_is_used_up_is_counted);
	tcase_add_test(tc, a_receive_queue_with_a_buffer_left_is_not);
	tcase_add_test(tc, a_window_below_the_depth_empties_no_queue);
	if (!testbed_has(TESTBED_SRQS))
		return tc;
	tcase_add_test(tc, buffers_of_a_shared_queue_are_too);
	tcase_add_test(tc, a_shared_queue_that_is_used_up_is_counted_in_the_base);
	return tc;
}
