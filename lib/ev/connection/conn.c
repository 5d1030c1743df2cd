#include "ev/connection/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ev/cm/addr.h"
#include "ev/cm/linger.h"
#include "ev/core/base.h"
#include "ev/core/error.h"
#include "ev/core/stats.h"
#include "ev/queue/rnr.h"
#include "util/clock.h"
#include "util/options.h"

/* What kind of callback a send has. */
enum { SEND_CB, WORK_CB, PROBE_CB };

static const struct evrdma_conn_options default_options = {
	.connect_timeout_ms = 10000,
	.drain_timeout_ms = 1000,
	.send_depth = 64,
	.send_segs = 1,
	.recv_depth = 64,
	.gid_index = -1,
	.port_space = RDMA_PS_TCP,
	.tos = -1,
	.ack_timeout = -1,
	.retry_count = 6, /* 7 is for ever on rxe */
	.rnr_retry_count = 7,
	.responder_resources = 1,
	.initiator_depth = 1,
	.min_rnr_timer_us = 640,
	.attempt_timeout_ms = 1000,
};

void evrdma_conn_options_init_sized(struct evrdma_conn_options *options, size_t size)
{
	evr_options_init(options, size, &default_options, sizeof(default_options));
}

/* --- telling -------------------------------------------------------------------------------- */

void evr_conn_tell(
	struct evrdma_conn *conn, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	if (conn->event_cb)
		conn->event_cb(conn, event, error, conn->arg);
}

static void tell_end(struct evrdma_conn *conn)
{
	bool failed = conn->end_event == EVRDMA_CONN_ERROR;

	if (conn->state == EVR_CONN_DOWN || evr_conn_must_read(conn))
		return;
	conn->obj.base->stats.connections_failed += failed;
	evr_obj_end(&conn->obj);
	evr_conn_tell(conn, conn->end_event, failed ? &conn->end_error : NULL);
}

void evr_conn_has_read(struct evrdma_conn *conn)
{
	if (conn->ends && !evr_qp_is_catching_up(&conn->qp))
		tell_end(conn);
}

/*
 * Messages that came before the end are told before it. One of the completions among them may be
 * the end as well, and is then the one that is told.
 */
void evr_conn_down(
	struct evrdma_conn *conn, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	if (conn->state == EVR_CONN_DOWN || (conn->ends && !evr_qp_is_telling(&conn->qp)))
		return;
	/* What came since the keepalive began to wait is told before as well. */
	if (!conn->ends)
		evr_qp_stop_catching_up(&conn->qp);
	conn->ends = true;
	conn->end_event = event;
	if (error)
		conn->end_error = *error;
	if (!evr_qp_catch_up(&conn->qp))
		tell_end(conn);
}

static void fail(struct evrdma_conn *conn, const struct evrdma_error *error)
{
	if (conn->state == EVR_CONN_SETUP)
		evr_conn_setup_failed(conn, error);
	else
		evr_conn_down(conn, EVRDMA_CONN_ERROR, error);
}

void evr_conn_fail(struct evrdma_conn *conn, int err, enum evrdma_step step)
{
	struct evrdma_error error;

	evr_error_set(&error, err, step);
	fail(conn, &error);
}

void evr_conn_keep_peer_data(struct evrdma_conn *conn, const void *data, size_t len)
{
	if (!data || !len)
		return;
	if (len > sizeof(conn->peer_data))
		len = sizeof(conn->peer_data);
	memcpy(conn->peer_data, data, len);
	conn->peer_data_len = len;
}

void evr_conn_keep_addresses(struct evrdma_conn *conn)
{
	evr_addr_copy(&conn->local_addr, rdma_get_local_addr(conn->cmid.cm));
	evr_addr_copy(&conn->peer_addr, rdma_get_peer_addr(conn->cmid.cm));
}

/* --- the CM's events ------------------------------------------------------------------------ */

/* The peer has nothing to say any more, or nobody would hear it. */
static void part(struct evrdma_conn *conn)
{
	conn->linked = false;
	if (conn->end == EVR_CONN_END_START)
		return;
	evr_timer_stop(&conn->wait_timer);
	evr_obj_continue(&conn->obj);
}

static void on_removal(struct evrdma_conn *conn)
{
	part(conn);
	if (conn->state == EVR_CONN_DOWN)
		return;
	/* Another address would lead to no better place in time: this is the end. */
	evr_targets_settle(&conn->targets);
	evr_conn_fail(conn, ENODEV, EVRDMA_STEP_REMOVAL);
}

