/*
 * mckey: joins a multicast group with some endpoints, and sends datagrams to it or receives them.
 */
#include "mckey.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <sys/time.h>

#include <event2/event.h>
#include <event2/util.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define SENDS_AT_ONCE 64
#define CQ_ENTRIES_MIN 4096

static long messages_wanted(const struct mckey *test)
{
	return test->options.connections * test->options.messages;
}

static void interrupted(void *arg)
{
	struct mckey *test = arg;
	const char *done = test->options.sender ? "sent" : "received";

	tool_fail(&test->tool, "interrupted: %ld of %ld endpoints joined, %ld of %ld messages %s",
		test->joined, test->options.connections,
		test->options.sender ? test->acked : test->received, messages_wanted(test), done);
}

/* --- the end -------------------------------------------------------------------------------- */

static void leave(struct mckey *test)
{
	if (test->tool.stopping)
		return;
	if (test->options.messages)
		puts("data transfers complete");
	for (long i = 0; i < test->options.connections; i++)
		evrdma_dgram_close(test->nodes[i].dgram);
}

static void node_closed(struct mckey_node *node)
{
	struct mckey *test = node->test;

	evrdma_buf_unref(node->next);
	node->next = NULL;
	node->dgram = NULL;
	test->closed++;
	if (test->tool.stopping || test->closed < test->options.connections)
		return;
	puts("test complete");
	tool_stop(&test->tool);
}

/* --- sending -------------------------------------------------------------------------------- */

static void sent(struct evrdma_dgram *dgram, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	struct mckey_node *node = arg;
	struct mckey *test = node->test;

	if (error) {
		mckey_fail_error(test, error);
		return;
	}
	node->acked++;
	test->acked++;
	if (test->acked == messages_wanted(test))
		leave(test);
}

static int send_next(struct mckey_node *node)
{
	size_t size = (size_t)node->test->options.size_bytes;
	uint32_t imm = evrdma_dgram_get_qp_num(node->dgram);
	int ret;

	if (!node->next)
		node->next = mckey_make_message(node);
	if (!node->next)
		return -errno;
	ret = evrdma_dgram_send(node->dgram, node->group, node->next, size, &imm, sent, node);
	if (ret)
		return ret;
	evrdma_buf_unref(node->next);
	node->next = NULL;
	node->sent++;
	return 0;
}

/* Goes on at WRITABLE after -EAGAIN. After -ENOTCONN the event that says why is on its way. */
static void send_more(struct mckey_node *node)
{
	int ret = 0;

	while (!ret && node->sent < node->test->options.messages)
		ret = send_next(node);
	if (ret && ret != -EAGAIN && ret != -ENOTCONN)
		mckey_fail_call(node->test, EVRDMA_STEP_TRANSFER, -ret);
}

static void begin_sending(struct mckey *test)
{
	if (!test->options.messages) {
		leave(test);
		return;
	}
	puts("initiating data transfers");
	for (long i = 0; i < test->options.connections; i++)
		send_more(&test->nodes[i]);
}

/* --- receiving ------------------------------------------------------------------------------ */

static void all_received(struct mckey *test)
{
	for (long i = 0; i < test->options.connections; i++)
		if (mckey_check_records(&test->nodes[i]))
			return;
	leave(test);
}

/* What comes after the last one that is waited for is of no interest. */
static void message_came(struct evrdma_dgram *dgram, const struct evrdma_recv *recv, void *arg)
{
	struct mckey_node *node = arg;
	struct mckey *test = node->test;

	if (recv->err || test->tool.stopping || node->received == test->options.messages)
		return;
	if (mckey_check_message(node, recv))
		return;
	node->received++;
	test->received++;
	if (test->received == messages_wanted(test) && test->joined == test->options.connections)
		all_received(test);
}

static void begin_receiving(struct mckey *test)
{
	if (test->options.messages)
		puts("receiving data transfers");
	if (test->received == messages_wanted(test))
		all_received(test);
}

/* --- joining -------------------------------------------------------------------------------- */

