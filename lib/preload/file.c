/* The calls that make and end numbers. */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>

#include "preload/preload.h"
#include "preload/real.h"

/* A number that stands for nothing that was asked for is closed again. */
static int give(int fd, struct evr_pre *pre)
{
	int ret = evr_pre_add(fd, pre);

	if (!ret)
		return fd;
	evr_pre_put(pre);
	evr_pre_real()->close(fd);
	errno = -ret;
	return -1;
}

/* Datagrams are an rsocket's from the beginning, and the number already shows it. */
static struct evr_pre *new_kind(int domain, int kind)
{
	struct evr_pre *pre = evr_pre_new(domain);

	if (!pre) {
		errno = ENOMEM;
		return NULL;
	}
	if (kind == SOCK_STREAM)
		return pre;
	pre->state = EVR_PRE_DGRAM;
	pre->rs = evr_pre_open(pre, domain, kind);
	if (pre->rs >= 0)
		return pre;
	evr_pre_put(pre);
	return NULL;
}

static int become(int fd, int domain, int kind)
{
	struct evr_pre *pre = new_kind(domain, kind);
	int saved = errno;

	if (!pre) {
		evr_pre_real()->close(fd);
		errno = saved;
		return -1;
	}
	fd = give(fd, pre);
	if (fd >= 0 && pre->rs >= 0)
		evr_pre_move(pre, pre->rs, EVR_PRE_DGRAM);
	return fd;
}

int socket(int domain, int type, int protocol)
{
	int fd = evr_pre_fresh(evr_pre_real()->socket(domain, type, protocol));

	if (fd < 0 || !evr_pre_is_wanted(domain, type, protocol) || !evr_pre_may_add())
		return fd;
	return become(fd, domain, evr_pre_kind_of(type));
}

int close(int fd)
{
	return evr_pre_close(fd);
}

int close_range(unsigned int first, unsigned int last, int flags)
{
	return evr_pre_close_range(first, last, flags);
}

void closefrom(int first)
{
	evr_pre_close_from(first < 0 ? 0 : (unsigned int)first);
}

int dup(int fd)
{
	return evr_pre_copy(fd, F_DUPFD, NULL);
}

int dup2(int from, int fd)
{
	return evr_pre_replace(from, fd, -1);
}

int dup3(int from, int fd, int flags)
{
	if (flags >= 0)
		return evr_pre_replace(from, fd, flags);
	errno = EINVAL;
	return -1;
}

static bool copies(int cmd)
{
	return cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC;
}

int fcntl(int fd, int cmd, ...)
{
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	return copies(cmd) ? evr_pre_copy(fd, cmd, arg) : evr_pre_real()->fcntl(fd, cmd, arg);
}

int fcntl64(int fd, int cmd, ...)
{
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	return copies(cmd) ? evr_pre_copy(fd, cmd, arg) : evr_pre_real()->fcntl64(fd, cmd, arg);
}