static void on_disconnected(struct evrdma_conn *conn)
{
	part(conn);
	if (conn->state == EVR_CONN_UP) {
		conn->peer_left = !conn->disconnecting;
		evr_conn_down(conn, EVRDMA_CONN_DISCONNECTED, NULL);
	} else if (conn->state == EVR_CONN_SETUP) {
		conn->peer_left = conn->passive && conn->handshaking;
		evr_conn_fail(conn, ECONNRESET, conn->step);
	}
}

/*
 * The last message of the handshake may come when we have given up: only now can the peer be told,
 * if the kernel could not before, and answer.
 */
static void on_established_too_late(struct evrdma_conn *conn)
{
	conn->linked = true;
	if (conn->told)
		rdma_disconnect(conn->cmid.cm);
}

static void disconnect_if_quiet(struct evrdma_conn *conn);

/* Of a connection that is up: of its handshake, and how that ended when data was first. */
static void on_late_event(struct evrdma_conn *conn, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		evr_conn_linked(conn, event);
		disconnect_if_quiet(conn);
		break;
	case RDMA_CM_EVENT_REJECTED:
		on_disconnected(conn);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		/* A neighbour that has moved ends no handshake that was over. */
		if (!conn->linked)
			part(conn);
		evr_conn_fail(conn, ETIMEDOUT, conn->step);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		evr_conn_tell(conn, EVRDMA_CONN_ADDR_CHANGED, NULL);
		break;
	default:
		break;
	}
}

static void on_event(struct evr_cmid *cmid, const struct rdma_cm_event *event)
{
	struct evrdma_conn *conn = evr_container_of(cmid, struct evrdma_conn, cmid);

	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		on_removal(conn);
	else if (event->event == RDMA_CM_EVENT_DISCONNECTED)
		on_disconnected(conn);
	else if (conn->state == EVR_CONN_SETUP)
		evr_conn_setup_on_event(conn, event);
	else if (conn->state == EVR_CONN_UP)
		on_late_event(conn, event);
	else if (event->event == RDMA_CM_EVENT_ESTABLISHED)
		on_established_too_late(conn);
}

static void on_lost(struct evr_cmid *cmid, int err)
{
	struct evrdma_conn *conn = evr_container_of(cmid, struct evrdma_conn, cmid);

	part(conn);
	evr_targets_settle(&conn->targets);
	if (conn->state != EVR_CONN_DOWN)
		evr_conn_fail(conn, err, EVRDMA_STEP_CHANNEL);
}

const struct evr_cmid_ops evr_conn_cmid_ops = { .event = on_event, .lost = on_lost };

/* --- the QP's ------------------------------------------------------------------------------- */

static struct evrdma_conn *of_qp(struct evr_qp *qp)
{
	return evr_container_of(qp, struct evrdma_conn, qp);
}

static uint64_t left_us(uint64_t end_us)
{
	uint64_t now_us = evr_clock_now_us();

	return end_us > now_us ? end_us - now_us : 0;
}

static void start_wait(struct evrdma_conn *conn)
{
	conn->wait_end_us =
		evr_clock_now_us() + (uint64_t)conn->options.drain_timeout_ms * EVR_US_PER_MS;
}

/* All that was sent before the disconnect has arrived, and the CM has heard of the connection. */
static void disconnect_if_quiet(struct evrdma_conn *conn)
{
	if (!conn->disconnecting || conn->state != EVR_CONN_UP || !conn->linked ||
		!evr_qp_has_sent_all(&conn->qp) || conn->next == EVR_CONN_DISCONNECT)
		return;
	evr_timer_stop(&conn->wait_timer);
	conn->next = EVR_CONN_DISCONNECT;
	conn->wait_left_us = left_us(conn->wait_end_us);
	evr_obj_set_kind(&conn->obj, EVR_TASK_LEAVE);
	evr_obj_work(&conn->obj);
}

static void on_sent(
	struct evr_qp *qp, const struct evr_send *send, const struct evrdma_error *error)
{
	struct evrdma_conn *conn = of_qp(qp);

