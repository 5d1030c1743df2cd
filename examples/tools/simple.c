#include "simple.h"
#include "capability.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

/* --- messages ------------------------------------------------------------------------------- */

static int sends(const struct simple *test)
{
	return test->kind->is_client || test->kind->has_reply;
}

static int receives(const struct simple *test)
{
	return !test->kind->is_client || test->kind->has_reply;
}

static int is_through(const struct simple *test)
{
	return test->sent == sends(test) && test->received == receives(test);
}

/* The client goes first. */
static void go_on(struct simple *test)
{
	if (is_through(test) && test->kind->is_client)
		evrdma_conn_disconnect(test->conn);
}

static void was_sent(struct evrdma_conn *conn, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	struct simple *test = arg;

	if (error || test->tool.stopping)
		return;
	test->sent++;
	go_on(test);
}

/* Zeros, as ever. */
static void send_message(struct simple *test)
{
	struct evrdma_buf *buf = evrdma_pool_get(test->pool);
	int ret = -ENOMEM;

	if (buf) {
		memset(evrdma_buf_data(buf), 0, SIMPLE_MESSAGE_BYTES);
		ret = evrdma_conn_send(test->conn, buf, SIMPLE_MESSAGE_BYTES, was_sent, test);
	}
	evrdma_buf_unref(buf);
	if (ret && ret != -ENOTCONN)
		ends_fail_call(&test->ends, EVRDMA_STEP_TRANSFER, -ret);
}

static void message_came(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	struct simple *test = arg;

	if (recv->err || test->tool.stopping)
		return;
	if (recv->len != SIMPLE_MESSAGE_BYTES || test->received == receives(test)) {
		tool_fail(&test->tool,
			"%s: message %d has %zu bytes, where %d of %d were to come; see what runs "
			"there",
			ends_peer_text(&test->ends), test->received + 1, recv->len, receives(test),
			SIMPLE_MESSAGE_BYTES);
		return;
	}
	test->received++;
	if (!test->kind->is_client && sends(test))
		send_message(test);
	go_on(test);
}

/* --- the connection ------------------------------------------------------------------------- */

/* What the peer's acknowledgement is late for is counted between DISCONNECTED and CLOSED. */
static void conn_closed(struct simple *test)
{
	test->conn = NULL;
	if (!test->tool.stopping && !is_through(test))
		tool_fail(&test->tool,
			"%s: disconnected when %d of %d messages were received and %d of %d sent; "
			"see what the other side says",
			ends_peer_text(&test->ends), test->received, receives(test), test->sent,
			sends(test));
	tool_stop(&test->tool);
}

static void conn_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	struct simple *test = arg;

	switch (event) {
	case EVRDMA_CONN_CONNECTED:
		if (test->kind->is_client)
			send_message(test);
		break;
	case EVRDMA_CONN_DISCONNECTED:
		evrdma_conn_close(conn);
		break;
	case EVRDMA_CONN_ERROR:
		ends_fail_error(&test->ends, error);
		break;
	case EVRDMA_CONN_CLOSED:
		conn_closed(test);
		break;
	case EVRDMA_CONN_WRITABLE:
	case EVRDMA_CONN_ADDR_CHANGED:
		break;
	}
}

/* The number of the shared queue that rdma_xserver has for -c x; none with a queue of its own. */
static const uint32_t no_srq;

static int make_conn(struct simple *test)
{
	struct evrdma_conn_options options;

	evrdma_conn_options_init(&options);
	options.connect_timeout_ms = (int)test->options.timeout_s * 1000;
	options.drain_timeout_ms = (int)test->options.timeout_s * 1000;
	options.send_depth = 1;
	options.recv_depth = 1;
	options.recv_pool = test->pool;
	if (test->kind->has_xrc && !test->kind->is_client) {
		options.private_data = &no_srq;
		options.private_data_len = sizeof(no_srq);
	}
	test->conn = evrdma_conn_new(test->base, &options);
	if (!test->conn)
		return -errno;
	evrdma_conn_setcb(test->conn, message_came, conn_event, test);
	return 0;
}

