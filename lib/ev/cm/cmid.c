#include "ev/cm/cmid.h"

#include <errno.h>
#include <string.h>

#include "ev/cm/channel.h"
#include "ev/core/base.h"
#include "ev/core/error.h"
#include "ev/core/log.h"
#include "util/clock.h"

enum {
	MAX_PRIVATE_DATA = 256, /* the kernel's largest */
	/*
	 * Of an id whose device goes nothing more is heard, while the driver waits on for the peer:
	 * the longest, siw, for 10 seconds.
	 */
	LATE_MS = 10500,
};

static void on_late(evutil_socket_t fd, short what, void *arg);

static void set_gone(struct evr_cmid *cmid)
{
	if (cmid->gone)
		return;
	evr_channel_of(cmid->base)->gone++;
	cmid->gone = true;
	if (cmid->ops->gone)
		cmid->ops->gone(cmid);
}

static bool is_on(const struct evr_cmid *cmid, const char *name, int index)
{
	const struct ibv_context *verbs = cmid->cm->verbs;

	return verbs && ibv_get_device_index(verbs->device) == index &&
		!strcmp(ibv_get_device_name(verbs->device), name);
}

void evr_cmid_device_unlisted(struct evrdma_base *base, const char *name, int index)
{
	struct evr_cmid *cmid;

	TAILQ_FOREACH (cmid, &evr_channel_of(base)->cmids, link)
		if (is_on(cmid, name, index))
			set_gone(cmid);
}

/* The device stays open for the CM, and its context is no other's, while an id is on it. */
static bool is_on_gone_device(const struct evr_cmid *cmid)
{
	const struct evr_channel *channel = evr_channel_of(cmid->base);
	const struct evr_cmid *other;

	if (!channel->gone || !cmid->cm->verbs)
		return false;
	TAILQ_FOREACH (other, &channel->cmids, link)
		if (other->gone && other->cm->verbs == cmid->cm->verbs)
			return true;
	return false;
}

static void belong_to(struct evr_cmid *cmid, struct evrdma_base *base)
{
	cmid->base = base;
	cmid->lost = false;
	cmid->gone = false;
	if (is_on_gone_device(cmid))
		set_gone(cmid);
	evr_timer_assign(&cmid->late, base, on_late, cmid);
	TAILQ_INSERT_TAIL(&evr_channel_of(base)->cmids, cmid, link);
}

static void forget(struct evr_cmid *cmid)
{
	struct evr_channel *channel = evr_channel_of(cmid->base);

	evr_timer_stop(&cmid->late);
	channel->gone -= cmid->gone;
	evr_ptrmap_remove(&channel->map, cmid->cm);
	TAILQ_REMOVE(&channel->cmids, cmid, link);
	evr_base_kick_if_closing(cmid->base);
}

static int hold(struct evr_cmid *cmid, struct evrdma_base *base, struct rdma_cm_id *cm)
{
	int ret = evr_ptrmap_add(&evr_channel_of(base)->map, cm, cmid);

	if (ret)
		return ret;
	cmid->cm = cm;
	cmid->asked = false;
	cmid->unanswered = false;
	belong_to(cmid, base);
	return 0;
}

/* 0, or why nothing is heard there any more. */
static int check(const struct evrdma_base *base)
{
	return -evr_channel_of(base)->err;
}

int evr_cmid_check(const struct evr_cmid *cmid)
{
	return check(cmid->base);
}

enum evrdma_step evr_cmid_first_step(const struct evrdma_base *base)
{
	return check(base) ? EVRDMA_STEP_CHANNEL : EVRDMA_STEP_ADDR;
}

int evr_cmid_take(struct evr_cmid *cmid, struct evrdma_base *base, struct rdma_cm_id *cm)
{
	int ret = check(base);

	return ret ? ret : hold(cmid, base, cm);
}

int evr_cmid_create(struct evr_cmid *cmid, struct evrdma_base *base, enum rdma_port_space ps)
{
	struct rdma_cm_id *cm;
	int ret = check(base);

	if (ret)
		return ret;
	if (rdma_create_id(base->channel, &cm, NULL, ps))
		return -errno;
	ret = evr_cmid_take(cmid, base, cm);
	if (ret)
		rdma_destroy_id(cm);
	return ret;
}

struct rdma_cm_id *evr_cmid_release(struct evr_cmid *cmid)
{
	struct rdma_cm_id *cm = cmid->cm;

	forget(cmid);
	cmid->cm = NULL;
	return cm;
}

void evr_cmid_hand_over(struct evr_cmid *from, struct evr_cmid *to)
{
	struct evrdma_base *base = from->base;
	struct rdma_cm_id *cm = evr_cmid_release(from);

	/* The slot was freed just now, so there is room. */
	(void)hold(to, base, cm);
	to->lost = from->lost;
	if (from->gone)
		set_gone(to);
}

void evr_cmid_destroy(struct evr_cmid *cmid)
{
	if (cmid->cm && rdma_destroy_id(evr_cmid_release(cmid)))
		evr_log_failure("destroying an id", errno);
}

