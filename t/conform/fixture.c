#include "conform/fixture.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

enum { BUF_SIZE = 4096 };

static const char *const count_names[TESTBED_COUNTS] = { "QPs", "CQs", "MRs", "PDs", "ids" };

void fixture_address(struct sockaddr_in *sin, const char *ip, uint16_t port)
{
	memset(sin, 0, sizeof(*sin));
	sin->sin_family = AF_INET;
	sin->sin_port = htons(port);
	ck_assert_int_eq(inet_pton(AF_INET, ip, &sin->sin_addr), 1);
}

int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	n -= 3; /* ".", ".." and the folder itself */
	return testbed.lost_fds ? n - testbed.lost_fds() : n;
}

/* --- the loop ------------------------------------------------------------------------------- */

/*
 * Time is counted in ticks of the loop: while the kernel holds its thread none passes. Nor does any
 * where time is virtual and the loop spins, so that its turns are counted as well.
 */
enum { TICK_MS = 10, MOST_TURNS = 20 * 1000 * 1000 };

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	++*(int *)arg;
}

void fixture_run_until(struct fixture *f, bool (*condition)(struct fixture *), int ms)
{
	static const struct timeval tick = { 0, TICK_MS * 1000 };
	int ticks = 0, turns = 0, patience = ms / TICK_MS;
	struct event *ticker = event_new(f->loop, -1, EV_PERSIST, on_tick, &ticks);

	event_add(ticker, &tick);
	while (!condition(f)) {
		ck_assert_msg(ticks <= patience,
			"the condition did not come true in %d ms: %u established, %u closed, "
			"%u live; %s",
			ms, f->established, f->closed, f->live, f->last_error);
		ck_assert_msg(turns++ < MOST_TURNS, "the loop spins");
		event_base_loop(f->loop, EVLOOP_ONCE);
	}
	event_free(ticker);
}

void fixture_run_turns(struct fixture *f, int turns)
{
	while (turns-- > 0)
		event_base_loop(f->loop, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

/* Without EVLOOP_ONCE the loop goes on as long as anything is active. */
void fixture_run_a_little(struct fixture *f)
{
	int times;

	for (times = 0; times < 6; times++)
		event_base_loop(f->loop, EVLOOP_NONBLOCK);
}

/* --- endpoints -------------------------------------------------------------------------------- */

static void forget_endpoint(struct endpoint *endpoint)
{
	struct fixture *f = endpoint->fixture;

	if (f->client == endpoint)
		f->client = NULL;
	if (f->server == endpoint)
		f->server = NULL;
	free(endpoint);
}

void endpoint_close_if_down(struct endpoint *endpoint, enum evrdma_conn_event event)
{
	if (endpoint->down && event != EVRDMA_CONN_CLOSED)
		evrdma_conn_close(endpoint->conn);
}

static void on_conn_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	struct endpoint *endpoint = arg;
	struct fixture *f = endpoint->fixture;

	ck_assert(!f->in_call);
	endpoint->calls_after_closed += endpoint->closed;
	ck_assert_uint_eq(endpoint->calls_after_closed, 0);
	ck_assert_int_eq(!error, event != EVRDMA_CONN_ERROR);
	switch (event) {
	case EVRDMA_CONN_CONNECTED:
		ck_assert(!endpoint->connected && !endpoint->down);
		endpoint->connected = true;
		f->established++;
		break;
	case EVRDMA_CONN_DISCONNECTED:
	case EVRDMA_CONN_ERROR:
		ck_assert_msg(!endpoint->down, "the end was told twice");
		endpoint->down = true;
		endpoint->error = error ? error->err : 0;
		if (error)
			evrdma_error_text(error, f->last_error, sizeof(f->last_error));
		endpoint->step = error ? error->step : EVRDMA_STEP_NONE;
		break;
	case EVRDMA_CONN_CLOSED:
		endpoint->closed = true;
		f->closed++;
		f->live--;
		ck_assert_uint_eq(
			endpoint->sends_taken, endpoint->sends_ok + endpoint->sends_cancelled);
		break;
	case EVRDMA_CONN_WRITABLE:
	case EVRDMA_CONN_ADDR_CHANGED:
		break;
	}
	if (f->on_event)
		f->on_event(endpoint, event, error);
	else
		endpoint_close_if_down(endpoint, event);
	if (event == EVRDMA_CONN_CLOSED)
		forget_endpoint(endpoint);
}

static void on_conn_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	struct endpoint *endpoint = arg;

	ck_assert(!endpoint->closed && !endpoint->fixture->in_call);
	endpoint->received += !recv->err;
	if (endpoint->fixture->on_recv)
		endpoint->fixture->on_recv(endpoint, recv);
}

static void on_conn_sent(struct evrdma_conn *conn, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	struct endpoint *endpoint = arg;

	ck_assert(!endpoint->closed && !endpoint->fixture->in_call);
	if (error)
		endpoint->sends_cancelled++;
	else
		endpoint->sends_ok++;
	ck_assert_uint_le(endpoint->sends_ok + endpoint->sends_cancelled, endpoint->sends_taken);
	if (endpoint->fixture->on_sent)
		endpoint->fixture->on_sent(endpoint, error);
}

