/*
 * epoll(7) of rsockets and of other descriptors at once. An instance is a descriptor of epoll's and
 * nothing else, for the number of an rsocket shows what there is; only a blocking one has to be
 * told to show it. That it is an instance is known, so that rclose() ends those, and no other
 * descriptor.
 */
#include "rs/helper.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "util/fdmap.h"

enum { PATH_LEN = 32 };

static struct evr_fdmap instances;
static int mark; /* what an instance has there */

/* --- an instance ----------------------------------------------------------------------------- */

static int make(int flags)
{
	int fd = epoll_create1(flags), ret;

	if (fd < 0)
		return -errno;
	ret = evr_fdmap_make(&instances, fd);
	if (ret) {
		close(fd);
		return ret;
	}
	evr_fdmap_set(&instances, fd, &mark);
	return fd;
}

int repoll_create(int flags)
{
	int ret = evr_rs_watch_forks();

	return (int)evr_rs_result(ret ? ret : make(flags));
}

/*
 * After close(2) of an instance its number may be another file's. One of epoll's is taken for it
 * all the same, and so is any where the kernel does not say what it is.
 */
static bool is_of_epoll(int fd)
{
	static const char wanted[] = "anon_inode:[eventpoll]";
	char path[PATH_LEN], is[sizeof(wanted)];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = readlink(path, is, sizeof(is));
	return len < 0 || (len == sizeof(wanted) - 1 && !memcmp(is, wanted, (size_t)len));
}

int evr_rs_repoll_close(int fd)
{
	if (!evr_fdmap_set(&instances, fd, NULL) || !is_of_epoll(fd))
		return -EBADF;
	return close(fd) ? -errno : 0;
}

void evr_rs_repoll_begin_child(void)
{
	evr_fdmap_unlock_all(&instances);
}

/* --- its members ----------------------------------------------------------------------------- */

/*
 * Who is about to wait by the number sees at once what rpoll() would have given back later. One
 * that nobody can look after is no member.
 */
static int control(struct evr_rs *rs, int epoll_fd, int op, struct epoll_event *event)
{
	bool before = rs->in_repoll;
	int ret;

	rs->in_repoll = true;
	rs->by_rpoll = false;
	ret = evr_rs_watch(rs);
	if (!ret && epoll_ctl(epoll_fd, op, rs->fd, event))
		ret = -errno;
	if (ret)
		rs->in_repoll = before;
	return ret;
}

int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct evr_rs *rs = op == EPOLL_CTL_DEL ? NULL : evr_rs_enter(fd);

	if (!rs)
		return epoll_ctl(epfd, op, fd, event);
	return (int)evr_rs_leave(rs, control(rs, epfd, op, event));
}

int repoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout)
{
	if (!events && maxevents > 0)
		return (int)evr_rs_result(-EFAULT);
	return epoll_wait(epfd, events, maxevents, timeout);
}
