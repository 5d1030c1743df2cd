/* What devices report of queue pairs, completion queues and shared receive queues. */
#include "conform/fake.h"
#include "conform/fixture.h"

#include <errno.h>
#include <rdma/rdma_cma.h>

enum { PATIENCE_MS = 20000 };

static struct ibv_context *verbs_of(const struct endpoint *endpoint)
{
	return evrdma_conn_get_cm_id(endpoint->conn)->verbs;
}

static struct ibv_qp *qp_of(const struct endpoint *endpoint)
{
	return evrdma_conn_get_cm_id(endpoint->conn)->qp;
}

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static bool both_down(struct fixture *f)
{
	return f->client->down && f->server->down;
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
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	fixture_connect_pair(f);
	fake_async_qp(qp_of(f->client), fatal[_i].type);
	fixture_run_until(f, fixture_client_is_down, PATIENCE_MS);
	ck_assert_int_eq(f->client->error, fatal[_i].err);
	ck_assert_int_eq(f->client->step, EVRDMA_STEP_TRANSFER);
	fixture_free(f);
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
	struct fixture *f = fixture_new();

	fixture_connect_pair(f);
	fake_async_qp(qp_of(f->client), harmless[_i]);
	fixture_run_a_little(f);
	ck_assert_uint_eq(fake_calls("ibv_ack_async_event"), 1);
	ck_assert(!f->client->down);
	endpoint_send(f->client, 4, 64);
	fixture_free(f);
}
END_TEST

static bool server_is_up(struct fixture *f)
{
	return f->server && f->server->connected;
}

static bool server_has_qp(struct fixture *f)
{
	return f->client->connected && f->server && qp_of(f->server);
}

/* The peer's last message of the handshake is lost, and the device knows better. */
START_TEST(a_peer_that_was_heard_is_connected)
{
	struct fixture *f = fixture_new();

	fake_hold(FAKE_RTU);
	fixture_listen(f);
	fixture_connect(f);
	fixture_run_until(f, server_has_qp, PATIENCE_MS);
	fixture_run_a_little(f);
	ck_assert(!f->server->connected);
	fake_async_qp(qp_of(f->server), IBV_EVENT_COMM_EST);
	fixture_run_until(f, server_is_up, PATIENCE_MS);
	fake_release(FAKE_RTU);
	fixture_free(f);
}
END_TEST

/* A QP that is nobody's here: its owner finds it acknowledged, and can destroy it. */
START_TEST(an_event_of_somebody_elses_queue_pair_is_passed_over)
{
	struct fixture *f = fixture_new();
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1 } };
	struct ibv_pd *pd;
	struct ibv_qp *qp;

	fixture_connect_pair(f);
	pd = ibv_alloc_pd(verbs_of(f->client));
	attr.send_cq = attr.recv_cq = ibv_create_cq(verbs_of(f->client), 4, NULL, NULL, 0);
	qp = ibv_create_qp(pd, &attr);
	ck_assert_ptr_nonnull(qp);
	fake_async_qp(qp, IBV_EVENT_QP_FATAL);
	fixture_run_a_little(f);
	ck_assert_uint_eq(fake_calls("ibv_ack_async_event"), 1);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	ck_assert_int_eq(ibv_destroy_cq(attr.send_cq), 0);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
	ck_assert(!f->client->down);
	fixture_free(f);
}
END_TEST

/* --- of a completion queue ------------------------------------------------------------------ */

START_TEST(an_error_of_a_completion_queue_ends_all_connections_on_it)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	f->options.send_depth = f->options.recv_depth = 16;
	fixture_connect_pair(f);
	fake_async_cq(qp_of(f->client)->send_cq, IBV_EVENT_CQ_ERR);
	fixture_run_until(f, both_down, PATIENCE_MS);
	ck_assert_int_eq(f->client->error, EIO);
	ck_assert_int_eq(f->server->error, EIO);
	evrdma_conn_close(f->client->conn);
	evrdma_conn_close(f->server->conn);
	fixture_run_until(f, fixture_none_live, PATIENCE_MS);
	/* The next ones are on another one. */
	f->on_event = NULL;
	fixture_connect_pair(f);
	endpoint_send(f->client, 4, 64);
	ck_assert_uint_eq(fake_live(FAKE_CQ), 2);
	fixture_free(f);
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

