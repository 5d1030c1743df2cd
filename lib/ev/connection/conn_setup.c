/* From NEW to UP: names, addresses, the QP, the handshake, one step after the other. */
#include <errno.h>
#include <event2/util.h>
#include <stdlib.h>
#include <string.h>

#include "ev/cm/addr.h"
#include "ev/connection/conn.h"
#include "ev/connection/request.h"
#include "ev/core/base.h"
#include "ev/core/error.h"
#include "ev/queue/rnr.h"
#include "util/clock.h"
#include "util/number.h"

enum { MAX_ACCEPT_DATA = 196 }; /* on InfiniBand and RoCE */

static void go_on(struct evrdma_conn *conn, enum evr_conn_next next)
{
	conn->next = next;
	evr_obj_work(&conn->obj);
}

void evr_conn_stop_timers(struct evrdma_conn *conn)
{
	evr_timer_stop(&conn->deadline);
	evr_timer_stop(&conn->attempt_timer);
	evr_timer_stop(&conn->hold_timer);
}

/* What is still heard of the address that did not work is of no interest. */
static bool is_retrying(const struct evrdma_conn *conn)
{
	return conn->next == EVR_CONN_GIVE_UP || conn->next == EVR_CONN_DROP_QP ||
		conn->next == EVR_CONN_DROP_ID;
}

/* What happened may have flushed the QP, whose completions must not outlive it on some devices. */
static void go_on_retrying(struct evrdma_conn *conn)
{
	if (conn->next == EVR_CONN_DROP_QP && !conn->ends) {
		evr_qp_stop_catching_up(&conn->qp);
		conn->next = EVR_CONN_GIVE_UP;
	}
	evr_obj_work(&conn->obj);
}

/* Whose port is the CM's choice, which on iWARP may be one that TCP has: it chooses another. */
static bool is_port_taken(struct evrdma_conn *conn, const struct evrdma_error *error)
{
	return (error->err == EADDRINUSE || error->err == EADDRNOTAVAIL) &&
		error->step == EVRDMA_STEP_CONNECT && evr_targets_other_port(&conn->targets);
}

void evr_conn_setup_failed(struct evrdma_conn *conn, const struct evrdma_error *error)
{
	if (conn->ends)
		return;
	if (conn->targets.count && is_retrying(conn)) {
		go_on_retrying(conn);
		return;
	}
	evr_timer_stop(&conn->attempt_timer);
	if (is_port_taken(conn, error) || evr_targets_next(&conn->targets)) {
		go_on(conn, EVR_CONN_GIVE_UP);
		return;
	}
	evr_conn_down(conn, EVRDMA_CONN_ERROR, error);
}

void evr_conn_on_attempt_timer(evutil_socket_t fd, short what, void *arg)
{
	struct evrdma_conn *conn = arg;

	evr_targets_postpone(&conn->targets);
	go_on(conn, EVR_CONN_GIVE_UP);
}

static void start_attempt(struct evrdma_conn *conn)
{
	int ms = evr_targets_turn_ms(&conn->targets, conn->options.attempt_timeout_ms);

	if (ms)
		evr_timer_start(&conn->attempt_timer, ms);
}

static void failed_errno(struct evrdma_conn *conn, int ret)
{
	struct evrdma_error error;

	evr_error_set(&error, -ret, conn->step);
	evr_conn_setup_failed(conn, &error);
}

/* --- the steps ------------------------------------------------------------------------------ */

static int set_option(struct evrdma_conn *conn, int option, int value)
{
	uint8_t byte = (uint8_t)value;

	if (value < 0)
		return 0;
	if (rdma_set_option(conn->cmid.cm, RDMA_OPTION_ID, option, &byte, sizeof(byte)))
		return -errno;
	return 0;
}

static struct sockaddr *given(struct sockaddr_storage *addr)
{
	return addr->ss_family ? (struct sockaddr *)addr : NULL;
}

/* An address that the user gave is taken before one of the device that the user named. */
static int find_source(struct evrdma_conn *conn, struct evr_conn_target *target)
{
	if (given(&target->src))
		return 0;
	return evr_source_find(
		&conn->source, conn->obj.base, target->dst.ss_family, &target->src);
}

