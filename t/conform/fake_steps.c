/* Memory for many buffers, each registered by itself: a few of them in a turn of the loop. */
#include "conform/fake.h"
#include "conform/fixture.h"

#include <errno.h>
#include <event2/event.h>

#include "schedule/clock.h"
#include "util/clock.h"

enum {
	PATIENCE_MS = 20000,
	PAGE = 4096,
	IDLE_MS = 20,
	BUDGET_US = 1, /* one step in each turn */
	A_FEW = 32,    /* steps of the fake may fit in it, which is quick */
	QUEUES = 48,
};

/* A base that makes one step in each turn, and a pool with a registration for each buffer. */
static struct fixture *fixture_of_steps(void)
{
	struct fixture *f = fixture_new();
	struct evrdma_pool_options pool;
	struct evrdma_base_options base;

	evrdma_base_options_init(&base);
	base.turn_budget_us = BUDGET_US;
	base.device_idle_ms = IDLE_MS;
	fixture_replace_base(f, &base);
	evrdma_pool_free(f->pool);
	evrdma_pool_options_init(&pool);
	pool.slab_bytes = PAGE;
	f->pool = evrdma_pool_new_with_options(f->base, PAGE, &pool);
	ck_assert_ptr_nonnull(f->pool);
	f->options.recv_pool = f->pool;
	return f;
}

static uint64_t registered(struct fixture *f)
{
	return fixture_stats(f).registrations_now;
}

static unsigned slow_calls(void)
{
	return fake_calls("ibv_reg_mr") + fake_calls("ibv_dereg_mr") +
	       fake_calls("ibv_destroy_srq");
}

/* Turns of the loop until a condition holds; none of them makes or ends more than a few. */
static void turn_until(struct fixture *f, bool (*condition)(struct fixture *))
{
	uint64_t until_us = testbed.now_us() + PATIENCE_MS * 1000ull;
	unsigned n;

	while (!condition(f)) {
		ck_assert_uint_lt(testbed.now_us(), until_us);
		n = slow_calls();
		event_base_loop(f->loop, EVLOOP_ONCE);
		n = slow_calls() - n;
		ck_assert_msg(n <= A_FEW, "%u in one turn", n);
	}
}

static bool nothing_is_registered(struct fixture *f)
{
	return !registered(f);
}

static bool listener_is_left(struct fixture *f)
{
	return !f->live;
}

static void connect_and_close(struct fixture *f)
{
	fixture_connect_pair(f);
	ck_assert_uint_gt(registered(f), f->options.recv_depth);
	evrdma_conn_close(f->client->conn);
	turn_until(f, listener_is_left);
}

START_TEST(a_connection_registers_its_memory_a_few_at_a_time)
{
	struct fixture *f = fixture_of_steps();

	fixture_listen(f);
	fixture_connect(f);
	turn_until(f, fixture_pair_is_up);
	ck_assert_uint_ge(registered(f), 2 * f->options.recv_depth);
	fixture_free(f);
}
END_TEST

static void on_dgram(struct evrdma_dgram *dgram, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg)
{
	((struct fixture *)arg)->established += event == EVRDMA_DGRAM_READY;
}

static bool endpoint_is_ready(struct fixture *f)
{
	return f->established;
}

START_TEST(an_endpoint_registers_its_memory_a_few_at_a_time)
{
	struct fixture *f = fixture_of_steps();
	struct evrdma_dgram_options options;
	struct evrdma_dgram *dgram;
	struct sockaddr_in sin;

	evrdma_dgram_options_init(&options);
	options.recv_pool = f->pool;
	dgram = evrdma_dgram_new(f->base, &options);
	ck_assert_ptr_nonnull(dgram);
	evrdma_dgram_setcb(dgram, NULL, on_dgram, f);
	fixture_address(&sin, testbed.ip, 0);
	ck_assert_int_eq(evrdma_dgram_open(dgram, (struct sockaddr *)&sin, NULL), 0);
	turn_until(f, endpoint_is_ready);
	evrdma_dgram_close(dgram);
	fixture_free(f);
}
END_TEST

/* The buffers that it has taken go back to the pool. */
START_TEST(a_connection_is_closed_while_it_registers_its_memory)
{
	struct fixture *f = fixture_of_steps();

	fixture_listen(f);
	fixture_connect(f);
	while (!registered(f))
		event_base_loop(f->loop, EVLOOP_ONCE);
	ck_assert_uint_lt(registered(f), f->options.recv_depth);
	evrdma_conn_close(f->client->conn);
	fixture_run_until(f, fixture_none_live, PATIENCE_MS);
	fixture_free(f);
}
END_TEST

START_TEST(an_idle_device_gives_memory_back_a_few_at_a_time)
{
	struct fixture *f = fixture_of_steps();

	fixture_listen_on(f, "0.0.0.0");
	connect_and_close(f);
	turn_until(f, nothing_is_registered);
	fixture_free(f);
}
END_TEST

static void use_shared_queue(struct fixture *f, struct evrdma_srq **srq)
{
	*srq = evrdma_srq_new(f->base, f->pool, 1);
	ck_assert_ptr_nonnull(*srq);
	f->options.srq = *srq;
	connect_and_close(f);
}

static bool no_queue_is_left(struct fixture *f)
{
	return fake_calls("ibv_destroy_srq") >= QUEUES;
}

START_TEST(an_idle_device_gives_shared_queues_back_a_few_at_a_time)
{
	struct fixture *f = fixture_of_steps();
	struct evrdma_srq *srqs[QUEUES];
	unsigned i;

	fixture_listen_on(f, "0.0.0.0");
	f->options.recv_pool = NULL;
	f->options.recv_depth = 0;
	for (i = 0; i < QUEUES; i++)
		use_shared_queue(f, &srqs[i]);
	turn_until(f, no_queue_is_left);
	for (i = 0; i < QUEUES; i++)
		evrdma_srq_free(srqs[i]);
	fixture_free(f);
}
END_TEST