int evr_cmid_migrate(struct evr_cmid *cmid, struct evrdma_base *base)
{
	bool late = cmid->cm && evr_timer_runs(&cmid->late);
	struct rdma_cm_id *cm = cmid->cm;
	int ret;

	if (base == cmid->base)
		return 0;
	ret = check(base);
	if (ret)
		return ret;
	ret = evr_ptrmap_add(&evr_channel_of(base)->map, cm, cmid);
	if (ret)
		return ret;
	if (rdma_migrate_id(cm, base->channel)) {
		ret = evr_errno(-errno);
		evr_ptrmap_remove(&evr_channel_of(base)->map, cm);
		return ret;
	}
	forget(cmid);
	belong_to(cmid, base);
	if (late)
		evr_timer_start(&cmid->late, LATE_MS);
	evr_channel_poll(base);
	return 0;
}

/* --- answers -------------------------------------------------------------------------------- */

void evr_cmid_asked(struct evr_cmid *cmid)
{
	cmid->asked = true;
	cmid->unanswered = !evr_cmid_check(cmid) &&
		cmid->cm->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

static void answered(struct evr_cmid *cmid)
{
	if (!cmid->unanswered)
		return;
	cmid->unanswered = false;
	evr_obj_continue(cmid->owner);
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
	answered(arg);
}

void evr_cmid_lost(struct evr_cmid *cmid, int err)
{
	cmid->lost = true;
	answered(cmid);
	cmid->ops->lost(cmid, err);
}

static bool is_answer(const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_DISCONNECTED:
		return true;
	default:
		return false;
	}
}

/* --- events --------------------------------------------------------------------------------- */

struct event_copy {
	struct rdma_cm_event event;
	unsigned char private_data[MAX_PRIVATE_DATA];
};

static bool has_private_data(const struct rdma_cm_event *event)
{
	/* A multicast event has the join's context there instead; a younger, what is its own. */
	return event->event != RDMA_CM_EVENT_MULTICAST_JOIN &&
		event->event != RDMA_CM_EVENT_MULTICAST_ERROR &&
		event->event <= RDMA_CM_EVENT_TIMEWAIT_EXIT && event->param.conn.private_data;
}

/* Copies before the acknowledgement frees it. conn and ud begin alike. */
static void copy_event(struct event_copy *copy, const struct rdma_cm_event *event)
{
	copy->event = *event;
	if (!has_private_data(event))
		return;
	memcpy(copy->private_data, event->param.conn.private_data,
		event->param.conn.private_data_len);
	copy->event.param.conn.private_data = copy->private_data;
}

/* The id of a request is ours alone: without it the peer is rejected. */
static void drop_event(const struct rdma_cm_event *event)
{
	evr_log(EVRDMA_LOG_DEBUG, "%s for nobody, status %d", rdma_event_str(event->event),
		event->status);
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		rdma_destroy_id(event->id);
}

static void all_are_gone(struct evrdma_base *base, const struct ibv_context *verbs)
{
	struct evr_cmid *cmid;

	TAILQ_FOREACH (cmid, &evr_channel_of(base)->cmids, link)
		if (cmid->cm->verbs == verbs)
			set_gone(cmid);
}

/*
 * The first event of a device is about all that are on it. What an id that was moved has there is
 * still its first base's, which may hear of that in no other way.
 */
static void tell_bases(const struct evr_cmid *cmid, const struct ibv_context *verbs)
{
	struct evrdma_base *first = cmid->owner->base;

	if (!cmid->gone)
		all_are_gone(cmid->base, verbs);
	if (first != cmid->base)
		all_are_gone(first, verbs);
	evr_parts_device_goes(first, verbs);
}

static void device_goes(struct evr_cmid *cmid)
{
	if (cmid->cm->verbs)
		tell_bases(cmid, cmid->cm->verbs);
	if (cmid->unanswered)
		evr_timer_start(&cmid->late, LATE_MS);
}

static void dispatch(struct evrdma_base *base, const struct rdma_cm_event *event)
{
	bool request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
	struct evr_channel *channel = evr_channel_of(base);
	struct evr_cmid *cmid =
		evr_ptrmap_find(&channel->map, request ? event->listen_id : event->id);

	if (cmid && is_answer(event)) {
		cmid->asked = false;
		answered(cmid);
	}
	if (cmid && event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		device_goes(cmid);
	if (cmid)
		cmid->ops->event(cmid, event);
	else if (channel->event_cb)
		channel->event_cb(base, event, channel->event_arg);
	else
		drop_event(event);
}

static int read_event(struct evrdma_base *base)
{
	struct rdma_cm_event *event;
	struct event_copy copy;

	errno = 0;
	if (rdma_get_cm_event(base->channel, &event))
		return -errno;
	/* The CM says -1 for what it found wrong itself, and has the reason in errno. */
	if (event->status == -1 && errno)
		event->status = -errno;
	copy_event(&copy, event);
	rdma_ack_cm_event(event);
	base->stats.cm_events++;
	dispatch(base, &copy.event);
	return 0;
}

int evr_cmid_read_events(struct evrdma_base *base, uint64_t deadline_us)
{
	int ret;

	do {
		ret = read_event(base);
		if (ret && ret != -EINTR)
			return ret == -EAGAIN ? 0 : ret;
	} while (evr_clock_now_us() < deadline_us);
	return 1;
}
