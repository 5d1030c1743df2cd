#include "ev/device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "ev/cm/channel.h"
#include "ev/core/base.h"
#include "ev/core/error.h"
#include "ev/core/log.h"
#include "ev/device/devices.h"
#include "util/clock.h"

enum {
	KEEP_MS = 1000,
	FATAL_MS = 1000 /* in which the removal of a broken device may follow */
};

static void release(struct evr_device *device)
{
	struct evrdma_base *base = device->base;

	evr_timer_stop(&device->idle_timer);
	evr_timer_stop(&device->fatal_timer);
	evr_base_cancel(base, &device->release);
	event_del(&device->channel_event);
	evr_pd_forget_users(device);
	evr_cq_destroy_all(&device->cqs);
	/* Who was forgotten may just have left one to spare. */
	evr_timer_stop(&device->spare_timer);
	evr_async_stop(&device->async);
	evr_log_failure("ibv_destroy_comp_channel", ibv_destroy_comp_channel(device->channel));
	/* Last: with nothing left on it the CM may close a removed device, on whichever thread. */
	evr_pd_release_all(device);
	evr_channel_keep_polling(base);
	TAILQ_REMOVE(&device->devices->list, device, link);
	free(device);
}

/* Each registration is a slow call, and there may be thousands. */
static void release_step(struct evr_task *task)
{
	struct evr_device *device = evr_container_of(task, struct evr_device, release);
	struct evrdma_base *base = device->base;

	if (evr_pd_drop_one(device)) {
		evr_base_queue(base, &device->release);
		return;
	}
	release(device);
	evr_channel_poll(base);
}

/* One whose id the kernel tells when the device goes: who listens on any address is not told. */
static bool is_listened_on(const struct evr_device *device)
{
	const struct evr_cmid *cmid;

	if (device->removed || device->deaf || !device->base->options.device_idle_ms)
		return false;
	TAILQ_FOREACH (cmid, &evr_channel_of(device->base)->cmids, link)
		if (cmid->listens && cmid->cm->verbs == device->verbs)
			return true;
	return false;
}

static void on_idle(evutil_socket_t fd, short what, void *arg)
{
	struct evr_device *device = arg;

	if (is_listened_on(device)) {
		evr_timer_start(&device->idle_timer, KEEP_MS);
		return;
	}
	evr_base_queue(device->base, &device->release);
}

/* What was posted is flushed for the kernel's own queue pairs only. */
static void on_fatal(evutil_socket_t fd, short what, void *arg)
{
	struct evr_device *device = arg;

	if (!device->removed)
		evr_cq_break_all(device);
}

/* One at a time: each is a slow call. */
static void on_spare(evutil_socket_t fd, short what, void *arg)
{
	struct evr_device *device = arg;

	if (evr_cq_drop_spare(&device->cqs))
		evr_timer_start_now(&device->spare_timer);
}

void evr_device_has_spare(struct evr_device *device)
{
	if (!evr_timer_runs(&device->spare_timer))
		evr_timer_start(&device->spare_timer, (int)device->base->options.device_idle_ms);
}

static void on_channel_readable(evutil_socket_t fd, short what, void *arg)
{
	evr_cq_read_channel(arg);
}