struct endpoint *fixture_endpoint_new(struct fixture *f, bool is_client)
{
	return fixture_endpoint_new_on(f, f->base, is_client);
}

struct endpoint *fixture_endpoint_new_on(
	struct fixture *f, struct evrdma_base *base, bool is_client)
{
	struct evrdma_conn_options options = f->options;
	struct endpoint *endpoint = calloc(1, sizeof(*endpoint));

	ck_assert_ptr_nonnull(endpoint);
	if (base == f->other && options.recv_pool)
		options.recv_pool = f->other_pool;
	endpoint->fixture = f;
	endpoint->is_client = is_client;
	endpoint->conn = evrdma_conn_new(base, &options);
	ck_assert_ptr_nonnull(endpoint->conn);
	evrdma_conn_setcb(endpoint->conn, on_conn_recv, on_conn_event, endpoint);
	f->live++;
	*(is_client ? &f->client : &f->server) = endpoint;
	return endpoint;
}

int endpoint_send_buf(struct endpoint *endpoint, struct evrdma_buf *buf, size_t len)
{
	int ret;

	endpoint->fixture->in_call = true;
	ret = evrdma_conn_send(endpoint->conn, buf, len, on_conn_sent, endpoint);
	endpoint->fixture->in_call = false;
	endpoint->sends_taken += !ret;
	return ret;
}

void endpoint_send(struct endpoint *endpoint, unsigned n, size_t len)
{
	int ret = 0;

	while (n-- && !ret) {
		struct evrdma_buf *buf = evrdma_pool_get(endpoint->fixture->pool);

		ck_assert_ptr_nonnull(buf);
		memset(evrdma_buf_data(buf), 0x5a, len);
		ret = endpoint_send_buf(endpoint, buf, len);
		evrdma_buf_unref(buf);
	}
}

void endpoint_accept(struct endpoint *endpoint, struct evrdma_request *request)
{
	endpoint->fixture->in_call = true;
	ck_assert_int_eq(evrdma_conn_accept(endpoint->conn, request), 0);
	endpoint->fixture->in_call = false;
}

struct endpoint *fixture_connect_to(struct fixture *f, const char *ip, uint16_t port)
{
	struct endpoint *endpoint = fixture_endpoint_new(f, true);
	struct sockaddr_in sin;

	fixture_address(&sin, ip, port);
	f->in_call = true;
	ck_assert_int_eq(evrdma_conn_connect(endpoint->conn, NULL, (struct sockaddr *)&sin), 0);
	f->in_call = false;
	return endpoint;
}

enum { MAX_ADDRESSES = 4 };

struct endpoint *fixture_connect_to_each(
	struct fixture *f, const char *const *ips, unsigned n, uint16_t port)
{
	struct endpoint *endpoint = fixture_endpoint_new(f, true);
	struct rdma_addrinfo results[MAX_ADDRESSES] = { { 0 } };
	struct sockaddr_in addresses[MAX_ADDRESSES];
	unsigned i;

	ck_assert_uint_le(n, MAX_ADDRESSES);
	for (i = 0; i < n; i++) {
		fixture_address(&addresses[i], ips[i], port);
		results[i].ai_dst_addr = (struct sockaddr *)&addresses[i];
		results[i].ai_dst_len = sizeof(addresses[i]);
		results[i].ai_next = i + 1 < n ? &results[i + 1] : NULL;
	}
	f->in_call = true;
	ck_assert_int_eq(evrdma_conn_connect_addrinfo(endpoint->conn, results), 0);
	f->in_call = false;
	return endpoint;
}

struct endpoint *fixture_connect(struct fixture *f)
{
	return fixture_connect_to(f, testbed.ip, evrdma_listener_get_port(f->listener));
}

/* --- the listener --------------------------------------------------------------------------- */

static void on_listener_request(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct fixture *f = arg;

	ck_assert(!f->in_call);
	if (f->on_request) {
		f->on_request(f, request);
		return;
	}
	endpoint_accept(fixture_endpoint_new(f, false), request);
}

void fixture_listen(struct fixture *f)
{
	fixture_listen_on(f, testbed.ip);
}

void fixture_listen_on(struct fixture *f, const char *ip)
{
	struct sockaddr_in sin;

	fixture_address(&sin, ip, 0);
	f->listener =
		evrdma_listener_new(f->base, (struct sockaddr *)&sin, NULL, on_listener_request, f);
	ck_assert_msg(f->listener, "listen: %s", strerror(errno));
}

bool fixture_pair_is_up(struct fixture *f)
{
	return f->client && f->client->connected && f->server && f->server->connected;
}

void fixture_connect_pair(struct fixture *f)
{
	if (!f->listener)
		fixture_listen(f);
	fixture_connect(f);
	fixture_run_until(f, fixture_pair_is_up, 20000);
}

bool fixture_none_live(struct fixture *f)
{
	return !f->live;
}

struct evrdma_base_stats fixture_stats(const struct fixture *f)
{
	struct evrdma_base_stats stats;