static int resolve(struct evrdma_conn *conn)
{
	struct evr_conn_target *target = evr_targets_get(&conn->targets);
	int port_space = target->port_space ? target->port_space : conn->options.port_space;
	int ret;

	conn->step = evr_cmid_first_step(conn->obj.base);
	conn->peer_data_len = 0;
	start_attempt(conn);
	ret = find_source(conn, target);
	if (!ret)
		ret = evr_cmid_create(
			&conn->cmid, conn->obj.base, (enum rdma_port_space)port_space);
	if (ret)
		return ret;
	ret = set_option(conn, RDMA_OPTION_ID_ACK_TIMEOUT, conn->options.ack_timeout);
	if (ret)
		return ret;
	if (rdma_resolve_addr(conn->cmid.cm, given(&target->src), (struct sockaddr *)&target->dst,
		    conn->options.connect_timeout_ms))
		return -errno;
	return 0;
}

static int resolve_route(struct evrdma_conn *conn)
{
	int ret = set_option(conn, RDMA_OPTION_ID_TOS, conn->options.tos);

	conn->step = EVRDMA_STEP_ROUTE;
	if (ret)
		return ret;
	if (rdma_resolve_route(conn->cmid.cm, conn->options.connect_timeout_ms))
		return -errno;
	return 0;
}

/*
 * The kernel says nothing of a peer that gives up while its request waits, and EINVAL to whatever
 * is asked of the id then. This asks the least, so that no QP is made for nobody. An iWARP device
 * says it when the request is accepted.
 */
static int find_peer_gone(struct evrdma_conn *conn)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	conn->step = EVRDMA_STEP_ACCEPT;
	if (rdma_init_qp_attr(conn->cmid.cm, &attr, &mask))
		return errno == EINVAL ? -ECONNRESET : -errno;
	return 0;
}

static int prepare_accept(struct evrdma_conn *conn)
{
	int ret = find_peer_gone(conn);

	if (ret)
		return ret;
	return set_option(conn, RDMA_OPTION_ID_ACK_TIMEOUT, conn->options.ack_timeout);
}

static int make_qp(struct evrdma_conn *conn)
{
	int ret = evr_qp_prepare(&conn->qp, &conn->cmid);

	return ret ? ret : evr_qp_bind(&conn->qp, &conn->cmid);
}

/* EINVAL is what is asked of the device, unless the peer has given up meanwhile. */
static int device_error(struct evrdma_conn *conn, int ret)
{
	if (ret == -EINVAL && conn->passive && find_peer_gone(conn))
		return -ECONNRESET;
	conn->step = EVRDMA_STEP_DEVICE;
	return ret;
}

static int bind_qp(struct evrdma_conn *conn)
{
	bool begins = !conn->qp.device;
	int ret = conn->passive && begins ? prepare_accept(conn) : 0;

	if (ret)
		return ret;
	conn->step = EVRDMA_STEP_DEVICE;
	ret = make_qp(conn);
	if (ret == -EAGAIN) {
		go_on(conn, EVR_CONN_BIND_QP);
		return 0;
	}
	if (ret)
		return device_error(conn, ret);
	if (conn->ready)
		ret = conn->ready(conn, conn->arg);
	if (!ret)
		go_on(conn, conn->passive ? EVR_CONN_ACCEPT : EVR_CONN_CONNECT);
	return ret;
}

static void fill_param(const struct evrdma_conn *conn, struct rdma_conn_param *param)
{
	*param = (struct rdma_conn_param){
		.private_data = conn->options.private_data,
		.private_data_len = (uint8_t)conn->options.private_data_len,
		.responder_resources = conn->options.responder_resources,
		.initiator_depth = conn->options.initiator_depth,
		.retry_count = conn->options.retry_count,
		.rnr_retry_count = conn->options.rnr_retry_count,
	};
}

/* The data of the target, then the user's. */
static int join_private_data(
	struct evrdma_conn *conn, struct rdma_conn_param *param, unsigned char *joined)
{
	const struct evr_conn_target *target = evr_targets_get(&conn->targets);

	if (!target->data_len)
		return 0;
	if (target->data_len + param->private_data_len > EVR_CONN_PRIVATE_DATA_MAX)
		return -EINVAL;
	memcpy(joined, target->data, target->data_len);
	if (param->private_data_len)
		memcpy(joined + target->data_len, param->private_data, param->private_data_len);
	param->private_data = joined;
	param->private_data_len = (uint8_t)(param->private_data_len + target->data_len);
	return 0;
}

