/*
 * ucmatose: makes connections, sends messages both ways over each, and disconnects.
 */
#include "ucmatose.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>

#include <rdma/rdma_cma.h>

/* Of one connection: so many sends at once, and not much more memory. */
#define SENDS_AT_ONCE 64
#define SENDS_AT_ONCE_BYTES (256 * 1024)
#define CQ_ENTRIES_MIN 4096

int ucmatose_is_server(const struct ucmatose *test)
{
	return !test->options.server;
}

const char *ucmatose_peer_text(const struct ucmatose *test)
{
	return ucmatose_is_server(test) ? "client" : test->options.server;
}

/* --- what happens to a connection ----------------------------------------------------------- */

static void fail_unfinished(struct ucmatose_node *node)
{
	const struct ucmatose_options *options = &node->test->options;

	tool_fail(&node->test->tool,
		"%s: disconnected when connection %u had received %ld of %ld messages "
		"and sent %ld of %ld; see what the other side says",
		ucmatose_peer_text(node->test), node->number, node->received, options->messages,
		node->acked, options->messages);
}

/* The last messages are counted between DISCONNECTED and CLOSED. */
static void node_closed(struct ucmatose_node *node)
{
	struct ucmatose *test = node->test;

	evrdma_buf_unref(node->next);
	node->next = NULL;
	node->conn = NULL;
	test->closed++;
	if (test->tool.stopping)
		return;
	if (node->received < test->options.messages || node->acked < test->options.messages) {
		fail_unfinished(node);
		return;
	}
	ucmatose_advance(test);
	if (*test->phase != GONE || test->closed < test->options.connections)
		return;
	puts("test complete");
	tool_stop(&test->tool);
}

/* A server of ours that was started otherwise says so with its reject. */
static int rejected_by_ours(const struct ucmatose_node *node, struct ucmatose_hello *hello)
{
	size_t len;
	const void *data = evrdma_conn_get_private_data(node->conn, &len);

	return !node->connected && ucmatose_read_hello(data, len, hello) &&
	       !ucmatose_same_options(node->test, hello);
}

static void node_failed(struct ucmatose_node *node, const struct evrdma_error *error)
{
	struct ucmatose *test = node->test;
	const char *missing = ucmatose_missing_at(test, evrdma_conn_get_cm_id(node->conn));
	struct ucmatose_hello hello;

	if (test->tool.stopping)
		return;
	if (error->cm_event >= 0)
		printf("cmatose: event: %s, error: %d\n",
			rdma_event_str((enum rdma_cm_event_type)error->cm_event), error->cm_status);
	if (missing)
		tool_fail(&test->tool, "%s: %s", ucmatose_peer_text(test), missing);
	else if (!ucmatose_is_server(test) && rejected_by_ours(node, &hello))
		tool_fail(&test->tool,
			"%s: the server runs with -c %u -C %u -S %u; give both the same",
			ucmatose_peer_text(test), be32toh(hello.connections),
			be32toh(hello.messages), be32toh(hello.size_bytes));
	else
		ucmatose_fail_error(test, ucmatose_peer_text(test), error);
}

static void node_connected(struct ucmatose_node *node)
{
	node->connected = 1;
	node->test->connected++;
	ucmatose_advance(node->test);
}

static void node_disconnected(struct ucmatose_node *node)
{
	node->disconnected = 1;
	node->test->disconnected++;
	evrdma_conn_close(node->conn);
}

static void conn_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	struct ucmatose_node *node = arg;

	switch (event) {
	case EVRDMA_CONN_CONNECTED:
		node_connected(node);
		break;
	case EVRDMA_CONN_DISCONNECTED:
		node_disconnected(node);
		break;
	case EVRDMA_CONN_ERROR:
		node_failed(node, error);
		break;
	case EVRDMA_CONN_WRITABLE:
		ucmatose_send_more(node);
		break;
	case EVRDMA_CONN_CLOSED:
		node_closed(node);
		break;
	case EVRDMA_CONN_ADDR_CHANGED:
		break;
	}
}

static uint32_t sends_at_once(const struct ucmatose_options *options)
{
	long sends = options->size_bytes ? SENDS_AT_ONCE_BYTES / options->size_bytes : 1;

	if (sends > SENDS_AT_ONCE)
		sends = SENDS_AT_ONCE;
	return sends > 1 ? (uint32_t)sends : 1;
}

