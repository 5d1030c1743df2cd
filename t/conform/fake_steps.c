/* Memory for many buffers, each registered by itself: a few of them in a turn of the loop. */
#include "conform/fake.h"
#include "conform/world.h"

#include <errno.h>
#include <event2/event.h>

enum {
	PATIENCE_MS = 20000,
	PAGE = 4096,
	IDLE_MS = 20,
	BUDGET_US = 1, /* one step in each turn */
	A_FEW = 32,    /* steps of the fake may fit in it, which is quick */
	QUEUES = 48,
};

/* A base that makes one step in each turn, and a pool with a registration for each buffer. */
static struct world *world_of_steps(void)
{
	struct world *w = world_new();
	struct evrdma_pool_options pool;
	struct evrdma_base_options base;

	evrdma_base_options_init(&base);
	base.turn_budget_us = BUDGET_US;
	base.device_idle_ms = IDLE_MS;
	world_replace_base(w, &base);
	evrdma_pool_free(w->pool);
	evrdma_pool_options_init(&pool);
	pool.slab_bytes = PAGE;
	w->pool = evrdma_pool_new_with_options(w->base, PAGE, &pool);
	ck_assert_ptr_nonnull(w->pool);
	w->options.recv_pool = w->pool;
	return w;
}

static uint64_t registered(struct world *w)
{
	struct evrdma_base_stats stats;

	evrdma_base_get_stats(w->base, &stats);
	return stats.registrations_now;
}

static unsigned slow_calls(void)
{
	return fake_calls("ibv_reg_mr") + fake_calls("ibv_dereg_mr") +
		fake_calls("ibv_destroy_srq");
}

/* Turns of the loop until a condition holds; none of them makes or ends more than a few. */
static void turn_until(struct world *w, bool (*condition)(struct world *))
{
	uint64_t until_us = place.now_us() + PATIENCE_MS * 1000ull;
	unsigned n;

	while (!condition(w)) {
		ck_assert_uint_lt(place.now_us(), until_us);
		n = slow_calls();
		event_base_loop(w->loop, EVLOOP_ONCE);
		n = slow_calls() - n;
		ck_assert_msg(n <= A_FEW, "%u in one turn", n);
	}
}

static bool nothing_is_registered(struct world *w)
{
	return !registered(w);
}

static bool listener_is_left(struct world *w)
{
	return !w->live;
}

static void connect_and_close(struct world *w)
{
	world_connect_pair(w);
	ck_assert_uint_gt(registered(w), w->options.recv_depth);
	evrdma_conn_close(w->client->conn);
	turn_until(w, listener_is_left);
}

static bool both_are_up(struct world *w)
{
	return w->client->connected && w->server && w->server->connected;
}

START_TEST(a_connection_registers_its_memory_a_few_at_a_time)
{
	struct world *w = world_of_steps();

	world_listen(w);
	world_connect(w);
	turn_until(w, both_are_up);
	ck_assert_uint_ge(registered(w), 2 * w->options.recv_depth);
	world_free(w);
}
END_TEST

static void on_dgram(struct evrdma_dgram *dgram, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg)
{
	((struct world *)arg)->established += event == EVRDMA_DGRAM_READY;
}

static bool endpoint_is_ready(struct world *w)
{
	return w->established;
}

START_TEST(an_endpoint_registers_its_memory_a_few_at_a_time)
{
	struct world *w = world_of_steps();
	struct evrdma_dgram_options options;
	struct evrdma_dgram *dgram;
	struct sockaddr_in sin;

	evrdma_dgram_options_init(&options);
	options.recv_pool = w->pool;
	dgram = evrdma_dgram_new(w->base, &options);
	ck_assert_ptr_nonnull(dgram);
	evrdma_dgram_setcb(dgram, NULL, on_dgram, w);
	world_address(&sin, place.ip, 0);
	ck_assert_int_eq(evrdma_dgram_open(dgram, (struct sockaddr *)&sin, NULL), 0);
	turn_until(w, endpoint_is_ready);
	evrdma_dgram_close(dgram);
	world_free(w);
}
END_TEST

/* The buffers that it has taken go back to the pool. */
START_TEST(a_connection_is_closed_while_it_registers_its_memory)
{
	struct world *w = world_of_steps();

	world_listen(w);
	world_connect(w);
	while (!registered(w))
		event_base_loop(w->loop, EVLOOP_ONCE);
	ck_assert_uint_lt(registered(w), w->options.recv_depth);
	evrdma_conn_close(w->client->conn);
	world_run_until(w, world_none_live, PATIENCE_MS);
	world_free(w);
}
END_TEST

START_TEST(an_idle_device_gives_memory_back_a_few_at_a_time)
{
	struct world *w = world_of_steps();

	world_listen_on(w, "0.0.0.0");
	connect_and_close(w);
	turn_until(w, nothing_is_registered);
	world_free(w);
}
END_TEST

static void use_shared_queue(struct world *w, struct evrdma_srq **srq)
{
	*srq = evrdma_srq_new(w->base, w->pool, 1);
	ck_assert_ptr_nonnull(*srq);
	w->options.srq = *srq;
	connect_and_close(w);
}

static bool no_queue_is_left(struct world *w)
{
	return fake_calls("ibv_destroy_srq") >= QUEUES;
}