	if (!error)
		evr_conn_sent(conn, send->opcode, send->kind != PROBE_CB);
	if (conn->end == EVR_CONN_END_START)
		evr_obj_continue(&conn->obj);
	disconnect_if_quiet(conn);
	if (!send->cb)
		return;
	if (send->kind == SEND_CB)
		((evrdma_conn_send_cb)send->cb)(conn, send->buf, error, send->arg);
	else
		((evrdma_conn_work_cb)send->cb)(conn, error, send->arg);
}

/* What comes when the connection ended before it was there is nobody's message. */
static void cancel_received(struct evrdma_conn *conn, const struct evrdma_recv *recv)
{
	const struct evrdma_recv cancelled = {
		.buf = recv->buf,
		.data = recv->data,
		.err = ECANCELED,
		.wc_status = recv->wc_status,
		.wc = recv->wc,
	};

	if (!conn->options.recv_pool && !conn->options.srq)
		evr_conn_read(conn, &cancelled);
}

/* What the answer says is needed to understand what comes; until then reading is disabled. */
static bool waits_for_answer(const struct evrdma_conn *conn)
{
	return conn->owned && !conn->passive && evr_conn_may_establish(conn);
}

static void on_received(struct evr_qp *qp, const struct evrdma_recv *recv)
{
	struct evrdma_conn *conn = of_qp(qp);
	bool waits = waits_for_answer(conn);

	if (!recv->err && !waits && evr_conn_may_establish(conn))
		evr_conn_established(conn);
	if (!recv->err && !waits && !conn->connected) {
		cancel_received(conn, recv);
		return;
	}
	if (!recv->err) {
		evr_qp_release_sends(qp);
		evr_conn_received(conn);
	}
	evr_conn_read(conn, recv);
}

static void on_failed(struct evr_qp *qp, const struct evrdma_error *error)
{
	struct evrdma_conn *conn = of_qp(qp);

	if (conn->state != EVR_CONN_DOWN)
		fail(conn, error);
}

/* The CM's event says why, and follows; but not for ever. */
static void on_flushed(struct evr_qp *qp)
{
	struct evrdma_conn *conn = of_qp(qp);

	if (conn->state == EVR_CONN_UP && !evr_timer_runs(&conn->wait_timer))
		evr_timer_start(&conn->wait_timer, conn->options.drain_timeout_ms);
}

static void on_writable(struct evr_qp *qp)
{
	struct evrdma_conn *conn = of_qp(qp);

	if (conn->state == EVR_CONN_UP)
		evr_conn_tell(conn, EVRDMA_CONN_WRITABLE, NULL);
}

static void on_drained(struct evr_qp *qp)
{
	evr_obj_continue(&of_qp(qp)->obj);
}

static void on_caught_up(struct evr_qp *qp)
{
	struct evrdma_conn *conn = of_qp(qp);

	if (conn->state == EVR_CONN_DOWN)
		evr_obj_continue(&conn->obj);
	else if (conn->ends)
		tell_end(conn);
	else if (conn->state == EVR_CONN_SETUP)
		evr_obj_work(&conn->obj);
	else
		evr_conn_judge_alive(conn);
}

static void on_spoken_to(struct evr_qp *qp)
{
	struct evrdma_conn *conn = of_qp(qp);

	if (conn->passive && conn->handshaking && evr_conn_may_establish(conn))
		evr_conn_established(conn);
}

static const struct evr_qp_ops qp_ops = {
	.spoken_to = on_spoken_to,
	.sent = on_sent,
	.received = on_received,
	.failed = on_failed,
	.flushed = on_flushed,
	.writable = on_writable,
	.drained = on_drained,
	.caught_up = on_caught_up,
};

/* --- timers --------------------------------------------------------------------------------- */

/* The end is told when nobody uses the user's evdns_base any more. */
static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct evrdma_conn *conn = arg;

	conn->late = true;
	if (conn->lookup) {
		evr_lookup_cancel(conn->lookup);
		return;
	}
	evr_targets_settle(&conn->targets);
	evr_conn_fail(conn, ETIMEDOUT, conn->step);
}

static void on_hold_timer(evutil_socket_t fd, short what, void *arg)
{
	struct evrdma_conn *conn = arg;

	evr_qp_release_sends(&conn->qp);
}

static enum evrdma_step late_step(const struct evrdma_conn *conn)
{
	if (!conn->disconnecting)
		return EVRDMA_STEP_TRANSFER;
	return evr_qp_has_sent_all(&conn->qp) ? EVRDMA_STEP_DISCONNECT : EVRDMA_STEP_DELIVER;
}

