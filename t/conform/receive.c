/* The receive queue: how long a peer waits for a buffer, when they are posted again, and what is
   counted of it. */
#include "conform/suite.h"
#include "conform/world.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

enum { DEPTH = 8, LEN = 64, ROUNDS = 40, PATIENCE_MS = 20000 };

/* --- the wait of a peer ---------------------------------------------------------------------- */

static int rnr_timer(const struct side *side)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ck_assert_int_eq(ibv_query_qp(evrdma_conn_get_cm_id(side->conn)->qp, &attr,
				 IBV_QP_MIN_RNR_TIMER, &init), 0);
	return attr.min_rnr_timer;
}

static void assert_both_have(struct world *w, int code)
{
	world_connect_pair(w);
	ck_assert_int_eq(rnr_timer(w->client), code);
	ck_assert_int_eq(rnr_timer(w->server), code);
}

/* 12 is 0.64 ms: the table of the InfiniBand specification, "RNR NAK timer field". */
START_TEST(both_sides_let_a_peer_wait_for_640_us)
{
	struct world *w = world_new();

	assert_both_have(w, 12);
	world_free(w);
}
END_TEST

static void assert_rounded(int us, int code)
{
	struct world *w = world_new();

	w->options.min_rnr_timer_us = us;
	assert_both_have(w, code);
	world_free(w);
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
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static uint64_t chains(struct world *w)
{
	struct evrdma_traffic_stats stats;

	evrdma_base_get_traffic_stats(w->base, &stats);
	return stats.receive_chains;
}

static uint64_t chains_before;

static void expect_posted_again(struct side *side, const struct evrdma_recv *recv)
{
	if (side->received == 1)
		chains_before = chains(side->world);
	else if (side->received > DEPTH / 2)
		ck_assert_uint_gt(chains(side->world), chains_before);
}

static bool server_has_all(struct world *w)
{
	return w->server->received == DEPTH;
}

static struct world *send_a_window(void)
{
	struct world *w = world_new();

	w->on_event = keep_open;
	w->on_recv = expect_posted_again;
	w->options.recv_depth = DEPTH;
	world_connect_pair(w);
	side_send(w->client, DEPTH, LEN);
	world_run_until(w, server_has_all, PATIENCE_MS);
	return w;
}

START_TEST(buffers_are_posted_again_before_more_is_told)
{
	world_free(send_a_window());
}
END_TEST

static struct evrdma_srq *share(struct world *w, uint32_t depth)
{
	struct evrdma_srq *srq = evrdma_srq_new(w->base, w->pool, depth);

	ck_assert_ptr_nonnull(srq);
	w->options.recv_pool = NULL;
	w->options.srq = srq;
	return srq;
}

START_TEST(buffers_of_a_shared_queue_are_too)
{
	struct world *w = world_new();
	struct evrdma_srq *srq = share(w, DEPTH);

	w->on_event = keep_open;
	w->on_recv = expect_posted_again;
	world_connect_pair(w);
	side_send(w->client, DEPTH, LEN);
	world_run_until(w, server_has_all, PATIENCE_MS);
	evrdma_srq_free(srq);
	world_free(w);
}
END_TEST

/* --- counting -------------------------------------------------------------------------------- */

static void post(struct side *side, unsigned n)
{
	while (n--) {
		struct evrdma_buf *buf = evrdma_pool_get(side->world->pool);

		ck_assert_ptr_nonnull(buf);
		ck_assert_int_eq(evrdma_conn_recv(side->conn, buf), 0);
		evrdma_buf_unref(buf);
	}
}

static void accept_with_some_buffers(struct world *w, struct evrdma_request *request)
{
	struct side *side = world_side_new(w, false);

	post(side, DEPTH);
	side_accept(side, request);
}

static unsigned wanted;

static bool server_has_what_is_wanted(struct world *w)
{
	return w->server->received == wanted;
}

static uint64_t count_after(unsigned messages)
{
	struct world *w = world_new();
	struct evrdma_traffic_stats stats, base;

	w->on_event = keep_open;
	w->on_request = accept_with_some_buffers;
	w->options.recv_pool = NULL;
	world_connect_pair(w);
	wanted = messages;
	side_send(w->client, messages, LEN);
	world_run_until(w, server_has_what_is_wanted, PATIENCE_MS);
	evrdma_conn_get_stats(w->server->conn, &stats);
	evrdma_base_get_traffic_stats(w->base, &base);
	ck_assert_uint_eq(base.receive_queue_empty, stats.receive_queue_empty);
	world_free(w);
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

static void answer(struct side *side, const struct evrdma_recv *recv)
{
	if (!recv->err)
		side_send(side, 1, LEN);
}

static bool there_were_enough(struct world *w)
{
	return w->client->received >= ROUNDS;
}

static struct world *ping_pong(struct world *w, unsigned window)
{
	w->on_event = keep_open;
	w->on_recv = answer;
	world_connect_pair(w);
	side_send(w->client, window, LEN);
	world_run_until(w, there_were_enough, PATIENCE_MS);
	return w;
}

START_TEST(a_window_below_the_depth_empties_no_queue)
{
	struct world *w = world_new();
	struct evrdma_traffic_stats stats;

	w->options.recv_depth = 2 * DEPTH;
	ping_pong(w, DEPTH);
	evrdma_base_get_traffic_stats(w->base, &stats);
	ck_assert_uint_eq(stats.receive_queue_empty, 0);
	world_free(w);
}
END_TEST

START_TEST(a_shared_queue_that_is_used_up_is_counted_in_the_base)
{
	struct world *w = world_new();
	struct evrdma_srq *srq = share(w, 1);
	struct evrdma_traffic_stats stats;

	ping_pong(w, 1);
	evrdma_base_get_traffic_stats(w->base, &stats);
	ck_assert_uint_ge(stats.receive_queue_empty, ROUNDS);
	evrdma_srq_free(srq);
	world_free(w);
}
END_TEST

/* --- the case -------------------------------------------------------------------------------- */

static void add_wait_tests(TCase *tc)
{
	if (place.is_iwarp) {
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

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 60);
	add_wait_tests(tc);
	tcase_add_test(tc, buffers_are_posted_again_before_more_is_told);
	tcase_add_test(tc, a_receive_queue_that_is_used_up_is_counted);
	tcase_add_test(tc, a_receive_queue_with_a_buffer_left_is_not);
	tcase_add_test(tc, a_window_below_the_depth_empties_no_queue);
	if (!place_has(PLACE_SRQS))
		return tc;
	tcase_add_test(tc, buffers_of_a_shared_queue_are_too);
	tcase_add_test(tc, a_shared_queue_that_is_used_up_is_counted_in_the_base);
	return tc;
}
