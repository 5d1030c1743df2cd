/*
 * Connecting: the address, the route, the request, each without waiting. The route has a device, so
 * that is when the queue pair is made.
 */
#include "rs/dgram.h"
#include "rs/helper.h"
#include "rs/option.h"
#include "rs/ready.h"

#include <errno.h>
#include <string.h>

#include "util/number.h"

enum {
	FIRST_TIMEOUT_MS = 1000, /* to resolve; doubled with each attempt */
	ATTEMPTS = 6,
	RETRIES = 6, /* 7 is for ever on rxe */
	FOR_EVER = 7,
};

bool evr_rs_is_connecting(const struct evr_rs *rs)
{
	return rs->state == EVR_RS_RESOLVING_ADDR || rs->state == EVR_RS_RESOLVING_ROUTE ||
	       rs->state == EVR_RS_CONNECTING;
}

/* --- what both sides have in common ---------------------------------------------------------- */

/* Peers of iWARP begin with a read of no length, which has to be allowed. */
struct rdma_conn_param evr_rs_conn_param(const struct evr_rs *rs, const void *data, size_t len)
{
	return (struct rdma_conn_param){
		.private_data = data,
		.private_data_len = (uint8_t)len,
		.initiator_depth = rs->transport.iwarp ? 1 : 0,
		.flow_control = 1,
		.retry_count = RETRIES,
		.rnr_retry_count = FOR_EVER,
	};
}

size_t evr_rs_describe(const struct evr_rs *rs, size_t prefix, uint8_t *data, size_t size)
{
	struct evr_conndata conn;
	int len;

	evr_stream_describe(&rs->stream, &conn);
	len = evr_conndata_encode(&conn, prefix, data, size);
	return len < 0 ? 0 : (size_t)len;
}

/* Whose data is absent, short or of another version is no rsocket; others break the protocol. */
static int check_peer(int error)
{
	switch (error) {
	case 0:
		return 0;
	case -ENODATA:
	case -EMSGSIZE:
	case -ENOTSUP:
		return -ENOTSUP;
	default:
		return -EPROTO;
	}
}

static int start(struct evr_rs *rs, const struct evr_rs_event *event)
{
	struct evr_conndata peer;
	int ret = check_peer(evr_conndata_decode(&peer, 0, event->data, event->len));

	if (ret)
		return ret;
	ret = evr_stream_start(&rs->stream, &peer);
	return ret ? ret : evr_rs_transport_map(&rs->transport, &rs->stream);
}

/* --- the steps ------------------------------------------------------------------------------- */

static int ask_for_addr(struct evr_rs *rs)
{
	int timeout = FIRST_TIMEOUT_MS << rs->attempts++;

	rs->state = EVR_RS_RESOLVING_ADDR;
	return rdma_resolve_addr(rs->id, NULL, (struct sockaddr *)&rs->peer, timeout) ? -errno : 0;
}

static int ask_for_route(struct evr_rs *rs)
{
	rs->state = EVR_RS_RESOLVING_ROUTE;
	return evr_rs_route_ask(rs, FIRST_TIMEOUT_MS << rs->attempts++);
}

static size_t prefix_of(const struct evr_rs *rs)
{
	return rs->domain == AF_IB ? EVR_CONNDATA_IB_PREFIX : 0;
}

static int request(struct evr_rs *rs)
{
	uint8_t data[EVR_CONNDATA_IB_PREFIX + EVR_CONNDATA_LEN];
	struct rdma_conn_param param;
	size_t len;
	int ret;

	ret = evr_rs_transport_init(&rs->transport, rs->id, &rs->options, &rs->stream);
	if (ret)
		return ret;
	len = evr_rs_describe(rs, prefix_of(rs), data, sizeof(data));
	param = evr_rs_conn_param(rs, data, len);
	rs->state = EVR_RS_CONNECTING;
	if (rdma_connect(rs->id, &param))
		return -errno;
	rs->unanswered = rs->transport.iwarp;
	return 0;
}

static int established(struct evr_rs *rs, const struct evr_rs_event *event)
{
	int ret = start(rs, event);

	if (ret)
		return ret;
	rs->state = EVR_RS_CONNECTED;
	ret = evr_rs_keepalive_update(rs);
	if (ret)
		return ret;
	evr_rs_transport_connected(&rs->transport);
	evr_rs_poll_cq(rs);
	evr_rs_pump(rs);
	return 0;
}

/* Nobody has said where it is, however often that was asked: TCP calls this unreachable. */
static int addr_error(struct evr_rs *rs, const struct evr_rs_event *event)
{
	if (event->status != -ETIMEDOUT)
		return evr_rs_event_error(event);
	return rs->attempts < ATTEMPTS ? ask_for_addr(rs) : -EHOSTUNREACH;
}

static int step(struct evr_rs *rs, const struct evr_rs_event *event)
{
	switch (event->type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		rs->attempts = 0;
		return ask_for_route(rs);
	case RDMA_CM_EVENT_ADDR_ERROR:
		return addr_error(rs, event);
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return request(rs);
	case RDMA_CM_EVENT_ROUTE_ERROR:
		if (event->status == -ETIMEDOUT && rs->attempts < ATTEMPTS)
			return ask_for_route(rs);
		return evr_rs_event_error(event);
	case RDMA_CM_EVENT_ESTABLISHED:
		return established(rs, event);
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;
	default:
		return evr_rs_event_error(event);
	}
}

