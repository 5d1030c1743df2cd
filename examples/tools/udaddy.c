/*
 * udaddy: a client finds a server's endpoints and sends them datagrams; the server sends as many
 * back to where they came from.
 */
#include "udaddy.h"
#include "capability.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>

#include <event2/event.h>
#include <rdma/rdma_cma.h>

#define SENDS_AT_ONCE 64
#define CQ_ENTRIES_MIN 4096

int udaddy_is_server(const struct udaddy *test)
{
	return !test->options.server;
}

static long messages_wanted(const struct udaddy *test)
{
	return test->options.connections * test->options.messages;
}

/* --- failures ------------------------------------------------------------------------------- */

static const char no_datagrams[] =
	"an iWARP device has no datagrams; use an InfiniBand or RoCE device";

const char *udaddy_missing_here(const struct udaddy *test)
{
	if (test->options.port_space == RDMA_PS_IPOIB)
		return "the IPoIB port space, which only InfiniBand has, has no services to find "
		       "here; use -P udp";
	if (test->options.format == ADDRESS_GID && !capability_infiniband())
		return "the addresses of -f gid (AF_IB) need an InfiniBand device; give IP "
		       "addresses";
	return capability_ib_transport() ? NULL : no_datagrams;
}

void udaddy_fail_error(
	struct udaddy *test, const struct udaddy_node *node, const struct evrdma_error *error)
{
	if (node && node->dgram && capability_is_iwarp(evrdma_dgram_get_cm_id(node->dgram)))
		tool_fail(&test->tool, "%s: %s", ends_peer_text(&test->ends), no_datagrams);
	else
		ends_fail_error(&test->ends, error);
}

void udaddy_fail_call(
	struct udaddy *test, const struct udaddy_node *node, enum evrdma_step step, int err)
{
	const struct evrdma_error error = { .err = err, .step = step, .cm_event = -1 };

	udaddy_fail_error(test, node, &error);
}

static void interrupted(void *arg)
{
	struct udaddy *test = arg;

	tool_fail(&test->tool,
		"interrupted: %ld of %ld endpoints found, %ld of %ld messages received, "
		"%ld of %ld sent",
		test->connected, test->options.connections, test->received, messages_wanted(test),
		test->acked, messages_wanted(test));
}

/* Nobody sends a datagram twice: what is lost has to be seen by the silence. */
static void timer_fired(evutil_socket_t fd, short what, void *arg)
{
	struct udaddy *test = arg;

	tool_fail(&test->tool,
		"%ld of %ld messages received, %ld of %ld sent, and nothing for %ld seconds; "
		"see what the other side says, and whether the network loses datagrams",
		test->received, messages_wanted(test), test->acked, messages_wanted(test),
		test->options.timeout_s);
}

static void restart_timer(struct udaddy *test)
{
	const struct timeval time = { .tv_sec = test->options.timeout_s };

	evtimer_add(test->timer, &time);
}

/* --- the phases ----------------------------------------------------------------------------- */

static void send_more(struct udaddy_node *node);

static void leave(struct udaddy *test)
{
	test->phase = LEAVING;
	event_del(test->timer);
	if (test->options.messages)
		puts("data transfers complete");
	for (long i = 0; i < test->options.connections; i++)
		evrdma_dgram_close(test->nodes[i].dgram);
}

static void reply(struct udaddy *test)
{
	test->phase = REPLYING;
	if (test->options.messages)
		puts("sending replies");
	for (long i = 0; i < test->options.connections; i++)
		send_more(&test->nodes[i]);
}

static void all_connected(struct udaddy *test)
{
	test->phase = RECEIVING;
	restart_timer(test);
	if (!test->options.messages)
		return;
	if (!udaddy_is_server(test)) {
		puts("initiating data transfers");
		for (long i = 0; i < test->options.connections; i++)
			send_more(&test->nodes[i]);
	}
	puts("receiving data transfers");
}

/* Goes on to the next phase as far as the sums allow. */
static void advance(struct udaddy *test)
{
	int all_received = test->received == messages_wanted(test);
	int all_sent = test->acked == messages_wanted(test);

	if (test->tool.stopping)
		return;
	if (test->phase == CONNECTING && test->connected == test->options.connections)
		all_connected(test);
	if (test->phase == RECEIVING && all_received && udaddy_is_server(test))
		reply(test);
	if ((test->phase == RECEIVING || test->phase == REPLYING) && all_received && all_sent)
		leave(test);
}

/* --- datagrams ------------------------------------------------------------------------------ */

