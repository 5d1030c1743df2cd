/*
 * instructions MODE NUM: so many messages, writes or connections on the fake, both ends on one
 * base, for instructions.sh to count what the library takes for one. The time is the test's own.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>
#include <evrdma/evrdma.h>

#include "fake/fake.h"
#include "schedule/clock.h"

enum { MESSAGE_BYTES = 64, SEND_WINDOW = 64, WRITE_WINDOW = 16 };

struct bench;

struct mode {
	const char *name;
	/* What is to be over, of each that is asked for. */
	unsigned ends_of_each;
	/* Both ends are connected. */
	void (*begin)(struct bench *bench);
	/* One more of those that are under way, most of them at a time. */
	void (*next)(struct bench *bench);
	unsigned window;
};

struct bench {
	const struct mode *mode;
	struct sockaddr_in addr;
	struct event_base *loop;
	struct evrdma_base *base;
	struct evrdma_pool *pool;
	struct evrdma_listener *listener;
	struct evrdma_conn *client, *server;
	struct evrdma_buf *memory; /* the server's, to be written to */
	struct evrdma_remote remote;
	unsigned begun, wanted, left; /* left: ends */
	unsigned connected, open;     /* ends of the connection */
};

static void must(int well, const char *what)
{
	if (well)
		return;
	fprintf(stderr, "instructions: %s\n", what);
	exit(1);
}

/* --- messages and writes --------------------------------------------------------------------- */

static void one_is_over(struct bench *bench)
{
	if (!--bench->left)
		evrdma_conn_close(bench->client);
}

static struct evrdma_buf *new_message(struct bench *bench)
{
	struct evrdma_buf *buf = evrdma_pool_get(bench->pool);

	must(buf != NULL, "no buffer");
	bench->begun++;
	return buf;
}

static void send_buf(struct evrdma_conn *conn, struct evrdma_buf *buf)
{
	must(!evrdma_conn_send(conn, buf, MESSAGE_BYTES, NULL, NULL), "a message was not taken");
}

static void begin_ping(struct bench *bench)
{
	struct evrdma_buf *buf = new_message(bench);

	send_buf(bench->client, buf);
	evrdma_buf_unref(buf);
}

static void begin_window(struct bench *bench)
{
	while (bench->begun < bench->wanted && bench->begun < bench->mode->window)
		bench->mode->next(bench);
}

/* The next one takes its place. */
static void one_is_through(struct bench *bench, const struct evrdma_error *error)
{
	must(!error, "a message or a write was lost");
	if (bench->begun < bench->wanted)
		bench->mode->next(bench);
	one_is_over(bench);
}

static void on_sent(struct evrdma_conn *conn, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	one_is_through(arg, error);
}

static void send_next(struct bench *bench)
{
	struct evrdma_buf *buf = new_message(bench);

	must(!evrdma_conn_send(bench->client, buf, MESSAGE_BYTES, on_sent, bench),
		"a message was not taken");
	evrdma_buf_unref(buf);
}

static void on_written(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg)
{
	one_is_through(arg, error);
}

static void write_next(struct bench *bench)
{
	struct evrdma_seg seg = { .buf = new_message(bench), .len = MESSAGE_BYTES };
	struct evrdma_work work = {
		.op = EVRDMA_OP_WRITE, .segs = &seg, .seg_count = 1, .remote = bench->remote
	};

	must(!evrdma_conn_submit(bench->client, &work, on_written, bench), "a write was not taken");
	evrdma_buf_unref(seg.buf);
}

static void begin_writing(struct bench *bench)
{
	must(!evrdma_conn_expose(bench->server, bench->memory, &bench->remote), "nothing exposed");
	begin_window(bench);
}

/* --- the ends -------------------------------------------------------------------------------- */

static void begin_connecting(struct bench *bench);

static const struct mode modes[] = {
	{ "ping", 1, begin_ping, NULL, 0 },
	{ "send", 2, begin_window, send_next, SEND_WINDOW },
	{ "write", 1, begin_writing, write_next, WRITE_WINDOW },
	{ "connect", 1, begin_connecting, NULL, 0 },
	{ NULL, 0, NULL, NULL, 0 },
};