/* Ends the wait for the answer to a disconnect, for the reason of a flush, or to settle. */
static void on_wait_timer(evutil_socket_t fd, short what, void *arg)
{
	struct evrdma_conn *conn = arg;

	if (conn->state == EVR_CONN_UP) {
		evr_conn_fail(conn, conn->disconnecting ? ETIMEDOUT : ECONNRESET,
			late_step(conn));
		return;
	}
	conn->settled = true;
	evr_obj_continue(&conn->obj);
}

/* --- the end -------------------------------------------------------------------------------- */

static bool is_infiniband(const struct evrdma_conn *conn)
{
	return conn->cmid.cm->verbs->device->transport_type == IBV_TRANSPORT_IB;
}

/*
 * Ends the traffic: the peer is told, and what is posted is flushed. An InfiniBand id had better
 * hear the peer's answer before it goes: without, the kernel has to call its question back, and
 * Linux 6.1 has failed to do so, holding whoever destroys the id for as long as it asks, a minute.
 */
static void stop_traffic(struct evrdma_conn *conn)
{
	bool told = conn->handshaking && !rdma_disconnect(conn->cmid.cm);

	conn->told |= told;
	if (!conn->disconnecting)
		start_wait(conn);
	/* Of the two transports only InfiniBand's disconnect leaves the QP in the error state. */
	if (!told || !is_infiniband(conn)) {
		evr_qp_set_error(&conn->qp);
		return;
	}
	evr_qp_in_error(&conn->qp);
}

/*
 * The CM's message can overtake the last acknowledgements, and a send that the peer has is not to
 * be told as cancelled: they are given a moment before the QP goes to the error state.
 */
static bool must_settle(const struct evrdma_conn *conn)
{
	return conn->peer_left && !conn->settled && conn->qp.qp &&
		conn->qp.send_posted != conn->qp.send_tail;
}

static int end_start(struct evrdma_conn *conn)
{
	evr_conn_stop_alive(conn);
	if (conn->lookup || conn->cmid.unanswered)
		return -EINPROGRESS;
	if (must_settle(conn)) {
		if (!conn->settling)
			evr_timer_start(&conn->wait_timer, EVR_CONN_SETTLE_MS);
		conn->settling = true;
		return -EINPROGRESS;
	}
	evr_timer_stop(&conn->wait_timer);
	if (conn->qp.qp)
		stop_traffic(conn);
	/* A QP that never talked has nothing to say: it goes as it is. */
	evr_qp_start_drain(&conn->qp, conn->handshaking ? conn->options.drain_timeout_ms : 0);
	conn->end = EVR_CONN_END_DRAIN;
	evr_obj_set_kind(&conn->obj, EVR_TASK_RELEASE);
	return -EAGAIN;
}

static int end_drain(struct evrdma_conn *conn)
{
	if (!evr_qp_is_drained(&conn->qp))
		return -EINPROGRESS;
	conn->end = EVR_CONN_END_QP;
	return -EAGAIN;
}

static int end_qp(struct evrdma_conn *conn)
{
	int ret = evr_qp_destroy(&conn->qp, &conn->cmid);

	if (ret)
		return ret;
	conn->end = EVR_CONN_END_ID;
	return -EAGAIN;
}

/* Who was told of the end and can answer has not. */
static bool awaits_answer(const struct evrdma_conn *conn)
{
	return conn->linked && conn->told && is_infiniband(conn);
}

/* False when the time that an answer has is over, or that of the base. */
static bool wait_for_answer(struct evrdma_conn *conn)
{
	uint64_t us = left_us(conn->wait_end_us);
	uint64_t most_us = evr_shutdown_left_us(conn->cmid.base);

	if (us > most_us)
		us = most_us;
	if (us)
		evr_timer_start(&conn->wait_timer, evr_clock_ms_of(us));
	return us;
}

/*
 * The id alone waits for the answer; on a base that is closing the connection does. The device goes
 * first: the CM closes a device that was removed with the last id on it.
 */
static int end_id(struct evrdma_conn *conn)
{
	if (awaits_answer(conn) && evr_linger(&conn->cmid, &conn->lingering) &&
		wait_for_answer(conn))
		return -EINPROGRESS;
	evr_timer_stop(&conn->wait_timer);
	evr_qp_put_device(&conn->qp);
	evr_cmid_destroy(&conn->cmid);
	return 0;
}

