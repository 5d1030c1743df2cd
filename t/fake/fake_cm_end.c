/* Connections, how they end: refused, disconnected, abandoned, timed out. */
#include "fake/fake_cm.h"

#include <errno.h>
#include <string.h>

#include "util/clock.h"

enum { REJ_FIELD = 148 };

/* --- the refusal --- */

void fake_send_reject(struct fake_id *id, int reason, const uint8_t *data, uint8_t len)
{
	struct fake_packet packet = { .kind = FAKE_REJ, .from = id->number, .to = id->peer };

	packet.status = reason;
	memcpy(packet.param.private_data, data, len);
	packet.param.private_data_len = len;
	id->conn = FAKE_CONN_NONE;
	fake_wire_send(&packet);
}

static int reject_rc(struct fake_id *id, const struct rdma_ucm_reject *cmd, int reason)
{
	if (id->conn < FAKE_REQ_SENT || id->conn > FAKE_REP_RCVD)
		return -EINVAL;
	if (!fake_is_iwarp(id) && cmd->private_data_len > REJ_FIELD)
		return -EINVAL;
	fake_send_reject(id, reason, cmd->private_data, cmd->private_data_len);
	return 0;
}

int fake_reject(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_reject *cmd = in;
	struct rdma_ucm_conn_param param = { .private_data_len = cmd->private_data_len };
	int reason = cmd->reason ? cmd->reason : FAKE_REJ_CONSUMER;
	struct fake_id *id;
	int err;

	if (reason != FAKE_REJ_CONSUMER && reason != FAKE_REJ_VENDOR_OPTION)
		return -EINVAL;
	err = fake_id_find_bound(file, cmd->id, &id);
	if (err)
		return err;
	if (!id->has_cm)
		return -EINVAL;
	if (!fake_is_ud(id))
		return reject_rc(id, cmd, reason);
	memcpy(param.private_data, cmd->private_data, cmd->private_data_len);
	return fake_sidr_answer(id, &param, FAKE_SIDR_REJECT);
}

void fake_rej_arrive(const struct fake_packet *packet)
{
	struct fake_id *id = fake_id_alive(packet->to);
	struct fake_event *event;

	if (!id || id->conn < FAKE_REQ_SENT || id->conn > FAKE_REP_RCVD)
		return;
	id->conn = FAKE_CONN_NONE;
	event = fake_event_new(
		id, FAKE_EV_REJECTED, fake_is_iwarp(id) ? -ECONNREFUSED : packet->status);
	fake_copy_private(&event->resp.param.conn, &packet->param, REJ_FIELD, fake_is_iwarp(id));
	fake_event_queue(event);
}

/* --- the end --- */

/* Where the kernel of iWARP would wait, which the fake does not. */
void fake_wait_for_answer(const struct fake_id *id)
{
	if (fake_is_iwarp(id) &&
		(id->conn == FAKE_REQ_SENT || id->held_until_us > evr_clock_now_us()))
		fake_count_wait();
}

/* What is not a connection yet, or no more, is over already. */
static int disconnect_iwarp(struct fake_id *id)
{
	if (id->state == FAKE_LISTEN || id->conn == FAKE_DREQ_SENT)
		return -EINVAL;
	fake_wait_for_answer(id);
	if (id->conn != FAKE_ESTABLISHED)
		return 0;
	id->conn = FAKE_DREQ_SENT;
	fake_reply(id, FAKE_DREQ, id->peer, 0);
	return 0;
}

int fake_disconnect(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_disconnect *cmd = in;
	struct fake_id *id;
	int err = fake_id_find_bound(file, cmd->id, &id);

	if (err)
		return err;
	if (!id->has_cm)
		return -EINVAL;
	if (fake_is_iwarp(id))
		return disconnect_iwarp(id);
	if (id->conn == FAKE_ESTABLISHED) {
		id->conn = FAKE_DREQ_SENT;
		fake_reply(id, FAKE_DREQ, id->peer, 0);
	} else if (id->conn == FAKE_DREQ_RCVD) {
		id->conn = FAKE_TIMEWAIT;
		fake_reply(id, FAKE_DREP, id->peer, 0);
	}
	return 0;
}