static void on_client_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	struct bench *bench = arg;

	must(!recv->err, "an answer was lost");
	if (bench->left > 1)
		send_buf(conn, recv->buf);
	one_is_over(bench);
}

static void on_server_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	struct bench *bench = arg;

	must(!recv->err, "a message was lost");
	if (bench->mode->begin == begin_ping)
		send_buf(conn, recv->buf);
	else
		one_is_over(bench);
}

static struct evrdma_conn *new_conn(
	struct bench *bench, evrdma_conn_recv_cb recv_cb, evrdma_conn_event_cb event_cb)
{
	struct evrdma_conn_options options;
	struct evrdma_conn *conn;

	evrdma_conn_options_init(&options);
	options.recv_pool = bench->pool;
	conn = evrdma_conn_new(bench->base, &options);
	must(conn != NULL, "no connection");
	evrdma_conn_setcb(conn, recv_cb, event_cb, bench);
	bench->open++;
	return conn;
}

static void connect_next(struct bench *bench);

static void close_all(struct bench *bench)
{
	evrdma_buf_unref(bench->memory);
	evrdma_pool_free(bench->pool);
	evrdma_base_close(bench->base, NULL, NULL);
}

static void one_is_closed(struct bench *bench)
{
	if (--bench->open)
		return;
	if (bench->left)
		connect_next(bench);
	else
		close_all(bench);
}

static void on_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	struct bench *bench = arg;

	if (event == EVRDMA_CONN_CLOSED) {
		one_is_closed(bench);
		return;
	}
	must(event != EVRDMA_CONN_ERROR, "a connection failed");
	if (event == EVRDMA_CONN_DISCONNECTED)
		evrdma_conn_close(conn);
	if (event == EVRDMA_CONN_CONNECTED && ++bench->connected == 2)
		bench->mode->begin(bench);
}

static void begin_connecting(struct bench *bench)
{
	bench->left--;
	evrdma_conn_close(bench->client);
}

static void connect_next(struct bench *bench)
{
	bench->connected = 0;
	bench->client = new_conn(bench, on_client_recv, on_event);
	must(!evrdma_conn_connect(bench->client, NULL, (struct sockaddr *)&bench->addr),
		"no connect");
}

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct bench *bench = arg;

	bench->server = new_conn(bench, on_server_recv, on_event);
	must(!evrdma_conn_accept(bench->server, request), "no accept");
}

/* --- all ------------------------------------------------------------------------------------- */

static struct evrdma_buf *new_memory(void)
{
	static unsigned char memory[MESSAGE_BYTES];

	return evrdma_buf_new_reference(
		memory, sizeof(memory), EVRDMA_BUF_OPT_REMOTE_WRITE, NULL, NULL);
}

static void open_all(struct bench *bench)
{
	bench->addr.sin_family = AF_INET;
	inet_pton(AF_INET, FAKE_ROCE_IP, &bench->addr.sin_addr);
	bench->loop = event_base_new();
	must(bench->loop != NULL, "no loop");
	bench->base = evrdma_base_new(bench->loop, NULL);
	must(bench->base != NULL, "no base");
	bench->pool = evrdma_pool_new(bench->base, MESSAGE_BYTES, 0);
	bench->memory = new_memory();
	bench->listener = evrdma_listener_new(
		bench->base, (struct sockaddr *)&bench->addr, NULL, on_request, bench);
	must(bench->pool && bench->memory && bench->listener, "out of memory");
	bench->addr.sin_port = htons(evrdma_listener_get_port(bench->listener));
}

static void run(struct bench *bench)
{
	fake_install();
	clock_start(1);
	open_all(bench);
	connect_next(bench);
	event_base_dispatch(bench->loop);
	event_base_free(bench->loop);
	must(!bench->left, "not all came to its end");
}

int main(int argc, char **argv)
{
	struct bench bench = { .mode = modes };

	while (argc == 3 && bench.mode->name && strcmp(bench.mode->name, argv[1]) != 0)
		bench.mode++;
	bench.wanted = argc == 3 ? (unsigned)atoi(argv[2]) : 0;
	if (!bench.mode->name || !bench.wanted) {
		fprintf(stderr, "usage: instructions ping|send|write|connect NUM\n");
		return 1;
	}
	bench.left = bench.wanted * bench.mode->ends_of_each;
	run(&bench);
	return 0;
}