static void timer_fired(evutil_socket_t fd, short what, void *arg)
{
	struct mckey *test = arg;

	if (test->tool.stopping)
		return;
	if (test->joined == test->options.connections)
		begin_sending(test);
	else
		mckey_fail_call(test, EVRDMA_STEP_JOIN, ETIMEDOUT);
}

static void start_timer(struct mckey *test, long seconds)
{
	const struct timeval time = { .tv_sec = seconds };

	evtimer_add(test->timer, &time);
}

static void print_joined(const struct ibv_ah_attr *ah)
{
	char dgid[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, ah->grh.dgid.raw, dgid, sizeof(dgid));
	printf("mckey: joined dgid: %s mlid 0x%x sl %d\n", dgid, ah->dlid, ah->sl);
}

static void node_joined(struct mckey_node *node)
{
	struct mckey *test = node->test;

	print_joined(evrdma_mcast_get_ah_attr(node->group));
	if (++test->joined < test->options.connections)
		return;
	event_del(test->timer);
	if (test->options.sender)
		start_timer(test, test->options.pause_s);
	else
		begin_receiving(test);
}

static void mcast_event(struct evrdma_mcast *group, enum evrdma_mcast_event event,
	const struct evrdma_error *error, void *arg)
{
	struct mckey_node *node = arg;

	switch (event) {
	case EVRDMA_MCAST_JOINED:
		node_joined(node);
		break;
	case EVRDMA_MCAST_ERROR:
		mckey_fail_error(node->test, error);
		break;
	case EVRDMA_MCAST_CLOSED:
		node->group = NULL;
		break;
	}
}

static void node_ready(struct mckey_node *node)
{
	struct mckey *test = node->test;
	size_t mtu = evrdma_dgram_get_mtu(node->dgram);
	unsigned flags = test->options.send_only ? EVRDMA_MCAST_OPT_SENDONLY : 0;

	if ((size_t)test->options.size_bytes > mtu) {
		tool_fail(&test->tool,
			"-S %ld: larger than the MTU of the device; make it %zu or smaller",
			test->options.size_bytes, mtu);
		return;
	}
	node->group = evrdma_mcast_join(
		node->dgram, (struct sockaddr *)&test->remote.addr, flags, mcast_event, node);
	if (!node->group)
		mckey_fail_call(test, EVRDMA_STEP_JOIN, errno);
}