	evrdma_base_get_stats(f->base, &stats);
	return stats;
}

bool fixture_none_lingers(struct fixture *f)
{
	return !fixture_stats(f).ids_lingering;
}

bool fixture_client_is_down(struct fixture *f)
{
	return f->client && f->client->down;
}

bool fixture_client_is_closed(struct fixture *f)
{
	return !f->client;
}

/* --- life ----------------------------------------------------------------------------------- */

static void make_base(struct fixture *f, const struct evrdma_base_options *options)
{
	f->base = evrdma_base_new(f->loop, options);
	ck_assert_msg(f->base, "base: %s", strerror(errno));
	f->pool = evrdma_pool_new(f->base, BUF_SIZE, 0);
	ck_assert_ptr_nonnull(f->pool);
}

struct fixture *fixture_new_on_machine_time(void)
{
	struct fixture *f = calloc(1, sizeof(*f));

	ck_assert_ptr_nonnull(f);
	/* The CM keeps devices open. */
	rdma_free_devices(rdma_get_devices(NULL));
	testbed.count(f->counts_before);
	f->fds_before = count_fds();
	if (testbed.watch)
		testbed.watch(true);
	f->loop = event_base_new();
	make_base(f, NULL);
	evrdma_conn_options_init(&f->options);
	f->options.recv_pool = f->pool;
	return f;
}

struct fixture *fixture_new(void)
{
	if (testbed.own_time)
		testbed.own_time(true);
	return fixture_new_on_machine_time();
}

static void on_base_closed(struct evrdma_base *base, void *arg)
{
	struct fixture *f = arg;

	f->base_closed = true;
}

bool fixture_base_is_closed(struct fixture *f)
{
	return f->base_closed;
}

void fixture_close_base(struct fixture *f)
{
	evrdma_base_close(f->base, on_base_closed, f);
}

void fixture_add_other(struct fixture *f)
{
	f->other = evrdma_base_new(f->loop, NULL);
	ck_assert_msg(f->other, "base: %s", strerror(errno));
	f->other_pool = evrdma_pool_new(f->other, BUF_SIZE, 0);
	ck_assert_ptr_nonnull(f->other_pool);
}

static void on_other_closed(struct evrdma_base *base, void *arg)
{
	struct fixture *f = arg;

	f->other_closed = true;
}

static bool other_is_closed(struct fixture *f)
{
	return f->other_closed;
}

void fixture_close_other(struct fixture *f)
{
	evrdma_base_close(f->other, on_other_closed, f);
	fixture_run_until(f, other_is_closed, 60000);
	f->other = NULL;
}

void fixture_replace_base(struct fixture *f, const struct evrdma_base_options *options)
{
	fixture_close_base(f);
	fixture_run_until(f, fixture_base_is_closed, 60000);
	f->base_closed = false;
	make_base(f, options);
	f->options.recv_pool = f->pool;
}

static void no_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	ck_abort_msg("a request that nobody made");
}

void fixture_expect_closing(struct evrdma_base *base)
{
	struct evrdma_pool *pool = evrdma_pool_new(base, BUF_SIZE, 0);
	struct sockaddr_in sin;

	fixture_address(&sin, testbed.ip, 0);
	errno = 0;
	ck_assert(!evrdma_listener_new(base, (struct sockaddr *)&sin, NULL, no_request, NULL));
	ck_assert_int_eq(errno, EPIPE);
	ck_assert(!evrdma_conn_new(base, NULL) && errno == EPIPE);
	ck_assert(!evrdma_dgram_new(base, NULL) && errno == EPIPE);
	ck_assert(!evrdma_id_new(base, RDMA_PS_TCP, NULL, NULL) && errno == EPIPE);
	ck_assert_ptr_nonnull(pool);
	ck_assert_ptr_nonnull(evrdma_srq_new(base, pool, 1));
	ck_assert_ptr_nonnull(evrdma_domain_new(base));
}

static void check_counts(struct fixture *f)
{
	int counts[TESTBED_COUNTS];
	int i;

	testbed.count(counts);
	for (i = 0; i < TESTBED_COUNTS; i++) {
		/* The stock CM keeps its device open, with a PD, once it was used. */
		if (!testbed.own_core && i == 3)
			continue;
		ck_assert_msg(counts[i] == f->counts_before[i], "%s: %d before, %d after",
			count_names[i], f->counts_before[i], counts[i]);
	}
	/* Less, where a device was removed and is not open any more. */
	if (testbed.own_core)
		ck_assert_int_le(count_fds(), f->fds_before);
}

void fixture_free(struct fixture *f)
{
	if (f->other)
		fixture_close_other(f);
	if (!f->base_closed)
		fixture_close_base(f);
	fixture_run_until(f, fixture_base_is_closed, 60000);
	ck_assert_uint_eq(f->live, 0);
	/* With nothing left to wait for, the loop ends by itself. */
	ck_assert_int_eq(event_base_loop(f->loop, 0), 1);
	event_base_free(f->loop);
	if (testbed.watch)
		testbed.watch(false);
	check_counts(f);
	free(f);
	if (testbed.own_time)
		testbed.own_time(false);
}