START_TEST(what_an_idle_device_has_left_is_used_again)
{
	struct fixture *f = fixture_of_steps();
	uint64_t all;

	fixture_listen_on(f, "0.0.0.0");
	connect_and_close(f);
	all = registered(f);
	while (registered(f) == all)
		event_base_loop(f->loop, EVLOOP_ONCE);
	fixture_connect_pair(f);
	ck_assert_uint_gt(registered(f), f->options.recv_depth);
	fixture_free(f);
}
END_TEST

static void on_base_closed(struct evrdma_base *base, void *arg)
{
	((struct fixture *)arg)->base_closed = true;
}

static bool base_is_closed(struct fixture *f)
{
	return f->base_closed;
}

START_TEST(a_base_that_closes_gives_memory_back_a_few_at_a_time)
{
	struct fixture *f = fixture_of_steps();

	fixture_listen(f);
	connect_and_close(f);
	evrdma_base_close(f->base, on_base_closed, f);
	turn_until(f, base_is_closed);
	f->base_closed = false;
	f->base = evrdma_base_new(f->loop, NULL);
	fixture_free(f);
}
END_TEST

START_TEST(a_listener_on_an_address_keeps_what_its_connections_need)
{
	struct fixture *f = fixture_of_steps();
	uint64_t all;

	fixture_listen(f);
	connect_and_close(f);
	all = registered(f);
	clock_advance_us(5 * IDLE_MS * EVR_US_PER_MS);
	fixture_run_a_little(f);
	ck_assert_uint_eq(registered(f), all);
	evrdma_listener_close(f->listener);
	f->listener = NULL;
	turn_until(f, nothing_is_registered);
	fixture_free(f);
}
END_TEST

/* --- a pool that two receive from ------------------------------------------------------------ */

/* Of a queue as deep as this a single buffer is posted at the end of the turn. */
enum { TWO = 2, DEPTH = 5, BUFS = TWO * DEPTH + 1 };

struct two {
	struct evrdma_pool *pool;
	struct endpoint *clients[TWO];
	struct evrdma_buf *held[TWO];
	unsigned received;
};

static void accept_from_pool(struct fixture *f, struct evrdma_request *request)
{
	struct two *two = f->tag;

	f->options.recv_depth = DEPTH;
	f->options.recv_pool = two->pool;
	endpoint_accept(fixture_endpoint_new(f, false), request);
	f->options.recv_pool = NULL;
}

static void hold_two(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	struct two *two = endpoint->fixture->tag;

	if (!recv->err)
		two->held[two->received++] = evrdma_buf_ref(recv->buf);
}

static bool two_came(struct fixture *f)
{
	return ((struct two *)f->tag)->received == TWO;
}

static uint64_t bufs_out(const struct two *two)
{
	struct evrdma_pool_stats stats;

	evrdma_pool_get_stats(two->pool, &stats);
	return stats.bufs_out;
}

static struct fixture *fixture_of_two(struct two *two)
{
	struct fixture *f = fixture_new();
	struct evrdma_pool_options options;
	unsigned i;

	evrdma_pool_options_init(&options);
	options.slab_bytes = PAGE;
	options.max_bufs = BUFS;
	two->pool = evrdma_pool_new_with_options(f->base, PAGE, &options);
	f->tag = two;
	f->on_request = accept_from_pool;
	f->on_recv = hold_two;
	f->options.recv_pool = NULL;
	for (i = 0; i < TWO; i++) {
		f->client = f->server = NULL;
		fixture_connect_pair(f);
		two->clients[i] = f->client;
	}
	return f;
}

/* The first has the last buffer, which its device does not take; the second waits for one. */
START_TEST(what_one_cannot_register_is_offered_to_another)
{
	struct two two = { 0 };
	struct fixture *f = fixture_of_two(&two);
	unsigned i;

	for (i = 0; i < TWO; i++)
		endpoint_send(two.clients[i], 1, 64);
	/* The clients' buffers are registered when they are sent. */
	fake_fail_next("ibv_reg_mr", ENOMEM);
	fixture_run_until(f, two_came, PATIENCE_MS);
	ck_assert_uint_eq(bufs_out(&two), BUFS);
	for (i = 0; i < TWO; i++)
		evrdma_buf_unref(two.held[i]);
	evrdma_pool_free(two.pool);
	fixture_free(f);
}
END_TEST

TCase *steps_case(void)
{
	TCase *tc = tcase_create("steps");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_connection_registers_its_memory_a_few_at_a_time);
	tcase_add_test(tc, a_connection_is_closed_while_it_registers_its_memory);
	if (testbed_has(TESTBED_DATAGRAMS))
		tcase_add_test(tc, an_endpoint_registers_its_memory_a_few_at_a_time);
	tcase_add_test(tc, an_idle_device_gives_memory_back_a_few_at_a_time);
	if (testbed_has(TESTBED_SRQS))
		tcase_add_test(tc, an_idle_device_gives_shared_queues_back_a_few_at_a_time);
	tcase_add_test(tc, what_an_idle_device_has_left_is_used_again);
	tcase_add_test(tc, a_base_that_closes_gives_memory_back_a_few_at_a_time);
	tcase_add_test(tc, a_listener_on_an_address_keeps_what_its_connections_need);
	tcase_add_test(tc, what_one_cannot_register_is_offered_to_another);
	return tc;
}