static void fill_conn_options(const struct ucmatose *test, struct evrdma_conn_options *conn)
{
	const struct ucmatose_options *options = &test->options;

	evrdma_conn_options_init(conn);
	conn->connect_timeout_ms = (int)options->timeout_s * 1000;
	conn->drain_timeout_ms = (int)options->timeout_s * 1000;
	conn->send_depth = sends_at_once(options);
	conn->recv_depth = options->messages ? (uint32_t)options->messages : 1;
	conn->recv_pool = test->pool;
	conn->port_space = options->port_space;
	conn->tos = ucmatose_is_server(test) ? -1 : (int)options->tos;
	conn->ack_timeout = (int)options->ack_timeout;
	conn->retry_count = 5;
	conn->rnr_retry_count = 0;
}

static int make_node(struct ucmatose *test, struct ucmatose_node *node, uint32_t number)
{
	struct evrdma_conn_options options;
	struct ucmatose_hello hello;

	ucmatose_make_hello(test, number, &hello);
	fill_conn_options(test, &options);
	options.private_data = &hello;
	options.private_data_len = sizeof(hello);
	node->test = test;
	node->number = number;
	node->conn = evrdma_conn_new(test->base, &options);
	if (!node->conn)
		return -errno;
	evrdma_conn_setcb(node->conn, ucmatose_message_came, conn_event, node);
	return 0;
}

/* --- the server ----------------------------------------------------------------------------- */

static void reject(struct ucmatose *test, struct evrdma_request *request)
{
	struct ucmatose_hello hello;

	puts("cmatose: failing connection request");
	ucmatose_make_hello(test, 0, &hello);
	evrdma_request_reject(request, &hello, sizeof(hello));
}

static void accept_request(struct ucmatose *test, struct evrdma_request *request, uint32_t number)
{
	struct ucmatose_node *node = &test->nodes[test->requested];
	int ret = make_node(test, node, number);

	if (!ret)
		ret = evrdma_conn_accept(node->conn, request);
	if (ret)
		ucmatose_fail_call(test, "client", EVRDMA_STEP_ACCEPT, -ret);
	else
		test->requested++;
}

static void request_came(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct ucmatose *test = arg;
	uint32_t number = (uint32_t)test->requested;
	struct ucmatose_hello hello;
	size_t len;
	const void *data = evrdma_request_get_private_data(request, &len);
	int ours = ucmatose_read_hello(data, len, &hello);

	if (ours)
		number = be32toh(hello.connection);
	if (test->tool.stopping || test->requested == test->options.connections ||
		(ours && !ucmatose_same_options(test, &hello)))
		reject(test, request);
	else
		accept_request(test, request, number);
}

static void listener_event(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	struct ucmatose *test = arg;

	if (event == EVRDMA_LISTENER_ERROR)
		ucmatose_fail_error(test, "listening", error);
}

static void listen_failed(struct ucmatose *test, int err)
{
	const struct evrdma_error error = {
		.err = err, .step = EVRDMA_STEP_LISTEN, .cm_event = -1
	};

	if (err == EACCES && test->options.port < IPPORT_RESERVED)
		tool_fail(&test->tool, "port %ld: %s; only root may use it, choose another with -p",
			test->options.port, strerror(err));
	else
		ucmatose_fail_error(
			test, test->options.bind ? test->options.bind : "any address", &error);
}

static void start_listening(void *arg)
{
	struct ucmatose *test = arg;
	struct evrdma_listener_options options;
	const char *missing;

	evrdma_listener_options_init(&options);
	options.port_space = test->options.port_space;
	options.ack_timeout = (int)test->options.ack_timeout;
	test->listener = evrdma_listener_new(
		test->base, (struct sockaddr *)&test->local.addr, &options, request_came, test);
	if (!test->listener) {
		listen_failed(test, errno);
		return;
	}
	evrdma_listener_set_event_cb(test->listener, listener_event);
	missing = ucmatose_missing_at(test, evrdma_listener_get_cm_id(test->listener));
	if (missing)
		tool_fail(&test->tool, "%s", missing);
}

/* --- the client ----------------------------------------------------------------------------- */

/* A name is looked up for each connection, and its addresses tried in turn. */
static int connect_by_name(struct ucmatose *test, struct ucmatose_node *node)
{
	struct evdns_base *evdns = address_resolver(&test->tool);

	if (!evdns)
		return -ENOMEM;
	return evrdma_conn_connect_hostname(
		node->conn, evdns, AF_UNSPEC, test->options.server, (uint16_t)test->options.port);
}

static int connect_node(struct ucmatose *test, struct ucmatose_node *node)
{
	const struct sockaddr *src = (struct sockaddr *)&test->local.addr;
	const struct sockaddr *dst = (struct sockaddr *)&test->remote.addr;

	if (dst->sa_family == AF_UNSPEC)
		return connect_by_name(test, node);
	return evrdma_conn_connect(node->conn, test->options.bind ? src : NULL, dst);
}

