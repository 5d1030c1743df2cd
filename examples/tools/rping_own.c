/* The pings of rping over a queue pair of our own (-q); the CM says only what state it needs. */
#include "capability.h"
#include "rping.h"
#include "rping_qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#define ROOM 64 /* of a receive, so that a message that is too long is seen as that */

struct carrier {
	struct rping_peer *peer;
	struct evrdma_id *id;
	struct rping_qp qp;
	struct ibv_mr *source;
	struct ibv_mr *sink;
	struct ibv_mr *messages;
	unsigned sent;
	int told; /* that it is connected */
	struct {
		char received[RPING_QP_RECVS][ROOM];
		char sent[RPING_QP_SENDS][RPING_MESSAGE_BYTES];
	} memory;
};

/* --- work ----------------------------------------------------------------------------------- */

static struct ibv_sge part_of(const struct ibv_mr *mr, const void *data, size_t len)
{
	const struct ibv_sge sge = {
		.addr = (uintptr_t)data, .length = (uint32_t)len, .lkey = mr->lkey
	};

	return sge;
}

static int send_message(struct rping_peer *peer, const void *message)
{
	struct carrier *carrier = peer->carrier;
	char *slot = carrier->memory.sent[carrier->sent++ % RPING_QP_SENDS];
	struct ibv_sge sge = part_of(carrier->messages, slot, RPING_MESSAGE_BYTES);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

	memcpy(slot, message, RPING_MESSAGE_BYTES);
	return rping_qp_send(&carrier->qp, &wr);
}

static int expose(struct rping_peer *peer, int sink, struct evrdma_remote *remote)
{
	const struct carrier *carrier = peer->carrier;
	const struct ibv_mr *mr = sink ? carrier->sink : carrier->source;

	remote->addr = (uintptr_t)mr->addr;
	remote->key = mr->rkey;
	return 0;
}

static int submit(struct rping_peer *peer, enum ibv_wr_opcode opcode,
	const struct evrdma_remote *remote, size_t len)
{
	struct carrier *carrier = peer->carrier;
	struct ibv_sge sge = part_of(carrier->sink, peer->sink, len);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode };

	wr.wr.rdma.remote_addr = remote->addr;
	wr.wr.rdma.rkey = remote->key;
	return rping_qp_send(&carrier->qp, &wr);
}

static int read_from(struct rping_peer *peer, const struct evrdma_remote *from, size_t len)
{
	return submit(peer, IBV_WR_RDMA_READ, from, len);
}

static int write_to(struct rping_peer *peer, const struct evrdma_remote *to, size_t len)
{
	return submit(peer, IBV_WR_RDMA_WRITE, to, len);
}

static int post_recv(struct carrier *carrier, unsigned slot)
{
	struct ibv_sge sge = part_of(carrier->messages, carrier->memory.received[slot], ROOM);

	return rping_qp_recv(&carrier->qp, &sge, slot);
}

/* The buffer is posted again before the answer leaves. */
static void received(struct carrier *carrier, const struct ibv_wc *wc)
{
	char copy[ROOM];
	int ret;

	memcpy(copy, carrier->memory.received[wc->wr_id], wc->byte_len);
	ret = post_recv(carrier, (unsigned)wc->wr_id);
	if (ret)
		rping_call_failed(carrier->peer, EVRDMA_STEP_TRANSFER, -ret);
	else
		rping_message_came(carrier->peer, copy, wc->byte_len);
}

static void completed(struct rping_qp *qp, const struct ibv_wc *wc, void *arg)
{
	struct carrier *carrier = arg;
	const struct evrdma_error error = {
		.err = EIO, .step = EVRDMA_STEP_TRANSFER, .cm_event = -1, .wc_status = wc->status
	};

	if (carrier->peer->failed || carrier->peer->disconnecting)
		return;
	if (wc->status != IBV_WC_SUCCESS)
		rping_failed(carrier->peer, &error);
	else if (wc->opcode == IBV_WC_RECV)
		received(carrier, wc);
	else if (wc->opcode != IBV_WC_SEND)
		rping_work_done(carrier->peer);
}

/* --- the end -------------------------------------------------------------------------------- */

static void disconnected(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct carrier *carrier = arg;

	if (!error)
		rping_disconnected(carrier->peer);
	else if (error->err != ECANCELED)
		rping_failed(carrier->peer, error);
}

static void disconnect(struct rping_peer *peer)
{
	struct carrier *carrier = peer->carrier;
	int ret = evrdma_id_disconnect(carrier->id, disconnected, carrier);

	if (ret)
		rping_call_failed(peer, EVRDMA_STEP_DISCONNECT, -ret);
}

