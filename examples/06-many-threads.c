/*
 * An echo server on several threads: one accepts, the others serve, each with a loop and a base of
 * its own. Nothing is shared between them, so there is no lock.
 *
 *   06-many-threads ADDRESS:PORT [THREADS]
 *
 * Ends when it is interrupted, in order: no new connection, then the end of those that are there.
 */
#include <errno.h>
#include <evrdma/evrdma.h>
#include <event2/event.h>
#include <event2/util.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 64, MESSAGE_BYTES = 4096, SHUTDOWN_MS = 2000 };

static struct worker {
	pthread_t thread;
	struct event_base *loop;
	struct evrdma_base *base;
	struct evrdma_pool *pool;
	int served;
} workers[MOST_THREADS];

static int count = 4, next;
static struct event *signal_event;

/* --- on a worker's thread ------------------------------------------------------------------- */

static void on_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *worker)
{
	int ret = evrdma_conn_send(conn, recv->buf, recv->len, NULL, NULL);

	if (ret && ret != -ENOTCONN)
		evrdma_conn_close(conn);
}

static void on_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *worker)
{
	if (event == EVRDMA_CONN_DISCONNECTED || event == EVRDMA_CONN_ERROR)
		evrdma_conn_close(conn);
	if (event == EVRDMA_CONN_CLOSED)
		((struct worker *)worker)->served++;
}

static void serve(struct evrdma_request *request, void *arg)
{
	struct worker *worker = arg;
	struct evrdma_conn_options options;
	struct evrdma_conn *conn;

	evrdma_conn_options_init(&options);
	options.recv_pool = worker->pool;
	conn = evrdma_conn_new(worker->base, &options);
	if (!conn || evrdma_conn_accept(conn, request)) {
		evrdma_request_reject(request, NULL, 0);
		evrdma_conn_close(conn);
	} else {
		evrdma_conn_setcb(conn, on_recv, on_event, worker);
	}
}

static void end(struct evrdma_base *base, void *arg)
{
	evrdma_base_shutdown(base, SHUTDOWN_MS, NULL, NULL);
}

static void *run(void *loop)
{
	event_base_dispatch(loop);
	event_base_free(loop);
	return NULL;
}

static int start(struct worker *worker)
{
	worker->loop = event_base_new();
	worker->base = evrdma_base_new(worker->loop, NULL);
	if (!worker->base)
		return -1;
	worker->pool = evrdma_pool_new(worker->base, MESSAGE_BYTES, 0);
	return pthread_create(&worker->thread, NULL, run, worker->loop);
}

/* --- on the thread that accepts ------------------------------------------------------------- */

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct worker *worker = &workers[next++ % count];

	if (evrdma_request_move(request, worker->base, serve, worker))
		evrdma_request_reject(request, NULL, 0);
}

/* No request is moved any more, so the workers may end. */
static void on_closed(struct evrdma_base *base, void *arg)
{
	int i;

	for (i = 0; i < count; i++)
		evrdma_base_run_in_loop(workers[i].base, end, NULL);
}

static void on_signal(evutil_socket_t fd, short what, void *base)
{
	event_del(signal_event);
	evrdma_base_close(base, on_closed, NULL);
}

int main(int argc, char **argv)
{
	struct evrdma_listener_options options;
	struct sockaddr_storage addr;
	int i, len = sizeof(addr);
	struct event_base *loop = event_base_new();
	struct evrdma_base *base = evrdma_base_new(loop, NULL);

	if (argc > 2)
		count = atoi(argv[2]);
	if (argc < 2 || count < 1 || count > MOST_THREADS ||
		evutil_parse_sockaddr_port(argv[1], (struct sockaddr *)&addr, &len))
		return fprintf(stderr, "usage: 06-many-threads ADDRESS:PORT [THREADS]\n"), 1;
	evrdma_listener_options_init(&options);
	options.relisten_ms = 1000; /* when the device was removed, until it is back */
	if (!base ||
		!evrdma_listener_new(base, (struct sockaddr *)&addr, &options, on_request, NULL))
		return perror("cannot listen"), 1;
	for (i = 0; i < count; i++)
		if (start(&workers[i]))
			return fprintf(stderr, "cannot start a thread\n"), 1;
	signal_event = evsignal_new(loop, SIGINT, on_signal, base);
	event_add(signal_event, NULL);
	event_base_dispatch(loop);
	for (i = 0; i < count; i++) {
		pthread_join(workers[i].thread, NULL);
		printf("thread %d served %d\n", i, workers[i].served);
	}
	event_free(signal_event);
	event_base_free(loop);
	return 0;
}