static void connect_all(void *arg)
{
	struct ucmatose *test = arg;
	int ret = 0;

	puts("cmatose: connecting");
	for (long i = 0; !ret && i < test->options.connections; i++) {
		ret = make_node(test, &test->nodes[i], (uint32_t)i);
		if (!ret)
			ret = connect_node(test, &test->nodes[i]);
	}
	if (ret)
		ucmatose_fail_call(test, test->options.server, EVRDMA_STEP_CONNECT, -ret);
}

/* The source is known, so that the server's name is asked for in its family. */
static void find_server(void *arg)
{
	struct ucmatose *test = arg;

	test->remote.family = test->local.addr.ss_family;
	address_lookup_start(&test->remote);
}

/* --- the program ---------------------------------------------------------------------------- */

static void fill_lookup(struct ucmatose *test, struct address_lookup *lookup, const char *text,
	uint16_t port, address_lookup_cb cb)
{
	lookup->tool = &test->tool;
	lookup->text = text;
	lookup->format = test->options.format;
	lookup->family = AF_UNSPEC;
	lookup->port_space = test->options.port_space;
	lookup->port = port;
	lookup->timeout_s = test->options.timeout_s;
	lookup->cb = cb;
	lookup->arg = test;
}

static void start_server(struct ucmatose *test)
{
	const struct ucmatose_options *options = &test->options;
	const char *any = "0.0.0.0";

	if (options->format == ADDRESS_GID || options->format == ADDRESS_IPV6)
		any = "::";
	puts("cmatose: starting server");
	fill_lookup(test, &test->local, options->bind ? options->bind : any,
		(uint16_t)options->port, start_listening);
	address_lookup_start(&test->local);
}

static void start_client(struct ucmatose *test)
{
	const struct ucmatose_options *options = &test->options;

	puts("cmatose: starting client");
	fill_lookup(test, &test->remote, options->server, (uint16_t)options->port, connect_all);
	fill_lookup(test, &test->local, options->bind, 0, find_server);
	if (options->bind)
		address_lookup_start(&test->local);
	else if (options->format == ADDRESS_NAME &&
		 address_parse(&test->remote.addr, ADDRESS_NAME, options->server,
			 options->port_space, (uint16_t)options->port))
		connect_all(test);
	else
		address_lookup_start(&test->remote);
}

static void interrupted(void *arg)
{
	struct ucmatose *test = arg;

	tool_fail(&test->tool,
		"interrupted: %ld of %ld connections made, "
		"%ld of %ld messages received, %ld of %ld sent",
		test->connected, test->options.connections, test->received,
		ucmatose_messages_wanted(test), test->acked, ucmatose_messages_wanted(test));
}

static int make_bases(struct ucmatose *test)
{
	struct evrdma_base_options options;
	unsigned entries = (unsigned)test->options.messages + SENDS_AT_ONCE;

	evrdma_base_options_init(&options);
	options.cq_entries = entries > CQ_ENTRIES_MIN ? entries : CQ_ENTRIES_MIN;
	test->base = tool_add_base(&test->tool, &options);
	if (test->base && test->options.migrate)
		test->spare = tool_add_base(&test->tool, NULL);
	return test->base && (test->spare || !test->options.migrate) ? 0 : -1;
}

static int make_memory(struct ucmatose *test)
{
	size_t size = test->options.size_bytes ? (size_t)test->options.size_bytes : 1;

	test->nodes = calloc((size_t)test->options.connections, sizeof(*test->nodes));
	test->pool = evrdma_pool_new(test->base, size, 0);
	if (test->nodes && test->pool)
		return 0;
	tool_fail(&test->tool, "out of memory; make -c or -S smaller");
	return -1;
}

static void start(struct ucmatose *test)
{
	const char *missing;

	ucmatose_begin(test);
	if (make_bases(test) || make_memory(test))
		return;
	missing = ucmatose_missing_here(test);
	if (missing)
		tool_fail(&test->tool, "%s", missing);
	else if (ucmatose_is_server(test))
		start_server(test);
	else
		start_client(test);
}

void ucmatose_start(struct ucmatose *test)
{
	if (!tool_init(&test->tool, UCMATOSE, interrupted, test))
		start(test);
}

int ucmatose_finish(struct ucmatose *test)
{
	int status = tool_run(&test->tool);

	tool_fini(&test->tool);
	free(test->nodes);
	if (test->base)
		printf("return status %d\n", status);
	return tool_end_output(UCMATOSE, status);
}
