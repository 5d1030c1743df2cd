/*
 * loops ADDRESS:PORT LOOPS MESSAGES: so many threads with a loop and a base each, and a connection
 * on it to the server of examples/06-many-threads.c, which is to have as many. On each connection
 * WINDOW messages are under way, there or back. Prints how many a second came back, on all of them.
 * Where a thread runs is the system's affair.
 */
#include <evrdma/evrdma.h>
#include <event2/event.h>
#include <event2/util.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"

enum { MOST_LOOPS = 64, BYTES = 64, BUF_BYTES = 4096, WINDOW = 16, LIMIT_S = 100 };

static struct worker {
	pthread_t thread;
	struct evrdma_pool *pool;
	long left;
} workers[MOST_LOOPS];

static struct sockaddr_storage addr;
static pthread_barrier_t together; /* when all are connected, and when all are done */

static void die(const char *what)
{
	fprintf(stderr, "loops: %s\n", what);
	exit(1);
}

/* Each that comes goes out again, but the last. */
static void on_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	struct worker *worker = arg;

	if (recv->err || worker->left <= 0)
		return;
	if (--worker->left) {
		if (evrdma_conn_send(conn, recv->buf, BYTES, NULL, NULL))
			die("cannot send");
	} else {
		pthread_barrier_wait(&together);
		evrdma_conn_close(conn);
	}
}

static void begin(struct evrdma_conn *conn, struct worker *worker)
{
	int i;

	pthread_barrier_wait(&together);
	for (i = 0; i < WINDOW; i++) {
		struct evrdma_buf *buf = evrdma_pool_get(worker->pool);

		if (!buf || evrdma_conn_send(conn, buf, BYTES, NULL, NULL))
			die("cannot send");
		evrdma_buf_unref(buf);
	}
}

static void on_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	if (event == EVRDMA_CONN_CONNECTED)
		begin(conn, arg);
	else if (event == EVRDMA_CONN_CLOSED)
		evrdma_base_close(evrdma_conn_get_base(conn), NULL, NULL);
	else if (event == EVRDMA_CONN_ERROR || event == EVRDMA_CONN_DISCONNECTED)
		die("the connection ended early");
}

static void *run(void *arg)
{
	struct worker *worker = arg;
	struct event_base *loop = event_base_new();
	struct evrdma_base *base = evrdma_base_new(loop, NULL);
	struct evrdma_conn_options options;
	struct evrdma_conn *conn;

	if (!base || !(worker->pool = evrdma_pool_new(base, BUF_BYTES, 0)))
		die("cannot make a base");
	evrdma_conn_options_init(&options);
	options.recv_pool = worker->pool;
	conn = evrdma_conn_new(base, &options);
	if (!conn || evrdma_conn_connect(conn, NULL, (struct sockaddr *)&addr))
		die("cannot connect");
	evrdma_conn_setcb(conn, on_recv, on_event, worker);
	event_base_dispatch(loop);
	event_base_free(loop);
	return NULL;
}

static double measure_s(int count)
{
	double began, took;
	int i;

	for (i = 0; i < count; i++)
		if (pthread_create(&workers[i].thread, NULL, run, &workers[i]))
			die("cannot make a thread");
	pthread_barrier_wait(&together);
	began = bench_now_us();
	pthread_barrier_wait(&together);
	took = (bench_now_us() - began) / 1e6;
	for (i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
	return took;
}

int main(int argc, char **argv)
{
	int i, count = argc > 2 ? atoi(argv[2]) : 0, len = sizeof(addr);
	long messages = argc > 3 ? atol(argv[3]) : 0;

	if (argc != 4 || count < 1 || count > MOST_LOOPS || messages < 1 ||
		evutil_parse_sockaddr_port(argv[1], (struct sockaddr *)&addr, &len))
		return fprintf(stderr, "usage: loops ADDRESS:PORT LOOPS MESSAGES\n"), 1;
	alarm(LIMIT_S);
	pthread_barrier_init(&together, NULL, (unsigned)count + 1);
	for (i = 0; i < count; i++)
		workers[i].left = messages;
	printf("%.1f\n", (double)messages * count / measure_s(count));
	return 0;
}
