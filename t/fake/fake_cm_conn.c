/* Connections, how they begin: listen, request, reply, confirmation. */
#include "fake/fake_cm.h"

#include <errno.h>
#include <string.h>

/* What siw has for an answer; the others have a field of fixed size. */
enum { MAX_BACKLOG = 1024, REQ_FIELD = 92, REP_FIELD = 196, MPA_ROOM = 252 };

bool fake_is_iwarp(const struct fake_id *id)
{
	return id->device && id->device->kind == FAKE_IWARP;
}

bool fake_is_ud(const struct fake_id *id)
{
	return id->qp_type == IBV_QPT_UD;
}

void fake_pad(uint8_t *field, uint8_t *field_len, const uint8_t *data, size_t len, size_t size)
{
	memset(field, 0, size);
	memcpy(field, data, len < size ? len : size);
	*field_len = (uint8_t)size;
}

void fake_copy_private(struct rdma_ucm_conn_param *out, const struct rdma_ucm_conn_param *in,
	size_t field, bool exact)
{
	fake_pad(out->private_data, &out->private_data_len, in->private_data, in->private_data_len,
		exact ? in->private_data_len : field);
}

void fake_reply(const struct fake_id *id, enum fake_message kind, uint32_t to, int status)
{
	struct fake_packet packet = {
		.kind = kind, .from = id->number, .to = to, .status = status
	};

	fake_wire_send(&packet);
}

/* --- listening --- */

int fake_listen(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_listen *cmd = in;
	struct fake_id *id;
	int err = fake_id_find(file, cmd->id, &id);

	if (err)
		return err;
	if (id->state != FAKE_ADDR_BOUND)
		fake_bind_any(id, AF_INET, &err);
	if (!err && id->reuseaddr)
		err = fake_port_check(id, false);
	if (!err && fake_is_iwarp(id) && fake_is_ud(id))
		err = -ENOSYS;
	if (err)
		return err;
	id->reuseaddr = false;
	id->backlog = cmd->backlog && cmd->backlog <= MAX_BACKLOG ? cmd->backlog : MAX_BACKLOG;
	id->has_cm = id->device != NULL;
	id->state = FAKE_LISTEN;
	return 0;
}

/* --- the request --- */

/* RoCE and InfiniBand put a header of their own before the data, but for AF_IB addresses. */
static size_t request_room(const struct fake_id *id)
{
	return id->src.ss_family == AF_IB ? REQ_FIELD : REQ_FIELD - FAKE_CMA_HEADER;
}

static void remember(struct fake_id *id, const struct rdma_ucm_conn_param *param)
{
	id->qp_num = param->qp_num;
	id->responder_resources = param->responder_resources;
	id->initiator_depth = param->initiator_depth;
}

static bool iwarp_takes(const struct fake_id *id, const struct rdma_ucm_conn_param *param)
{
	return fake_qp_exists(param->qp_num) &&
	       !fake_depths_fit(id->device, param->initiator_depth, param->responder_resources);
}

static int connect_rc(struct fake_id *id, const struct rdma_ucm_connect *cmd)
{
	struct fake_packet packet = { .kind = FAKE_REQ, .from = id->number };

	if (fake_is_iwarp(id) && !iwarp_takes(id, &cmd->conn_param))
		return -EINVAL;
	if (!fake_is_iwarp(id) && cmd->conn_param.private_data_len > request_room(id))
		return -EINVAL;
	remember(id, &cmd->conn_param);
	id->retry_count = cmd->conn_param.retry_count;
	id->has_cm = true;
	id->state = FAKE_CONNECT;
	id->conn = FAKE_REQ_SENT;
	packet.param = cmd->conn_param;
	packet.ece = cmd->ece;
	packet.silent = fake_addr_silent(&id->dst);
	fake_wire_send(&packet);
	return 0;
}

int fake_connect(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_connect *cmd = in;
	struct fake_id *id;
	int err;

	if (!cmd->conn_param.valid)
		return -EINVAL;
	err = fake_id_find_bound(file, cmd->id, &id);
	if (err)
		return err;
	if (id->state != FAKE_ROUTE_RESOLVED)
		return -EINVAL;
	return fake_is_ud(id) ? fake_sidr_connect(id, cmd) : connect_rc(id, cmd);
}