static int conn_end(struct evr_obj *obj)
{
	static int (*const steps[])(struct evrdma_conn *) = {
		[EVR_CONN_END_START] = end_start,
		[EVR_CONN_END_DRAIN] = end_drain,
		[EVR_CONN_END_QP] = end_qp,
		[EVR_CONN_END_ID] = end_id,
	};
	struct evrdma_conn *conn = evr_container_of(obj, struct evrdma_conn, obj);

	return steps[conn->end](conn);
}

static void conn_down(struct evr_obj *obj)
{
	struct evrdma_conn *conn = evr_container_of(obj, struct evrdma_conn, obj);

	conn->state = EVR_CONN_DOWN;
	evr_conn_stop_timers(conn);
	evr_lookup_cancel(conn->lookup);
	evr_qp_stop_catching_up(&conn->qp);
	if (conn->peer_left)
		evr_obj_set_kind(obj, EVR_TASK_ANSWER);
}

static bool conn_shutdown(struct evr_obj *obj)
{
	struct evrdma_conn *conn = evr_container_of(obj, struct evrdma_conn, obj);

	if (conn->owned || !evrdma_conn_disconnect(conn))
		return true;
	evr_obj_close(obj);
	return false;
}

static void conn_closed(struct evr_obj *obj)
{
	struct evrdma_conn *conn = evr_container_of(obj, struct evrdma_conn, obj);

	evr_conn_tell(conn, EVRDMA_CONN_CLOSED, NULL);
}

/* An id that is still there is counted on, but not as long as the kernel may take. */
static void give_slot(struct evrdma_conn *conn)
{
	if (conn->lingering)
		evr_linger_keep_slot(
			conn->lingering, conn->slots, conn->options.drain_timeout_ms);
	else
		evr_slots_give(conn->slots);
}

static void conn_free(struct evr_obj *obj)
{
	struct evrdma_conn *conn = evr_container_of(obj, struct evrdma_conn, obj);

	evr_conn_fini_read(conn);
	evr_qp_fini(&conn->qp);
	evr_source_fini(&conn->source);
	evr_targets_fini(&conn->targets);
	give_slot(conn);
	obj->base->stats.connections--;
	free(conn);
}

static void conn_dump(const struct evr_obj *obj, const struct evr_dump *to)
{
	const struct evrdma_conn *conn = evr_container_of(obj, struct evrdma_conn, obj);
	char local[EVRDMA_ADDR_TEXT_MAX], peer[EVRDMA_ADDR_TEXT_MAX];
	char what[2 * EVRDMA_ADDR_TEXT_MAX + 16];

	evrdma_addr_text(evrdma_conn_get_local_addr(conn), local, sizeof(local));
	evrdma_addr_text(evrdma_conn_get_peer_addr(conn), peer, sizeof(peer));
	snprintf(what, sizeof(what), "connection %s %s", local, peer);
	evr_dump_traffic(to, what, &conn->qp.traffic);
}

void evrdma_conn_get_stats_sized(
	const struct evrdma_conn *conn, struct evrdma_traffic_stats *stats, size_t size)
{
	evr_options_store(stats, size, &conn->qp.traffic, sizeof(conn->qp.traffic));
}

static const struct evr_obj_class conn_class = {
	.down = conn_down,
	.work = evr_conn_work,
	.end = conn_end,
	.shutdown = conn_shutdown,
	.tells = evr_conn_must_cancel_read,
	.closed = conn_closed,
	.free = conn_free,
	.dump = conn_dump,
};

/* --- the calls ------------------------------------------------------------------------------ */

static bool in_range(int value, int low, int high)
{
	return value >= low && value <= high;
}

static bool options_valid(const struct evrdma_conn_options *o)
{
	return o->connect_timeout_ms > 0 && o->attempt_timeout_ms >= 0 &&
		o->drain_timeout_ms > 0 && o->keepalive_ms >= 0 && o->idle_timeout_ms >= 0 &&
		o->send_depth && o->send_depth <= 65536 && o->send_queue <= 65536 &&
		o->send_segs && o->send_segs <= EVR_SEGS_MAX && o->inline_bytes <= 4096 &&
		o->recv_depth <= 65536 &&
		!(o->srq && o->recv_pool) &&
		o->low_water <= o->send_depth + o->send_queue && in_range(o->tos, -1, 255) &&
		in_range(o->ack_timeout, -1, 31) && o->retry_count <= 7 &&
		o->rnr_retry_count <= 7 && in_range(o->port_num, 0, 255) && o->gid_index >= -1 &&
		o->min_rnr_timer_us && in_range(o->min_rnr_timer_us, -1, EVR_RNR_US_MAX) &&
		(o->port_space == RDMA_PS_TCP || o->port_space == RDMA_PS_IB) &&
		o->private_data_len <= EVR_CONN_PRIVATE_DATA_MAX &&
		(o->private_data || !o->private_data_len);
}

