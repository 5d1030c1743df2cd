/* Finding a datagram peer: one request, one answer, no connection. */
#include "fake/fake_cm.h"

#include <errno.h>
#include <string.h>

enum { SIDR_REQ_FIELD = 216, SIDR_REP_FIELD = 136 };

static size_t request_room(const struct fake_id *id)
{
	return id->src.ss_family == AF_IB ? SIDR_REQ_FIELD : SIDR_REQ_FIELD - FAKE_CMA_HEADER;
}

int fake_sidr_connect(struct fake_id *id, const struct rdma_ucm_connect *cmd)
{
	struct fake_packet packet = { .kind = FAKE_SIDR_REQ, .from = id->number };

	if (fake_is_iwarp(id))
		return -EINVAL;
	if (cmd->conn_param.private_data_len > request_room(id))
		return -EINVAL;
	id->has_cm = true;
	id->state = FAKE_CONNECT;
	id->conn = FAKE_SIDR_SENT;
	packet.param = cmd->conn_param;
	packet.silent = fake_addr_silent(&id->dst);
	fake_wire_send(&packet);
	return 0;
}

static void deliver_request(
	struct fake_id *listener, struct fake_id *from, const struct fake_packet *packet)
{
	struct fake_event *event = fake_event_new(listener, FAKE_EV_CONNECT_REQUEST, 0);
	struct rdma_ucm_ud_param *ud = &event->resp.param.ud;
	struct fake_id *child = fake_child_new(listener, from);

	child->conn = FAKE_SIDR_RCVD;
	fake_pad(ud->private_data, &ud->private_data_len, packet->param.private_data,
		packet->param.private_data_len, request_room(listener));
	event->resp.id = child->number;
	event->child = child;
	fake_event_queue(event);
}

void fake_sidr_req_arrive(const struct fake_packet *packet)
{
	struct fake_packet refusal = {
		.kind = FAKE_SIDR_REP, .to = packet->from, .status = FAKE_SIDR_UNSUPPORTED
	};
	struct fake_id *from = fake_id_alive(packet->from);
	struct fake_id *listener;

	if (!from || from->conn != FAKE_SIDR_SENT)
		return;
	listener = fake_listener_find(from);
	if (listener && listener->backlog)
		deliver_request(listener, from, packet);
	else
		fake_wire_send(&refusal);
}

int fake_sidr_answer(struct fake_id *id, const struct rdma_ucm_conn_param *param, int status)
{
	struct fake_packet packet = { .kind = FAKE_SIDR_REP, .from = id->number, .to = id->peer };

	if (id->conn != FAKE_SIDR_RCVD || param->private_data_len > SIDR_REP_FIELD)
		return -EINVAL;
	id->conn = FAKE_CONN_NONE;
	id->qp_num = param->qp_num;
	packet.status = status;
	packet.param = *param;
	if (!param->qkey)
		packet.param.qkey = fake_default_qkey(id);
	fake_wire_send(&packet);
	return 0;
}

void fake_sidr_rep_arrive(const struct fake_packet *packet)
{
	struct fake_id *id = fake_id_alive(packet->to);
	struct rdma_ucm_ud_param *ud;
	struct fake_event *event;

	if (!id || id->conn != FAKE_SIDR_SENT)
		return;
	id->conn = FAKE_CONN_NONE;
	event = fake_event_new(
		id, packet->status ? FAKE_EV_UNREACHABLE : FAKE_EV_ESTABLISHED, packet->status);
	ud = &event->resp.param.ud;
	fake_pad(ud->private_data, &ud->private_data_len, packet->param.private_data,
		packet->param.private_data_len, SIDR_REP_FIELD);
	if (!packet->status) {
		ud->qp_num = packet->param.qp_num;
		ud->qkey = packet->param.qkey;
		fake_ah_of(id, &ud->ah_attr);
	}
	fake_event_queue(event);
}
