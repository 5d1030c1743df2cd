/* Shared memory on four bases of one loop, where everything is in an order that the test says. */
#include "conform/fake.h"
#include "conform/fixture.h"

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

static void hand_over(struct fixture *f, struct evrdma_request *request)
{
	unsigned i = accepted++ % BASES;

	ck_assert_int_eq(
		evrdma_request_move(request, common.bases[i], serve, &common.servers[i]), 0);
}

static bool all_up(struct fixture *f)
{
	return common.up == 2 * BASES;
}

static void connect_all(struct fixture *f)
{
	struct sockaddr_in sin;
	unsigned i;

	fixture_address(&sin, testbed.ip, evrdma_listener_get_port(f->listener));
	for (i = 0; i < BASES; i++) {
		common.clients[i] = new_conn(f->base, NULL);
		ck_assert_int_eq(
			evrdma_conn_connect(common.clients[i], NULL, (struct sockaddr *)&sin), 0);
	}
	fixture_run_until(f, all_up, PATIENCE_MS);
}

static struct evrdma_base *new_base(struct fixture *f)
{
	struct evrdma_base_options options;
	struct evrdma_base *base;

	evrdma_base_options_init(&options);
	options.device_idle_ms = 20;
	base = evrdma_base_new(f->loop, &options);
	ck_assert_ptr_nonnull(base);
	return base;
}

static struct fixture *fixture_of_four(void)
{
	struct fixture *f = fixture_new();
	unsigned i;

