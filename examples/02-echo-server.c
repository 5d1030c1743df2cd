/*
 * Sends every message back to where it came from, out of the buffer it arrived in.
 *
 *   02-echo-server [ADDRESS:PORT]     (0.0.0.0:7471 when not given)
 *
 * Each connection has 64 buffers. All of them may be on their way back; meanwhile none is posted,
 * the peer waits, and no send is ever more than there is room for.
 */
#include <errno.h>
#include <evrdma/evrdma.h>
#include <event2/event.h>
#include <event2/util.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE_BYTES = 4096, BUFFERS = 64 };

static void on_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	int ret = evrdma_conn_send(conn, recv->buf, recv->len, NULL, NULL);

	/* One that is being disconnected takes no more; what it took still goes. */
	if (ret && ret != -ENOTCONN)
		evrdma_conn_close(conn);
}

static void on_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *pool)
{
	char text[EVRDMA_ERROR_TEXT_MAX];

	if (event == EVRDMA_CONN_ERROR)
		fprintf(stderr, "echo: %s\n", evrdma_error_text(error, text, sizeof(text)));
	if (event == EVRDMA_CONN_ERROR || event == EVRDMA_CONN_DISCONNECTED)
		evrdma_conn_close(conn);
	if (event == EVRDMA_CONN_CLOSED)
		evrdma_pool_free(pool);
}

/* 0, or why the request is still pending. */
static int accept_request(struct evrdma_request *request, struct evrdma_pool *pool)
{
	struct evrdma_conn_options options;
	struct evrdma_conn *conn;
	int ret;

	evrdma_conn_options_init(&options);
	options.recv_pool = pool;
	options.recv_depth = BUFFERS;
	options.send_depth = BUFFERS;
	conn = evrdma_conn_new(evrdma_request_get_base(request), &options);
	if (!conn)
		return -1;
	ret = evrdma_conn_accept(conn, request);
	if (ret)
		evrdma_conn_close(conn);
	else
		evrdma_conn_setcb(conn, on_recv, on_event, pool);
	return ret;
}

static void on_request(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct evrdma_base *base = evrdma_request_get_base(request);
	struct evrdma_pool *pool = evrdma_pool_new(base, MESSAGE_BYTES, BUFFERS);

	if (pool && accept_request(request, pool) == 0)
		return;
	evrdma_request_reject(request, NULL, 0);
	evrdma_pool_free(pool);
}

/* Of an address whose device was removed: the listener comes back with it, by relisten_ms. */
static void on_listener_event(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	char text[EVRDMA_ERROR_TEXT_MAX];

	if (event == EVRDMA_LISTENER_ERROR)
		fprintf(stderr, "echo: %s\n", evrdma_error_text(error, text, sizeof(text)));
	if (event == EVRDMA_LISTENER_LISTENING)
		printf("echo: listening again\n");
}

static struct evrdma_listener *listen_on(struct evrdma_base *base, const struct sockaddr *addr)
{
	struct evrdma_listener_options options;
	struct evrdma_listener *listener;

	evrdma_listener_options_init(&options);
	options.relisten_ms = 1000;
	listener = evrdma_listener_new(base, addr, &options, on_request, NULL);
	if (listener)
		evrdma_listener_set_event_cb(listener, on_listener_event);
	return listener;
}

/* What ends the server: a signal, whose event keeps the loop going like any other. */
struct quit {
	struct event *signal;
	struct evrdma_base *base;
};

static void on_base_closed(struct evrdma_base *base, void *arg)
{
	struct quit *quit = arg;

	event_del(quit->signal);
}

static void on_signal(evutil_socket_t signal, short what, void *arg)
{
	struct quit *quit = arg;

	evrdma_base_close(quit->base, on_base_closed, quit);
}

static int serve(struct event_base *loop, const struct sockaddr *addr)
{
	struct quit quit = { NULL, NULL };
	struct evrdma_listener *listener;

	quit.signal = evsignal_new(loop, SIGINT, on_signal, &quit);
	quit.base = evrdma_base_new(loop, NULL);
	if (!quit.signal || !quit.base)
		return perror("echo: cannot start"), 1;
	event_add(quit.signal, NULL);
	listener = listen_on(quit.base, addr);
	if (!listener) {
		perror("echo: cannot listen");
		evrdma_base_close(quit.base, on_base_closed, &quit);
	} else {
		printf("echo: listening on port %d\n", evrdma_listener_get_port(listener));
	}
	event_base_dispatch(loop);
	event_free(quit.signal);
	return !listener;
}

int main(int argc, char **argv)
{
	const char *text = argc > 1 ? argv[1] : "0.0.0.0:7471";
	struct sockaddr_storage addr;
	int len = sizeof(addr);
	struct event_base *loop;
	int status;

	if (evutil_parse_sockaddr_port(text, (struct sockaddr *)&addr, &len)) {
		fprintf(stderr, "echo: not an ADDRESS:PORT: %s\n", text);
		return 1;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	loop = event_base_new();
	status = loop ? serve(loop, (struct sockaddr *)&addr) : 1;
	if (loop)
		event_base_free(loop);
	return status;
}