static void connect_to_server(struct simple *test)
{
	int ret = make_conn(test);

	if (!ret)
		ret = evrdma_conn_connect(test->conn, NULL, ends_remote(&test->ends));
	if (ret)
		ends_fail_call(&test->ends, EVRDMA_STEP_CONNECT, -ret);
}

/* The first one is served, and no other. */
static void request_came(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct simple *test = arg;
	int ret;

	if (test->conn || test->tool.stopping) {
		evrdma_request_reject(request, NULL, 0);
		return;
	}
	ret = make_conn(test);
	if (!ret)
		ret = evrdma_conn_accept(test->conn, request);
	if (!ret)
		return;
	evrdma_request_reject(request, NULL, 0);
	ends_fail_call(&test->ends, EVRDMA_STEP_ACCEPT, -ret);
}

static void listener_event(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	struct simple *test = arg;

	if (event == EVRDMA_LISTENER_ERROR)
		ends_fail_error(&test->ends, error);
}

static void start_listening(struct simple *test)
{
	test->listener =
		evrdma_listener_new(test->base, ends_local(&test->ends), NULL, request_came, test);
	if (!test->listener)
		ends_fail_listen(&test->ends, errno);
	else
		evrdma_listener_set_event_cb(test->listener, listener_event);
}

/* --- the program ---------------------------------------------------------------------------- */

static void ends_found(void *arg)
{
	struct simple *test = arg;

	if (test->kind->is_client)
		connect_to_server(test);
	else
		start_listening(test);
}

static void interrupted(void *arg)
{
	struct simple *test = arg;

	tool_fail(&test->tool, "interrupted: %d of %d messages received, %d of %d sent",
		test->received, receives(test), test->sent, sends(test));
}

static int make_base(struct simple *test)
{
	test->base = tool_add_base(&test->tool, NULL);
	if (!test->base)
		return -1;
	test->pool = evrdma_pool_new(test->base, 4 * SIMPLE_MESSAGE_BYTES, 0);
	if (test->pool)
		return 0;
	tool_fail(&test->tool, "out of memory");
	return -1;
}

static void find_ends(struct simple *test)
{
	const struct simple_options *options = &test->options;

	test->ends.tool = &test->tool;
	if (test->kind->is_client)
		test->ends.server = options->server ? options->server : "127.0.0.1";
	else
		test->ends.bind = options->server;
	test->ends.port = options->port;
	test->ends.timeout_s = options->timeout_s;
	test->ends.cb = ends_found;
	test->ends.arg = test;
	ends_find(&test->ends);
}

static void refuse_xrc(struct simple *test)
{
	if (capability_xrc())
		tool_fail(&test->tool, "-c x: the connections of evrdma have no XRC; use -c r");
	else
		tool_fail(&test->tool, "-c x: no device here has XRC; use -c r");
}

static void start(struct simple *test)
{
	if (make_base(test))
		return;
	if (test->options.xrc)
		refuse_xrc(test);
	else
		find_ends(test);
}

void simple_start(struct simple *test)
{
	printf("%s: start\n", test->kind->name);
	if (!tool_init(&test->tool, test->kind->name, interrupted, test))
		start(test);
}

/* The last line has -1 for any failure. */
int simple_finish(struct simple *test)
{
	int status = tool_run(&test->tool);

	tool_fini(&test->tool);
	printf("%s: end %d\n", test->kind->name, status ? -1 : 0);
	return tool_end_output(test->kind->name, status);
}

int simple_main(const struct simple_kind *kind, int argc, char **argv)
{
	struct simple test = { .kind = kind };

	if (simple_read_options(&test, argc, argv))
		return EXIT_FAILURE;
	simple_start(&test);
	return simple_finish(&test);
}
