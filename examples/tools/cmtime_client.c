/* The client of cmtime: all connections take one step, then all take the next. */
#include "cmtime.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rdma/rdma_cma.h>

static void begin_step(struct cmtime *test);

static void fail(struct cmtime_node *node, enum evrdma_step step, int ret)
{
	if (ret)
		ends_fail_call(&node->test->ends, step, -ret);
}

static int timeout_ms(const struct cmtime *test)
{
	return (int)test->options.patience_s * 1000;
}

/* --- the steps of one connection ------------------------------------------------------------ */

static void finish(struct cmtime *test)
{
	cmtime_print(test);
	tool_stop(&test->tool);
}

/* The last one to be through takes all to the next step. */
static void step_done(struct cmtime_node *node)
{
	struct cmtime *test = node->test;

	node->spans[test->step].end_us = cmtime_now_us();
	if (++test->done < test->options.connections || test->tool.stopping)
		return;
	test->spans[test->step].end_us = cmtime_now_us();
	if (++test->step == CMTIME_STEPS)
		finish(test);
	else
		begin_step(test);
}

static void resolve_addr(struct cmtime_node *node);
static void resolve_route(struct cmtime_node *node);

/* Once more after an error, as long as there are tries left. */
static int tries_again(struct cmtime_node *node, const struct evrdma_error *error)
{
	if (error->cm_event != RDMA_CM_EVENT_ADDR_ERROR &&
		error->cm_event != RDMA_CM_EVENT_ROUTE_ERROR)
		return 0;
	if (!node->retries)
		return 0;
	node->retries--;
	if (node->test->step == CMTIME_RESOLVE_ADDR)
		resolve_addr(node);
	else
		resolve_route(node);
	return 1;
}

static void operation_over(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct cmtime_node *node = arg;
	struct tool *tool = &node->test->tool;

	if (tool->stopping || (error && error->err == ECANCELED))
		return;
	if (!error) {
		step_done(node);
		return;
	}
	if (tries_again(node, error))
		return;
	if (event)
		printf("event: %s, error: %d\n", rdma_event_str(event->event), event->status);
	ends_fail_error(&node->test->ends, error);
}

static void resolve_addr(struct cmtime_node *node)
{
	struct cmtime *test = node->test;

	fail(node, EVRDMA_STEP_ADDR,
		evrdma_id_resolve_addr(node->id, ends_local(&test->ends), ends_remote(&test->ends),
			(int)test->options.timeout_ms, operation_over, node));
}

static void resolve_route(struct cmtime_node *node)
{
	fail(node, EVRDMA_STEP_ROUTE,
		evrdma_id_resolve_route(
			node->id, (int)node->test->options.timeout_ms, operation_over, node));
}

static void connect_node(struct cmtime_node *node)
{
	const struct rdma_conn_param param = {
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = (uint8_t)node->test->options.retries,
	};

	fail(node, EVRDMA_STEP_CONNECT,
		evrdma_id_connect(node->id, &param, timeout_ms(node->test), operation_over, node));
}

/* Who was told already by the other side has nothing to wait for. */
static void disconnect_node(struct cmtime_node *node)
{
	if (node->disconnected)
		step_done(node);
	else
		fail(node, EVRDMA_STEP_DISCONNECT,
			evrdma_id_disconnect(node->id, operation_over, node));
}

static void create_qp(struct cmtime_node *node)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	if (rdma_create_qp(evrdma_id_get_cm_id(node->id), NULL, &attr))
		ends_fail_call(&node->test->ends, EVRDMA_STEP_DEVICE, errno);
	else
		step_done(node);
}

static void bind_addr(struct cmtime_node *node)
{
	int ret = evrdma_id_bind(node->id, ends_local(&node->test->ends));

	fail(node, EVRDMA_STEP_ADDR, ret);
	if (!ret)
		step_done(node);
}

/* The last thing that is heard of an id. */
static void id_closed(struct cmtime_node *node)
{
	node->id = NULL;
	if (node->test->step == CMTIME_DESTROY)
		step_done(node);
}

static void id_event(struct evrdma_id *id, const struct rdma_cm_event *event, void *arg)
{
	struct cmtime_node *node = arg;
	struct cmtime *test = node->test;

	if (!event) {
		id_closed(node);
		return;
	}
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		ends_fail_call(&test->ends, EVRDMA_STEP_REMOVAL, ENODEV);
	else if (event->event == RDMA_CM_EVENT_DISCONNECTED && test->step < CMTIME_DISCONNECT)
		tool_fail(&test->tool, "%s: disconnected too soon; see what the other side says",
			test->options.server);
	else if (event->event == RDMA_CM_EVENT_DISCONNECTED)
		node->disconnected = 1;
}

static void create_id(struct cmtime_node *node)
{
	struct cmtime *test = node->test;

	node->id = evrdma_id_new(test->base, RDMA_PS_TCP, id_event, node);
	if (!node->id)
		ends_fail_call(&test->ends, EVRDMA_STEP_DEVICE, errno);
	else
		step_done(node);
}

static void close_id(struct cmtime_node *node)
{
	evrdma_id_close(node->id);
}

/* --- all of them ---------------------------------------------------------------------------- */

typedef void (*step_function)(struct cmtime_node *node);

static const step_function functions[CMTIME_STEPS] = {
	[CMTIME_CREATE_ID] = create_id,
	[CMTIME_BIND_ADDR] = bind_addr,
	[CMTIME_RESOLVE_ADDR] = resolve_addr,
	[CMTIME_RESOLVE_ROUTE] = resolve_route,
	[CMTIME_CREATE_QP] = create_qp,
	[CMTIME_CONNECT] = connect_node,
	[CMTIME_DISCONNECT] = disconnect_node,
	[CMTIME_DESTROY] = close_id,
};

/* As the stock tool has it on its standard output. */
static void say(enum cmtime_step step)
{
	static const char *const texts[CMTIME_STEPS] = {
		[CMTIME_CREATE_ID] = "creating id",
		[CMTIME_BIND_ADDR] = "binding source address",
		[CMTIME_RESOLVE_ADDR] = "resolving address",
		[CMTIME_RESOLVE_ROUTE] = "resolving route",
		[CMTIME_CREATE_QP] = "creating qp",
		[CMTIME_CONNECT] = "connecting",
		[CMTIME_DISCONNECT] = "disconnecting",
		[CMTIME_DESTROY] = "destroying id",
	};

	puts(texts[step]);
}

/* The last one may be through inside of its call, and then the step is another one after it. */
static void begin_step(struct cmtime *test)
{
	enum cmtime_step step;

	if (test->step == CMTIME_BIND_ADDR && !test->options.bind)
		test->step++;
	step = test->step;
	say(step);
	test->done = 0;
	test->spans[step].begin_us = cmtime_now_us();
	for (long i = 0; i < test->options.connections && !test->tool.stopping; i++) {
		test->nodes[i].spans[step].begin_us = cmtime_now_us();
		functions[step](&test->nodes[i]);
	}
}

void cmtime_run(struct cmtime *test)
{
	for (long i = 0; i < test->options.connections; i++) {
		test->nodes[i].test = test;
		test->nodes[i].retries = test->options.retries;
	}
	begin_step(test);
}
