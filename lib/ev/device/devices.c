#include "ev/device/devices.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "ev/core/base.h"

static const struct evr_part_class devices_class;

static struct evr_devices *of_part(const struct evr_part *part)
{
	return evr_container_of(part, struct evr_devices, part);
}

struct evr_devices *evr_devices_of(const struct evrdma_base *base)
{
	return of_part(evr_part_find(base, &devices_class));
}

static void tell(struct evr_part *part)
{
	evr_cq_service_ready(of_part(part));
}

/* A CQ that cannot be armed is always ready. */
static bool has_more(const struct evr_part *part)
{
	return !TAILQ_EMPTY(&of_part(part)->ready_cqs);
}

static bool shed(struct evr_part *part, uint64_t deadline_us)
{
	return evr_device_shed_all(of_part(part), deadline_us);
}

static void device_goes(struct evr_part *part, const struct ibv_context *verbs)
{
	evr_device_set_removed(of_part(part), verbs);
}

static void stop(struct evr_part *part)
{
	struct evr_devices *devices = of_part(part);

	evr_devlist_fini(devices);
	evr_device_release_all(devices);
	evr_domain_release_all(devices);
	evr_idmap_fini(&devices->work_owners);
}

static const struct evr_part_class devices_class = {
	.stop = stop,
	.tell = tell,
	.has_more = has_more,
	.shed = shed,
	.device_goes = device_goes,
};

/* In turn, so that the bases of a program with many threads share its processors. */
static unsigned choose_vector(int wanted)
{
	static atomic_uint next;

	return wanted < 0 ? atomic_fetch_add(&next, 1) & INT_MAX : (unsigned)wanted;
}

static struct evr_devices *make(const struct evrdma_base *base)
{
	struct evr_devices *devices = calloc(1, sizeof(*devices));

	if (!devices)
		return NULL;
	TAILQ_INIT(&devices->list);
	TAILQ_INIT(&devices->ready_cqs);
	TAILQ_INIT(&devices->domains);
	evr_async_queue_init(&devices->async);
	evr_idmap_init(&devices->work_owners);
	devices->comp_vector = choose_vector(base->options.comp_vector);
	return devices;
}

int evr_devices_start(struct evrdma_base *base)
{
	struct evr_devices *devices = make(base);

	if (!devices)
		return -ENOMEM;
	evr_part_add(&devices->part, base, &devices_class);
	return evr_devlist_init(devices);
}
