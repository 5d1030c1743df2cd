#include "conform/world.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

enum { BUF_SIZE = 4096 };

static const char *const count_names[PLACE_COUNTS] = { "QPs", "CQs", "MRs", "PDs", "ids" };

void world_address(struct sockaddr_in *sin, const char *ip, uint16_t port)
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
	return place.lost_fds ? n - place.lost_fds() : n;
}

/* --- the loop ------------------------------------------------------------------------------- */

/* Time is counted in ticks of the loop: while the kernel holds its thread none passes. */
enum { TICK_MS = 10 };

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	++*(int *)arg;
}

void world_run_until(struct world *w, bool (*condition)(struct world *), int ms)
{
	static const struct timeval tick = { 0, TICK_MS * 1000 };
	int ticks = 0, patience = ms / TICK_MS;
	struct event *ticker = event_new(w->loop, -1, EV_PERSIST, on_tick, &ticks);

	event_add(ticker, &tick);
	while (!condition(w)) {
		ck_assert_msg(ticks <= patience,
			"the condition did not come true in %d ms: %u established, %u closed, "
			"%u live; %s",
			ms, w->established, w->closed, w->live, w->last_error);
		event_base_loop(w->loop, EVLOOP_ONCE);
	}
	event_free(ticker);
}

void world_run_turns(struct world *w, int turns)
{
	while (turns-- > 0)
		event_base_loop(w->loop, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

/* Without EVLOOP_ONCE the loop goes on as long as anything is active. */
void world_run_a_little(struct world *w)
{
	int times;

	for (times = 0; times < 6; times++)
		event_base_loop(w->loop, EVLOOP_NONBLOCK);
}

/* --- sides ---------------------------------------------------------------------------------- */

static void forget_side(struct side *side)
{
	struct world *w = side->world;

	if (w->client == side)
		w->client = NULL;
	if (w->server == side)
		w->server = NULL;
	free(side);
}

void side_close_if_down(struct side *side, enum evrdma_conn_event event)
{
	if (side->down && event != EVRDMA_CONN_CLOSED)
		evrdma_conn_close(side->conn);
}

static void on_conn_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	struct side *side = arg;
	struct world *w = side->world;

	ck_assert(!w->in_call);
	side->calls_after_closed += side->closed;
	ck_assert_uint_eq(side->calls_after_closed, 0);
	ck_assert_int_eq(!error, event != EVRDMA_CONN_ERROR);
	switch (event) {
	case EVRDMA_CONN_CONNECTED:
		ck_assert(!side->connected && !side->down);
		side->connected = true;
		w->established++;
		break;
	case EVRDMA_CONN_DISCONNECTED:
	case EVRDMA_CONN_ERROR:
		ck_assert_msg(!side->down, "the end was told twice");
		side->down = true;
		side->error = error ? error->err : 0;
		if (error)
			evrdma_error_text(error, w->last_error, sizeof(w->last_error));
		side->step = error ? error->step : EVRDMA_STEP_NONE;
		break;
	case EVRDMA_CONN_CLOSED:
		side->closed = true;
		w->closed++;
		w->live--;
		ck_assert_uint_eq(side->sends_taken, side->sends_ok + side->sends_cancelled);
		break;
	case EVRDMA_CONN_WRITABLE:
	case EVRDMA_CONN_ADDR_CHANGED:
		break;
	}
	if (w->on_event)
		w->on_event(side, event, error);
	else
		side_close_if_down(side, event);
	if (event == EVRDMA_CONN_CLOSED)
		forget_side(side);
}

static void on_conn_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	struct side *side = arg;

	ck_assert(!side->closed && !side->world->in_call);
	side->received += !recv->err;
	if (side->world->on_recv)
		side->world->on_recv(side, recv);
}

static void on_conn_sent(struct evrdma_conn *conn, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	struct side *side = arg;

	ck_assert(!side->closed && !side->world->in_call);
	if (error)
		side->sends_cancelled++;
	else
		side->sends_ok++;
	ck_assert_uint_le(side->sends_ok + side->sends_cancelled, side->sends_taken);
	if (side->world->on_sent)
		side->world->on_sent(side, error);
}

