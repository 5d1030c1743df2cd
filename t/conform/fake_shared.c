/* Shared memory on four bases of one loop, where everything is in an order that the test says. */
#include "conform/fake.h"
#include "conform/world.h"

#include <errno.h>
#include <string.h>

enum { BASES = 4, ORDERS = 24, PLACES = BASES + 1, MEMORY = 8192, PATIENCE_MS = 20000 };

static struct common {
	struct evrdma_base *bases[BASES];
	struct evrdma_conn *clients[BASES], *servers[BASES];
	struct evrdma_domain *domain;
	struct evrdma_buf *buf;
	unsigned up, closed, cleaned;
	bool closing; /* a base */
} common;

static unsigned char memory[MEMORY];

static void on_cleanup(void *data, size_t size, void *arg)
{
	common.cleaned++;
	ck_assert(data == memory && size == MEMORY && arg == &common);
}

static void on_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	common.up += event == EVRDMA_CONN_CONNECTED;
	common.closed += event == EVRDMA_CONN_CLOSED;
}

static struct evrdma_conn *new_conn(struct evrdma_base *base, struct evrdma_domain *domain)
{
	struct evrdma_conn_options options;
	struct evrdma_conn *conn;

	evrdma_conn_options_init(&options);
	options.domain = domain;
	conn = evrdma_conn_new(base, &options);
	ck_assert_ptr_nonnull(conn);
	evrdma_conn_setcb(conn, NULL, on_event, NULL);
	return conn;
}

static unsigned accepted;

static void serve(struct evrdma_request *request, void *arg)
{
	struct evrdma_base *base = evrdma_request_get_base(request);
	struct evrdma_conn **conn = arg;

	*conn = new_conn(base, common.domain);
	ck_assert_int_eq(evrdma_conn_accept(*conn, request), 0);
}

static void hand_over(struct world *w, struct evrdma_request *request)
{
	unsigned i = accepted++ % BASES;

	ck_assert_int_eq(
		evrdma_request_move(request, common.bases[i], serve, &common.servers[i]), 0);
}

static bool all_up(struct world *w)
{
	return common.up == 2 * BASES;
}

static void connect_all(struct world *w)
{
	struct sockaddr_in sin;
	unsigned i;

	world_address(&sin, place.ip, evrdma_listener_get_port(w->listener));
	for (i = 0; i < BASES; i++) {
		common.clients[i] = new_conn(w->base, NULL);
		ck_assert_int_eq(evrdma_conn_connect(common.clients[i], NULL,
					 (struct sockaddr *)&sin), 0);
	}
	world_run_until(w, all_up, PATIENCE_MS);
}

static struct evrdma_base *new_base(struct world *w)
{
	struct evrdma_base_options options;
	struct evrdma_base *base;

	evrdma_base_options_init(&options);
	options.device_idle_ms = 20;
	base = evrdma_base_new(w->loop, &options);
	ck_assert_ptr_nonnull(base);
	return base;
}

static struct world *world_of_four(void)
{
	struct world *w = world_new();
	unsigned i;

	memset(&common, 0, sizeof(common));
	accepted = 0;
	common.domain = evrdma_domain_new_shared();
	common.buf = evrdma_buf_new_shared(common.domain, memory, MEMORY,
		EVRDMA_BUF_OPT_REMOTE_READ, on_cleanup, &common);
	ck_assert(common.domain && common.buf);
	for (i = 0; i < BASES; i++)
		common.bases[i] = new_base(w);
	w->on_request = hand_over;
	world_listen(w);
	connect_all(w);
	return w;
}

static void expose_all(void)
{
	struct evrdma_remote first, remote;
	unsigned i;

	ck_assert_int_eq(evrdma_conn_expose(common.servers[0], common.buf, &first), 0);
	for (i = 1; i < BASES; i++) {
		ck_assert_int_eq(evrdma_conn_expose(common.servers[i], common.buf, &remote), 0);
		ck_assert_uint_eq(remote.key, first.key);
	}
	ck_assert_uint_eq(fake_live(FAKE_MR), 1);
}

static void on_base_closed(struct evrdma_base *base, void *arg)
{
	common.closing = false;
}

static bool base_is_closed(struct world *w)
{
	return !common.closing;
}

static void close_base(struct world *w, unsigned i)
{
	common.closing = true;
	evrdma_base_close(common.bases[i], on_base_closed, NULL);
	world_run_until(w, base_is_closed, PATIENCE_MS);
	common.bases[i] = NULL;
}

static bool clients_are_closed(struct world *w)
{
	return common.closed == 2 * BASES;
}

static void finish(struct world *w)
{
	unsigned i;

	for (i = 0; i < BASES; i++)
		if (common.bases[i])
			close_base(w, i);
	for (i = 0; i < BASES; i++)
		evrdma_conn_close(common.clients[i]);
	world_run_until(w, clients_are_closed, PATIENCE_MS);
	evrdma_domain_free(common.domain);
	evrdma_buf_unref(common.buf);
	ck_assert_uint_eq(common.cleaned, 1);
	ck_assert_uint_eq(fake_live(FAKE_MR), 0);
	world_free(w);
}

static void drop_domain(void)
{
	evrdma_domain_free(common.domain);
	common.domain = NULL;
}

static void drop_buf(void)
{
	evrdma_buf_unref(common.buf);
	common.buf = NULL;
	ck_assert_uint_eq(common.cleaned, 1);
	ck_assert_uint_eq(fake_live(FAKE_MR), 0);
}

/* The n-th order of four. */
static void choose_order(unsigned n, unsigned order[BASES])
{
	unsigned left[BASES] = { 0, 1, 2, 3 }, i, at;

	for (i = 0; i < BASES; i++) {
		at = n % (BASES - i);
		n /= BASES - i;
		order[i] = left[at];
		left[at] = left[BASES - 1 - i];
	}
}