static int load_options(struct evrdma_conn *conn, const struct evrdma_conn_options *options)
{
	conn->options = default_options;
	if (evr_options_load(&conn->options, sizeof(conn->options), options) ||
		!options_valid(&conn->options))
		return -EINVAL;
	if (conn->options.private_data_len)
		memcpy(conn->private_data, conn->options.private_data,
			conn->options.private_data_len);
	conn->options.private_data = conn->private_data;
	if (evr_addr_copy(&conn->src, conn->options.src))
		return -EINVAL;
	conn->options.src = NULL;
	return 0;
}

static int init(struct evrdma_conn *conn, struct evrdma_base *base,
	const struct evrdma_conn_options *options)
{
	struct evr_qp_config config;
	int ret = load_options(conn, options);

	if (ret)
		return ret;
	config = (struct evr_qp_config){
		.type = IBV_QPT_RC,
		.send_depth = conn->options.send_depth,
		.send_queue = conn->options.send_queue,
		.max_segs = conn->options.send_segs,
		.inline_bytes = conn->options.inline_bytes,
		.recv_depth = conn->options.recv_depth,
		.low_water = conn->options.low_water,
		.recv_pool = conn->options.recv_depth ? conn->options.recv_pool : NULL,
		.srq = conn->options.srq,
		.domain = conn->options.domain,
	};
	ret = evr_source_init(&conn->source, conn->options.device, conn->options.port_num,
		conn->options.gid_index);
	conn->options.device = NULL;
	if (ret)
		return ret;
	ret = evr_qp_init(&conn->qp, base, &config, &qp_ops);
	if (ret)
		goto fini_source;
	ret = evr_obj_init(&conn->obj, base, &conn_class);
	if (ret)
		goto fini_qp;
	return 0;
fini_qp:
	evr_qp_fini(&conn->qp);
fini_source:
	evr_source_fini(&conn->source);
	return ret;
}

struct evrdma_conn *evrdma_conn_new(
	struct evrdma_base *base, const struct evrdma_conn_options *options)
{
	struct evrdma_conn *conn = calloc(1, sizeof(*conn));
	int ret;

	if (!conn)
		return NULL;
	ret = init(conn, base, options);
	if (ret) {
		free(conn);
		errno = -ret;
		return NULL;
	}
	base->stats.connections++;
	conn->cmid.owner = &conn->obj;
	conn->cmid.ops = &evr_conn_cmid_ops;
	evr_conn_init_read(conn);
	evr_timer_assign(&conn->deadline, base, on_deadline, conn);
	evr_timer_assign(&conn->attempt_timer, base, evr_conn_on_attempt_timer, conn);
	evr_timer_assign(&conn->hold_timer, base, on_hold_timer, conn);
	evr_timer_assign(&conn->alive_timer, base, evr_conn_on_alive_timer, conn);
	evr_timer_assign(&conn->wait_timer, base, on_wait_timer, conn);
	return conn;
}

void evrdma_conn_setcb(struct evrdma_conn *conn, evrdma_conn_recv_cb recv_cb,
	evrdma_conn_event_cb event_cb, void *arg)
{
	conn->recv_cb = recv_cb;
	conn->event_cb = event_cb;
	conn->arg = arg;
}

int evrdma_conn_recv(struct evrdma_conn *conn, struct evrdma_buf *buf)
{
	if (!buf || conn->options.recv_pool || conn->options.srq)
		return -EINVAL;
	if (conn->state == EVR_CONN_DOWN || conn->obj.closing)
		return -ENOTCONN;
	return evr_qp_submit_recv(&conn->qp, buf);
}

int evrdma_conn_send(struct evrdma_conn *conn, struct evrdma_buf *buf, size_t len,
	evrdma_conn_send_cb cb, void *arg)
{
	const struct evrdma_seg seg = { .buf = buf, .len = len };
	const struct evr_send send = {
		.opcode = IBV_WR_SEND, .kind = SEND_CB, .cb = (void (*)(void))cb, .arg = arg
	};

	if (!buf)
		return -EINVAL;
	if (conn->state != EVR_CONN_UP || conn->disconnecting)
		return -ENOTCONN;
	if (len > evrdma_buf_size(buf))
		return -EMSGSIZE;
	return evr_qp_submit_send(&conn->qp, &send, &seg, 1);
}

