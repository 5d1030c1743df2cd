/* The steps of a connection of cmtime's client over RDMA. */
#include "capability.h"
#include "cmtime.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <event2/event.h>
#include <rdma/rdma_cma.h>

const char cmtime_no_fake[] =
	"-m needs an InfiniBand or RoCE device: on iWARP the CM needs a queue "
	"pair that is real";

static void fail(struct cmtime_node *node, enum evrdma_step step, int ret)
{
	if (ret)
		cmtime_fail_call(node->loop, step, -ret);
}

static const struct cmtime_options *options_of(const struct cmtime_node *node)
{
	return &node->loop->test->options;
}

static const struct ends *ends_of(const struct cmtime_node *node)
{
	return &node->loop->test->ends;
}

static int is_fake(const struct cmtime_node *node)
{
	return options_of(node)->fake_us >= 0;
}

/* --- what is answered by an event ----------------------------------------------------------- */

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
	if (node->loop->step == CMTIME_RESOLVE_ADDR)
		resolve_addr(node);
	else
		resolve_route(node);
	return 1;
}

/* Without a queue pair the answer of the peer is not the end of connecting. */
static void went_well(struct cmtime_node *node)
{
	enum cmtime_step step = node->loop->step;
	struct rdma_cm_id *id = evrdma_id_get_cm_id(node->id);

	if (is_fake(node) && step == CMTIME_RESOLVE_ADDR && capability_is_iwarp(id))
		cmtime_fail_text(node->loop, cmtime_no_fake);
	else if (is_fake(node) && step == CMTIME_CONNECT && rdma_establish(id))
		cmtime_fail_call(node->loop, EVRDMA_STEP_CONNECT, errno);
	else
		cmtime_step_done(node);
}

static void operation_over(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct cmtime_node *node = arg;

	if (cmtime_loop_is_stopping(node->loop) || (error && error->err == ECANCELED))
		return;
	if (!error) {
		went_well(node);
		return;
	}
	if (tries_again(node, error))
		return;
	if (event)
		printf("event: %s, error: %d\n", rdma_event_str(event->event), event->status);
	cmtime_fail_error(node->loop, error);
}

static void resolve_addr(struct cmtime_node *node)
{
	const struct ends *ends = ends_of(node);

	fail(node, EVRDMA_STEP_ADDR,
		evrdma_id_resolve_addr(node->id, ends_local(ends), ends_remote(ends),
			(int)options_of(node)->timeout_ms, operation_over, node));
}

static void resolve_route(struct cmtime_node *node)
{
	fail(node, EVRDMA_STEP_ROUTE,
		evrdma_id_resolve_route(
			node->id, (int)options_of(node)->timeout_ms, operation_over, node));
}

static void connect_node(struct cmtime_node *node)
{
	const struct rdma_conn_param param = {
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = (uint8_t)options_of(node)->retries,
		.qp_num = is_fake(node) ? node->qpn : 0,
	};

	fail(node, EVRDMA_STEP_CONNECT,
		evrdma_id_connect(node->id, &param, (int)options_of(node)->patience_s * 1000,
			operation_over, node));
}

/* Who was told already by the other side has nothing to wait for. */
static void disconnect_node(struct cmtime_node *node)
{
	if (node->disconnected)
		cmtime_step_done(node);
	else
		fail(node, EVRDMA_STEP_DISCONNECT,
			evrdma_id_disconnect(node->id, operation_over, node));
}

/* --- the queue pair ------------------------------------------------------------------------- */

static void time_is_over(evutil_socket_t fd, short what, void *arg)
{
	cmtime_step_done(arg);
}

static void pretend_qp(struct cmtime_node *node)
{
	struct event_base *base = node->loop->event_base;
	struct timeval wait;

	node->event = evtimer_new(base, time_is_over, node);
	cmtime_fake_time(node->loop, &wait);
	if (!node->event || evtimer_add(node->event, &wait))
		cmtime_fail_call(node->loop, EVRDMA_STEP_DEVICE, ENOMEM);
}

static void create_qp(struct cmtime_node *node)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	if (is_fake(node))
		pretend_qp(node);
	else if (rdma_create_qp(evrdma_id_get_cm_id(node->id), NULL, &attr))
		cmtime_fail_call(node->loop, EVRDMA_STEP_DEVICE, errno);
	else
		cmtime_step_done(node);
}

/* --- the id --------------------------------------------------------------------------------- */

static void bind_addr(struct cmtime_node *node)
{
	int ret = evrdma_id_bind(node->id, ends_local(ends_of(node)));

	fail(node, EVRDMA_STEP_ADDR, ret);
	if (!ret)
		cmtime_step_done(node);
}

/* The last thing that is heard of an id. */
static void id_closed(struct cmtime_node *node)
{
	node->id = NULL;
	if (node->loop->step == CMTIME_DESTROY)
		cmtime_step_done(node);
}

static void id_event(struct evrdma_id *id, const struct rdma_cm_event *event, void *arg)
{
	struct cmtime_node *node = arg;
	struct cmtime_loop *loop = node->loop;

	if (!event) {
		id_closed(node);
		return;
	}
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		cmtime_fail_call(loop, EVRDMA_STEP_REMOVAL, ENODEV);
	else if (event->event == RDMA_CM_EVENT_DISCONNECTED && loop->step < CMTIME_DISCONNECT)
		cmtime_fail_text(loop, "disconnected too soon; see what the other side says");
	else if (event->event == RDMA_CM_EVENT_DISCONNECTED)
		node->disconnected = 1;
}

static void create_id(struct cmtime_node *node)
{
	node->id = evrdma_id_new(node->loop->base, RDMA_PS_TCP, id_event, node);
	if (!node->id)
		cmtime_fail_call(node->loop, EVRDMA_STEP_DEVICE, errno);
	else
		cmtime_step_done(node);
}

static void close_id(struct cmtime_node *node)
{
	evrdma_id_close(node->id);
}

const cmtime_step_cb cmtime_cm_steps[CMTIME_STEPS] = {
	[CMTIME_CREATE_ID] = create_id,
	[CMTIME_BIND_ADDR] = bind_addr,
	[CMTIME_RESOLVE_ADDR] = resolve_addr,
	[CMTIME_RESOLVE_ROUTE] = resolve_route,
	[CMTIME_CREATE_QP] = create_qp,
	[CMTIME_CONNECT] = connect_node,
	[CMTIME_DISCONNECT] = disconnect_node,
	[CMTIME_DESTROY] = close_id,
};
