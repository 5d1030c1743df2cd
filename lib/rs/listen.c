/*
 * A listener and the connections that are being accepted. Each has its answer by events, so that a
 * peer that withholds its last message holds up nobody else.
 */
#include "rs/helper.h"

#include <errno.h>
#include <limits.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	WAITING_MAX = 1024,  /* requests without anything made for them */
	KERNEL_BACKLOG = 128 /* at least: they wait in the kernel only until somebody looks */
};

/* --- events ---------------------------------------------------------------------------------- */

static int new_child(struct evr_rs *listener, const struct evr_rs_event *event)
{
	struct evr_rs_request request = {
		.responder_resources = event->responder_resources,
		.initiator_depth = event->initiator_depth,
	};
	size_t prefix = listener->domain == AF_IB ? EVR_CONNDATA_IB_PREFIX : 0;
	struct evr_rs *child;
	int ret = evr_conndata_decode(&request.peer, prefix, event->data, event->len);

	if (!ret && listener->listener.waiting == WAITING_MAX)
		ret = -ECONNREFUSED;
	if (!ret)
		ret = evr_rs_new(&listener->options, listener->domain, &child);
	if (ret)
		return ret;
	child->request = request;
	child->id = event->id;
	child->id->context = child;
	child->peer = event->id->route.addr.dst_storage;
	child->state = EVR_RS_REQUESTED;
	TAILQ_INSERT_TAIL(&listener->listener.requested, child, link);
	listener->listener.waiting++;
	return 0;
}

static void take_request(struct evr_rs *listener, const struct evr_rs_event *event)
{
	int ret = new_child(listener, event);

	if (ret) {
		evr_rs_backlog_refuse(listener, event->id, ret);
		rdma_destroy_id(event->id);
	}
	evr_rs_backlog_fill(listener);
}

/* Its address went with its device: nobody can reach it any more, nor those who wait. */
static void lose_device(struct evr_rs *listener)
{
	listener->state = EVR_RS_FAILED;
	listener->error = -ENODEV;
	listener->told = false;
	evr_rs_end(listener);
}

void evr_rs_listener_event(struct evr_rs *listener, const struct evr_rs_event *event)
{
	if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST)
		take_request(listener, event);
	else if (event->type == RDMA_CM_EVENT_DEVICE_REMOVAL)
		lose_device(listener);
}

/*
 * On iWARP what arrives before the peer has read the reply is a violation to it (RFC 5044, 7.1.3):
 * it speaks first, and rsockets do at once.
 */
static void set_accepted(struct evr_rs *listener, struct evr_rs *child)
{
	TAILQ_REMOVE(&listener->listener.accepting, child, link);
	child->state = EVR_RS_CONNECTED;
	child->held = child->transport.iwarp;
	TAILQ_INSERT_TAIL(&listener->listener.accepted, child, link);
	evr_rs_transport_connected(&child->transport);
	evr_rs_poll_cq(child);
	evr_rs_pump(child);
}

/*
 * One that was accepted stays, whatever happens to it: its user reads what came, and the error. One
 * that leaves in order was there, even if the last message of its handshake was lost.
 */
void evr_rs_child_event(
	struct evr_rs *listener, struct evr_rs *child, const struct evr_rs_event *event)
{
	if (child->state == EVR_RS_ACCEPTING && event->type == RDMA_CM_EVENT_DISCONNECTED) {
		child->why = evr_rs_event_error(event);
		set_accepted(listener, child);
	}
	if (child->state == EVR_RS_CONNECTED) {
		evr_rs_connected_event(child, event);
		return;
	}
	switch (event->type) {
	case RDMA_CM_EVENT_ESTABLISHED:
		if (child->state == EVR_RS_ACCEPTING)
			set_accepted(listener, child);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		evr_rs_backlog_drop(listener, child);
		evr_rs_backlog_fill(listener);
		break;
	}
}

static void drop_all(struct evr_rs *listener, struct evr_rs_list *list)
{
	struct evr_rs *child, *next;

	TAILQ_FOREACH_SAFE (child, list, link, next)
		evr_rs_backlog_drop(listener, child);
}

void evr_rs_listener_end(struct evr_rs *listener)
{
	evr_rs_backlog_stop(listener);
	drop_all(listener, &listener->listener.requested);
	drop_all(listener, &listener->listener.accepting);
	drop_all(listener, &listener->listener.accepted);
}

/* --- the calls ------------------------------------------------------------------------------- */

/*
 * On iWARP a port that the CM has chosen may be one that TCP has, and the device finds that out
 * when it is to listen there. Nobody was told of the port, so that another is as good.
 */
static int listen_on_port(struct evr_rs *rs, int backlog)
{
	int ret = 0;

	for (rs->ports = 1; !ret; rs->ports++) {
		if (!rdma_listen(rs->id, backlog))
			return 0;
		if (errno != EADDRINUSE || rs->named || evr_rs_has_port(rs) ||
			rs->ports == EVR_RS_PORTS)
			return -errno;
		ret = evr_rs_reopen(rs);
	}
	rs->told = true;
	evr_rs_connect_fail(rs, ret);
	return ret;
}

