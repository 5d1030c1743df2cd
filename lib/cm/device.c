/*
 * The devices that the library has open. An id holds a reference. Without references a device stays
 * open, since nobody can tell whether the program goes on with its context; only one that was
 * removed is closed then, once the kernel lists nothing of this process on it: the removal waits.
 *
 * An id is told of a removal. Where there is none the kernel is asked, now and then, by calls that
 * the program makes anyway.
 */
#include "cm/cm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "util/clock.h"

enum { LOOK_US = 1000 * 1000 };

/* One at a time opens and closes devices. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
/*
 * Everybody else finds the open ones in the list and takes references. Who writes holds the open
 * lock too, and nobody makes a system call under this one: nobody waits for another's device. It is
 * no lock for many readers, which a child of fork() could not let go of.
 */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, evr_cm_device) devices = TAILQ_HEAD_INITIALIZER(devices);
/* How many have no reference but could be closed. A hint: it orders nothing, and may be late. */
static atomic_int num_idle;
static uint64_t next_look_us; /* with the open lock held */

void evr_cm_device_hold(bool hold)
{
	if (hold) {
		pthread_mutex_lock(&open_lock);
		pthread_mutex_lock(&list_lock);
	} else {
		pthread_mutex_unlock(&list_lock);
		pthread_mutex_unlock(&open_lock);
	}
}

/*
 * What is written to a descriptor that somebody of other credentials opened is refused, which on
 * soft devices is each send, and doorbells are not mapped in a child. What its parent has there
 * must not be given back either: the kernel would take it from both.
 */
void evr_cm_device_begin_child(void)
{
	TAILQ_INIT(&devices);
	atomic_store_explicit(&num_idle, 0, memory_order_relaxed);
	next_look_us = 0;
}

static void count_idle(int change)
{
	atomic_fetch_add_explicit(&num_idle, change, memory_order_relaxed);
}

static struct evr_device_key key_of(struct ibv_device *ibdev)
{
	int index = ibv_get_device_index(ibdev);

	return (struct evr_device_key){
		.node_guid = ibv_get_device_guid(ibdev),
		.ibdev_index = index < 0 ? EVR_UCMA_NO_INDEX : (uint32_t)index,
	};
}

static uint8_t clip_depth(int depth)
{
	return depth < 0 ? 0 : depth > UINT8_MAX ? UINT8_MAX : (uint8_t)depth;
}

static int open_verbs(struct evr_cm_device *dev, struct ibv_device *ibdev)
{
	struct ibv_device_attr attr;
	int ret;

	/* First: once the device is open it may go, and nobody knows its driver any more. */
	ret = evr_device_find_driver(&dev->key, &dev->driver_id);
	if (ret == -ENOMEM || ret == -EMFILE || ret == -ENFILE)
		return ret;
	dev->can_close = !ret;
	errno = 0;
	dev->verbs = ibv_open_device(ibdev);
	if (!dev->verbs)
		return evr_cm_why_closed(ibdev);
	ret = ibv_query_device(dev->verbs, &attr);
	if (ret) {
		ibv_close_device(dev->verbs);
		return ret < 0 ? -EIO : -ret;
	}
	dev->max_responder_resources = clip_depth(attr.max_qp_rd_atom);
	dev->max_initiator_depth = clip_depth(attr.max_qp_init_rd_atom);
	return 0;
}

/* At the head, behind whom walks the list. */
static void list_device(struct evr_cm_device *dev)
{
	pthread_mutex_lock(&list_lock);
	TAILQ_INSERT_HEAD(&devices, dev, link);
	pthread_mutex_unlock(&list_lock);
}

/* With the open lock held; the new device is idle until somebody takes a reference. */
static int open_device(struct ibv_device *ibdev, struct evr_cm_device **out)
{
	struct evr_cm_device *dev = calloc(1, sizeof(*dev));
	int ret;

	if (!dev)
		return -ENOMEM;
	dev->key = key_of(ibdev);
	ret = open_verbs(dev, ibdev);
	if (ret) {
		free(dev);
		return ret;
	}
	list_device(dev);
	if (dev->can_close)
		count_idle(1);
	*out = dev;
	return 0;
}

static bool is_removed(const struct evr_cm_device *dev)
{
	return atomic_load_explicit(&dev->removed, memory_order_relaxed);
}

static struct evr_cm_device *find_open(const struct evr_device_key *key)
{
	struct evr_cm_device *dev;

	TAILQ_FOREACH (dev, &devices, link)
		if (!is_removed(dev) && evr_device_key_equal(&dev->key, key))
			return dev;
	return NULL;
}

static int find_and_open(const struct evr_device_key *key, struct evr_cm_device **dev)
{
	struct ibv_device **list;
	int i, num, ret = evr_cm_list_devices(&list, &num);

	if (ret)
		return ret;
	ret = -ENODEV;
	for (i = 0; i < num; i++) {
		struct evr_device_key found = key_of(list[i]);

		if (!evr_device_key_equal(&found, key))
			continue;
		ret = open_device(list[i], dev);
		break;
	}
	ibv_free_device_list(list);
	return ret;
}