/* Who is connected is told; who has gone by himself gets his answer so. */
static void close_carrier(struct rping_peer *peer)
{
	struct carrier *carrier = peer->carrier;

	if (carrier->told && !peer->disconnecting)
		evrdma_id_disconnect(carrier->id, NULL, NULL);
	rping_qp_fini(&carrier->qp);
	evrdma_id_close(carrier->id);
}

static const struct rping_link link_of_own = {
	.send = send_message,
	.expose = expose,
	.read = read_from,
	.write = write_to,
	.disconnect = disconnect,
	.close = close_carrier,
};

static void id_closed(struct carrier *carrier)
{
	struct rping_peer *peer = carrier->peer;

	rping_qp_fini(&carrier->qp);
	free(carrier);
	rping_closed(peer);
}

static void id_event(struct evrdma_id *id, const struct rdma_cm_event *event, void *arg)
{
	struct carrier *carrier = arg;

	if (!event)
		id_closed(carrier);
	else if (event->event == RDMA_CM_EVENT_DISCONNECTED)
		rping_disconnected(carrier->peer);
	else if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		rping_call_failed(carrier->peer, EVRDMA_STEP_REMOVAL, ENODEV);
}

/* --- the queue pair ------------------------------------------------------------------------- */

static int register_all(struct carrier *carrier)
{
	struct rping_peer *peer = carrier->peer;
	size_t size = (size_t)peer->test->options.size_bytes;

	carrier->source = rping_qp_register(&carrier->qp, peer->source, size);
	carrier->sink = rping_qp_register(&carrier->qp, peer->sink, size);
	carrier->messages =
		rping_qp_register(&carrier->qp, &carrier->memory, sizeof(carrier->memory));
	return carrier->source && carrier->sink && carrier->messages ? 0 : -errno;
}

static int make_qp(struct carrier *carrier)
{
	struct rdma_cm_id *id = evrdma_id_get_cm_id(carrier->id);
	struct rping *test = carrier->peer->test;
	int ret = rping_qp_init(&carrier->qp, test->tool.event_base, id, completed, carrier);

	if (!ret)
		ret = register_all(carrier);
	if (!ret)
		ret = rping_qp_modify(&carrier->qp, id, IBV_QPS_INIT);
	for (unsigned i = 0; !ret && i < RPING_QP_RECVS; i++)
		ret = post_recv(carrier, i);
	return ret;
}

/* From the beginning again: what the other side may do is known by now only. */
static int make_ready(struct carrier *carrier)
{
	struct rdma_cm_id *id = evrdma_id_get_cm_id(carrier->id);
	int ret = rping_qp_modify(&carrier->qp, id, IBV_QPS_INIT);

	if (!ret)
		ret = rping_qp_modify(&carrier->qp, id, IBV_QPS_RTR);
	return ret ? ret : rping_qp_modify(&carrier->qp, id, IBV_QPS_RTS);
}

static void fill_param(const struct carrier *carrier, struct rdma_conn_param *param)
{
	memset(param, 0, sizeof(*param));
	param->responder_resources = 1;
	param->initiator_depth = 1;
	param->retry_count = 7;
	param->rnr_retry_count = 7;
	param->qp_num = carrier->qp.qp->qp_num;
}

/* What the other side has sent by now is told behind this. */
static void connected(struct carrier *carrier)
{
	int ret;

	carrier->told = 1;
	rping_connected(carrier->peer);
	ret = carrier->peer->failed ? 0 : rping_qp_start(&carrier->qp);
	if (ret)
		rping_call_failed(carrier->peer, EVRDMA_STEP_DEVICE, -ret);
}

/* Goes on after a step; returns whether it went well. A cancelled one is part of the end. */
static int went_well(const struct carrier *carrier, const struct evrdma_error *error)
{
	if (error && error->err != ECANCELED)
		rping_failed(carrier->peer, error);
	return !error;
}

static void check_step(const struct carrier *carrier, enum evrdma_step step, int ret)
{
	if (ret)
		rping_call_failed(carrier->peer, step, -ret);
}

static int timeout_ms(const struct carrier *carrier)
{
	return (int)carrier->peer->test->options.timeout_s * 1000;
}

/* --- the client ----------------------------------------------------------------------------- */

static void answered(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct carrier *carrier = arg;
	int ret;

	if (!went_well(carrier, error))
		return;
	ret = make_ready(carrier);
	if (!ret && rdma_establish(evrdma_id_get_cm_id(id)))
		ret = -errno;
	if (ret)
		rping_call_failed(carrier->peer, EVRDMA_STEP_CONNECT, -ret);
	else
		connected(carrier);
}

