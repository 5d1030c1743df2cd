/*
 * The seam to the kernel: every system call that the CM makes on its character device and its
 * channels goes through this table. The tests put a kernel of their own in its place.
 *
 * Each member returns what the system call does, but with -errno instead of -1 and errno.
 */
#ifndef EVR_KERN_SYS_H
#define EVR_KERN_SYS_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct evr_sys {
	int (*open)(const char *path, int flags);
	int (*close)(int fd);
	ssize_t (*write)(int fd, const void *buf, size_t len);
	int (*ioctl)(int fd, unsigned long request, void *arg);
	int (*poll)(struct pollfd *fds, nfds_t nfds, int timeout_ms);
	/* Writes the path of the CM's character device; 0, or -errno when netlink cannot tell. */
	int (*find_cm_device)(char *path, size_t size);
	/* The number of the driver behind a verbs device, which its ioctls must repeat. */
	int (*find_driver_id)(int ibdev_index, uint32_t *driver_id);
};

/* The table in force. Set it before the first call into the library, and not again. */
extern const struct evr_sys *evr_sys;

#endif