/* With a lock held, under which the device stays. */
static void take_ref(struct evr_cm_device *dev)
{
	if (!atomic_fetch_add_explicit(&dev->refs, 1, memory_order_relaxed) && dev->can_close)
		count_idle(-1);
}

/* Whether it was the last: then the device may be gone already. */
static bool drop_ref(struct evr_cm_device *dev)
{
	bool can_close = dev->can_close;
	bool last = atomic_fetch_sub_explicit(&dev->refs, 1, memory_order_release) == 1;

	if (last && can_close)
		count_idle(1);
	return last;
}

static int need_pd(struct evr_cm_device *dev)
{
	struct ibv_pd *pd;

	if (dev->pd)
		return 0;
	errno = 0;
	pd = ibv_alloc_pd(dev->verbs);
	if (!pd)
		return evr_cm_verbs_error();
	pthread_mutex_lock(&list_lock);
	dev->pd = pd;
	pthread_mutex_unlock(&list_lock);
	return 0;
}

/* Out of the list nobody takes a reference any more. */
static bool unlist_if_idle(struct evr_cm_device *dev)
{
	bool idle;

	pthread_mutex_lock(&list_lock);
	idle = !atomic_load_explicit(&dev->refs, memory_order_acquire);
	if (idle)
		TAILQ_REMOVE(&devices, dev, link);
	pthread_mutex_unlock(&list_lock);
	return idle;
}

/* What the ids on the device shared; the program may have something on it. */
static int release_shared(struct evr_cm_device *dev)
{
	int ret = 0;

	if (dev->xrcd)
		ret = evr_cm_verbs_result(ibv_close_xrcd(dev->xrcd));
	if (ret)
		return ret;
	dev->xrcd = NULL;
	if (dev->pd)
		ret = evr_cm_verbs_result(ibv_dealloc_pd(dev->pd));
	if (!ret)
		dev->pd = NULL;
	return ret;
}

/*
 * Where the kernel took all objects away it does not wait for anybody, and fails to tell. Then the
 * device stays open, as the program may still name them.
 */
static bool is_in_use(struct evr_cm_device *dev)
{
	return release_shared(dev) || evr_device_in_use(dev->verbs->cmd_fd, dev->driver_id);
}

static void close_idle(struct evr_cm_device *dev)
{
	if (dev->can_close)
		count_idle(-1);
	ibv_close_device(dev->verbs);
	free(dev);
}

static bool gives_eio(const struct evr_cm_device *dev)
{
	struct ibv_port_attr attr;

	return abs(ibv_query_port(dev->verbs, 1, &attr)) == EIO;
}

/* Not one call that failed, but all. */
static bool is_lost(const struct evr_cm_device *dev)
{
	return gives_eio(dev) && gives_eio(dev);
}

/* One of the same name may come, so this one is none any more. */
static void forget(struct evr_cm_device *dev)
{
	count_idle(-1);
	free(dev);
}

static void close_if_removed(struct evr_cm_device *dev)
{
	if (!is_removed(dev) || !dev->can_close || !unlist_if_idle(dev))
		return;
	if (!is_in_use(dev))
		close_idle(dev);
	else if (is_lost(dev))
		forget(dev);
	else
		list_device(dev);
}

/* A device that cannot be asked for is there. */
static bool is_gone(const struct evr_cm_device *dev)
{
	uint32_t driver_id;

	return evr_device_find_driver(&dev->key, &driver_id) == -ENODEV;
}

static bool is_idle(const struct evr_cm_device *dev)
{
	return !atomic_load_explicit(&dev->refs, memory_order_relaxed);
}

static bool is_due(void)
{
	uint64_t now_us = evr_clock_now_us();

	if (now_us < next_look_us)
		return false;
	next_look_us = now_us + LOOK_US;
	return true;
}

/* With the open lock held. An id is told by an event. */
static void look(void)
{
	struct evr_cm_device *dev, *next;

	TAILQ_FOREACH_SAFE (dev, &devices, link, next) {
		if (!dev->can_close || !is_idle(dev))
			continue;
		if (!is_removed(dev) && is_gone(dev))
			atomic_store_explicit(&dev->removed, true, memory_order_relaxed);
		close_if_removed(dev);
	}
}

/* The same for one, which may be gone already. */
static void look_at(const struct evr_cm_device *left)
{
	struct evr_cm_device *dev;

	TAILQ_FOREACH (dev, &devices, link)
		if (dev == left)
			break;
	if (dev)
		close_if_removed(dev);
}

/* With the open lock held; what is in use stays, for the next id. */
static void release_shared_of_idle(void)
{
	struct evr_cm_device *dev, *next;

	TAILQ_FOREACH_SAFE (dev, &devices, link, next) {
		if ((!dev->pd && !dev->xrcd) || !unlist_if_idle(dev))
			continue;
		release_shared(dev);
		list_device(dev);
	}
}