/* Each side is told once. */
static void tell_disconnected(struct fake_id *id, int status)
{
	if (id->state != FAKE_CONNECT)
		return;
	id->state = FAKE_DISCONNECT;
	fake_event_post(id, FAKE_EV_DISCONNECTED, status);
}

static void end_iwarp(struct fake_id *id)
{
	id->conn = FAKE_TIMEWAIT;
	fake_qp_fail(id->qp_num);
	tell_disconnected(id, 0);
}

void fake_dreq_arrive(const struct fake_packet *packet)
{
	struct fake_id *id = fake_id_alive(packet->to);
	struct fake_packet answer = { .kind = FAKE_DREP, .from = packet->to, .to = packet->from };

	if (!id || id->conn == FAKE_TIMEWAIT) {
		fake_wire_send(&answer);
		return;
	}
	if (id->conn != FAKE_ESTABLISHED && id->conn != FAKE_REP_SENT && id->conn != FAKE_DREQ_SENT)
		return;
	if (fake_is_iwarp(id)) {
		end_iwarp(id);
		fake_wire_send(&answer);
		return;
	}
	id->conn = FAKE_DREQ_RCVD;
	tell_disconnected(id, 0);
}

void fake_drep_arrive(const struct fake_packet *packet)
{
	struct fake_id *id = fake_id_alive(packet->to);

	if (!id || (id->conn != FAKE_DREQ_SENT && id->conn != FAKE_DREQ_RCVD))
		return;
	if (fake_is_iwarp(id)) {
		end_iwarp(id);
		return;
	}
	id->conn = FAKE_TIMEWAIT;
	tell_disconnected(id, 0);
}

void fake_conn_abandon(struct fake_id *id)
{
	switch (id->conn) {
	case FAKE_REQ_SENT:
		fake_send_reject(id, FAKE_REJ_TIMEOUT, (const uint8_t *)"", 0);
		break;
	case FAKE_REQ_RCVD:
	case FAKE_REP_SENT:
	case FAKE_REP_RCVD:
		fake_send_reject(id, FAKE_REJ_CONSUMER, (const uint8_t *)"", 0);
		break;
	case FAKE_ESTABLISHED:
		fake_reply(id, FAKE_DREQ, id->peer, 0);
		break;
	case FAKE_DREQ_RCVD:
		fake_reply(id, FAKE_DREP, id->peer, 0);
		break;
	case FAKE_SIDR_RCVD:
		fake_sidr_answer(id, &(struct rdma_ucm_conn_param){ 0 }, FAKE_SIDR_REJECT);
		break;
	default:
		break;
	}
	id->conn = FAKE_CONN_NONE;
}

/* iWARP has no third message: it is who asked that hears of nothing. */
static void answer_is_lost(struct fake_id *asking)
{
	if (!asking || !fake_is_iwarp(asking) || asking->conn != FAKE_REQ_SENT)
		return;
	asking->conn = FAKE_CONN_NONE;
	fake_event_post(asking, FAKE_EV_UNREACHABLE, -ETIMEDOUT);
}

/* Nothing was heard of this message in spite of all retries. */
void fake_conn_time_out(const struct fake_packet *packet)
{
	struct fake_id *id = fake_id_alive(packet->from);

	if (packet->kind == FAKE_REP || packet->kind == FAKE_REJ)
		answer_is_lost(fake_id_alive(packet->to));
	if (!id)
		return;
	if ((packet->kind == FAKE_REQ && id->conn == FAKE_REQ_SENT) ||
		(packet->kind == FAKE_REP && id->conn == FAKE_REP_SENT) ||
		(packet->kind == FAKE_SIDR_REQ && id->conn == FAKE_SIDR_SENT)) {
		id->conn = FAKE_CONN_NONE;
		fake_event_post(id, FAKE_EV_UNREACHABLE, -ETIMEDOUT);
	} else if (packet->kind == FAKE_DREQ && id->conn == FAKE_DREQ_SENT) {
		id->conn = FAKE_TIMEWAIT;
		tell_disconnected(id, -ETIMEDOUT);
	}
}
