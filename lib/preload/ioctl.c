/* ioctl(2): of what there is to read, and of interfaces. All else is right as it is. */
#include "config.h"

#include <errno.h>
#include <rdma/rsocket.h>
#include <stdarg.h>
#include <stdlib.h>

#include "preload/preload.h"
#include "preload/real.h"

enum { MUCH = 1 << 20 };

/* One on its way may have its rsocket taken from it at any time. */
static int count_readable(const struct evr_pre *pre, int *count)
{
	char *buf = NULL;
	ssize_t ret;

	*count = 0;
	if (!evr_pre_moves_bytes(pre))
		return 0;
	buf = malloc(MUCH);
	if (!buf)
		return -1;
	ret = rrecv(pre->rs, buf, MUCH, MSG_PEEK | MSG_DONTWAIT);
	free(buf);
	*count = ret > 0 ? (int)ret : 0;
	return 0;
}

/* What programs ask UDP's sockets about addresses; the number is none. */
static bool is_of_interfaces(unsigned long request)
{
	return request >= SIOCADDRT && request < SIOCDEVPRIVATE;
}

static int ask_udp(const struct evr_pre *pre, unsigned long request, void *arg)
{
	const struct evr_pre_real *real = evr_pre_real();
	int udp = real->socket(pre->domain, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret, saved;

	if (udp < 0)
		return -1;
	ret = real->ioctl(udp, request, arg);
	saved = errno;
	real->close(udp);
	errno = saved;
	return ret;
}

static int control(int fd, unsigned long request, void *arg)
{
	struct evr_pre *pre = evr_pre_get(fd);

	if (pre && pre->state == EVR_PRE_DGRAM && is_of_interfaces(request))
		return (int)evr_pre_leave(pre, ask_udp(pre, request, arg));
	evr_pre_put(pre);
	return evr_pre_real()->ioctl(fd, request, arg);
}

int ioctl(int fd, unsigned long request, ...)
{
	struct evr_pre *pre = NULL;
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (request == FIONREAD && arg)
		pre = evr_pre_enter_io(fd, MSG_DONTWAIT);
	return pre ? (int)evr_pre_leave(pre, count_readable(pre, arg)) : control(fd, request, arg);
}
