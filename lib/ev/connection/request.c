#include "ev/connection/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ev/cm/addr.h"
#include "ev/cm/channel.h"
#include "ev/connection/listener.h"
#include "ev/core/base.h"
#include "ev/core/error.h"
#include "ev/core/log.h"
#include "ev/device/pd.h"
#include "ev/queue/srq.h"
#include "util/clock.h"

/* What travels with a reject at most. Of more the kernel says EINVAL, or drops all of it. */
enum { MAX_REJECT_DATA = 148, MAX_REJECT_DATA_DGRAM = 136 };

/* Nobody has to answer it any more, or somebody of another base. */
static void settle(struct evrdma_request *request)
{
	request->pending = false;
	request->obj.base->stats.requests_pending--;
	evr_timer_stop(&request->timer);
	if (request->listener)
		evr_listener_settled(request->listener, request);
}

static void refuse(struct evrdma_request *request)
{
	if (!request->pending)
		return;
	request->obj.base->stats.requests_refused++;
	settle(request);
}

/* Nobody can answer it any more. Without its id it is rejected, and its device can go. */
static void end_pending(struct evrdma_request *request, int err)
{
	if (!request->pending)
		return;
	refuse(request);
	request->err = err;
	if (request->waiting_on)
		evr_request_close(request);
	else
		evr_obj_work(&request->obj);
}

/* The kernel says nothing of an id before it is accepted, not even that its device goes. */
static void on_event(struct evr_cmid *cmid, const struct rdma_cm_event *event)
{
}

static void on_gone(struct evr_cmid *cmid)
{
	end_pending(evr_container_of(cmid, struct evrdma_request, cmid), ENODEV);
}

static void on_lost(struct evr_cmid *cmid, int err)
{
	end_pending(evr_container_of(cmid, struct evrdma_request, cmid), err);
}

static const struct evr_cmid_ops cmid_ops = {
	.event = on_event, .lost = on_lost, .gone = on_gone
};

static void request_down(struct evr_obj *obj)
{
	refuse(evr_container_of(obj, struct evrdma_request, obj));
}

/* It has ended. Destroying its id rejects it; the rest is still the user's. */
static void request_work(struct evr_obj *obj)
{
	struct evrdma_request *request = evr_container_of(obj, struct evrdma_request, obj);

	evr_cmid_destroy(&request->cmid);
	evr_slots_give(request->slots);
	request->slots = NULL;
}

static int request_end(struct evr_obj *obj)
{
	struct evrdma_request *request = evr_container_of(obj, struct evrdma_request, obj);

	evr_cmid_destroy(&request->cmid);
	return 0;
}

static void request_closed(struct evr_obj *obj)
{
}

static void stop_waiting(struct evrdma_request *request)
{
	if (request->waiting_on)
		TAILQ_REMOVE(request->waiting_on, request, waiting_link);
	request->waiting_on = NULL;
}

static bool request_shutdown(struct evr_obj *obj)
{
	evr_request_close(evr_container_of(obj, struct evrdma_request, obj));
	return false;
}

static void drop_shared(struct evrdma_request *request)
{
	evr_domain_unref(request->domain);
	evr_srq_unref(request->srq);
	request->domain = NULL;
	request->srq = NULL;
}

static void discard(struct evrdma_request *request)
{
	evr_slots_give(request->slots);
	drop_shared(request);
	free(request);
}

static void request_free(struct evr_obj *obj)
{
	struct evrdma_request *request = evr_container_of(obj, struct evrdma_request, obj);

	stop_waiting(request);
	discard(request);
}

static const struct evr_obj_class request_class = {
	.down = request_down,
	.work = request_work,
	.end = request_end,
	.shutdown = request_shutdown,
	.closed = request_closed,
	.free = request_free,
};

static void be_late(struct evrdma_request *request)
{
	evr_log(EVRDMA_LOG_DEBUG, "a request was not answered for %d ms", request->timeout_ms);
	if (request->listener)
		request->listener->stats.timed_out++;
	end_pending(request, ETIMEDOUT);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	be_late(arg);
}

/* On a base, for somebody to answer. */
static void begin(struct evrdma_request *request, struct evrdma_base *base)
{
	evr_timer_assign(&request->timer, base, on_timer, request);
	request->pending = true;
	base->stats.requests_pending++;
}

void evr_request_start_timer(struct evrdma_request *request)
{
	if (request->cmid.gone)
		end_pending(request, ENODEV);
	if (!request->pending || !request->timeout_ms)
		return;
	request->end_us = evr_clock_now_us() + (uint64_t)request->timeout_ms * EVR_US_PER_MS;
	evr_timer_start(&request->timer, request->timeout_ms);
}

/* Its time goes on where it is moved to. */
static void go_on_waiting(struct evrdma_request *request)
{
	uint64_t now_us = evr_clock_now_us();

	if (request->cmid.gone)
		end_pending(request, ENODEV);
	if (!request->pending || !request->timeout_ms)
		return;
	if (request->end_us > now_us)
		evr_timer_start(&request->timer, evr_clock_ms_of(request->end_us - now_us));
	else
		be_late(request);
}