static int connect_to_peer(struct evrdma_conn *conn)
{
	unsigned char joined[EVR_CONN_PRIVATE_DATA_MAX];
	struct rdma_conn_param param;
	int ret;

	conn->step = EVRDMA_STEP_CONNECT;
	fill_param(conn, &param);
	ret = join_private_data(conn, &param, joined);
	if (ret)
		return ret;
	if (rdma_connect(conn->cmid.cm, &param))
		return -errno;
	evr_cmid_asked(&conn->cmid);
	conn->handshaking = true;
	conn->qp.initiator_depth = param.initiator_depth;
	return 0;
}

/*
 * The peer may give up after it was asked for. The kernel gives the id up with an accept that it
 * refuses, so where that was for too much data the question would say the same.
 */
static int accept_error(struct evrdma_conn *conn, int err)
{
	if (err == EINVAL && conn->options.private_data_len <= MAX_ACCEPT_DATA)
		return find_peer_gone(conn) ? -ECONNRESET : -err;
	return -err;
}

static int accept_peer(struct evrdma_conn *conn)
{
	struct rdma_conn_param param;
	int ret = find_peer_gone(conn);

	if (ret)
		return ret;
	fill_param(conn, &param);
	param.responder_resources = (uint8_t)evr_smaller(
		param.responder_resources, conn->peer_responder_resources);
	param.initiator_depth =
		(uint8_t)evr_smaller(param.initiator_depth, conn->peer_initiator_depth);
	if (rdma_accept(conn->cmid.cm, &param))
		return accept_error(conn, errno);
	evr_cmid_asked(&conn->cmid);
	evr_rnr_set(&conn->qp, conn->options.min_rnr_timer_us);
	conn->handshaking = true;
	conn->qp.initiator_depth = param.initiator_depth;
	return 0;
}

/* What is posted on a QP in error may never come back: nothing is, from here on. */
static int disconnect(struct evrdma_conn *conn)
{
	conn->step = EVRDMA_STEP_DISCONNECT;
	evr_timer_start(&conn->wait_timer, evr_clock_ms_of(conn->wait_left_us));
	if (!evr_qp_is_iwarp(&conn->qp))
		evr_qp_in_error(&conn->qp);
	conn->told = !rdma_disconnect(conn->cmid.cm);
	/* EINVAL: the peer was first, and its DISCONNECTED is on the way. */
	return conn->told || errno == EINVAL ? 0 : -errno;
}

static int give_up_address(struct evrdma_conn *conn)
{
	if (conn->cmid.unanswered)
		return 0;
	conn->next = EVR_CONN_DROP_QP;
	if (!evr_qp_catch_up(&conn->qp))
		evr_obj_work(&conn->obj);
	return 0;
}

static int drop_qp(struct evrdma_conn *conn)
{
	if (evr_qp_is_catching_up(&conn->qp))
		return 0;
	go_on(conn, EVR_CONN_DROP_ID);
	evr_conn_forget_read(conn);
	evr_qp_unbind(&conn->qp, &conn->cmid);
	return 0;
}

static int drop_id(struct evrdma_conn *conn)
{
	evr_qp_put_device(&conn->qp);
	evr_cmid_destroy(&conn->cmid);
	conn->handshaking = false;
	go_on(conn, EVR_CONN_RESOLVE);
	return 0;
}

void evr_conn_work(struct evr_obj *obj)
{
	static int (*const steps[])(struct evrdma_conn *) = {
		[EVR_CONN_RESOLVE] = resolve,
		[EVR_CONN_BIND_QP] = bind_qp,
		[EVR_CONN_CONNECT] = connect_to_peer,
		[EVR_CONN_ACCEPT] = accept_peer,
		[EVR_CONN_DISCONNECT] = disconnect,
		[EVR_CONN_GIVE_UP] = give_up_address,
		[EVR_CONN_DROP_QP] = drop_qp,
		[EVR_CONN_DROP_ID] = drop_id,
	};
	struct evrdma_conn *conn = evr_container_of(obj, struct evrdma_conn, obj);
	int ret = conn->ends ? 0 : steps[conn->next](conn);

	if (ret)
		failed_errno(conn, ret);
}

/* --- the answers ---------------------------------------------------------------------------- */

/*
 * RFC 5044, 7.1.2: on iWARP the accepting side must not send before it has received. What comes too
 * early may end the connection: siw refuses it while it still reads the other side's answer. A
 * protocol in which the server speaks first can only give the client some time, which is too short
 * where the answer is lost; of a stream the connecting side is always the first.
 */