static void sent(struct evrdma_dgram *dgram, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	struct udaddy_node *node = arg;
	struct udaddy *test = node->test;

	if (test->tool.stopping)
		return;
	if (error) {
		udaddy_fail_error(test, node, error);
		return;
	}
	node->acked++;
	test->acked++;
	restart_timer(test);
	advance(test);
}

static int send_next(struct udaddy_node *node)
{
	size_t size = (size_t)node->test->options.size_bytes;
	uint32_t imm = evrdma_dgram_get_qp_num(node->dgram);
	int ret;

	if (!node->next)
		node->next = udaddy_make_message(node);
	if (!node->next)
		return -errno;
	ret = evrdma_dgram_send_to(node->dgram, node->peer, node->next, size, &imm, sent, node);
	if (ret)
		return ret;
	evrdma_buf_unref(node->next);
	node->next = NULL;
	node->sent++;
	return 0;
}

static int may_send(const struct udaddy_node *node)
{
	enum udaddy_phase phase = node->test->phase;

	return node->peer_ready && phase == (udaddy_is_server(node->test) ? REPLYING : RECEIVING);
}

/* Goes on at WRITABLE after -EAGAIN. After -ENOTCONN the event that says why is on its way. */
static void send_more(struct udaddy_node *node)
{
	int ret = 0;

	while (!ret && may_send(node) && node->sent < node->test->options.messages)
		ret = send_next(node);
	if (ret && ret != -EAGAIN && ret != -ENOTCONN)
		udaddy_fail_call(node->test, node, EVRDMA_STEP_TRANSFER, -ret);
}

static void peer_event(struct evrdma_peer *peer, enum evrdma_peer_event event,
	const struct evrdma_error *error, void *arg);

/* The server sends to where the first one came from. */
static int find_sender(struct udaddy_node *node, const struct evrdma_recv *recv)
{
	if (node->peer || !udaddy_is_server(node->test))
		return 0;
	node->peer = evrdma_peer_new_sender(node->dgram, recv, peer_event, node);
	if (node->peer)
		return 0;
	udaddy_fail_call(node->test, node, EVRDMA_STEP_ADDR, errno);
	return -1;
}

static void message_came(struct evrdma_dgram *dgram, const struct evrdma_recv *recv, void *arg)
{
	struct udaddy_node *node = arg;
	struct udaddy *test = node->test;

	if (recv->err || test->tool.stopping || test->phase == LEAVING)
		return;
	if (udaddy_check_message(node, recv) || find_sender(node, recv))
		return;
	node->received++;
	test->received++;
	restart_timer(test);
	advance(test);
}

/* --- endpoints ------------------------------------------------------------------------------ */

static void node_connected(struct udaddy_node *node)
{
	node->test->connected++;
	advance(node->test);
}

/* The client's peer is the service that was found, the server's is who sent something. */
static void peer_found(struct udaddy_node *node)
{
	struct udaddy_hello hello;
	size_t len;
	const void *data = evrdma_peer_get_private_data(node->peer, &len);

	node->peer_ready = 1;
	if (udaddy_is_server(node->test)) {
		send_more(node);
		return;
	}
	node->peer_is_ours = udaddy_read_hello(data, len, &hello);
	node_connected(node);
}

static void peer_failed(struct udaddy_node *node, const struct evrdma_error *error)
{
	struct udaddy *test = node->test;
	struct udaddy_hello hello;
	size_t len;
	const void *data = evrdma_peer_get_private_data(node->peer, &len);

	if (test->tool.stopping)
		return;
	if (error->cm_event >= 0)
		printf("udaddy: event: %s, error: %d\n",
			rdma_event_str((enum rdma_cm_event_type)error->cm_event), error->cm_status);
	if (udaddy_read_hello(data, len, &hello) && !udaddy_same_options(test, &hello))
		tool_fail(&test->tool,
			"%s: the server runs with -c %u -C %u -S %u; give both the same",
			ends_peer_text(&test->ends), be32toh(hello.connections),
			be32toh(hello.messages), be32toh(hello.size_bytes));
	else
		udaddy_fail_error(test, node, error);
}

static void peer_event(struct evrdma_peer *peer, enum evrdma_peer_event event,
	const struct evrdma_error *error, void *arg)
{
	struct udaddy_node *node = arg;

	switch (event) {
	case EVRDMA_PEER_READY:
		peer_found(node);
		break;
	case EVRDMA_PEER_ERROR:
		peer_failed(node, error);
		break;
	case EVRDMA_PEER_CLOSED:
		node->peer = NULL;
		node->peer_ready = 0;
		break;
	}
}