static int begin(struct evr_rs *rs, int backlog)
{
	int ret;

	if (rs->dgram)
		return -EOPNOTSUPP;
	if (rs->state != EVR_RS_NEW && rs->state != EVR_RS_LISTENING)
		return -EINVAL;
	backlog = backlog < 0 ? 0 : backlog > SOMAXCONN ? SOMAXCONN : backlog;
	if (rs->state == EVR_RS_NEW) {
		ret = listen_on_port(rs, backlog < KERNEL_BACKLOG ? KERNEL_BACKLOG : backlog);
		if (ret)
			return ret;
	}
	rs->state = EVR_RS_LISTENING;
	rs->listener.backlog = (unsigned int)backlog + 1;
	evr_rs_backlog_fill(rs);
	return 0;
}

int rlisten(int socket, int backlog)
{
	struct evr_rs *rs = evr_rs_enter(socket);

	return rs ? (int)evr_rs_leave(rs, begin(rs, backlog)) : -1;
}

/* Its events come to a channel of its own from now on; those that waited move without a wake-up. */
static int move_events(struct evr_rs *child)
{
	struct rdma_event_channel *channel;
	int ret = evr_rs_open_channel(&channel);

	if (ret)
		return ret;
	if (rdma_migrate_id(child->id, channel)) {
		ret = -errno;
		rdma_destroy_event_channel(channel);
		return ret;
	}
	child->channel = channel;
	return 0;
}

/* Why there is none: told once. */
static int why_none(struct evr_rs *rs)
{
	int error = rs->deaf ? rs->deaf : rs->listener.want;

	rs->deaf = rs->listener.want = 0;
	if (rs->state == EVR_RS_LISTENING)
		return error;
	if (rs->state != EVR_RS_FAILED || rs->told)
		return -EINVAL;
	rs->told = true;
	return rs->error;
}

/*
 * One whose device leaves just now cannot be moved, and the event that says so is there. If that
 * was the listener's as well, it has ended with all that waited.
 */
static int move(struct evr_rs *listener, struct evr_rs *child)
{
	int ret = evr_rs_keepalive_update(child);

	if (!ret)
		ret = move_events(child);
	if (ret)
		evr_rs_read_events(listener);
	if (listener->state != EVR_RS_LISTENING)
		return why_none(listener);
	return child->id ? ret : 0;
}

static void close_pair(struct evr_rs *child)
{
	evr_rs_keepalive_stop(child);
	close(child->fd);
	close(child->other_fd);
	child->fd = child->other_fd = -1;
}

/* One whose device has left has no id any more, only what it had received. */
static int detach(struct evr_rs *listener, struct evr_rs *child)
{
	int ret = evr_rs_open_pair(child, 0);

	if (ret)
		return ret;
	if (child->id)
		ret = move(listener, child);
	if (ret) {
		close_pair(child);
		return ret;
	}
	evr_rs_backlog_leave(listener, child);
	evr_rs_read_events(child);
	return 0;
}

/* Held meanwhile: it may lose its place, and the listener's reference. */
static int detach_held(struct evr_rs *listener, struct evr_rs *child)
{
	int ret;

	atomic_fetch_add(&child->refs, 1);
	ret = detach(listener, child);
	evr_rs_put(child);
	return ret;
}

/* What was wrong before is told unless there is one all the same. */
static int look_for_one(struct evr_rs *rs)
{
	int error = rs->deaf;

	rs->deaf = 0;
	evr_rs_progress(rs);
	return TAILQ_EMPTY(&rs->listener.accepted) ? error : 0;
}

static int wait_for_one(struct evr_rs *rs)
{
	struct evr_rs_wait wait = evr_rs_wait_for(rs->options.recv_limit_us);
	int ret = rs->dgram ? -EOPNOTSUPP : 0;

	if (rs->state == EVR_RS_LISTENING && TAILQ_EMPTY(&rs->listener.accepted))
		ret = look_for_one(rs);
	while (!ret) {
		if (rs->state == EVR_RS_LISTENING && !TAILQ_EMPTY(&rs->listener.accepted))
			return 0;
		ret = why_none(rs);
		if (!ret)
			ret = rs->nonblock ? -EAGAIN : evr_rs_wait_again(rs, &wait);
	}
	return ret;
}

static int accept_one(struct evr_rs *rs, struct evr_rs **accepted)
{
	struct evr_rs *child;
	int ret = wait_for_one(rs);

	if (ret)
		return ret;
	child = TAILQ_FIRST(&rs->listener.accepted);
	ret = detach_held(rs, child);
	if (ret)
		return ret;
	evr_rs_backlog_fill(rs);
	*accepted = child;
	return 0;
}

/* Before anybody is taken, who would be lost. */
static int check_room(const struct sockaddr *addr, const socklen_t *addrlen)
{
	if (addr && !addrlen)
		return -EFAULT;
	return addr && *addrlen > INT_MAX ? -EINVAL : 0;
}

int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct evr_rs *rs = evr_rs_enter(socket), *child = NULL;
	int ret, fd;

	if (!rs)
		return -1;
	ret = check_room(addr, addrlen);
	if (!ret)
		ret = accept_one(rs, &child);
	if (ret)
		return (int)evr_rs_leave(rs, ret);
	fd = child->fd;
	if (addr)
		evr_rs_copy_name((struct sockaddr *)&child->peer, addr, addrlen);
	evr_rs_leave(rs, 0);
	/* Without its lock: who had the number before may be the listener itself. */
	ret = evr_rs_publish(child);
	return ret ? (int)evr_rs_result(ret) : fd;
}