static void hold_buffer(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	ck_assert_int_eq(recv->err, 0);
	held[held_count++] = evrdma_buf_ref(recv->buf);
}

static void release_held(void)
{
	while (held_count)
		evrdma_buf_unref(held[--held_count]);
}

static bool six_are_held(struct fixture *f)
{
	return held_count == 6;
}

static struct evrdma_srq *share(struct fixture *f)
{
	/* No more buffers than are posted, so that the queue runs low. */
	struct evrdma_pool *pool = evrdma_pool_new(f->base, 64, SHARED);
	struct evrdma_srq *srq = evrdma_srq_new(f->base, pool, SHARED);

	evrdma_pool_free(pool);
	f->options.recv_pool = NULL;
	f->options.srq = srq;
	f->on_recv = hold_buffer;
	return srq;
}

static void run_low(struct fixture *f)
{
	endpoint_send(f->client, 6, 32);
	fixture_run_until(f, six_are_held, PATIENCE_MS);
	fixture_run_a_little(f);
	release_held();
	fixture_run_a_little(f);
}

START_TEST(a_shared_queue_that_runs_low_is_told_once_until_it_is_armed_again)
{
	struct fixture *f = fixture_new();
	struct evrdma_srq *srq = share(f);
	struct low low = { .arm_again = _i };

	ck_assert_int_eq(evrdma_srq_set_limit(srq, SHARED / 2, on_low, &low), 0);
	fixture_connect_pair(f);
	run_low(f);
	run_low(f);
	ck_assert_uint_eq(low.told, low.arm_again ? 2 : 1);
	evrdma_srq_free(srq);
	fixture_free(f);
}
END_TEST

START_TEST(the_limit_of_a_shared_queue_can_be_set_and_taken_back_while_it_is_used)
{
	struct fixture *f = fixture_new();
	struct evrdma_srq *srq = share(f);
	struct low low = { 0 };

	fixture_connect_pair(f);
	ck_assert_int_eq(evrdma_srq_set_limit(srq, SHARED + 1, on_low, &low), -EINVAL);
	ck_assert_int_eq(evrdma_srq_set_limit(srq, 1, NULL, NULL), -EINVAL);
	fake_fail_next("ibv_modify_srq", ENOSYS);
	ck_assert_int_eq(evrdma_srq_set_limit(srq, SHARED / 2, on_low, &low), -ENOSYS);
	ck_assert_int_eq(evrdma_srq_set_limit(srq, SHARED / 2, on_low, &low), 0);
	ck_assert_int_eq(evrdma_srq_set_limit(srq, 0, NULL, NULL), 0);
	run_low(f);
	ck_assert_uint_eq(low.told, 0);
	ck_assert_int_eq(evrdma_srq_set_limit(srq, SHARED / 2, on_low, &low), 0);
	run_low(f);
	ck_assert_uint_eq(low.told, 1);
	evrdma_srq_free(srq);
	fixture_free(f);
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
	struct fixture *f = fixture_new();
	struct evrdma_srq *srq = share(f);

	f->on_event = keep_open;
	f->options.drain_timeout_ms = 30;
	fixture_connect_pair(f);
	if (shared_errors[_i].type == IBV_EVENT_SRQ_ERR)
		fake_async_srq(qp_of(f->client)->srq, IBV_EVENT_SRQ_ERR);
	else
		fake_async_qp(qp_of(f->client), shared_errors[_i].type);
	fixture_run_until(f, fixture_client_is_down, PATIENCE_MS);
	ck_assert_int_eq(f->client->error, shared_errors[_i].err);
	ck_assert_int_eq(f->client->step, EVRDMA_STEP_TRANSFER);
	evrdma_srq_free(srq);
	fixture_free(f);
}
END_TEST