static int open_found(const struct evr_device_key *key, struct evr_cm_device **dev)
{
	int ret = find_and_open(key, dev);

	if (ret)
		return ret;
	ret = need_pd(*dev);
	if (ret && unlist_if_idle(*dev))
		close_idle(*dev);
	return ret;
}

static int get_slowly(const struct evr_device_key *key, struct evr_cm_device **out)
{
	struct evr_cm_device *dev;
	int ret;

	pthread_mutex_lock(&open_lock);
	dev = find_open(key);
	ret = dev ? need_pd(dev) : open_found(key, &dev);
	if (!ret) {
		take_ref(dev);
		*out = dev;
	}
	pthread_mutex_unlock(&open_lock);
	return ret;
}

int evr_cm_device_get(const struct evr_device_key *key, struct evr_cm_device **out)
{
	struct evr_cm_device *dev;

	pthread_mutex_lock(&list_lock);
	dev = find_open(key);
	if (dev && dev->pd)
		take_ref(dev);
	else
		dev = NULL;
	pthread_mutex_unlock(&list_lock);
	if (!dev)
		return get_slowly(key, out);
	*out = dev;
	return 0;
}

void evr_cm_device_put(struct evr_cm_device *dev)
{
	int saved = errno;

	if (!dev || !drop_ref(dev))
		return;
	pthread_mutex_lock(&open_lock);
	release_shared_of_idle();
	if (is_due())
		look();
	else
		look_at(dev);
	pthread_mutex_unlock(&open_lock);
	errno = saved;
}

void evr_cm_device_sweep(void)
{
	int saved = errno;

	if (!atomic_load_explicit(&num_idle, memory_order_relaxed) ||
		pthread_mutex_trylock(&open_lock))
		return;
	if (is_due())
		look();
	pthread_mutex_unlock(&open_lock);
	errno = saved;
}

int evr_cm_device_xrcd(struct evr_cm_device *dev, struct ibv_xrcd **xrcd)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	int ret = 0;

	pthread_mutex_lock(&open_lock);
	errno = 0;
	if (!dev->xrcd)
		dev->xrcd = ibv_open_xrcd(dev->verbs, &attr);
	if (!dev->xrcd)
		ret = evr_cm_verbs_error();
	*xrcd = dev->xrcd;
	pthread_mutex_unlock(&open_lock);
	return ret;
}

/* With the open lock held: the device behind one entry of the list, opened if need be. */
static int get_listed(struct ibv_device *ibdev, struct ibv_context **context)
{
	struct evr_device_key key = key_of(ibdev);
	struct evr_cm_device *dev = find_open(&key);
	int ret = dev ? 0 : open_device(ibdev, &dev);

	if (ret)
		return ret;
	take_ref(dev);
	*context = dev->verbs;
	return 0;
}

/* Leaves out what cannot be opened; 0, or why the last such could not. */
static int open_listed(
	struct ibv_device **list, int num, struct ibv_context **contexts, int *opened)
{
	int i, ret = 0;

	pthread_mutex_lock(&open_lock);
	for (i = 0; i < num; i++) {
		int err = get_listed(list[i], &contexts[*opened]);

		if (err)
			ret = err;
		else
			++*opened;
	}
	pthread_mutex_unlock(&open_lock);
	return ret;
}

static int get_all(struct ibv_context ***out, int *opened, int *left_out)
{
	struct ibv_device **list;
	int num, ret = evr_cm_list_devices(&list, &num);

	if (ret)
		return ret;
	*out = calloc((size_t)num + 1, sizeof(**out));
	if (*out)
		*left_out = open_listed(list, num, *out, opened);
	ibv_free_device_list(list);
	if (!*out)
		return -ENOMEM;
	if (*opened)
		return 0;
	free(*out);
	return *left_out ? *left_out : -ENODEV;
}

int evr_cm_device_get_all(struct ibv_context ***list, int *opened, int *left_out)
{
	int ret = evr_cm_init();

	*opened = *left_out = 0;
	if (ret)
		return ret;
	pthread_mutex_lock(&open_lock);
	look();
	pthread_mutex_unlock(&open_lock);
	return get_all(list, opened, left_out);
}

static struct evr_cm_device *device_of(const struct ibv_context *verbs)
{
	struct evr_cm_device *dev;

	pthread_mutex_lock(&list_lock);
	TAILQ_FOREACH (dev, &devices, link)
		if (dev->verbs == verbs)
			break;
	pthread_mutex_unlock(&list_lock);
	return dev;
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **list = NULL;
	int opened, left_out;
	int ret = evr_cm_device_get_all(&list, &opened, &left_out);

	if (num_devices)
		*num_devices = opened;
	return evr_cm_result(ret) ? NULL : list;
}

void rdma_free_devices(struct ibv_context **list)
{
	size_t i;

	if (!list)
		return;
	for (i = 0; list[i]; i++)
		evr_cm_device_put(device_of(list[i]));
	free(list);
}
