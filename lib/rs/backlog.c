/*
 * The places of a listener's backlog. A request gets one at once while there are any; others wait
 * for their turn with nothing made for them yet. Who has one and does not say its last message
 * keeps it until the CM gives up, for a minute; but where others wait, not for long.
 */
#include "rs/helper.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "util/clock.h"

enum {
	/* Longer than until the CM says again what was lost. */
	PATIENCE_US = 5000000,
	US_PER_S = 1000000,
	NS_PER_US = 1000,
};

/* --- one connection -------------------------------------------------------------------------- */

void evr_rs_backlog_leave(struct evr_rs *listener, struct evr_rs *child)
{
	struct evr_rs_listener *own = &listener->listener;

	switch (child->state) {
	case EVR_RS_REQUESTED:
		TAILQ_REMOVE(&own->requested, child, link);
		own->waiting--;
		break;
	case EVR_RS_ACCEPTING:
		TAILQ_REMOVE(&own->accepting, child, link);
		own->taken--;
		break;
	default:
		TAILQ_REMOVE(&own->accepted, child, link);
		own->taken--;
		break;
	}
}

void evr_rs_backlog_drop(struct evr_rs *listener, struct evr_rs *child)
{
	evr_rs_backlog_leave(listener, child);
	evr_rs_end(child);
	evr_rs_put(child);
}

/* Memory that may not be locked is ENOMEM, or EPERM where none may be. */
static bool is_want(int error)
{
	return error == -ENOMEM || error == -EPERM || error == -EMFILE || error == -ENFILE;
}

void evr_rs_backlog_refuse(struct evr_rs *listener, struct rdma_cm_id *id, int error)
{
	rdma_reject(id, NULL, 0);
	if (is_want(error))
		listener->listener.want = error;
}

static int answer(struct evr_rs *child)
{
	struct rdma_conn_param param;
	uint8_t data[EVR_CONNDATA_LEN];
	size_t len;
	int ret;

	len = evr_rs_describe(child, 0, data, sizeof(data));
	param = evr_rs_conn_param(child, data, len);
	param.responder_resources = child->request.responder_resources;
	param.initiator_depth = child->request.initiator_depth;
	ret = evr_stream_start(&child->stream, &child->request.peer);
	if (!ret)
		ret = evr_rs_transport_map(&child->transport, &child->stream);
	if (!ret && rdma_accept(child->id, &param))
		ret = -errno;
	return ret;
}

static int accept_child(struct evr_rs *child)
{
	int ret = evr_rs_transport_init(
		&child->transport, child->id, &child->options, &child->stream);

	return ret ? ret : answer(child);
}

/* --- the places ------------------------------------------------------------------------------ */

static void give_place(struct evr_rs *listener, struct evr_rs *child)
{
	struct evr_rs_listener *own = &listener->listener;

	int ret = accept_child(child);

	if (ret) {
		evr_rs_backlog_refuse(listener, child->id, ret);
		evr_rs_backlog_drop(listener, child);
		return;
	}
	evr_rs_backlog_leave(listener, child);
	child->state = EVR_RS_ACCEPTING;
	child->request.until_us = evr_clock_now_us() + PATIENCE_US;
	TAILQ_INSERT_TAIL(&own->accepting, child, link);
	own->taken++;
}

/* --- waiting for one ------------------------------------------------------------------------- */

static void open_timer(struct evr_rs *listener)
{
	struct evr_rs_listener *own = &listener->listener;

	if (own->has_timer)
		return;
	own->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (own->timer_fd < 0)
		return;
	own->has_timer = !evr_rs_helper_add_timer(listener, own->timer_fd);
	if (!own->has_timer)
		close(own->timer_fd);
}

/* Where there can be no timer, the next event is when it is looked at again. */
static void set_timer(struct evr_rs *listener, const struct evr_rs *child)
{
	uint64_t now = evr_clock_now_us(), until = child->request.until_us;
	uint64_t us = now < until ? until - now : 1;
	const struct itimerspec when = {
		.it_value.tv_sec = (time_t)(us / US_PER_S),
		.it_value.tv_nsec = (long)(us % US_PER_S) * NS_PER_US,
	};

	open_timer(listener);
	if (listener->listener.has_timer)
		timerfd_settime(listener->listener.timer_fd, 0, &when, NULL);
}

void evr_rs_backlog_fill(struct evr_rs *listener)
{
	struct evr_rs_listener *own = &listener->listener;
	struct evr_rs *child;

	while ((child = TAILQ_FIRST(&own->requested)) && own->taken < own->backlog)
		give_place(listener, child);
	if (child && !TAILQ_EMPTY(&own->accepting))
		set_timer(listener, TAILQ_FIRST(&own->accepting));
}

static bool is_over(const struct evr_rs_listener *own)
{
	const struct evr_rs *child = TAILQ_FIRST(&own->accepting);

	return child && !TAILQ_EMPTY(&own->requested) &&
	       evr_clock_now_us() >= child->request.until_us;
}

/* Whoever was answered first keeps it longest. */
void evr_rs_backlog_expire(struct evr_rs *listener)
{
	while (is_over(&listener->listener)) {
		evr_rs_backlog_drop(listener, TAILQ_FIRST(&listener->listener.accepting));
		evr_rs_backlog_fill(listener);
	}
}

bool evr_rs_backlog_due(struct evr_rs *listener)
{
	uint64_t times;

	if (!listener->listener.has_timer ||
		read(listener->listener.timer_fd, &times, sizeof(times)) <= 0)
		return false;
	return evr_rs_read_events(listener);
}

void evr_rs_backlog_stop(struct evr_rs *listener)
{
	struct evr_rs_listener *own = &listener->listener;

	if (!own->has_timer)
		return;
	evr_rs_helper_remove_timer(own->timer_fd);
	close(own->timer_fd);
	own->has_timer = false;
}
