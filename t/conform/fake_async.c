/* What devices report of queue pairs, completion queues and shared receive queues. */
#include "conform/fake.h"
#include "conform/world.h"

#include <errno.h>
#include <rdma/rdma_cma.h>

enum { PATIENCE_MS = 20000 };

static struct ibv_context *verbs_of(const struct side *side)
{
	return evrdma_conn_get_cm_id(side->conn)->verbs;
}

static struct ibv_qp *qp_of(const struct side *side)
{
	return evrdma_conn_get_cm_id(side->conn)->qp;
}

static void keep_open(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static bool both_down(struct world *w)
{
	return w->client->down && w->server->down;
}

/* --- of a connection ------------------------------------------------------------------------ */

static const struct {
	enum ibv_event_type type;
	int err;
} fatal[] = {
	{ IBV_EVENT_QP_FATAL, EIO },
	{ IBV_EVENT_QP_REQ_ERR, EIO },
	{ IBV_EVENT_QP_ACCESS_ERR, EACCES },
};

START_TEST(an_error_of_its_queue_pair_ends_a_connection)
{
	struct world *w = world_new();

	w->on_event = keep_open;
	world_connect_pair(w);
	fake_async_qp(qp_of(w->client), fatal[_i].type);
	world_run_until(w, world_client_is_down, PATIENCE_MS);
	ck_assert_int_eq(w->client->error, fatal[_i].err);
	ck_assert_int_eq(w->client->step, EVRDMA_STEP_TRANSFER);
	world_free(w);
}
END_TEST

static const enum ibv_event_type harmless[] = {
	IBV_EVENT_COMM_EST,
	IBV_EVENT_SQ_DRAINED,
	IBV_EVENT_PATH_MIG,
	IBV_EVENT_PATH_MIG_ERR,
};

START_TEST(other_events_of_a_queue_pair_are_read_and_change_nothing)
{
	struct world *w = world_new();

	world_connect_pair(w);
	fake_async_qp(qp_of(w->client), harmless[_i]);
	world_run_a_little(w);
	ck_assert_uint_eq(fake_calls("ibv_ack_async_event"), 1);
	ck_assert(!w->client->down);
	side_send(w->client, 4, 64);
	world_free(w);
}
END_TEST

static bool server_is_up(struct world *w)
{
	return w->server && w->server->connected;
}

static bool server_has_qp(struct world *w)
{
	return w->client->connected && w->server && qp_of(w->server);
}

/* The peer's last message of the handshake is lost, and the device knows better. */
START_TEST(a_peer_that_was_heard_is_connected)
{
	struct world *w = world_new();

	fake_hold(FAKE_RTU);
	world_listen(w);
	world_connect(w);
	world_run_until(w, server_has_qp, PATIENCE_MS);
	world_run_a_little(w);
	ck_assert(!w->server->connected);
	fake_async_qp(qp_of(w->server), IBV_EVENT_COMM_EST);
	world_run_until(w, server_is_up, PATIENCE_MS);
	fake_release(FAKE_RTU);
	world_free(w);
}
END_TEST

/* A QP that is nobody's here: its owner finds it acknowledged, and can destroy it. */
START_TEST(an_event_of_somebody_elses_queue_pair_is_passed_over)
{
	struct world *w = world_new();
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1 } };
	struct ibv_pd *pd;
	struct ibv_qp *qp;

	world_connect_pair(w);
	pd = ibv_alloc_pd(verbs_of(w->client));
	attr.send_cq = attr.recv_cq = ibv_create_cq(verbs_of(w->client), 4, NULL, NULL, 0);
	qp = ibv_create_qp(pd, &attr);
	ck_assert_ptr_nonnull(qp);
	fake_async_qp(qp, IBV_EVENT_QP_FATAL);
	world_run_a_little(w);
	ck_assert_uint_eq(fake_calls("ibv_ack_async_event"), 1);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	ck_assert_int_eq(ibv_destroy_cq(attr.send_cq), 0);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
	ck_assert(!w->client->down);
	world_free(w);
}
END_TEST

/* --- of a completion queue ------------------------------------------------------------------ */

START_TEST(an_error_of_a_completion_queue_ends_all_connections_on_it)
{
	struct world *w = world_new();

	w->on_event = keep_open;
	w->options.send_depth = w->options.recv_depth = 16;
	world_connect_pair(w);
	fake_async_cq(qp_of(w->client)->send_cq, IBV_EVENT_CQ_ERR);
	world_run_until(w, both_down, PATIENCE_MS);
	ck_assert_int_eq(w->client->error, EIO);
	ck_assert_int_eq(w->server->error, EIO);
	evrdma_conn_close(w->client->conn);
	evrdma_conn_close(w->server->conn);
	world_run_until(w, world_none_live, PATIENCE_MS);
	/* The next ones are on another one. */
	w->on_event = NULL;
	world_connect_pair(w);
	side_send(w->client, 4, 64);
	ck_assert_uint_eq(fake_live(FAKE_CQ), 2);
	world_free(w);
}
END_TEST