static void find_service(struct udaddy_node *node)
{
	struct udaddy *test = node->test;
	struct evrdma_peer_options options;
	struct udaddy_hello hello;

	udaddy_make_hello(test, node->number, &hello);
	evrdma_peer_options_init(&options);
	options.timeout_ms = (int)test->options.timeout_s * 1000;
	options.private_data = &hello;
	options.private_data_len = sizeof(hello);
	node->peer =
		evrdma_peer_new(node->dgram, ends_remote(&test->ends), &options, peer_event, node);
	if (!node->peer)
		udaddy_fail_call(test, node, EVRDMA_STEP_CONNECT, errno);
}

static void accept_client(struct udaddy_node *node)
{
	struct udaddy_hello hello;
	int ret;

	udaddy_make_hello(node->test, node->number, &hello);
	ret = evrdma_dgram_accept(node->dgram, node->request, &hello, sizeof(hello));
	if (ret) {
		udaddy_fail_call(node->test, node, EVRDMA_STEP_ACCEPT, -ret);
		return;
	}
	node->request = NULL;
	node_connected(node);
}

static void node_ready(struct udaddy_node *node)
{
	struct udaddy *test = node->test;
	size_t mtu = evrdma_dgram_get_mtu(node->dgram);

	if ((size_t)test->options.size_bytes > mtu)
		tool_fail(&test->tool,
			"-S %ld: larger than the MTU of the device; make it %zu or smaller",
			test->options.size_bytes, mtu);
	else if (udaddy_is_server(test))
		accept_client(node);
	else
		find_service(node);
}

/* What is not answered by now its base rejects. */
static void node_closed(struct udaddy_node *node)
{
	struct udaddy *test = node->test;

	evrdma_buf_unref(node->next);
	node->next = NULL;
	node->dgram = NULL;
	test->closed++;
	if (test->tool.stopping || test->closed < test->options.connections)
		return;
	puts("test complete");
	tool_stop(&test->tool);
}

static void dgram_event(struct evrdma_dgram *dgram, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg)
{
	struct udaddy_node *node = arg;

	switch (event) {
	case EVRDMA_DGRAM_READY:
		node_ready(node);
		break;
	case EVRDMA_DGRAM_ERROR:
		udaddy_fail_error(node->test, node, error);
		break;
	case EVRDMA_DGRAM_WRITABLE:
		send_more(node);
		break;
	case EVRDMA_DGRAM_CLOSED:
		node_closed(node);
		break;
	case EVRDMA_DGRAM_ADDR_CHANGED:
		break;
	}
}

static void fill_dgram_options(const struct udaddy *test, struct evrdma_dgram_options *dgram)
{
	const struct udaddy_options *options = &test->options;
	long depth = options->messages ? options->messages : 1;

	evrdma_dgram_options_init(dgram);
	dgram->resolve_timeout_ms = (int)options->timeout_s * 1000;
	dgram->send_depth = (uint32_t)(depth < SENDS_AT_ONCE ? depth : SENDS_AT_ONCE);
	dgram->recv_depth = (uint32_t)depth;
	dgram->recv_pool = test->pool;
}

/* Finds the device of an endpoint: the one of src, or that leads to dst. */
static void open_node(struct udaddy *test, struct udaddy_node *node, const struct sockaddr *src,
	const struct sockaddr *dst)
{
	struct evrdma_dgram_options options;
	int ret;

	fill_dgram_options(test, &options);
	node->test = test;
	node->dgram = evrdma_dgram_new(test->base, &options);
	if (!node->dgram) {
		udaddy_fail_call(test, NULL, EVRDMA_STEP_DEVICE, errno);
		return;
	}
	evrdma_dgram_setcb(node->dgram, message_came, dgram_event, node);
	ret = evrdma_dgram_open(node->dgram, src, dst);
	if (ret)
		udaddy_fail_call(test, node, EVRDMA_STEP_ADDR, -ret);
}

/* --- the server ----------------------------------------------------------------------------- */

static void reject(struct udaddy *test, struct evrdma_request *request)
{
	struct udaddy_hello hello;

	puts("udaddy: failing connection request");
	udaddy_make_hello(test, 0, &hello);
	evrdma_request_reject(request, &hello, sizeof(hello));
}

/* The endpoint is at the address that was asked, on a port of its own. */
static void take_request(struct udaddy *test, struct evrdma_request *request)
{
	struct udaddy_node *node = &test->nodes[test->requested++];
	const struct rdma_cm_id *id = evrdma_request_get_cm_id(request);
	struct sockaddr_storage addr = id->route.addr.src_storage;

	node->request = request;
	if (addr.ss_family == AF_INET)
		((struct sockaddr_in *)&addr)->sin_port = 0;
	else if (addr.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&addr)->sin6_port = 0;
	open_node(test, node, (struct sockaddr *)&addr, NULL);
}

