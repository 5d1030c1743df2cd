/* The server of cmtime: accepts whoever comes, and lets go of who goes. */
#include "cmtime.h"

#include <errno.h>
#include <stdio.h>

static void conn_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	struct cmtime *test = arg;

	switch (event) {
	case EVRDMA_CONN_CONNECTED:
		test->served++;
		break;
	case EVRDMA_CONN_ERROR:
		if (!test->tool.stopping)
			ends_tell_error(&test->ends, error);
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

static struct evrdma_conn *make_conn(struct cmtime *test)
{
	struct evrdma_conn_options options;

	evrdma_conn_options_init(&options);
	options.connect_timeout_ms = (int)test->options.patience_s * 1000;
	options.send_depth = 1;
	options.recv_depth = 1;
	return evrdma_conn_new(test->base, &options);
}

static void request_failed(struct cmtime *test, struct evrdma_request *request, int err)
{
	const struct evrdma_error error = {
		.err = err, .step = EVRDMA_STEP_ACCEPT, .cm_event = -1
	};

	evrdma_request_reject(request, NULL, 0);
	ends_tell_error(&test->ends, &error);
}

static void request_came(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct cmtime *test = arg;
	struct evrdma_conn *conn = test->tool.stopping ? NULL : make_conn(test);
	int ret;

	if (test->tool.stopping) {
		evrdma_request_reject(request, NULL, 0);
		return;
	}
	if (!conn) {
		request_failed(test, request, errno);
		return;
	}
	evrdma_conn_setcb(conn, NULL, conn_event, test);
	ret = evrdma_conn_accept(conn, request);
	if (!ret)
		return;
	evrdma_conn_close(conn);
	request_failed(test, request, -ret);
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
