#include "scale/crowd.h"

#include <evrdma/evrdma.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEPTH = 2,
	MESSAGE_BYTES = 64,
	AT_ONCE = 64,
	TICK_US = 1000,
	IDLE_TURNS = 100,
	CONNECT_MS = 300000
};

struct run {
	struct crowd *crowd;
	uint64_t (*now_us)(void);
	struct sockaddr_storage addr;
	struct event_base *loop;
	struct evrdma_base *base;
	struct evrdma_pool *pool;
	struct evrdma_listener *listener;
	struct evrdma_conn **clients;
	unsigned begun;
	unsigned left; /* ends of connections that are not closed yet */
	struct event *tick;
	uint64_t last_tick_us;
};

static void fail(struct run *run, const char *what)
{
	if (!run->crowd->error)
		run->crowd->error = what;
	event_base_loopbreak(run->loop);
}

/* --- the timer ------------------------------------------------------------------------------- */

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;
	uint64_t now = run->now_us(), gap = now - run->last_tick_us;

	if (gap > run->crowd->longest_gap_us)
		run->crowd->longest_gap_us = gap;
	run->last_tick_us = now;
	run->crowd->ticks++;
}

static int start_ticking(struct run *run)
{
	static const struct timeval every = { 0, TICK_US };

	run->tick = event_new(run->loop, -1, EV_PERSIST, on_tick, run);
	if (!run->tick)
		return -1;
	run->last_tick_us = run->now_us();
	return event_add(run->tick, &every);
}

/* --- the ends -------------------------------------------------------------------------------- */

static int send_one(struct evrdma_conn *conn, struct evrdma_pool *pool)
{
	struct evrdma_buf *buf = evrdma_pool_get(pool);
	int ret;

	if (!buf)
		return -1;
	memset(evrdma_buf_data(buf), 0, MESSAGE_BYTES);
	ret = evrdma_conn_send(conn, buf, MESSAGE_BYTES, NULL, NULL);
	evrdma_buf_unref(buf);
	return ret;
}

static void on_server_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	if (!recv->err && evrdma_conn_send(conn, recv->buf, recv->len, NULL, NULL))
		fail(arg, "an answer cannot be sent");
}

static void on_client_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	struct run *run = arg;

	if (recv->err)
		return;
	run->crowd->passed++;
	if (run->crowd->passed == run->crowd->wanted)
		event_base_loopbreak(run->loop);
}

static void on_end(struct run *run, struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error)
{
	if (event == EVRDMA_CONN_DISCONNECTED)
		evrdma_conn_close(conn);
	if (event == EVRDMA_CONN_ERROR)
		fail(run, evrdma_error_text(error, run->crowd->text, sizeof(run->crowd->text)));
	if (event != EVRDMA_CONN_CLOSED)
		return;
	run->crowd->closed++;
	run->left--;
	if (!run->left)
		event_base_loopbreak(run->loop);
}

static void on_server_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	on_end(arg, conn, event, error);
}

static void on_client_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg);

static struct evrdma_conn *new_conn(struct run *run)
{
	struct evrdma_conn_options options;
	struct evrdma_conn *conn;

	evrdma_conn_options_init(&options);
	options.recv_pool = run->pool;
	options.recv_depth = options.send_depth = DEPTH;
	options.connect_timeout_ms = CONNECT_MS;
	conn = evrdma_conn_new(run->base, &options);
	if (conn)
		run->left++;
	return conn;
}

static void connect_next(struct run *run)
{
	struct evrdma_conn *conn;

	if (run->begun == run->crowd->wanted)
		return;
	conn = new_conn(run);
	if (!conn) {
		fail(run, "no connection");
		return;
	}
	run->clients[run->begun++] = conn;
	evrdma_conn_setcb(conn, on_client_recv, on_client_event, run);
	if (evrdma_conn_connect(conn, NULL, (struct sockaddr *)&run->addr))
		fail(run, "no connect");
}

static void on_client_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	struct run *run = arg;

	if (event != EVRDMA_CONN_CONNECTED) {
		on_end(run, conn, event, error);
		return;
	}
	run->crowd->made++;
	connect_next(run);
	if (run->crowd->made == run->crowd->wanted)
		event_base_loopbreak(run->loop);
}