static void request_came(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct udaddy *test = arg;
	struct udaddy_hello hello;
	size_t len;
	const void *data = evrdma_request_get_private_data(request, &len);
	int ours = udaddy_read_hello(data, len, &hello);

	if (test->tool.stopping || test->requested == test->options.connections ||
		(ours && !udaddy_same_options(test, &hello))) {
		reject(test, request);
		return;
	}
	test->nodes[test->requested].peer_is_ours = ours;
	test->nodes[test->requested].number =
		ours ? be32toh(hello.connection) : (uint32_t)test->requested;
	take_request(test, request);
}

static void listener_event(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	if (event == EVRDMA_LISTENER_ERROR)
		udaddy_fail_error(arg, NULL, error);
}

static void start_listening(struct udaddy *test)
{
	struct evrdma_listener_options options;

	evrdma_listener_options_init(&options);
	options.port_space = (int)test->options.port_space;
	test->listener = evrdma_listener_new(
		test->base, ends_local(&test->ends), &options, request_came, test);
	if (!test->listener) {
		ends_fail_listen(&test->ends, errno);
		return;
	}
	evrdma_listener_set_event_cb(test->listener, listener_event);
	if (capability_is_iwarp(evrdma_listener_get_cm_id(test->listener)))
		tool_fail(&test->tool, "%s", no_datagrams);
}

/* --- the program ---------------------------------------------------------------------------- */

static void connect_all(struct udaddy *test)
{
	puts("udaddy: connecting");
	for (long i = 0; i < test->options.connections && !test->tool.stopping; i++) {
		test->nodes[i].number = (uint32_t)i;
		open_node(test, &test->nodes[i], ends_local(&test->ends), ends_remote(&test->ends));
	}
}

static void ends_found(void *arg)
{
	struct udaddy *test = arg;

	if (udaddy_is_server(test))
		start_listening(test);
	else
		connect_all(test);
}

static int make_base(struct udaddy *test)
{
	struct evrdma_base_options options;
	unsigned entries = (unsigned)test->options.messages + SENDS_AT_ONCE;

	evrdma_base_options_init(&options);
	options.cq_entries = entries > CQ_ENTRIES_MIN ? entries : CQ_ENTRIES_MIN;
	test->base = tool_add_base(&test->tool, &options);
	return test->base ? 0 : -1;
}

static int make_seen(struct udaddy *test)
{
	size_t depth = test->options.messages ? (size_t)test->options.messages : 1;

	for (long i = 0; i < test->options.connections; i++) {
		test->nodes[i].seen = calloc(depth, 1);
		if (!test->nodes[i].seen)
			return -1;
	}
	return 0;
}

static int make_memory(struct udaddy *test)
{
	size_t size = (size_t)test->options.size_bytes + EVRDMA_DGRAM_HEADER_BYTES;

	test->timer = evtimer_new(test->tool.event_base, timer_fired, test);
	test->pool = evrdma_pool_new(test->base, size, 0);
	test->nodes = calloc((size_t)test->options.connections, sizeof(*test->nodes));
	if (test->timer && test->pool && test->nodes && !make_seen(test))
		return 0;
	tool_fail(&test->tool, "out of memory; make -c, -C or -S smaller");
	return -1;
}

static void free_memory(struct udaddy *test)
{
	for (long i = 0; test->nodes && i < test->options.connections; i++)
		free(test->nodes[i].seen);
	free(test->nodes);
	if (test->timer)
		event_free(test->timer);
}

static void find_ends(struct udaddy *test)
{
	const struct udaddy_options *options = &test->options;

	printf("udaddy: starting %s\n", udaddy_is_server(test) ? "server" : "client");
	test->ends.server = options->server;
	test->ends.bind = options->bind;
	test->ends.format = options->format;
	test->ends.port_space = (int)options->port_space;
	test->ends.port = UDADDY_PORT;
	test->ends.timeout_s = options->timeout_s;
	test->ends.cb = ends_found;
	test->ends.arg = test;
	ends_find(&test->ends);
}

static void start(struct udaddy *test)
{
	const char *missing;

	test->ends.tool = &test->tool;
	if (make_base(test) || make_memory(test))
		return;
	missing = udaddy_missing_here(test);
	if (missing)
		tool_fail(&test->tool, "%s", missing);
	else
		find_ends(test);
}

void udaddy_start(struct udaddy *test)
{
	if (!tool_init(&test->tool, UDADDY, interrupted, test))
		start(test);
}

int udaddy_finish(struct udaddy *test)
{
	int status = tool_run(&test->tool);

	free_memory(test);
	tool_fini(&test->tool);
	if (test->base)
		printf("return status %d\n", status);
	return tool_end_output(UDADDY, status);
}