/* By itself, or with the CQ that tells what it received. */
static void break_shared(struct endpoint *endpoint, bool by_its_cq)
{
	if (by_its_cq)
		fake_async_cq(qp_of(endpoint)->recv_cq, IBV_EVENT_CQ_ERR);
	else
		fake_async_srq(qp_of(endpoint)->srq, IBV_EVENT_SRQ_ERR);
}

START_TEST(a_shared_queue_that_broke_is_not_used_again)
{
	struct fixture *f = fixture_new();
	struct evrdma_srq *srq = share(f);

	f->options.drain_timeout_ms = 30;
	fixture_connect_pair(f);
	break_shared(f->client, _i);
	fixture_run_until(f, fixture_none_live, PATIENCE_MS);
	ck_assert_uint_eq(fake_live(FAKE_SRQ), 0);
	fixture_connect_pair(f);
	run_low(f);
	ck_assert_uint_eq(fake_live(FAKE_SRQ), 1);
	evrdma_srq_free(srq);
	fixture_free(f);
}
END_TEST

START_TEST(a_shared_queue_that_broke_unused_is_replaced)
{
	struct fixture *f = fixture_new();
	struct evrdma_srq *srq = share(f);
	struct ibv_srq *first;

	fixture_connect_pair(f);
	first = qp_of(f->client)->srq;
	evrdma_conn_close(f->client->conn);
	evrdma_conn_close(f->server->conn);
	fixture_run_until(f, fixture_none_live, PATIENCE_MS);
	fake_async_srq(first, IBV_EVENT_SRQ_ERR);
	fixture_run_a_little(f);
	fixture_connect_pair(f);
	run_low(f);
	ck_assert_uint_eq(fake_calls("ibv_create_srq"), 2);
	ck_assert_uint_eq(fake_live(FAKE_SRQ), 1);
	evrdma_srq_free(srq);
	fixture_free(f);
}
END_TEST

/* The first event ends the connection, and the second still counts: nothing is waited for. */
START_TEST(the_last_receive_is_known_beside_an_error)
{
	struct fixture *f = fixture_new();
	struct evrdma_srq *srq = share(f);

	f->options.drain_timeout_ms = PATIENCE_MS;
	fixture_connect_pair(f);
	fake_hold_last_receive(true);
	fake_async_qp(qp_of(f->client), IBV_EVENT_QP_FATAL);
	fake_async_qp(qp_of(f->client), IBV_EVENT_QP_LAST_WQE_REACHED);
	fake_async_qp(qp_of(f->server), IBV_EVENT_QP_LAST_WQE_REACHED);
	fixture_run_until(f, fixture_none_live, PATIENCE_MS / 2);
	evrdma_srq_free(srq);
	fixture_free(f);
}
END_TEST

#define N(array) ((int)(sizeof(array) / sizeof((array)[0])))

TCase *async_case(void)
{
	TCase *tc = tcase_create("async");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, an_error_of_its_queue_pair_ends_a_connection, 0, N(fatal));
	tcase_add_loop_test(
		tc, other_events_of_a_queue_pair_are_read_and_change_nothing, 0, N(harmless));
	/* iWARP's handshake has no third message. */
	if (fake_testbed_kind != FAKE_IWARP)
		tcase_add_test(tc, a_peer_that_was_heard_is_connected);
	tcase_add_test(tc, an_event_of_somebody_elses_queue_pair_is_passed_over);
	tcase_add_test(tc, an_error_of_a_completion_queue_ends_all_connections_on_it);
	if (!testbed_has(TESTBED_SRQS))
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
