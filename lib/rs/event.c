/* What the CM says. */
#include "rs/dgram.h"

#include <errno.h>
#include <string.h>

enum { EVENTS_MAX = 64 }; /* at once */

/* An event is acknowledged before anything is done about it: an id with one open cannot end. */
static void copy(struct evr_rs_event *to, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;

	*to = (struct evr_rs_event){
		.type = event->event,
		.status = event->status,
		.id = event->id,
		.responder_resources = conn->responder_resources,
		.initiator_depth = conn->initiator_depth,
	};
	if (!conn->private_data)
		return;
	to->len = conn->private_data_len;
	if (to->len > sizeof(to->data))
		to->len = sizeof(to->data);
	memcpy(to->data, conn->private_data, to->len);
}

int evr_rs_event_error(const struct evr_rs_event *event)
{
	switch (event->type) {
	case RDMA_CM_EVENT_REJECTED:
		return -ECONNREFUSED;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return -ENODEV;
	case RDMA_CM_EVENT_DISCONNECTED:
		return -ECONNRESET;
	default:
		break;
	}
	/* -1 is no errno's here. */
	if (event->status < -1)
		return event->status;
	return event->type == RDMA_CM_EVENT_UNREACHABLE ? -EHOSTUNREACH : -EIO;
}

/* What had arrived before still counts. */
void evr_rs_connected_event(struct evr_rs *rs, const struct evr_rs_event *event)
{
	switch (event->type) {
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		if (!rs->why)
			rs->why = evr_rs_event_error(event);
		evr_rs_poll_cq(rs);
		if (!evr_stream_status(&rs->stream).finished)
			evr_stream_fail(&rs->stream, rs->why);
		rs->transport.gone = true;
		break;
	default:
		return;
	}
	/* Only when nothing of ours is on the device can it leave. */
	if (event->type == RDMA_CM_EVENT_DEVICE_REMOVAL)
		evr_rs_end(rs);
}

static void serve(struct evr_rs *rs, const struct evr_rs_event *event)
{
	struct evr_rs *subject = event->id->context;

	if (rs->dgram) {
		evr_rs_dgram_event(rs, event);
		return;
	}
	switch (rs->state) {
	case EVR_RS_LISTENING:
		if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST || subject == rs)
			evr_rs_listener_event(rs, event);
		else
			evr_rs_child_event(rs, subject, event);
		break;
	case EVR_RS_CONNECTED:
		evr_rs_connected_event(rs, event);
		break;
	default:
		evr_rs_connect_event(rs, event);
		break;
	}
}

/* A listener and datagrams may hear again later; for a connection it is the end. */
void evr_rs_deafen(struct evr_rs *rs, int error)
{
	switch (rs->state) {
	case EVR_RS_LISTENING:
		rs->deaf = error;
		break;
	case EVR_RS_CONNECTED:
		rs->deaf = error;
		evr_rs_fail(rs, error);
		break;
	case EVR_RS_OPEN:
		rs->dgram->error = error;
		break;
	default:
		if (evr_rs_is_connecting(rs))
			evr_rs_connect_fail(rs, error);
		break;
	}
}

/* 1: there was one; 0: there is none, or -errno. */
static int read_event(struct evr_rs *rs)
{
	struct rdma_cm_event *event;
	struct evr_rs_event copied;
	int error;

	errno = 0;
	if (rdma_get_cm_event(rs->channel, &event))
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	error = errno;
	copy(&copied, event);
	/* What failed in the library has -1, and says by errno what it was. */
	if (copied.status == -1 && error)
		copied.status = -error;
	rdma_ack_cm_event(event);
	serve(rs, &copied);
	return 1;
}

/* Nobody loses a place of the backlog whose last message waits to be read. */
bool evr_rs_read_events(struct evr_rs *rs)
{
	bool any = false;
	int ret = 1, i;

	for (i = 0; i < EVENTS_MAX && ret > 0 && rs->channel && !rs->deaf; i++) {
		ret = read_event(rs);
		any = any || ret;
	}
	if (!ret && rs->state == EVR_RS_LISTENING)
		evr_rs_backlog_expire(rs);
	if (ret < 0 && rs->dgram)
		evr_rs_dgram_unwatch(rs, rs->channel->fd);
	else if (ret < 0)
		evr_rs_deafen(rs, ret);
	if (any)
		evr_rs_wake(rs);
	return any;
}
