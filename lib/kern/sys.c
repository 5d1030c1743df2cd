#include "kern/sys.h"
#include "kern/nldev.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int real_open(const char *path, int flags)
{
	int fd = open(path, flags);

	return fd < 0 ? -errno : fd;
}

static int real_close(int fd)
{
	return close(fd) ? -errno : 0;
}

static ssize_t real_write(int fd, const void *buf, size_t len)
{
	ssize_t n = write(fd, buf, len);

	return n < 0 ? -errno : n;
}

static int real_ioctl(int fd, unsigned long request, void *arg)
{
	int ret = ioctl(fd, request, arg);

	return ret < 0 ? -errno : ret;
}

static int real_poll(struct pollfd *fds, nfds_t nfds, int timeout_ms)
{
	int n = poll(fds, nfds, timeout_ms);

	return n < 0 ? -errno : n;
}

static const struct evr_sys real_sys = {
	.open = real_open,
	.close = real_close,
	.write = real_write,
	.ioctl = real_ioctl,
	.poll = real_poll,
	.find_cm_device = evr_nldev_find_cm_device,
	.find_driver_id = evr_nldev_find_driver_id,
};

const struct evr_sys *evr_sys = &real_sys;