static void on_request(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct evrdma_conn *conn = new_conn(arg);

	if (!conn || evrdma_conn_accept(conn, request))
		fail(arg, "a request cannot be accepted");
	else
		evrdma_conn_setcb(conn, on_server_recv, on_server_event, arg);
}

/* --- the phases ------------------------------------------------------------------------------ */

static void set_up(struct run *run)
{
	unsigned i, at_once = run->crowd->at_once ? run->crowd->at_once : AT_ONCE;

	for (i = 0; i < at_once; i++)
		connect_next(run);
	event_base_dispatch(run->loop);
}

static void idle(struct run *run)
{
	int i;

	for (i = 0; i < IDLE_TURNS && !run->crowd->error; i++)
		event_base_loop(run->loop, EVLOOP_ONCE);
}

static void use(struct run *run)
{
	unsigned i;

	for (i = 0; i < run->crowd->wanted; i++)
		if (send_one(run->clients[i], run->pool))
			fail(run, "a message cannot be sent");
	if (!run->crowd->error)
		event_base_dispatch(run->loop);
}

static void tear_down(struct run *run)
{
	unsigned i;

	for (i = 0; i < run->crowd->wanted; i++)
		evrdma_conn_close(run->clients[i]);
	event_base_dispatch(run->loop);
}

static void pass_through(struct run *run, enum crowd_phase phase, void (*step)(struct run *run))
{
	struct crowd *crowd = run->crowd;

	if (crowd->error)
		return;
	if (crowd->watch)
		crowd->watch(phase, 0, crowd->arg);
	crowd->began_us[phase] = run->now_us();
	step(run);
	crowd->ended_us[phase] = run->now_us();
	if (crowd->watch)
		crowd->watch(phase, 1, crowd->arg);
}

/* --- all ------------------------------------------------------------------------------------- */

static void listen_on(struct run *run, const struct sockaddr *addr)
{
	memcpy(&run->addr, addr, sizeof(struct sockaddr_in));
	run->listener = evrdma_listener_new(run->base, addr, NULL, on_request, run);
	if (!run->listener) {
		fail(run, "no listener");
		return;
	}
	((struct sockaddr_in *)&run->addr)->sin_port =
		htons(evrdma_listener_get_port(run->listener));
}

static void on_base_closed(struct evrdma_base *base, void *arg)
{
	struct run *run = arg;

	event_del(run->tick);
}

static void open_base(struct run *run)
{
	struct evrdma_base_options options;

	evrdma_base_options_init(&options);
	if (run->crowd->cq_entries)
		options.cq_entries = run->crowd->cq_entries;
	run->base = evrdma_base_new(run->loop, &options);
}

static int open_all(struct run *run, const struct sockaddr *addr)
{
	run->loop = event_base_new();
	if (run->loop)
		open_base(run);
	if (run->base)
		run->pool = evrdma_pool_new(run->base, MESSAGE_BYTES, 0);
	run->clients = calloc(run->crowd->wanted, sizeof(struct evrdma_conn *));
	if (!run->pool || !run->clients || start_ticking(run))
		return -1;
	listen_on(run, addr);
	return 0;
}

static void close_all(struct run *run)
{
	evrdma_listener_close(run->listener);
	evrdma_pool_free(run->pool);
	evrdma_base_close(run->base, on_base_closed, run);
	event_base_dispatch(run->loop);
	event_free(run->tick);
	event_base_free(run->loop);
	free(run->clients);
}

int crowd_run(struct crowd *crowd, const struct sockaddr *addr, uint64_t (*now_us)(void))
{
	struct run run = { .crowd = crowd, .now_us = now_us };

	if (open_all(&run, addr)) {
		crowd->error = "out of memory";
		return -1;
	}
	pass_through(&run, CROWD_SET_UP, set_up);
	pass_through(&run, CROWD_IDLE, idle);
	pass_through(&run, CROWD_USED, use);
	pass_through(&run, CROWD_TORN_DOWN, tear_down);
	close_all(&run);
	return crowd->error ? -1 : 0;
}