static void close_in_order(struct world *w, const unsigned order[BASES], unsigned domain_at,
	unsigned buf_at)
{
	unsigned i;

	for (i = 0; i < BASES; i++) {
		if (i == domain_at)
			drop_domain();
		if (i == buf_at)
			drop_buf();
		ck_assert_uint_eq(fake_live(FAKE_MR), i < buf_at);
		close_base(w, order[i]);
	}
	ck_assert_uint_eq(fake_live(FAKE_MR), 0);
}

START_TEST(bases_the_domain_and_the_buffer_go_in_every_order)
{
	unsigned order[BASES], at;
	struct world *w;

	choose_order((unsigned)_i, order);
	for (at = 0; at < PLACES * PLACES; at++) {
		w = world_of_four();
		expose_all();
		close_in_order(w, order, at / PLACES, at % PLACES);
		finish(w);
	}
}
END_TEST

/* Who asked is told; the next one makes it, and all have that. */
START_TEST(who_cannot_register_says_so_and_the_next_one_tries)
{
	struct world *w = world_of_four();
	struct evrdma_remote remote;

	fake_fail_next("ibv_reg_mr", EDQUOT);
	ck_assert_int_eq(
		evrdma_conn_expose(common.servers[0], common.buf, &remote), -EDQUOT);
	ck_assert_uint_eq(fake_live(FAKE_MR), 0);
	ck_assert_int_eq(evrdma_conn_expose(common.servers[1], common.buf, &remote), 0);
	expose_all();
	finish(w);
}
END_TEST

static unsigned pds_at_first;

static bool a_domain_is_gone(struct world *w)
{
	return fake_live(FAKE_PD) == pds_at_first - 1;
}

static bool servers_are_closed(struct world *w)
{
	return common.closed == BASES;
}

static void close_servers(struct world *w)
{
	unsigned i;

	for (i = 0; i < BASES; i++)
		evrdma_conn_close(common.servers[i]);
	world_run_until(w, servers_are_closed, PATIENCE_MS);
}

/* It was kept for the next connection. */
START_TEST(a_domain_that_is_given_up_goes_with_the_last_who_names_it)
{
	struct world *w = world_of_four();

	pds_at_first = fake_live(FAKE_PD);
	expose_all();
	if (_i)
		drop_domain();
	world_run_a_little(w);
	ck_assert_uint_eq(fake_live(FAKE_PD), pds_at_first);
	close_servers(w);
	if (!_i)
		drop_domain();
	world_run_a_little(w);
	ck_assert_uint_eq(fake_live(FAKE_PD), pds_at_first - 1);
	ck_assert_uint_eq(fake_live(FAKE_MR), 0);
	finish(w);
}
END_TEST

static unsigned registrations;

START_TEST(idle_bases_give_it_back_and_the_next_connection_has_it_again)
{
	struct world *w = world_of_four();

	pds_at_first = fake_live(FAKE_PD);
	expose_all();
	registrations = fake_calls("ibv_reg_mr");
	close_servers(w);
	world_run_until(w, a_domain_is_gone, PATIENCE_MS);
	ck_assert_uint_eq(fake_live(FAKE_MR), 0);
	ck_assert_uint_eq(common.cleaned, 0);
	common.up = common.closed = 0;
	connect_all(w);
	expose_all();
	ck_assert_uint_eq(fake_calls("ibv_reg_mr"), registrations + 1);
	finish(w);
}
END_TEST

static struct evrdma_domain *lent;

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct evrdma_conn **conn = arg;

	*conn = new_conn(evrdma_request_get_base(request), NULL);
	ck_assert_int_eq(evrdma_conn_accept(*conn, request), 0);
}

static void listen_and_connect(struct world *w, unsigned i)
{
	struct evrdma_listener_options options;
	struct evrdma_listener *listener;
	struct sockaddr_in sin;

	evrdma_listener_options_init(&options);
	options.domain = lent;
	world_address(&sin, place.ip, 0);
	listener = evrdma_listener_new(common.bases[i], (struct sockaddr *)&sin, &options,
		on_request, &common.servers[i]);
	ck_assert_ptr_nonnull(listener);
	world_address(&sin, place.ip, evrdma_listener_get_port(listener));
	common.clients[i] = new_conn(w->base, NULL);
	ck_assert_int_eq(
		evrdma_conn_connect(common.clients[i], NULL, (struct sockaddr *)&sin), 0);
}

/* Their connections name none themselves. */
START_TEST(listeners_of_all_bases_lend_it)
{
	struct world *w = world_of_four();
	unsigned i;

	close_servers(w);
	for (i = 0; i < BASES; i++)
		evrdma_conn_close(common.clients[i]);
	world_run_until(w, clients_are_closed, PATIENCE_MS);
	common.up = common.closed = 0;
	lent = common.domain;
	for (i = 0; i < BASES; i++)
		listen_and_connect(w, i);
	drop_domain();
	world_run_until(w, all_up, PATIENCE_MS);
	expose_all();
	finish(w);
}
END_TEST

TCase *shared_case(void)
{
	TCase *tc = tcase_create("shared");

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(
		tc, bases_the_domain_and_the_buffer_go_in_every_order, 0, ORDERS);
	tcase_add_test(tc, who_cannot_register_says_so_and_the_next_one_tries);
	tcase_add_loop_test(tc, a_domain_that_is_given_up_goes_with_the_last_who_names_it, 0, 2);
	tcase_add_test(tc, idle_bases_give_it_back_and_the_next_connection_has_it_again);
	tcase_add_test(tc, listeners_of_all_bases_lend_it);
	return tc;
}