int evrdma_conn_submit(struct evrdma_conn *conn, const struct evrdma_work *work,
	evrdma_conn_work_cb cb, void *arg)
{
	struct evr_send send = { .kind = WORK_CB, .cb = (void (*)(void))cb, .arg = arg };
	int ret = evr_work_to_send(work, &send);

	if (ret)
		return ret;
	if (conn->state != EVR_CONN_UP || conn->disconnecting)
		return -ENOTCONN;
	if (work->inline_data)
		return evr_qp_submit_inline(
			&conn->qp, &send, work->inline_data, work->inline_len);
	return evr_qp_submit_send(&conn->qp, &send, work->segs, work->seg_count);
}

bool evr_conn_asks_by_reading(const struct evrdma_conn *conn)
{
	return evr_qp_is_iwarp(&conn->qp) && conn->qp.initiator_depth;
}

int evr_conn_probe(struct evrdma_conn *conn)
{
	const struct evr_send send = {
		.opcode = evr_conn_asks_by_reading(conn) ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
		.kind = PROBE_CB,
	};

	/* A full queue is asked nothing: nobody waits for WRITABLE on behalf of a probe. */
	return evr_qp_send_space(&conn->qp) ? evr_qp_submit_send(&conn->qp, &send, NULL, 0)
					    : -EAGAIN;
}

int evrdma_conn_expose(
	struct evrdma_conn *conn, struct evrdma_buf *buf, struct evrdma_remote *remote)
{
	int ret;

	if (!buf || !remote)
		return -EINVAL;
	if (conn->state == EVR_CONN_DOWN)
		return -ENOTCONN;
	ret = conn->qp.pd ? evr_buf_rkey(buf, conn->qp.pd, &remote->key) : -ENOTCONN;
	if (!ret)
		remote->addr = (uintptr_t)evrdma_buf_data(buf);
	return ret;
}

uint32_t evrdma_conn_send_space(const struct evrdma_conn *conn)
{
	if (conn->state != EVR_CONN_UP || conn->disconnecting)
		return 0;
	return evr_qp_send_space(&conn->qp);
}

int evrdma_conn_disconnect(struct evrdma_conn *conn)
{
	if (conn->state != EVR_CONN_UP)
		return -ENOTCONN;
	if (conn->disconnecting)
		return 0;
	conn->disconnecting = true;
	start_wait(conn);
	evr_timer_start(&conn->wait_timer, conn->options.drain_timeout_ms);
	disconnect_if_quiet(conn);
	return 0;
}

int evrdma_conn_migrate(struct evrdma_conn *conn, struct evrdma_base *base)
{
	if (!conn->cmid.cm || conn->state == EVR_CONN_DOWN)
		return -ENOTCONN;
	if (base->event_base != conn->obj.base->event_base)
		return -EXDEV;
	if (evr_base_closing(base))
		return -EPIPE;
	return evr_cmid_migrate(&conn->cmid, base);
}

void evrdma_conn_close(struct evrdma_conn *conn)
{
	if (conn)
		evr_obj_close(&conn->obj);
}

struct rdma_cm_id *evrdma_conn_get_cm_id(const struct evrdma_conn *conn)
{
	return conn->cmid.cm;
}

struct evrdma_base *evrdma_conn_get_base(const struct evrdma_conn *conn)
{
	return conn->obj.base;
}

const struct sockaddr *evrdma_conn_get_local_addr(const struct evrdma_conn *conn)
{
	return (const struct sockaddr *)&conn->local_addr;
}

const struct sockaddr *evrdma_conn_get_peer_addr(const struct evrdma_conn *conn)
{
	return (const struct sockaddr *)&conn->peer_addr;
}

unsigned evrdma_conn_get_initiator_depth(const struct evrdma_conn *conn)
{
	return conn->connected ? conn->qp.initiator_depth : 0;
}

const void *evrdma_conn_get_private_data(const struct evrdma_conn *conn, size_t *len)
{
	if (len)
		*len = conn->peer_data_len;
	return conn->peer_data_len ? conn->peer_data : NULL;
}