static void hold_sends(struct evrdma_conn *conn)
{
	evr_qp_hold_sends(&conn->qp);
	if (!conn->owned)
		evr_timer_start(&conn->hold_timer, EVR_CONN_HOLD_MS);
}

/*
 * A good answer can come after the address had its turn, as long as its QP is there. A connection
 * on one that is broken would hear of nothing, not even of that: only one whose end follows.
 */
bool evr_conn_may_establish(const struct evrdma_conn *conn)
{
	return conn->state == EVR_CONN_SETUP && conn->next != EVR_CONN_DROP_ID &&
		(evr_qp_is_sound(&conn->qp) || conn->ends);
}

/*
 * By the CM's word, or by the peer's data, which can come before the last message of its handshake
 * and says the same. The kernel finds out by itself: told of it by rdma_notify(), Linux forgets to
 * call its own message back when the peer disconnects next, and holds whoever destroys the id until
 * it has sent that one 16 times, for a minute.
 */
void evr_conn_established(struct evrdma_conn *conn)
{
	evr_timer_stop(&conn->deadline);
	evr_timer_stop(&conn->attempt_timer);
	evr_base_cancel(conn->obj.base, &conn->obj.task);
	if (!conn->ends)
		evr_qp_stop_catching_up(&conn->qp);
	evr_targets_settle(&conn->targets);
	evr_conn_keep_addresses(conn);
	evr_conn_start_alive(conn);
	conn->state = EVR_CONN_UP;
	conn->connected = true;
	conn->obj.base->stats.connections_accepted += conn->passive;
	conn->obj.base->stats.connections_connected += !conn->passive;
	conn->step = EVRDMA_STEP_TRANSFER;
	if (conn->passive && evr_qp_is_iwarp(&conn->qp))
		hold_sends(conn);
	/* It spoke, and left in order, before the CM had its last message. */
	if (conn->ends && conn->peer_left)
		conn->end_event = EVRDMA_CONN_DISCONNECTED;
	evr_qp_tell_flushed(&conn->qp);
	evr_conn_tell(conn, EVRDMA_CONN_CONNECTED, NULL);
}

/*
 * The accepting side decides, and is not told of it again. iWARP's devices do not agree on which of
 * the two values is whose, and siw does not let the peer lower it: there only two zeroes are one.
 */
static void keep_depth(struct evrdma_conn *conn, const struct rdma_conn_param *param)
{
	uint8_t agreed = param->initiator_depth;

	if (evr_qp_is_iwarp(&conn->qp) && !agreed)
		agreed = param->responder_resources;
	conn->qp.initiator_depth = (uint8_t)evr_smaller(conn->qp.initiator_depth, agreed);
}

void evr_conn_linked(struct evrdma_conn *conn, const struct rdma_cm_event *established)
{
	conn->linked = true;
	if (conn->passive)
		return;
	keep_depth(conn, &established->param.conn);
	evr_rnr_set(&conn->qp, conn->options.min_rnr_timer_us);
}

static void refused(struct evrdma_conn *conn, const struct rdma_cm_event *event)
{
	struct evrdma_error error;

	if (event->event == RDMA_CM_EVENT_REJECTED)
		evr_conn_keep_peer_data(conn, event->param.conn.private_data,
			event->param.conn.private_data_len);
	evr_error_from_event(&error, event, conn->step);
	evr_conn_setup_failed(conn, &error);
}

static void address_resolved(struct evrdma_conn *conn)
{
	int ret = -ENODEV;

	if (evr_source_matches(&conn->source, conn->cmid.cm))
		ret = resolve_route(conn);
	if (ret)
		failed_errno(conn, ret);
}

static bool is_late_answer(const struct evrdma_conn *conn, const struct rdma_cm_event *event)
{
	return event->event == RDMA_CM_EVENT_ESTABLISHED && evr_conn_may_establish(conn);
}

void evr_conn_setup_on_event(struct evrdma_conn *conn, const struct rdma_cm_event *event)
{
	if (is_retrying(conn) && !is_late_answer(conn, event)) {
		go_on_retrying(conn);
		return;
	}
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		address_resolved(conn);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		go_on(conn, EVR_CONN_BIND_QP);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (!conn->passive)
			evr_conn_keep_peer_data(conn, event->param.conn.private_data,
				event->param.conn.private_data_len);
		evr_conn_linked(conn, event);
		if (!conn->ends)
			evr_conn_established(conn);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		refused(conn, event);
		break;
	default:
		break;
	}
}