static void keep(struct evrdma_request *request, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *param = &event->param.conn;

	if (param->private_data && param->private_data_len) {
		memcpy(request->private_data, param->private_data, param->private_data_len);
		request->private_data_len = param->private_data_len;
	}
	request->responder_resources = param->responder_resources;
	request->initiator_depth = param->initiator_depth;
	request->for_dgram = event->id->qp_type == IBV_QPT_UD;
	evr_addr_copy(&request->peer_addr, rdma_get_peer_addr(event->id));
}

struct evrdma_request *evr_request_new(
	struct evrdma_base *base, const struct rdma_cm_event *event)
{
	struct evrdma_request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->cmid.owner = &request->obj;
	request->cmid.ops = &cmid_ops;
	if (evr_cmid_take(&request->cmid, base, event->id)) {
		free(request);
		return NULL;
	}
	if (evr_obj_init(&request->obj, base, &request_class)) {
		evr_cmid_release(&request->cmid);
		free(request);
		return NULL;
	}
	keep(request, event);
	begin(request, base);
	return request;
}

void evr_request_close(struct evrdma_request *request)
{
	stop_waiting(request);
	evr_obj_close(&request->obj);
}

int evr_request_check(const struct evrdma_request *request)
{
	if (request->obj.closing)
		return -EPIPE;
	return request->err ? -request->err : evr_cmid_check(&request->cmid);
}

struct evr_slots *evr_request_accepted(struct evrdma_request *request)
{
	struct evr_slots *slots = request->slots;

	request->slots = NULL;
	request->obj.base->stats.requests_accepted++;
	if (request->listener)
		request->listener->stats.accepted++;
	settle(request);
	evr_request_close(request);
	return slots;
}

/* EINVAL: the peer has gone. Otherwise the end of the id rejects it, without the data. */
static void reject(struct evrdma_request *request, const void *data, size_t len)
{
	if (rdma_reject(request->cmid.cm, data, (uint8_t)len) && errno != EINVAL)
		evr_log_failure("rejecting a request", errno);
	request->obj.base->stats.requests_rejected++;
	if (request->listener)
		request->listener->stats.rejected++;
	settle(request);
}

int evrdma_request_reject(struct evrdma_request *request, const void *data, size_t len)
{
	size_t most = request->for_dgram ? MAX_REJECT_DATA_DGRAM : MAX_REJECT_DATA;

	if (len > most || (len && !data))
		return -EINVAL;
	if (request->pending)
		reject(request, data, len);
	evr_request_close(request);
	return 0;
}

/* --- to another base ------------------------------------------------------------------------ */

/* On the new base's thread. A closing base takes no objects: the id goes, so the peer knows. */
static void arrive(struct evrdma_base *base, struct evr_inbox_item *item)
{
	struct evrdma_request *request = evr_container_of(item, struct evrdma_request, item);
	struct rdma_cm_id *cm = request->cmid.cm;

	if (evr_cmid_take(&request->cmid, base, cm)) {
		rdma_destroy_id(cm);
		discard(request);
		return;
	}
	if (evr_obj_init(&request->obj, base, &request_class)) {
		evr_cmid_destroy(&request->cmid);
		discard(request);
		return;
	}
	begin(request, base);
	go_on_waiting(request);
	evr_channel_poll(base);
	request->cb(request, request->arg);
}

/* What it shared with others of the old base stays behind. */
static int depart(struct evrdma_request *request, struct evrdma_base *base)
{
	struct rdma_cm_id *cm = request->cmid.cm;

	if (base != request->obj.base && rdma_migrate_id(cm, base->channel))
		return evr_errno(-errno);
	if (request->listener)
		request->listener->stats.moved++;
	settle(request);
	drop_shared(request);
	evr_cmid_release(&request->cmid);
	request->cmid.cm = cm;
	evr_obj_leave(&request->obj);
	return 0;
}

int evrdma_request_move(struct evrdma_request *request, struct evrdma_base *base,
	evrdma_request_cb cb, void *arg)
{
	int ret = cb ? evr_request_check(request) : -EINVAL;

	if (ret)
		return ret;
	ret = evr_inbox_announce(base);
	if (ret)
		return ret;
	request->item.deliver = arrive;
	request->cb = cb;
	request->arg = arg;
	ret = depart(request, base);
	evr_inbox_bring(base, ret ? NULL : &request->item);
	return ret;
}

/* --- what is known of it -------------------------------------------------------------------- */

const void *evrdma_request_get_private_data(const struct evrdma_request *request, size_t *len)
{
	if (len)
		*len = request->private_data_len;
	return request->private_data_len ? request->private_data : NULL;
}

struct rdma_cm_id *evrdma_request_get_cm_id(const struct evrdma_request *request)
{
	return request->err ? NULL : request->cmid.cm;
}

const struct sockaddr *evrdma_request_get_peer_addr(const struct evrdma_request *request)
{
	return (const struct sockaddr *)&request->peer_addr;
}

struct evrdma_base *evrdma_request_get_base(const struct evrdma_request *request)
{
	return request->obj.base;
}
