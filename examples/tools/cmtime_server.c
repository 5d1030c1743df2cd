/* The server of cmtime: accepts whoever comes, and lets go of who goes. */
#include "cmtime.h"

#include <errno.h>
#include <stdio.h>

static void conn_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	struct cmtime_loop *loop = arg;

	switch (event) {
	case EVRDMA_CONN_CONNECTED:
		loop->served++;
		break;
	case EVRDMA_CONN_ERROR:
		if (!cmtime_loop_is_stopping(loop))
			cmtime_tell_error(loop, error);
		evrdma_conn_close(conn);
		break;
	case EVRDMA_CONN_DISCONNECTED:
		evrdma_conn_close(conn);
		break;
	case EVRDMA_CONN_WRITABLE:
	case EVRDMA_CONN_CLOSED:
	case EVRDMA_CONN_ADDR_CHANGED:
		break;
	}
}

static struct evrdma_conn *make_conn(struct cmtime_loop *loop)
{
	struct evrdma_conn_options options;

	evrdma_conn_options_init(&options);
	options.connect_timeout_ms = (int)loop->test->options.patience_s * 1000;
	options.send_depth = 1;
	options.recv_depth = 1;
	return evrdma_conn_new(loop->base, &options);
}

static void request_failed(struct cmtime_loop *loop, struct evrdma_request *request, int err)
{
	evrdma_request_reject(request, NULL, 0);
	cmtime_tell_call(loop, EVRDMA_STEP_ACCEPT, err);
}

/* On the loop whose turn it was. */
static void serve(struct evrdma_request *request, void *arg)
{
	struct cmtime_loop *loop = arg;
	struct evrdma_conn *conn;
	int ret;

	if (cmtime_loop_is_stopping(loop)) {
		evrdma_request_reject(request, NULL, 0);
		return;
	}
	conn = make_conn(loop);
	if (!conn) {
		request_failed(loop, request, errno);
		return;
	}
	evrdma_conn_setcb(conn, NULL, conn_event, loop);
	ret = evrdma_conn_accept(conn, request);
	if (!ret)
		return;
	evrdma_conn_close(conn);
	request_failed(loop, request, -ret);
}

static void request_came(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct cmtime *test = arg;
	struct cmtime_loop *loop = cmtime_next_loop(test);
	int ret;

	if (loop == test->loops) {
		serve(request, loop);
		return;
	}
	ret = evrdma_request_move(request, loop->base, serve, loop);
	if (ret)
		request_failed(loop, request, -ret);
}

static void listener_event(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	struct cmtime *test = arg;

	if (event == EVRDMA_LISTENER_ERROR)
		ends_fail_error(&test->ends, error);
}

void cmtime_serve(struct cmtime *test)
{
	test->listener =
		evrdma_listener_new(test->base, ends_local(&test->ends), NULL, request_came, test);
	if (!test->listener)
		ends_fail_listen(&test->ends, errno);
	else
		evrdma_listener_set_event_cb(test->listener, listener_event);
}
