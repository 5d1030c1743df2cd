/* The list of devices, or why there is none or one is closed: of that libibverbs says little. */
#include "cm/cm.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "kern/sys.h"

#define FILES_OF_DEVICES "/dev/infiniband/"

/* Of libibverbs: it has a lock there itself, with which no child may begin. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What it may need at once: the folder of the devices, one of them, and a file there. */
enum { FILES = 3 };

/* Short of files it leaves out devices, and drivers for the rest of the process, without a word. */
static int check_files(void)
{
	int fds[FILES], n, ret = 0;

	for (n = 0; n < FILES && !ret; n++) {
		fds[n] = eventfd(0, EFD_CLOEXEC);
		if (fds[n] < 0)
			ret = -errno;
	}
	while (n--)
		if (fds[n] >= 0)
			close(fds[n]);
	return ret;
}

void evr_cm_devlist_hold(bool hold)
{
	if (hold)
		pthread_mutex_lock(&lock);
	else
		pthread_mutex_unlock(&lock);
}

static int error_of_list(void)
{
	switch (errno) {
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		return -errno;
	default:
		return -ENODEV;
	}
}

int evr_cm_list_devices(struct ibv_device ***list, int *num)
{
	int ret = check_files();

	if (ret)
		return ret;
	pthread_mutex_lock(&lock);
	errno = 0;
	*list = ibv_get_device_list(num);
	ret = *list ? 0 : error_of_list();
	pthread_mutex_unlock(&lock);
	return ret;
}

/*
 * Where the file of a device may not be opened, libibverbs goes on to a name that only udev gives
 * it, and says of that one that there is none.
 */
int evr_cm_why_closed(const struct ibv_device *ibdev)
{
	char path[sizeof(FILES_OF_DEVICES) + sizeof(ibdev->dev_name)];
	int ret = evr_cm_verbs_error(), fd;

	if (ret != -ENOENT)
		return ret;
	snprintf(path, sizeof(path), FILES_OF_DEVICES "%s", ibdev->dev_name);
	fd = evr_sys->open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return fd;
	evr_sys->close(fd);
	return ret;
}