struct side *world_side_new(struct world *w, bool is_client)
{
	return world_side_new_on(w, w->base, is_client);
}

struct side *world_side_new_on(struct world *w, struct evrdma_base *base, bool is_client)
{
	struct evrdma_conn_options options = w->options;
	struct side *side = calloc(1, sizeof(*side));

	ck_assert_ptr_nonnull(side);
	if (base == w->other && options.recv_pool)
		options.recv_pool = w->other_pool;
	side->world = w;
	side->is_client = is_client;
	side->conn = evrdma_conn_new(base, &options);
	ck_assert_ptr_nonnull(side->conn);
	evrdma_conn_setcb(side->conn, on_conn_recv, on_conn_event, side);
	w->live++;
	*(is_client ? &w->client : &w->server) = side;
	return side;
}

int side_send_buf(struct side *side, struct evrdma_buf *buf, size_t len)
{
	int ret;

	side->world->in_call = true;
	ret = evrdma_conn_send(side->conn, buf, len, on_conn_sent, side);
	side->world->in_call = false;
	side->sends_taken += !ret;
	return ret;
}

void side_send(struct side *side, unsigned n, size_t len)
{
	int ret = 0;

	while (n-- && !ret) {
		struct evrdma_buf *buf = evrdma_pool_get(side->world->pool);

		ck_assert_ptr_nonnull(buf);
		memset(evrdma_buf_data(buf), 0x5a, len);
		ret = side_send_buf(side, buf, len);
		evrdma_buf_unref(buf);
	}
}

void side_accept(struct side *side, struct evrdma_request *request)
{
	side->world->in_call = true;
	ck_assert_int_eq(evrdma_conn_accept(side->conn, request), 0);
	side->world->in_call = false;
}

struct side *world_connect_to(struct world *w, const char *ip, uint16_t port)
{
	struct side *side = world_side_new(w, true);
	struct sockaddr_in sin;

	world_address(&sin, ip, port);
	w->in_call = true;
	ck_assert_int_eq(evrdma_conn_connect(side->conn, NULL, (struct sockaddr *)&sin), 0);
	w->in_call = false;
	return side;
}

enum { MAX_ADDRESSES = 4 };

struct side *world_connect_to_each(
	struct world *w, const char *const *ips, unsigned n, uint16_t port)
{
	struct side *side = world_side_new(w, true);
	struct rdma_addrinfo results[MAX_ADDRESSES] = { { 0 } };
	struct sockaddr_in addresses[MAX_ADDRESSES];
	unsigned i;

	ck_assert_uint_le(n, MAX_ADDRESSES);
	for (i = 0; i < n; i++) {
		world_address(&addresses[i], ips[i], port);
		results[i].ai_dst_addr = (struct sockaddr *)&addresses[i];
		results[i].ai_dst_len = sizeof(addresses[i]);
		results[i].ai_next = i + 1 < n ? &results[i + 1] : NULL;
	}
	w->in_call = true;
	ck_assert_int_eq(evrdma_conn_connect_addrinfo(side->conn, results), 0);
	w->in_call = false;
	return side;
}

struct side *world_connect(struct world *w)
{
	return world_connect_to(w, place.ip, evrdma_listener_get_port(w->listener));
}

/* --- the listener --------------------------------------------------------------------------- */

static void on_listener_request(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct world *w = arg;

	ck_assert(!w->in_call);
	if (w->on_request) {
		w->on_request(w, request);
		return;
	}
	side_accept(world_side_new(w, false), request);
}

void world_listen(struct world *w)
{
	world_listen_on(w, place.ip);
}

void world_listen_on(struct world *w, const char *ip)
{
	struct sockaddr_in sin;

	world_address(&sin, ip, 0);
	w->listener = evrdma_listener_new(
		w->base, (struct sockaddr *)&sin, NULL, on_listener_request, w);
	ck_assert_msg(w->listener, "listen: %s", strerror(errno));
}