/* --- of a shared receive queue -------------------------------------------------------------- */

enum { SHARED = 8 };

struct low {
	unsigned told;
	bool arm_again;
	int unwanted;
};

static void on_low(struct evrdma_srq *srq, void *arg)
{
	struct low *low = arg;

	low->told++;
	if (low->arm_again)
		ck_assert_int_eq(evrdma_srq_set_limit(srq, SHARED / 2, on_low, low), 0);
}

static struct evrdma_buf *held[2 * SHARED];
static unsigned held_count;

static void hold_buffer(struct side *side, const struct evrdma_recv *recv)
{
	ck_assert_int_eq(recv->err, 0);
	held[held_count++] = evrdma_buf_ref(recv->buf);
}

static void release_held(void)
{
	while (held_count)
		evrdma_buf_unref(held[--held_count]);
}

static bool six_are_held(struct world *w)
{
	return held_count == 6;
}

static struct evrdma_srq *share(struct world *w)
{
	/* No more buffers than are posted, so that the queue runs low. */
	struct evrdma_pool *pool = evrdma_pool_new(w->base, 64, SHARED);
	struct evrdma_srq *srq = evrdma_srq_new(w->base, pool, SHARED);

	evrdma_pool_free(pool);
	w->options.recv_pool = NULL;
	w->options.srq = srq;
	w->on_recv = hold_buffer;
	return srq;
}

static void run_low(struct world *w)
{
	side_send(w->client, 6, 32);
	world_run_until(w, six_are_held, PATIENCE_MS);
	world_run_a_little(w);
	release_held();
	world_run_a_little(w);
}

START_TEST(a_shared_queue_that_runs_low_is_told_once_until_it_is_armed_again)
{
	struct world *w = world_new();
	struct evrdma_srq *srq = share(w);
	struct low low = { .arm_again = _i };

	ck_assert_int_eq(evrdma_srq_set_limit(srq, SHARED / 2, on_low, &low), 0);
	world_connect_pair(w);
	run_low(w);
	run_low(w);
	ck_assert_uint_eq(low.told, low.arm_again ? 2 : 1);
	evrdma_srq_free(srq);
	world_free(w);
}
END_TEST

START_TEST(the_limit_of_a_shared_queue_can_be_set_and_taken_back_while_it_is_used)
{
	struct world *w = world_new();
	struct evrdma_srq *srq = share(w);
	struct low low = { 0 };

	world_connect_pair(w);
	ck_assert_int_eq(evrdma_srq_set_limit(srq, SHARED + 1, on_low, &low), -EINVAL);
	ck_assert_int_eq(evrdma_srq_set_limit(srq, 1, NULL, NULL), -EINVAL);
	fake_fail_next("ibv_modify_srq", ENOSYS);
	ck_assert_int_eq(evrdma_srq_set_limit(srq, SHARED / 2, on_low, &low), -ENOSYS);
	ck_assert_int_eq(evrdma_srq_set_limit(srq, SHARED / 2, on_low, &low), 0);
	ck_assert_int_eq(evrdma_srq_set_limit(srq, 0, NULL, NULL), 0);
	run_low(w);
	ck_assert_uint_eq(low.told, 0);
	ck_assert_int_eq(evrdma_srq_set_limit(srq, SHARED / 2, on_low, &low), 0);
	run_low(w);
	ck_assert_uint_eq(low.told, 1);
	evrdma_srq_free(srq);
	world_free(w);
}
END_TEST

static const struct {
	enum ibv_event_type type;
	int err;
} shared_errors[] = {
	{ IBV_EVENT_SRQ_ERR, EIO },
	/* The CM should say why, and does not. */
	{ IBV_EVENT_QP_LAST_WQE_REACHED, ECONNRESET },
};