static int watch_channel(struct evr_device *device)
{
	struct evrdma_base *base = device->base;
	int flags = fcntl(device->channel->fd, F_GETFL);

	if (flags < 0 || fcntl(device->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	evr_timer_assign(&device->idle_timer, base, on_idle, device);
	evr_timer_assign(&device->fatal_timer, base, on_fatal, device);
	evr_timer_assign(&device->spare_timer, base, on_spare, device);
	event_assign(&device->channel_event, base->event_base, device->channel->fd,
		EV_READ | EV_PERSIST, on_channel_readable, device);
	evr_base_set_priority(&device->channel_event, base->options.data_priority);
	return event_add(&device->channel_event, NULL) ? -ENOMEM : 0;
}

void evr_device_set_deaf(struct evr_device *device)
{
	event_del(&device->channel_event);
	device->deaf = true;
}

/* A base may have two of it, of which one is deaf and goes: both hear of its ports. */
static bool is_first_on_verbs(const struct evr_device *device)
{
	const struct evr_device *other;

	TAILQ_FOREACH (other, &device->devices->list, link)
		if (other->verbs == device->verbs)
			break;
	return other == device;
}

static void on_port_events(struct evr_async_subject *subject, uint32_t events)
{
	static const struct {
		uint32_t types;
		enum evrdma_device_event event;
	} told[] = {
		{ 1u << IBV_EVENT_DEVICE_FATAL, EVRDMA_DEVICE_FATAL },
		{ 1u << IBV_EVENT_PORT_ERR, EVRDMA_DEVICE_PORT_DOWN },
		{ 1u << IBV_EVENT_PORT_ACTIVE, EVRDMA_DEVICE_PORT_UP },
		{ 1u << IBV_EVENT_LID_CHANGE | 1u << IBV_EVENT_PKEY_CHANGE |
				1u << IBV_EVENT_GID_CHANGE | 1u << IBV_EVENT_SM_CHANGE |
				1u << IBV_EVENT_CLIENT_REREGISTER,
			EVRDMA_DEVICE_PORT_CHANGED },
	};
	struct evr_device *device = evr_container_of(subject->async, struct evr_device, async);
	const char *name = ibv_get_device_name(device->verbs->device);
	unsigned port = evr_async_port_of(subject);
	size_t i;

	if (events & 1u << IBV_EVENT_DEVICE_FATAL)
		evr_timer_start(&device->fatal_timer, FATAL_MS);
	if (!is_first_on_verbs(device))
		return;
	for (i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		if (events & told[i].types)
			evr_devlist_tell(device->devices, told[i].event, name, port);
}

static int open_verbs(struct evr_device *device)
{
	int ret = ibv_query_device(device->verbs, &device->attr);

	if (ret)
		return -abs(ret);
	errno = 0;
	device->channel = ibv_create_comp_channel(device->verbs);
	if (!device->channel)
		return evr_verbs_error();
	ret = watch_channel(device);
	if (ret)
		goto destroy_channel;
	ret = evr_async_start(&device->async, device->base, device->verbs,
		device->attr.phys_port_cnt, on_port_events);
	if (ret)
		goto unwatch_channel;
	return 0;
unwatch_channel:
	event_del(&device->channel_event);
destroy_channel:
	ibv_destroy_comp_channel(device->channel);
	return ret;
}

static int open_device(
	struct evr_devices *devices, struct ibv_context *verbs, struct evr_device **opened)
{
	struct evr_device *device = calloc(1, sizeof(*device));
	int ret;

	if (!device)
		return -ENOMEM;
	device->devices = devices;
	device->base = devices->part.base;
	device->verbs = verbs;
	device->release.run = release_step;
	TAILQ_INIT(&device->cqs);
	TAILQ_INIT(&device->pds);
	ret = open_verbs(device);
	if (ret) {
		free(device);
		return ret;
	}
	TAILQ_INSERT_TAIL(&devices->list, device, link);
	*opened = device;
	return 0;
}

static struct evr_device *find(struct evr_devices *devices, struct ibv_context *verbs)
{
	struct evr_device *device;

	TAILQ_FOREACH (device, &devices->list, link)
		if (device->verbs == verbs && !device->removed && !device->deaf)
			break;
	return device;
}

int evr_device_get(
	struct evrdma_base *base, const struct evr_cmid *cmid, struct evr_device **device)
{
	struct evr_devices *devices = evr_devices_of(base);
	int ret;

	if (cmid->gone)
		return -ENODEV;
	*device = find(devices, cmid->cm->verbs);
	if (!*device) {
		ret = open_device(devices, cmid->cm->verbs, device);
		if (ret)
			return ret;
	}
	evr_timer_stop(&(*device)->idle_timer);
	evr_base_cancel(base, &(*device)->release);
	(*device)->users++;
	return 0;
}

void evr_device_put(struct evr_device *device)
{
	if (!device || --device->users)
		return;
	/* The CM closes a removed device on which there is nothing, whoever still looks at it. */
	if (!device->proven || device->removed || device->deaf ||
		(TAILQ_EMPTY(&device->pds) && TAILQ_EMPTY(&device->cqs)))
		release(device);
	else
		evr_timer_start(&device->idle_timer, (int)device->base->options.device_idle_ms);
}

void evr_device_set_removed(struct evr_devices *devices, const struct ibv_context *verbs)
{
	struct evr_device *device;
	bool ours = false;

	TAILQ_FOREACH (device, &devices->list, link) {
		if (device->verbs != verbs || device->removed)
			continue;
		device->removed = ours = true;
		if (!device->users)
			evr_timer_start_now(&device->idle_timer);
	}
	if (ours)
		evr_devlist_set_removed(devices, ibv_get_device_name(verbs->device));
}

bool evr_device_shed_all(struct evr_devices *devices, uint64_t deadline_us)
{
	struct evr_device *device;

	TAILQ_FOREACH (device, &devices->list, link) {
		while (evr_pd_drop_one(device))
			if (evr_clock_now_us() >= deadline_us)
				return true;
	}
	return false;
}

void evr_device_release_all(struct evr_devices *devices)
{
	struct evr_device *device;

	while ((device = TAILQ_FIRST(&devices->list)))
		release(device);
}