static void dgram_event(struct evrdma_dgram *dgram, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg)
{
	struct mckey_node *node = arg;

	switch (event) {
	case EVRDMA_DGRAM_READY:
		node_ready(node);
		break;
	case EVRDMA_DGRAM_ERROR:
		mckey_fail_error(node->test, error);
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

static void fill_dgram_options(const struct mckey *test, struct evrdma_dgram_options *dgram)
{
	const struct mckey_options *options = &test->options;
	long depth = options->messages ? options->messages : 1;

	evrdma_dgram_options_init(dgram);
	dgram->resolve_timeout_ms = (int)options->timeout_s * 1000;
	dgram->send_depth = (uint32_t)(depth < SENDS_AT_ONCE ? depth : SENDS_AT_ONCE);
	dgram->recv_depth = options->sender ? 0 : (uint32_t)depth;
	dgram->recv_pool = options->sender ? NULL : test->pool;
	dgram->port_space = (int)options->port_space;
	dgram->flags = options->no_loopback ? EVRDMA_DGRAM_OPT_NO_LOOPBACK : 0;
}

static int make_node(struct mckey *test, struct mckey_node *node)
{
	struct evrdma_dgram_options options;

	fill_dgram_options(test, &options);
	node->test = test;
	node->number = (uint32_t)(node - test->nodes);
	evutil_secure_rng_get_bytes(&node->sender, sizeof(node->sender));
	node->dgram = evrdma_dgram_new(test->base, &options);
	if (!node->dgram) {
		mckey_fail_call(test, EVRDMA_STEP_DEVICE, errno);
		return -1;
	}
	evrdma_dgram_setcb(node->dgram, message_came, dgram_event, node);
	return 0;
}

/* A raw GID leads to no device: that is the one of the local address. */
static int open_node(struct mckey *test, struct mckey_node *node)
{
	const struct sockaddr *src = (struct sockaddr *)&test->local.addr;
	const struct sockaddr *dst = (struct sockaddr *)&test->remote.addr;
	int ret = evrdma_dgram_open(
		node->dgram, test->options.bind ? src : NULL, test->options.raw_gid ? NULL : dst);

	if (ret)
		mckey_fail_call(test, EVRDMA_STEP_ADDR, -ret);
	return ret;
}

static void join_all(void *arg)
{
	struct mckey *test = arg;

	puts("mckey: joining");
	start_timer(test, test->options.timeout_s);
	for (long i = 0; i < test->options.connections; i++)
		if (make_node(test, &test->nodes[i]) || open_node(test, &test->nodes[i]))
			return;
}

static void find_group(void *arg)
{
	struct mckey *test = arg;

	test->remote.family = test->local.addr.ss_family;
	address_lookup_start(&test->remote);
}

/* --- the program ---------------------------------------------------------------------------- */

static void fill_lookup(struct mckey *test, struct address_lookup *lookup, const char *text,
	enum address_format format, address_lookup_cb cb)
{
	lookup->tool = &test->tool;
	lookup->text = text;
	lookup->format = format;
	lookup->family = AF_UNSPEC;
	lookup->timeout_s = test->options.timeout_s;
	lookup->cb = cb;
	lookup->arg = test;
}

static int is_zero(const char *gid)
{
	return !strcmp(gid, "0");
}

static void start(struct mckey *test)
{
	const struct mckey_options *options = &test->options;
	enum address_format format = options->raw_gid ? ADDRESS_GID : ADDRESS_NAME;

	printf("mckey: starting %s\n", options->sender ? "client" : "server");
	fill_lookup(test, &test->remote,
		options->raw_gid && is_zero(options->group) ? "::" : options->group, format,
		join_all);
	fill_lookup(test, &test->local, options->bind, ADDRESS_NAME, find_group);
	address_lookup_start(options->bind ? &test->local : &test->remote);
}

static int make_base(struct mckey *test)
{
	struct evrdma_base_options options;
	unsigned entries = (unsigned)test->options.messages + SENDS_AT_ONCE;

	evrdma_base_options_init(&options);
	options.cq_entries = entries > CQ_ENTRIES_MIN ? entries : CQ_ENTRIES_MIN;
	test->base = tool_add_base(&test->tool, &options);
	return test->base ? 0 : -1;
}

static int make_records(struct mckey *test)
{
	size_t depth = test->options.messages ? (size_t)test->options.messages : 1;

	for (long i = 0; i < test->options.connections; i++) {
		test->nodes[i].records = calloc(depth, sizeof(*test->nodes[i].records));
		if (!test->nodes[i].records)
			return -1;
	}
	return 0;
}

static int make_memory(struct mckey *test)
{
	size_t size = (size_t)test->options.size_bytes + EVRDMA_DGRAM_HEADER_BYTES;

	test->timer = evtimer_new(test->tool.event_base, timer_fired, test);
	test->pool = evrdma_pool_new(test->base, size, 0);
	test->nodes = calloc((size_t)test->options.connections, sizeof(*test->nodes));
	if (test->timer && test->pool && test->nodes && !make_records(test))
		return 0;
	tool_fail(&test->tool, "out of memory; make -c, -C or -S smaller");
	return -1;
}

static void free_memory(struct mckey *test)
{
	for (long i = 0; test->nodes && i < test->options.connections; i++)
		free(test->nodes[i].records);
	free(test->nodes);
	if (test->timer)
		event_free(test->timer);
}

void mckey_start(struct mckey *test)
{
	if (!tool_init(&test->tool, MCKEY, interrupted, test) && !make_base(test) &&
		!make_memory(test))
		start(test);
}

int mckey_finish(struct mckey *test)
{
	int status = tool_run(&test->tool);

	free_memory(test);
	tool_fini(&test->tool);
	if (test->base)
		printf("return status %d\n", status);
	return tool_end_output(MCKEY, status);
}