START_TEST(an_error_of_a_shared_queue_ends_the_connections_on_it)
{
	struct world *w = world_new();
	struct evrdma_srq *srq = share(w);

	w->on_event = keep_open;
	w->options.drain_timeout_ms = 30;
	world_connect_pair(w);
	if (shared_errors[_i].type == IBV_EVENT_SRQ_ERR)
		fake_async_srq(qp_of(w->client)->srq, IBV_EVENT_SRQ_ERR);
	else
		fake_async_qp(qp_of(w->client), shared_errors[_i].type);
	world_run_until(w, world_client_is_down, PATIENCE_MS);
	ck_assert_int_eq(w->client->error, shared_errors[_i].err);
	ck_assert_int_eq(w->client->step, EVRDMA_STEP_TRANSFER);
	evrdma_srq_free(srq);
	world_free(w);
}
END_TEST

/* By itself, or with the CQ that tells what it received. */
static void break_shared(struct side *side, bool by_its_cq)
{
	if (by_its_cq)
		fake_async_cq(qp_of(side)->recv_cq, IBV_EVENT_CQ_ERR);
	else
		fake_async_srq(qp_of(side)->srq, IBV_EVENT_SRQ_ERR);
}

START_TEST(a_shared_queue_that_broke_is_not_used_again)
{
	struct world *w = world_new();
	struct evrdma_srq *srq = share(w);

	w->options.drain_timeout_ms = 30;
	world_connect_pair(w);
	break_shared(w->client, _i);
	world_run_until(w, world_none_live, PATIENCE_MS);
	ck_assert_uint_eq(fake_live(FAKE_SRQ), 0);
	world_connect_pair(w);
	run_low(w);
	ck_assert_uint_eq(fake_live(FAKE_SRQ), 1);
	evrdma_srq_free(srq);
	world_free(w);
}
END_TEST

START_TEST(a_shared_queue_that_broke_unused_is_replaced)
{
	struct world *w = world_new();
	struct evrdma_srq *srq = share(w);
	struct ibv_srq *first;

	world_connect_pair(w);
	first = qp_of(w->client)->srq;
	evrdma_conn_close(w->client->conn);
	evrdma_conn_close(w->server->conn);
	world_run_until(w, world_none_live, PATIENCE_MS);
	fake_async_srq(first, IBV_EVENT_SRQ_ERR);
	world_run_a_little(w);
	world_connect_pair(w);
	run_low(w);
	ck_assert_uint_eq(fake_calls("ibv_create_srq"), 2);
	ck_assert_uint_eq(fake_live(FAKE_SRQ), 1);
	evrdma_srq_free(srq);
	world_free(w);
}
END_TEST

/* The first event ends the connection, and the second still counts: nothing is waited for. */
START_TEST(the_last_receive_is_known_beside_an_error)
{
	struct world *w = world_new();
	struct evrdma_srq *srq = share(w);

	w->options.drain_timeout_ms = PATIENCE_MS;
	world_connect_pair(w);
	fake_hold_last_receive(true);
	fake_async_qp(qp_of(w->client), IBV_EVENT_QP_FATAL);
	fake_async_qp(qp_of(w->client), IBV_EVENT_QP_LAST_WQE_REACHED);
	fake_async_qp(qp_of(w->server), IBV_EVENT_QP_LAST_WQE_REACHED);
	world_run_until(w, world_none_live, PATIENCE_MS / 2);
	evrdma_srq_free(srq);
	world_free(w);
}
END_TEST

#define N(array) ((int)(sizeof(array) / sizeof((array)[0])))

TCase *async_case(void)
{
	TCase *tc = tcase_create("async");

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, an_error_of_its_queue_pair_ends_a_connection, 0, N(fatal));
	tcase_add_loop_test(
		tc, other_events_of_a_queue_pair_are_read_and_change_nothing, 0, N(harmless));
	/* iWARP's handshake has no third message. */
	if (fake_place_kind != FAKE_IWARP)
		tcase_add_test(tc, a_peer_that_was_heard_is_connected);
	tcase_add_test(tc, an_event_of_somebody_elses_queue_pair_is_passed_over);
	tcase_add_test(tc, an_error_of_a_completion_queue_ends_all_connections_on_it);
	if (!place_has(PLACE_SRQS))
		return tc;
	tcase_add_loop_test(
		tc, a_shared_queue_that_runs_low_is_told_once_until_it_is_armed_again, 0, 2);
	tcase_add_test(tc, the_limit_of_a_shared_queue_can_be_set_and_taken_back_while_it_is_used);
	tcase_add_loop_test(
		tc, an_error_of_a_shared_queue_ends_the_connections_on_it, 0, N(shared_errors));
	tcase_add_loop_test(tc, a_shared_queue_that_broke_is_not_used_again, 0, 2);
	tcase_add_test(tc, a_shared_queue_that_broke_unused_is_replaced);
	tcase_add_test(tc, the_last_receive_is_known_beside_an_error);
	return tc;
}
