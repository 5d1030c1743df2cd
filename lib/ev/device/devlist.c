#include "ev/device/devlist.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "ev/cm/cmid.h"
#include "ev/core/base.h"
#include "ev/core/log.h"
#include "ev/device/devices.h"

/* A device that comes back has its old name, but another index where the kernel counts them. */
struct evr_known_device {
	TAILQ_ENTRY(evr_known_device) link;
	char name[IBV_SYSFS_NAME_MAX];
	int index;
	bool listed;
	bool removed; /* and told */
};

static struct evr_known_device *find(struct evr_devlist *list, const char *name, int index)
{
	struct evr_known_device *known;

	TAILQ_FOREACH (known, &list->known, link)
		if (known->index == index && !strcmp(known->name, name))
			break;
	return known;
}

/* Returns NULL when there is no memory: then it is new the next time. */
static struct evr_known_device *add(struct evr_devlist *list, const char *name, int index)
{
	struct evr_known_device *known = calloc(1, sizeof(*known));

	if (!known)
		return NULL;
	memcpy(known->name, name, strnlen(name, sizeof(known->name) - 1));
	known->index = index;
	known->listed = true;
	TAILQ_INSERT_TAIL(&list->known, known, link);
	return known;
}

static void forget(struct evr_devlist *list, struct evr_known_device *known)
{
	TAILQ_REMOVE(&list->known, known, link);
	free(known);
}

/* --- telling -------------------------------------------------------------------------------- */

void evrdma_base_set_device_cb(struct evrdma_base *base, evrdma_base_device_cb cb, void *arg)
{
	struct evr_devices *devices = evr_devices_of(base);

	devices->cb = cb;
	devices->arg = arg;
}

void evr_devlist_tell(struct evr_devices *devices, enum evrdma_device_event event,
	const char *device, unsigned port_num)
{
	struct evrdma_base *base = devices->part.base;

	if (!base->closing && devices->cb)
		devices->cb(base, event, device, (int)port_num, devices->arg);
}

/* --- looking -------------------------------------------------------------------------------- */

static void mark_listed(struct evr_devlist *list, struct ibv_device **devices, int n)
{
	struct evr_known_device *known;
	int i;

	TAILQ_FOREACH (known, &list->known, link)
		known->listed = false;
	for (i = 0; i < n; i++) {
		known = find(
			list, ibv_get_device_name(devices[i]), ibv_get_device_index(devices[i]));
		if (known)
			known->listed = true;
	}
}

static void tell_gone(struct evr_devices *devices)
{
	struct evr_devlist *list = &devices->devlist;
	struct evr_known_device *known, *next;

	TAILQ_FOREACH_SAFE (known, &list->known, link, next) {
		if (known->listed)
			continue;
		evr_cmid_device_unlisted(devices->part.base, known->name, known->index);
		if (!known->removed)
			evr_devlist_tell(devices, EVRDMA_DEVICE_REMOVED, known->name, 0);
		forget(list, known);
	}
}

static void tell_new(struct evr_devices *devices, struct ibv_device **there, int n)
{
	struct evr_devlist *list = &devices->devlist;
	int i;

	for (i = 0; i < n; i++) {
		const char *name = ibv_get_device_name(there[i]);
		int index = ibv_get_device_index(there[i]);

		if (find(list, name, index) || !add(list, name, index))
			continue;
		evr_devlist_tell(devices, EVRDMA_DEVICE_ARRIVED, name, 0);
	}
}

static void sleep_until_next(struct evr_devices *devices)
{
	evr_timer_start(&devices->devlist.timer, (int)devices->part.base->options.device_poll_ms);
}

static void tell_unreadable(struct evr_devlist *list, int err)
{
	if (!list->unreadable)
		evr_log_failure("reading the list of devices", err);
	list->unreadable = true;
}

/* A list that cannot be read now is read the next time. */
static void look(struct evr_task *task)
{
	struct evr_devices *devices = evr_container_of(task, struct evr_devices, devlist.task);
	struct ibv_device **there;
	int n = 0;

	sleep_until_next(devices);
	errno = 0;
	there = ibv_get_device_list(&n);
	if (!there) {
		tell_unreadable(&devices->devlist, errno ? errno : ENOMEM);
		return;
	}
	devices->devlist.unreadable = false;
	mark_listed(&devices->devlist, there, n);
	tell_gone(devices);
	tell_new(devices, there, n);
	ibv_free_device_list(there);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct evr_devices *devices = arg;

	if (!devices->part.base->closing)
		evr_base_queue(devices->part.base, &devices->devlist.task);
}

void evr_devlist_set_removed(struct evr_devices *devices, const char *name)
{
	struct evr_known_device *known;

	if (!devices->devlist.on) {
		evr_devlist_tell(devices, EVRDMA_DEVICE_REMOVED, name, 0);
		return;
	}
	TAILQ_FOREACH (known, &devices->devlist.known, link)
		if (!known->removed && !strcmp(known->name, name))
			break;
	if (!known)
		return;
	known->removed = true;
	evr_devlist_tell(devices, EVRDMA_DEVICE_REMOVED, name, 0);
}

/* --- life ----------------------------------------------------------------------------------- */

static int read_first(struct evr_devlist *list)
{
	struct ibv_device **devices;
	int i, n = 0, ret = 0;

	errno = 0;
	devices = ibv_get_device_list(&n);
	if (!devices)
		return errno ? -errno : -ENOMEM;
	for (i = 0; i < n && !ret; i++)
		if (!add(list, ibv_get_device_name(devices[i]), ibv_get_device_index(devices[i])))
			ret = -ENOMEM;
	ibv_free_device_list(devices);
	return ret;
}

int evr_devlist_init(struct evr_devices *devices)
{
	struct evr_devlist *list = &devices->devlist;
	struct evrdma_base *base = devices->part.base;
	int ret;

	TAILQ_INIT(&list->known);
	list->task.run = look;
	evr_timer_assign(&list->timer, base, on_timer, devices);
	list->on = base->options.device_poll_ms != 0;
	ret = list->on ? read_first(list) : 0;
	if (ret)
		evr_devlist_fini(devices);
	else if (list->on)
		sleep_until_next(devices);
	return ret;
}

void evr_devlist_fini(struct evr_devices *devices)
{
	struct evr_devlist *list = &devices->devlist;
	struct evr_known_device *known;

	evr_timer_stop(&list->timer);
	evr_base_cancel(devices->part.base, &list->task);
	while ((known = TAILQ_FIRST(&list->known)))
		forget(list, known);
}