/* --- the calls ------------------------------------------------------------------------------ */

static int begin(struct evrdma_conn *conn)
{
	if (conn->obj.closing)
		return -EPIPE;
	if (conn->state == EVR_CONN_UP)
		return -EISCONN;
	if (conn->state != EVR_CONN_NEW)
		return -EALREADY;
	return 0;
}

static void start(struct evrdma_conn *conn, enum evrdma_step step)
{
	conn->state = EVR_CONN_SETUP;
	conn->step = step;
	evr_timer_start(&conn->deadline, conn->options.connect_timeout_ms);
}

static void start_resolving(struct evrdma_conn *conn)
{
	start(conn, EVRDMA_STEP_ADDR);
	go_on(conn, EVR_CONN_RESOLVE);
}

int evrdma_conn_connect(
	struct evrdma_conn *conn, const struct sockaddr *src, const struct sockaddr *dst)
{
	int ret = begin(conn);

	if (!ret && !dst)
		ret = -EINVAL;
	if (!ret)
		ret = evr_targets_set(&conn->targets, src ? src : given(&conn->src), dst);
	if (!ret)
		start_resolving(conn);
	return ret;
}

int evrdma_conn_connect_addrinfo(struct evrdma_conn *conn, const struct rdma_addrinfo *addresses)
{
	int ret = begin(conn);

	if (!ret)
		ret = evr_targets_set_results(&conn->targets, given(&conn->src), addresses);
	if (!ret)
		start_resolving(conn);
	return ret;
}

static void not_found(struct evrdma_conn *conn, int result)
{
	struct evrdma_error error;

	evr_error_set(&error, result == EVUTIL_EAI_MEMORY ? ENOMEM : EHOSTUNREACH,
		EVRDMA_STEP_NAME);
	error.eai = result;
	evr_conn_setup_failed(conn, &error);
}

static void found(struct evrdma_conn *conn, const struct evutil_addrinfo *addresses)
{
	int ret = evr_targets_set_names(&conn->targets, given(&conn->src), addresses);

	if (ret)
		failed_errno(conn, ret);
	else
		go_on(conn, EVR_CONN_RESOLVE);
}

static void on_looked_up(int result, struct evutil_addrinfo *addresses, void *arg)
{
	struct evrdma_conn *conn = arg;

	conn->lookup = NULL;
	if (conn->state == EVR_CONN_DOWN)
		evr_obj_continue(&conn->obj);
	else if (conn->late)
		evr_conn_fail(conn, ETIMEDOUT, EVRDMA_STEP_NAME);
	else if (result)
		not_found(conn, result);
	else
		found(conn, addresses);
	if (addresses)
		evutil_freeaddrinfo(addresses);
}

int evrdma_conn_connect_hostname(struct evrdma_conn *conn, struct evdns_base *evdns, int family,
	const char *host, uint16_t port)
{
	int ret = evdns && host ? begin(conn) : -EINVAL;

	if (ret)
		return ret;
	conn->lookup = evr_lookup_start(
		conn->obj.base, evdns, family, host, port, on_looked_up, conn);
	if (!conn->lookup)
		return -ENOMEM;
	start(conn, EVRDMA_STEP_NAME);
	return 0;
}

int evrdma_conn_accept(struct evrdma_conn *conn, struct evrdma_request *request)
{
	int ret = begin(conn);

	if (ret)
		return ret;
	if (request->obj.base != conn->obj.base)
		return -EXDEV;
	ret = evr_request_check(request);
	if (ret)
		return ret;
	if (request->cmid.cm->qp_type != IBV_QPT_RC)
		return -EINVAL;
	conn->passive = true;
	conn->peer_responder_resources = request->responder_resources;
	conn->peer_initiator_depth = request->initiator_depth;
	if (conn->options.ack_timeout < 0)
		conn->options.ack_timeout = request->ack_timeout;
	evr_conn_keep_peer_data(conn, request->private_data, request->private_data_len);
	evr_qp_set_shared(&conn->qp, request->domain, request->srq);
	conn->options.srq = conn->qp.config.srq;
	evr_cmid_hand_over(&request->cmid, &conn->cmid);
	conn->slots = evr_request_accepted(request);
	evr_conn_keep_addresses(conn);
	start(conn, EVRDMA_STEP_ACCEPT);
	go_on(conn, EVR_CONN_BIND_QP);
	return 0;
}