	memset(&common, 0, sizeof(common));
	accepted = 0;
	common.domain = evrdma_domain_new_shared();
	common.buf = evrdma_buf_new_shared(
		common.domain, memory, MEMORY, EVRDMA_BUF_OPT_REMOTE_READ, on_cleanup, &common);
	ck_assert(common.domain && common.buf);
	for (i = 0; i < BASES; i++)
		common.bases[i] = new_base(f);
	f->on_request = hand_over;
	fixture_listen(f);
	connect_all(f);
	return f;
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

static bool base_is_closed(struct fixture *f)
{
	return !common.closing;
}

static void close_base(struct fixture *f, unsigned i)
{
	common.closing = true;
	evrdma_base_close(common.bases[i], on_base_closed, NULL);
	fixture_run_until(f, base_is_closed, PATIENCE_MS);
	common.bases[i] = NULL;
}

static bool clients_are_closed(struct fixture *f)
{
	return common.closed == 2 * BASES;
}

static void finish(struct fixture *f)
{
	unsigned i;

	for (i = 0; i < BASES; i++)
		if (common.bases[i])
			close_base(f, i);
	for (i = 0; i < BASES; i++)
		evrdma_conn_close(common.clients[i]);
	fixture_run_until(f, clients_are_closed, PATIENCE_MS);
	evrdma_domain_free(common.domain);
	evrdma_buf_unref(common.buf);
	ck_assert_uint_eq(common.cleaned, 1);
	ck_assert_uint_eq(fake_live(FAKE_MR), 0);
	fixture_free(f);
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

static void close_in_order(
	struct fixture *f, const unsigned order[BASES], unsigned domain_at, unsigned buf_at)
{
	unsigned i;

	for (i = 0; i < BASES; i++) {
		if (i == domain_at)
			drop_domain();
		if (i == buf_at)
			drop_buf();
		ck_assert_uint_eq(fake_live(FAKE_MR), i < buf_at);
		close_base(f, order[i]);
	}
	ck_assert_uint_eq(fake_live(FAKE_MR), 0);
}

START_TEST(bases_the_domain_and_the_buffer_go_in_every_order)
{
	unsigned order[BASES], at;
	struct fixture *f;

	choose_order((unsigned)_i, order);
	for (at = 0; at < PLACES * PLACES; at++) {
		f = fixture_of_four();
		expose_all();
		close_in_order(f, order, at / PLACES, at % PLACES);
		finish(f);
	}
}
END_TEST

/* Who asked is told; the next one makes it, and all have that. */
START_TEST(who_cannot_register_says_so_and_the_next_one_tries)
{
	struct fixture *f = fixture_of_four();
	struct evrdma_remote remote;

	fake_fail_next("ibv_reg_mr", EDQUOT);
	ck_assert_int_eq(evrdma_conn_expose(common.servers[0], common.buf, &remote), -EDQUOT);
	ck_assert_uint_eq(fake_live(FAKE_MR), 0);
	ck_assert_int_eq(evrdma_conn_expose(common.servers[1], common.buf, &remote), 0);
	expose_all();
	finish(f);
}
END_TEST

static unsigned pds_at_first;

static bool a_domain_is_gone(struct fixture *f)
{
	return fake_live(FAKE_PD) == pds_at_first - 1;
}

static bool servers_are_closed(struct fixture *f)
{
	return common.closed == BASES;
}

static void close_servers(struct fixture *f)
{
	unsigned i;

	for (i = 0; i < BASES; i++)
		evrdma_conn_close(common.servers[i]);
	fixture_run_until(f, servers_are_closed, PATIENCE_MS);
}

/* It was kept for the next connection. */
START_TEST(a_domain_that_is_given_up_goes_with_the_last_who_names_it)
{
	struct fixture *f = fixture_of_four();

	pds_at_first = fake_live(FAKE_PD);
	expose_all();
	if (_i)
		drop_domain();
	fixture_run_a_little(f);
	ck_assert_uint_eq(fake_live(FAKE_PD), pds_at_first);
	close_servers(f);
	if (!_i)
		drop_domain();
	fixture_run_a_little(f);
	ck_assert_uint_eq(fake_live(FAKE_PD), pds_at_first - 1);
	ck_assert_uint_eq(fake_live(FAKE_MR), 0);
	finish(f);
}
END_TEST

static unsigned registrations;

START_TEST(idle_bases_give_it_back_and_the_next_connection_has_it_again)
{
	struct fixture *f = fixture_of_four();

	pds_at_first = fake_live(FAKE_PD);
	expose_all();
	registrations = fake_calls("ibv_reg_mr");
	close_servers(f);
	fixture_run_until(f, a_domain_is_gone, PATIENCE_MS);
	ck_assert_uint_eq(fake_live(FAKE_MR), 0);
	ck_assert_uint_eq(common.cleaned, 0);
	common.up = common.closed = 0;
	connect_all(f);
	expose_all();
	ck_assert_uint_eq(fake_calls("ibv_reg_mr"), registrations + 1);
	finish(f);
}
END_TEST

static struct evrdma_domain *lent;

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct evrdma_conn **conn = arg;

	*conn = new_conn(evrdma_request_get_base(request), NULL);
	ck_assert_int_eq(evrdma_conn_accept(*conn, request), 0);
}

static void listen_and_connect(struct fixture *f, unsigned i)
{
	struct evrdma_listener_options options;
	struct evrdma_listener *listener;
	struct sockaddr_in sin;

	evrdma_listener_options_init(&options);
	options.domain = lent;
	fixture_address(&sin, testbed.ip, 0);
	listener = evrdma_listener_new(
		common.bases[i], (struct sockaddr *)&sin, &options, on_request, &common.servers[i]);
	ck_assert_ptr_nonnull(listener);
	fixture_address(&sin, testbed.ip, evrdma_listener_get_port(listener));
	common.clients[i] = new_conn(f->base, NULL);
	ck_assert_int_eq(evrdma_conn_connect(common.clients[i], NULL, (struct sockaddr *)&sin), 0);
}

/* Their connections name none themselves. */
START_TEST(listeners_of_all_bases_lend_it)
{
	struct fixture *f = fixture_of_four();
	unsigned i;

	close_servers(f);
	for (i = 0; i < BASES; i++)
		evrdma_conn_close(common.clients[i]);
	fixture_run_until(f, clients_are_closed, PATIENCE_MS);
	common.up = common.closed = 0;
	lent = common.domain;
	for (i = 0; i < BASES; i++)
		listen_and_connect(f, i);
	drop_domain();
	fixture_run_until(f, all_up, PATIENCE_MS);
	expose_all();
	finish(f);
}
END_TEST

TCase *shared_case(void)
{
	TCase *tc = tcase_create("shared");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, bases_the_domain_and_the_buffer_go_in_every_order, 0, ORDERS);
	tcase_add_test(tc, who_cannot_register_says_so_and_the_next_one_tries);
	tcase_add_loop_test(tc, a_domain_that_is_given_up_goes_with_the_last_who_names_it, 0, 2);
	tcase_add_test(tc, idle_bases_give_it_back_and_the_next_connection_has_it_again);
	tcase_add_test(tc, listeners_of_all_bases_lend_it);
	return tc;
}