static bool pair_is_up(struct world *w)
{
	return w->client && w->client->connected && w->server && w->server->connected;
}

void world_connect_pair(struct world *w)
{
	if (!w->listener)
		world_listen(w);
	world_connect(w);
	world_run_until(w, pair_is_up, 20000);
}

bool world_none_live(struct world *w)
{
	return !w->live;
}

bool world_client_is_down(struct world *w)
{
	return w->client && w->client->down;
}

bool world_client_is_closed(struct world *w)
{
	return !w->client;
}

/* --- life ----------------------------------------------------------------------------------- */

static void make_base(struct world *w, const struct evrdma_base_options *options)
{
	w->base = evrdma_base_new(w->loop, options);
	ck_assert_msg(w->base, "base: %s", strerror(errno));
	w->pool = evrdma_pool_new(w->base, BUF_SIZE, 0);
	ck_assert_ptr_nonnull(w->pool);
}

struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof(*w));

	ck_assert_ptr_nonnull(w);
	/* The CM keeps devices open. */
	rdma_free_devices(rdma_get_devices(NULL));
	place.count(w->counts_before);
	w->fds_before = count_fds();
	if (place.watch)
		place.watch(true);
	w->loop = event_base_new();
	make_base(w, NULL);
	evrdma_conn_options_init(&w->options);
	w->options.recv_pool = w->pool;
	return w;
}

static void on_base_closed(struct evrdma_base *base, void *arg)
{
	struct world *w = arg;

	w->base_closed = true;
}

bool world_base_is_closed(struct world *w)
{
	return w->base_closed;
}

void world_close_base(struct world *w)
{
	evrdma_base_close(w->base, on_base_closed, w);
}

void world_add_other(struct world *w)
{
	w->other = evrdma_base_new(w->loop, NULL);
	ck_assert_msg(w->other, "base: %s", strerror(errno));
	w->other_pool = evrdma_pool_new(w->other, BUF_SIZE, 0);
	ck_assert_ptr_nonnull(w->other_pool);
}

static void on_other_closed(struct evrdma_base *base, void *arg)
{
	struct world *w = arg;

	w->other_closed = true;
}

static bool other_is_closed(struct world *w)
{
	return w->other_closed;
}

void world_close_other(struct world *w)
{
	evrdma_base_close(w->other, on_other_closed, w);
	world_run_until(w, other_is_closed, 60000);
	w->other = NULL;
}

void world_replace_base(struct world *w, const struct evrdma_base_options *options)
{
	world_close_base(w);
	world_run_until(w, world_base_is_closed, 60000);
	w->base_closed = false;
	make_base(w, options);
	w->options.recv_pool = w->pool;
}

static void check_counts(struct world *w)
{
	int counts[PLACE_COUNTS];
	int i;

	place.count(counts);
	for (i = 0; i < PLACE_COUNTS; i++) {
		/* The stock CM keeps its device open, with a PD, once it was used. */
		if (!place.own_core && i == 3)
			continue;
		ck_assert_msg(counts[i] == w->counts_before[i], "%s: %d before, %d after",
			count_names[i], w->counts_before[i], counts[i]);
	}
	/* Less, where a device was removed and is not open any more. */
	if (place.own_core)
		ck_assert_int_le(count_fds(), w->fds_before);
}

void world_free(struct world *w)
{
	if (w->other)
		world_close_other(w);
	if (!w->base_closed)
		world_close_base(w);
	world_run_until(w, world_base_is_closed, 60000);
	ck_assert_uint_eq(w->live, 0);
	/* With nothing left to wait for, the loop ends by itself. */
	ck_assert_int_eq(event_base_loop(w->loop, 0), 1);
	event_base_free(w->loop);
	if (place.watch)
		place.watch(false);
	check_counts(w);
	free(w);
}
