/* The pings of rping over an evrdma_conn. */
#include "rping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct carrier {
	struct evrdma_conn *conn;
	struct evrdma_buf *source;
	struct evrdma_buf *sink;
};

/* --- work ----------------------------------------------------------------------------------- */

static void message_sent(struct evrdma_conn *conn, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
}

static int send_message(struct rping_peer *peer, const void *message)
{
	struct carrier *carrier = peer->carrier;
	struct evrdma_buf *buf = evrdma_pool_get(peer->test->pool);
	int ret;

	if (!buf)
		return -errno;
	memcpy(evrdma_buf_data(buf), message, RPING_MESSAGE_BYTES);
	ret = evrdma_conn_send(carrier->conn, buf, RPING_MESSAGE_BYTES, message_sent, peer);
	evrdma_buf_unref(buf);
	return ret;
}

static int expose(struct rping_peer *peer, int sink, struct evrdma_remote *remote)
{
	struct carrier *carrier = peer->carrier;

	return evrdma_conn_expose(carrier->conn, sink ? carrier->sink : carrier->source, remote);
}

/* Of a connection that breaks its ERROR tells. */
static void work_done(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg)
{
	if (!error)
		rping_work_done(arg);
}

static int submit(
	struct rping_peer *peer, enum evrdma_op op, const struct evrdma_remote *remote, size_t len)
{
	struct carrier *carrier = peer->carrier;
	const struct evrdma_seg seg = { .buf = carrier->sink, .len = len };
	const struct evrdma_work work = {
		.op = op, .segs = &seg, .seg_count = 1, .remote = *remote
	};

	return evrdma_conn_submit(carrier->conn, &work, work_done, peer);
}

static int read_from(struct rping_peer *peer, const struct evrdma_remote *from, size_t len)
{
	return submit(peer, EVRDMA_OP_READ, from, len);
}

static int write_to(struct rping_peer *peer, const struct evrdma_remote *to, size_t len)
{
	return submit(peer, EVRDMA_OP_WRITE, to, len);
}

/* --- the connection ------------------------------------------------------------------------- */

static void disconnect(struct rping_peer *peer)
{
	struct carrier *carrier = peer->carrier;

	evrdma_conn_disconnect(carrier->conn);
}

static void close_conn(struct rping_peer *peer)
{
	struct carrier *carrier = peer->carrier;

	evrdma_conn_close(carrier->conn);
}

static const struct rping_link link_of_conn = {
	.send = send_message,
	.expose = expose,
	.read = read_from,
	.write = write_to,
	.disconnect = disconnect,
	.close = close_conn,
};

static void free_carrier(struct carrier *carrier)
{
	if (!carrier)
		return;
	evrdma_buf_unref(carrier->source);
	evrdma_buf_unref(carrier->sink);
	free(carrier);
}

static void conn_closed(struct rping_peer *peer)
{
	free_carrier(peer->carrier);
	rping_closed(peer);
}

static void conn_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	switch (event) {
	case EVRDMA_CONN_CONNECTED:
		rping_connected(arg);
		break;
	case EVRDMA_CONN_DISCONNECTED:
		rping_disconnected(arg);
		break;
	case EVRDMA_CONN_ERROR:
		rping_failed(arg, error);
		break;
	case EVRDMA_CONN_CLOSED:
		conn_closed(arg);
		break;
	case EVRDMA_CONN_WRITABLE:
	case EVRDMA_CONN_ADDR_CHANGED:
		break;
	}
}

static void message_came(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	if (!recv->err)
		rping_message_came(arg, recv->data, recv->len);
}

static struct evrdma_buf *make_buf(struct rping *test, void *data)
{
	return evrdma_buf_new_reference(data, (size_t)test->options.size_bytes,
		EVRDMA_BUF_OPT_REMOTE_READ | EVRDMA_BUF_OPT_REMOTE_WRITE, NULL, NULL);
}

static struct evrdma_conn *make_conn(struct rping *test)
{
	struct evrdma_conn_options options;

	evrdma_conn_options_init(&options);
	options.connect_timeout_ms = (int)test->options.timeout_s * 1000;
	options.drain_timeout_ms = (int)test->options.timeout_s * 1000;
	options.send_depth = 4;
	options.recv_depth = 2;
	options.recv_pool = test->pool;
	return evrdma_conn_new(test->base, &options);
}

static struct carrier *make_carrier(struct rping *test, struct rping_peer *peer)
{
	struct carrier *carrier = calloc(1, sizeof(*carrier));

	if (!carrier)
		return NULL;
	carrier->source = make_buf(test, peer->source);
	carrier->sink = make_buf(test, peer->sink);
	if (carrier->source && carrier->sink)
		carrier->conn = make_conn(test);
	if (carrier->conn)
		return carrier;
	free_carrier(carrier);
	return NULL;
}

/* Returns NULL after it was told. */
static struct rping_peer *make_peer(struct rping *test)
{
	struct rping_peer *peer = rping_new_peer(test, &link_of_conn);
	struct carrier *carrier;

	if (!peer)
		return NULL;
	carrier = make_carrier(test, peer);
	if (!carrier) {
		ends_fail_call(&test->ends, EVRDMA_STEP_DEVICE, errno);
		rping_free_peer(peer);
		return NULL;
	}
	peer->carrier = carrier;
	evrdma_conn_setcb(carrier->conn, message_came, conn_event, peer);
	return peer;
}

/* --- the two sides -------------------------------------------------------------------------- */

static void connect_peer(struct rping *test)
{
	struct rping_peer *peer = make_peer(test);
	struct carrier *carrier;
	int ret;

	if (!peer)
		return;
	carrier = peer->carrier;
	ret = evrdma_conn_connect(carrier->conn, ends_local(&test->ends), ends_remote(&test->ends));
	if (ret)
		rping_call_failed(peer, EVRDMA_STEP_CONNECT, -ret);
}

static void accept_peer(struct rping *test, struct evrdma_request *request)
{
	struct rping_peer *peer = make_peer(test);
	struct carrier *carrier;
	int ret;

	if (!peer) {
		evrdma_request_reject(request, NULL, 0);
		return;
	}
	carrier = peer->carrier;
	ret = evrdma_conn_accept(carrier->conn, request);
	if (!ret)
		return;
	evrdma_request_reject(request, NULL, 0);
	rping_call_failed(peer, EVRDMA_STEP_ACCEPT, -ret);
}

static void request_came(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct rping *test = arg;

	rping_debug(test, "a client wants to connect");
	if (rping_has_room(test))
		accept_peer(test, request);
	else
		evrdma_request_reject(request, NULL, 0);
}

static void listener_event(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	struct rping *test = arg;

	if (event == EVRDMA_LISTENER_ERROR)
		ends_fail_error(&test->ends, error);
}

static void start_listening(struct rping *test)
{
	test->listener =
		evrdma_listener_new(test->base, ends_local(&test->ends), NULL, request_came, test);
	if (!test->listener)
		ends_fail_listen(&test->ends, errno);
	else
		evrdma_listener_set_event_cb(test->listener, listener_event);
}

void rping_conn_start(struct rping *test)
{
	if (test->options.client)
		connect_peer(test);
	else
		start_listening(test);
}
