#include "cm/cm.h"
#include "kern/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PATH "/dev/infiniband/rdma_cm"

static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool ready;
static char device_path[128];

int evr_cm_result(int ret)
{
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

static int check_devices(void)
{
	struct ibv_device **list;
	int num, ret = evr_cm_list_devices(&list, &num);

	if (ret)
		return ret;
	ibv_free_device_list(list);
	return num ? 0 : -ENODEV;
}

void evr_cm_channel_hold(bool hold)
{
	if (hold)
		pthread_mutex_lock(&init_lock);
	else
		pthread_mutex_unlock(&init_lock);
}

static int init_once(void)
{
	int ret = evr_cm_watch_forks();

	if (ret)
		return ret;
	ret = evr_sys->find_cm_device(device_path, sizeof(device_path));
	if (ret)
		strcpy(device_path, DEFAULT_PATH);
	return check_devices();
}

/* A device that is there once is enough: it may leave and come back later. */
int evr_cm_init(void)
{
	int ret = 0;

	if (atomic_load_explicit(&ready, memory_order_acquire))
		return 0;
	pthread_mutex_lock(&init_lock);
	if (!atomic_load(&ready)) {
		ret = init_once();
		if (!ret)
			atomic_store_explicit(&ready, true, memory_order_release);
	}
	pthread_mutex_unlock(&init_lock);
	return ret;
}

/* What a device node without a driver answers means the same as no node to somebody outside. */
static int open_device(void)
{
	int fd = evr_sys->open(device_path, O_RDWR | O_CLOEXEC);

	return fd == -ENOENT || fd == -ENXIO ? -ENODEV : fd;
}

int evr_cm_channel_new(struct rdma_event_channel **channel)
{
	struct rdma_event_channel *ch = calloc(1, sizeof(*ch));

	if (!ch)
		return -ENOMEM;
	ch->fd = open_device();
	if (ch->fd < 0) {
		int ret = ch->fd;

		free(ch);
		return ret;
	}
	*channel = ch;
	return 0;
}

void evr_cm_channel_free(struct rdma_event_channel *channel)
{
	if (!channel)
		return;
	evr_sys->close(channel->fd);
	free(channel);
	evr_cm_device_sweep();
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rdma_event_channel *channel = NULL;
	int ret = evr_cm_init();

	if (!ret)
		ret = evr_cm_channel_new(&channel);
	evr_cm_result(ret);
	return channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	int saved = errno;

	evr_cm_channel_free(channel);
	errno = saved;
}