void evr_rs_connect_fail(struct evr_rs *rs, int error)
{
	rs->state = EVR_RS_FAILED;
	rs->error = error;
	evr_rs_end(rs);
}

/* --- another port ---------------------------------------------------------------------------- */

/*
 * On iWARP a port that the CM has chosen may be in use by TCP, of which it does not know, and the
 * device finds that out when it connects. TCP would have chosen another.
 */
static bool is_taken(const struct evr_rs *rs, int error)
{
	return (error == -EADDRINUSE || error == -EADDRNOTAVAIL) &&
	       rs->state == EVR_RS_CONNECTING && !evr_rs_has_port(rs) && rs->ports < EVR_RS_PORTS;
}

static int try_another_port(struct evr_rs *rs)
{
	int ret;

	rs->ports++;
	rs->unanswered = false;
	ret = evr_rs_reopen(rs);
	rs->attempts = 0;
	if (!ret)
		ret = ask_for_addr(rs);
	evr_rs_wake(rs);
	return ret;
}

/* --- events ---------------------------------------------------------------------------------- */

static bool is_answer(const struct evr_rs_event *event)
{
	switch (event->type) {
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return false;
	default:
		return true;
	}
}

void evr_rs_connect_event(struct evr_rs *rs, const struct evr_rs_event *event)
{
	int ret = 0;

	if (is_answer(event))
		rs->unanswered = false;
	if (evr_rs_is_connecting(rs))
		ret = step(rs, event);
	if (is_taken(rs, ret))
		ret = try_another_port(rs);
	if (ret)
		evr_rs_connect_fail(rs, ret);
}

/* --- the call -------------------------------------------------------------------------------- */

static int begin(struct evr_rs *rs, const struct sockaddr *addr, socklen_t len)
{
	int ret = evr_rs_check_name(rs, addr, len);

	if (ret)
		return ret;
	memset(&rs->peer, 0, sizeof(rs->peer));
	memcpy(&rs->peer, addr, evr_smaller(len, sizeof(rs->peer)));
	rs->attempts = 0;
	rs->ports = 1;
	rs->told = false;
	rs->unsaid = true;
	ret = ask_for_addr(rs);
	if (ret)
		evr_rs_connect_fail(rs, ret);
	rs->told = ret;
	return ret ? ret : -EINPROGRESS;
}

static int begin_again(struct evr_rs *rs)
{
	int ret = evr_rs_renew_pair(rs);

	return ret ? ret : evr_rs_reopen(rs);
}

/* A connection that could not be made may be tried again, from the beginning. */
static int state_before(struct evr_rs *rs)
{
	switch (rs->state) {
	case EVR_RS_NEW:
		return 0;
	case EVR_RS_LISTENING:
	case EVR_RS_CONNECTED:
		return -EISCONN;
	case EVR_RS_FAILED:
		return rs->told ? begin_again(rs) : 0;
	default:
		return -EALREADY;
	}
}

/* An attempt has come to its end, and no call has said which. */
static bool is_unsaid(const struct evr_rs *rs)
{
	if (rs->state == EVR_RS_FAILED)
		return !rs->told;
	return rs->state == EVR_RS_CONNECTED && rs->unsaid;
}

/* What a call says of it, once. */
static int result_of(struct evr_rs *rs)
{
	int error;

	if (evr_rs_is_connecting(rs))
		return -EALREADY;
	rs->unsaid = false;
	error = rs->state == EVR_RS_CONNECTED ? rs->stream.error : rs->error;
	if (error && rs->told)
		return -ECONNABORTED;
	if (error)
		evr_rs_tell_error(rs);
	return error;
}

/* meanwhile: what there is to say when the user waits no longer. */
static int wait_for_it(struct evr_rs *rs, int meanwhile)
{
	struct evr_rs_wait wait = evr_rs_wait_for(rs->options.send_limit_us);
	int ret = 0;

	while (!ret && evr_rs_is_connecting(rs))
		ret = evr_rs_wait(rs, &wait);
	if (ret == -ETIMEDOUT)
		return meanwhile;
	return ret ? ret : result_of(rs);
}

static int connect_to(struct evr_rs *rs, const struct sockaddr *addr, socklen_t len)
{
	int ret;

	if (rs->dgram)
		return evr_rs_dgram_connect(rs, addr, len);
	if (is_unsaid(rs))
		return result_of(rs);
	ret = state_before(rs);
	if (!ret)
		ret = begin(rs, addr, len);
	if (ret != -EINPROGRESS && ret != -EALREADY)
		return ret;
	if (ret == -EALREADY)
		evr_rs_progress(rs);
	if (ret == -EALREADY && !evr_rs_is_connecting(rs))
		return result_of(rs);
	return rs->nonblock ? ret : wait_for_it(rs, ret);
}

int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct evr_rs *rs = evr_rs_enter(socket);

	return rs ? (int)evr_rs_leave(rs, connect_to(rs, addr, addrlen)) : -1;
}