static void connect_carrier(struct carrier *carrier)
{
	struct rdma_conn_param param;
	int ret = make_qp(carrier);

	if (ret) {
		rping_call_failed(carrier->peer, EVRDMA_STEP_DEVICE, -ret);
		return;
	}
	fill_param(carrier, &param);
	ret = evrdma_id_connect(carrier->id, &param, timeout_ms(carrier), answered, carrier);
	check_step(carrier, EVRDMA_STEP_CONNECT, ret);
}

static void route_found(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	if (went_well(arg, error))
		connect_carrier(arg);
}

static const char no_own_qp[] = "-q needs an InfiniBand or RoCE device: on iWARP the kernel takes "
				"the queue pair through its states";

static void address_found(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct carrier *carrier = arg;
	int ret;

	if (!went_well(carrier, error))
		return;
	if (capability_is_iwarp(evrdma_id_get_cm_id(id))) {
		tool_fail(&carrier->peer->test->tool, "%s", no_own_qp);
		return;
	}
	ret = evrdma_id_resolve_route(id, timeout_ms(carrier), route_found, carrier);
	check_step(carrier, EVRDMA_STEP_ROUTE, ret);
}

/* Returns NULL after it was told; the id of the kernel is then still the caller's. */
static struct carrier *make_carrier(struct rping *test, struct rdma_cm_id *accepted)
{
	struct rping_peer *peer = rping_new_peer(test, &link_of_own);
	struct carrier *carrier = peer ? calloc(1, sizeof(*carrier)) : NULL;

	if (!peer)
		return NULL;
	if (carrier)
		carrier->id = accepted ? evrdma_id_adopt(test->base, accepted, id_event, carrier)
				       : evrdma_id_new(test->base, RDMA_PS_TCP, id_event, carrier);
	if (!carrier || !carrier->id) {
		ends_fail_call(&test->ends, EVRDMA_STEP_DEVICE, errno);
		free(carrier);
		rping_free_peer(peer);
		return NULL;
	}
	carrier->peer = peer;
	peer->carrier = carrier;
	return carrier;
}

static void start_client(struct rping *test)
{
	struct carrier *carrier = make_carrier(test, NULL);
	int ret;

	if (!carrier)
		return;
	ret = evrdma_id_resolve_addr(carrier->id, ends_local(&test->ends), ends_remote(&test->ends),
		timeout_ms(carrier), address_found, carrier);
	check_step(carrier, EVRDMA_STEP_ADDR, ret);
}

/* --- the server ----------------------------------------------------------------------------- */

static void accepted(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	if (went_well(arg, error))
		connected(arg);
}

static void accept_carrier(struct carrier *carrier)
{
	struct rdma_conn_param param;
	int ret = make_qp(carrier);

	if (!ret)
		ret = make_ready(carrier);
	if (!ret) {
		fill_param(carrier, &param);
		ret = evrdma_id_accept(carrier->id, &param, timeout_ms(carrier), accepted, carrier);
	}
	check_step(carrier, EVRDMA_STEP_ACCEPT, ret);
}

static void refuse(struct rdma_cm_id *id)
{
	rdma_reject(id, NULL, 0);
	rdma_destroy_id(id);
}

static void request_came(struct rping *test, struct rdma_cm_id *id)
{
	struct carrier *carrier;

	rping_debug(test, "a client wants to connect");
	if (!rping_has_room(test)) {
		refuse(id);
		return;
	}
	if (capability_is_iwarp(id)) {
		refuse(id);
		tool_fail(&test->tool, "%s", no_own_qp);
		return;
	}
	carrier = make_carrier(test, id);
	if (carrier)
		accept_carrier(carrier);
	else
		refuse(id);
}

static void listening_event(struct evrdma_id *id, const struct rdma_cm_event *event, void *arg)
{
	struct rping *test = arg;

	if (!event)
		return;
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		request_came(test, event->id);
	else if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		ends_fail_call(&test->ends, EVRDMA_STEP_REMOVAL, ENODEV);
}

static void start_server(struct rping *test)
{
	int ret;

	test->listening = evrdma_id_new(test->base, RDMA_PS_TCP, listening_event, test);
	if (!test->listening) {
		ends_fail_listen(&test->ends, errno);
		return;
	}
	ret = evrdma_id_bind(test->listening, ends_local(&test->ends));
	if (!ret)
		ret = evrdma_id_listen(test->listening, 0);
	if (ret)
		ends_fail_listen(&test->ends, -ret);
}

void rping_own_start(struct rping *test)
{
	if (test->options.client)
		start_client(test);
	else
		start_server(test);
}