START_TEST(an_idle_device_gives_shared_queues_back_a_few_at_a_time)
{
	struct world *w = world_of_steps();
	struct evrdma_srq *srqs[QUEUES];
	unsigned i;

	world_listen_on(w, "0.0.0.0");
	w->options.recv_pool = NULL;
	w->options.recv_depth = 0;
	for (i = 0; i < QUEUES; i++)
		use_shared_queue(w, &srqs[i]);
	turn_until(w, no_queue_is_left);
	for (i = 0; i < QUEUES; i++)
		evrdma_srq_free(srqs[i]);
	world_free(w);
}
END_TEST

START_TEST(what_an_idle_device_has_left_is_used_again)
{
	struct world *w = world_of_steps();
	uint64_t all;

	world_listen_on(w, "0.0.0.0");
	connect_and_close(w);
	all = registered(w);
	while (registered(w) == all)
		event_base_loop(w->loop, EVLOOP_ONCE);
	world_connect_pair(w);
	ck_assert_uint_gt(registered(w), w->options.recv_depth);
	world_free(w);
}
END_TEST

static void on_base_closed(struct evrdma_base *base, void *arg)
{
	((struct world *)arg)->base_closed = true;
}

static bool base_is_closed(struct world *w)
{
	return w->base_closed;
}

START_TEST(a_base_that_closes_gives_memory_back_a_few_at_a_time)
{
	struct world *w = world_of_steps();

	world_listen(w);
	connect_and_close(w);
	evrdma_base_close(w->base, on_base_closed, w);
	turn_until(w, base_is_closed);
	w->base_closed = false;
	w->base = evrdma_base_new(w->loop, NULL);
	world_free(w);
}
END_TEST

START_TEST(a_listener_on_an_address_keeps_what_its_connections_need)
{
	struct world *w = world_of_steps();
	uint64_t all, begun_us;

	world_listen(w);
	connect_and_close(w);
	all = registered(w);
	begun_us = place.now_us();
	while (place.now_us() - begun_us < 5 * IDLE_MS * 1000)
		world_run_a_little(w);
	ck_assert_uint_eq(registered(w), all);
	evrdma_listener_close(w->listener);
	w->listener = NULL;
	turn_until(w, nothing_is_registered);
	world_free(w);
}
END_TEST

/* --- a pool that two receive from ------------------------------------------------------------ */

/* Of a queue as deep as this a single buffer is posted at the end of the turn. */
enum { TWO = 2, DEPTH = 5, BUFS = TWO * DEPTH + 1 };

struct two {
	struct evrdma_pool *pool;
	struct side *clients[TWO];
	struct evrdma_buf *held[TWO];
	unsigned received;
};

static void accept_from_pool(struct world *w, struct evrdma_request *request)
{
	struct two *two = w->tag;

	w->options.recv_depth = DEPTH;
	w->options.recv_pool = two->pool;
	side_accept(world_side_new(w, false), request);
	w->options.recv_pool = NULL;
}

static void hold_two(struct side *side, const struct evrdma_recv *recv)
{
	struct two *two = side->world->tag;

	if (!recv->err)
		two->held[two->received++] = evrdma_buf_ref(recv->buf);
}

static bool two_came(struct world *w)
{
	return ((struct two *)w->tag)->received == TWO;
}

static uint64_t bufs_out(const struct two *two)
{
	struct evrdma_pool_stats stats;

	evrdma_pool_get_stats(two->pool, &stats);
	return stats.bufs_out;
}

static struct world *world_of_two(struct two *two)
{
	struct world *w = world_new();
	struct evrdma_pool_options options;
	unsigned i;

	evrdma_pool_options_init(&options);
	options.slab_bytes = PAGE;
	options.max_bufs = BUFS;
	two->pool = evrdma_pool_new_with_options(w->base, PAGE, &options);
	w->tag = two;
	w->on_request = accept_from_pool;
	w->on_recv = hold_two;
	w->options.recv_pool = NULL;
	for (i = 0; i < TWO; i++) {
		w->client = w->server = NULL;
		world_connect_pair(w);
		two->clients[i] = w->client;
	}
	return w;
}

/* The first has the last buffer, which its device does not take; the second waits for one. */
START_TEST(what_one_cannot_register_is_offered_to_another)
{
	struct two two = { 0 };
	struct world *w = world_of_two(&two);
	unsigned i;

	for (i = 0; i < TWO; i++)
		side_send(two.clients[i], 1, 64);
	/* The clients' buffers are registered when they are sent. */
	fake_fail_next("ibv_reg_mr", ENOMEM);
	world_run_until(w, two_came, PATIENCE_MS);
	ck_assert_uint_eq(bufs_out(&two), BUFS);
	for (i = 0; i < TWO; i++)
		evrdma_buf_unref(two.held[i]);
	evrdma_pool_free(two.pool);
	world_free(w);
}
END_TEST

TCase *steps_case(void)
{
	TCase *tc = tcase_create("steps");

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_connection_registers_its_memory_a_few_at_a_time);
	tcase_add_test(tc, a_connection_is_closed_while_it_registers_its_memory);
	if (place_has(PLACE_DATAGRAMS))
		tcase_add_test(tc, an_endpoint_registers_its_memory_a_few_at_a_time);
	tcase_add_test(tc, an_idle_device_gives_memory_back_a_few_at_a_time);
	if (place_has(PLACE_SRQS))
		tcase_add_test(
			tc, an_idle_device_gives_shared_queues_back_a_few_at_a_time);
	tcase_add_test(tc, what_an_idle_device_has_left_is_used_again);
	tcase_add_test(tc, a_base_that_closes_gives_memory_back_a_few_at_a_time);
	tcase_add_test(tc, a_listener_on_an_address_keeps_what_its_connections_need);
	tcase_add_test(tc, what_one_cannot_register_is_offered_to_another);
	return tc;
}