static void set_ends(struct fake_id *child, const struct fake_id *from)
{
	bool loopback = fake_addr_any(&from->dst);

	memcpy(&child->src, loopback ? &from->src : &from->dst, sizeof(child->src));
	memcpy(&child->dst, &from->src, sizeof(child->dst));
}

struct fake_id *fake_child_new(struct fake_id *listener, struct fake_id *from)
{
	struct fake_id *child = fake_id_new(listener->file, 0, listener->ps, listener->qp_type);

	listener->backlog--;
	set_ends(child, from);
	child->device = from->device;
	child->tos = listener->tos;
	child->state = FAKE_CONNECT;
	child->has_cm = true;
	child->peer = from->number;
	from->peer = child->number;
	return child;
}

struct fake_id *fake_child_forge(struct fake_id *listener)
{
	struct fake_id *child = fake_id_new(listener->file, 0, listener->ps, listener->qp_type);

	memcpy(&child->src, &listener->src, sizeof(child->src));
	memcpy(&child->dst, &listener->src, sizeof(child->dst));
	child->device = listener->device ? listener->device : fake_device_first();
	child->state = FAKE_CONNECT;
	child->conn = fake_is_ud(child) ? FAKE_SIDR_RCVD : FAKE_REQ_RCVD;
	child->has_cm = true;
	return child;
}

/* The request of one who used an AF_IB address brings the header along as data. */
static void put_request(struct fake_event *event, const struct fake_id *listener,
	const struct fake_id *from, const struct fake_packet *packet)
{
	struct rdma_ucm_conn_param *out = &event->resp.param.conn;
	struct rdma_ucm_conn_param in = packet->param;
	size_t skip = FAKE_CMA_HEADER;

	if (from->src.ss_family == AF_IB && listener->src.ss_family != AF_IB) {
		skip = in.private_data_len < skip ? in.private_data_len : skip;
		in.private_data_len = (uint8_t)(in.private_data_len - skip);
		memmove(in.private_data, in.private_data + skip, in.private_data_len);
	}
	*out = in;
	fake_copy_private(out, &in, request_room(listener), fake_is_iwarp(from));
	out->responder_resources = in.initiator_depth;
	out->initiator_depth = in.responder_resources;
	out->valid = 0;
	event->resp.ece = packet->ece;
}

static void deliver_request(
	struct fake_id *listener, struct fake_id *from, const struct fake_packet *packet)
{
	struct fake_event *event = fake_event_new(listener, FAKE_EV_CONNECT_REQUEST, 0);
	struct fake_id *child = fake_child_new(listener, from);

	child->conn = FAKE_REQ_RCVD;
	child->peer_qp_num = packet->param.qp_num;
	child->responder_resources = packet->param.initiator_depth;
	child->initiator_depth = packet->param.responder_resources;
	child->retry_count = packet->param.retry_count;
	child->rnr_retry_count = packet->param.rnr_retry_count;
	put_request(event, listener, from, packet);
	event->resp.id = child->number;
	event->child = child;
	fake_event_queue(event);
}

void fake_req_arrive(const struct fake_packet *packet)
{
	struct fake_id *from = fake_id_alive(packet->from);
	struct fake_id *listener;

	if (!from || from->conn != FAKE_REQ_SENT)
		return;
	listener = fake_listener_find(from);
	if (!listener || !listener->backlog)
		fake_reply(from, FAKE_REJ, from->number,
			listener ? FAKE_REJ_CONSUMER : FAKE_REJ_INVALID_SERVICE);
	else
		deliver_request(listener, from, packet);
}

/* --- the reply --- */

static void join_qps(const struct fake_id *id)
{
	fake_qp_join(id->qp_num, id->peer_qp_num, id->initiator_depth, id->responder_resources);
}

static void establish_iwarp(struct fake_id *id)
{
	id->conn = FAKE_ESTABLISHED;
	join_qps(id);
	fake_event_post(id, FAKE_EV_ESTABLISHED, 0);
}

static int send_reply(struct fake_id *id, const struct rdma_ucm_accept *cmd)
{
	struct fake_packet packet = { .kind = FAKE_REP, .from = id->number, .to = id->peer };
	const struct rdma_ucm_conn_param *param = &cmd->conn_param;

	if (id->conn != FAKE_REQ_RCVD)
		return -EINVAL;
	if (fake_is_iwarp(id) && !iwarp_takes(id, param))
		return -EINVAL;
	if (param->private_data_len > (fake_is_iwarp(id) ? MPA_ROOM : REP_FIELD))
		return -EINVAL;
	remember(id, param);
	id->uid = cmd->uid;
	packet.param = *param;
	packet.ece = cmd->ece;
	if (fake_is_iwarp(id))
		establish_iwarp(id);
	else
		id->conn = FAKE_REP_SENT;
	fake_wire_send(&packet);
	return 0;
}

static int send_confirmation(struct fake_id *id)
{
	if (id->conn != FAKE_REP_RCVD)
		return -EINVAL;
	id->conn = FAKE_ESTABLISHED;
	fake_reply(id, FAKE_RTU, id->peer, 0);
	return 0;
}

static int accept_ud(struct fake_id *id, const struct rdma_ucm_accept *cmd)
{
	int err = fake_sidr_answer(
		id, &cmd->conn_param, cmd->conn_param.valid ? 0 : FAKE_SIDR_REJECT);

	if (!err && cmd->conn_param.valid)
		id->uid = cmd->uid;
	return err;
}

static int accept_rc(struct fake_id *id, const struct rdma_ucm_accept *cmd)
{
	int err = cmd->conn_param.valid ? send_reply(id, cmd) : send_confirmation(id);

	if (err && (id->conn == FAKE_REQ_RCVD || id->conn == FAKE_REP_RCVD))
		fake_send_reject(id, FAKE_REJ_CONSUMER, (const uint8_t *)"", 0);
	return err;
}

int fake_accept(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_accept *cmd = in;
	struct fake_id *id;
	int err = fake_id_find_bound(file, cmd->id, &id);

	if (err)
		return err;
	if (id->state != FAKE_CONNECT)
		return -EINVAL;
	return fake_is_ud(id) ? accept_ud(id, cmd) : accept_rc(id, cmd);
}

static void put_reply(struct fake_event *event, const struct fake_packet *packet, bool exact)
{
	struct rdma_ucm_conn_param *out = &event->resp.param.conn;

	*out = packet->param;
	fake_copy_private(out, &packet->param, REP_FIELD, exact);
	out->responder_resources = packet->param.initiator_depth;
	out->initiator_depth = packet->param.responder_resources;
	out->retry_count = 0;
	out->valid = 0;
	event->resp.ece = packet->ece;
}

void fake_rep_arrive(const struct fake_packet *packet)
{
	struct fake_id *id = fake_id_alive(packet->to);
	struct fake_event *event;

	if (!id || id->conn != FAKE_REQ_SENT)
		return;
	id->peer = packet->from;
	id->peer_qp_num = packet->param.qp_num;
	id->initiator_depth = packet->param.responder_resources;
	id->responder_resources = packet->param.initiator_depth;
	id->rnr_retry_count = packet->param.rnr_retry_count;
	id->conn = fake_is_iwarp(id) ? FAKE_ESTABLISHED : FAKE_REP_RCVD;
	if (fake_is_iwarp(id))
		join_qps(id);
	event = fake_event_new(
		id, fake_is_iwarp(id) ? FAKE_EV_ESTABLISHED : FAKE_EV_CONNECT_RESPONSE, 0);
	put_reply(event, packet, fake_is_iwarp(id));
	fake_event_queue(event);
}

void fake_rtu_arrive(const struct fake_packet *packet)
{
	struct fake_id *id = fake_id_alive(packet->to);

	if (!id || id->conn != FAKE_REP_SENT)
		return;
	id->conn = FAKE_ESTABLISHED;
	fake_event_post(id, FAKE_EV_ESTABLISHED, 0);
}

/* The queue pair has seen the peer's data: as good as its confirmation. */
int fake_notify(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_notify *cmd = in;
	struct fake_id *id;
	int err = fake_id_find(file, cmd->id, &id);

	if (err)
		return err;
	if (!id->device || !id->has_cm)
		return -EINVAL;
	if (fake_is_iwarp(id))
		return 0;
	if (cmd->event != IBV_EVENT_COMM_EST)
		return -EINVAL;
	if (id->conn == FAKE_ESTABLISHED)
		return -EISCONN;
	if (id->conn != FAKE_REP_SENT)
		return -EINVAL;
	id->conn = FAKE_ESTABLISHED;
	fake_event_post(id, FAKE_EV_ESTABLISHED, 0);
	return 0;
}
