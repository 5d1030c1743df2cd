/* The calls that send. */
#include "config.h"

#include <errno.h>

#include "preload/preload.h"
#include "preload/real.h"

/* Of a connection, the kernel ignores the address. */
static ssize_t transmit_to(struct evr_pre *pre, const void *buf, size_t len, int flags,
	const struct sockaddr *addr, socklen_t addrlen)
{
	struct iovec piece = { .iov_base = (void *)buf, .iov_len = len };
	const struct msghdr msg = {
		.msg_name = (void *)addr,
		.msg_namelen = addrlen,
		.msg_iov = &piece,
		.msg_iovlen = 1,
	};

	return evr_pre_leave(pre, evr_pre_send(pre, &msg, flags));
}

static ssize_t transmit(struct evr_pre *pre, const void *buf, size_t len, int flags)
{
	return transmit_to(pre, buf, len, flags, NULL, 0);
}

ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	struct evr_pre *pre = evr_pre_enter_io(fd, flags);

	return pre ? transmit(pre, buf, len, flags) : evr_pre_real()->send(fd, buf, len, flags);
}

ssize_t write(int fd, const void *buf, size_t len)
{
	struct evr_pre *pre = evr_pre_enter_io(fd, 0);

	return pre ? transmit(pre, buf, len, 0) : evr_pre_real()->write(fd, buf, len);
}

ssize_t sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *addr,
	socklen_t addrlen)
{
	struct evr_pre *pre = evr_pre_enter_io(fd, flags);

	return pre ? transmit_to(pre, buf, len, flags, addr, addrlen)
		   : evr_pre_real()->sendto(fd, buf, len, flags, addr, addrlen);
}

ssize_t writev(int fd, const struct iovec *pieces, int num)
{
	struct evr_pre *pre = evr_pre_enter_io(fd, 0);
	const struct msghdr msg = { .msg_iov = (struct iovec *)pieces, .msg_iovlen = (size_t)num };

	if (!pre)
		return evr_pre_real()->writev(fd, pieces, num);
	if (num >= 0)
		return evr_pre_leave(pre, evr_pre_send(pre, &msg, 0));
	errno = EINVAL;
	return evr_pre_leave(pre, -1);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct evr_pre *pre = evr_pre_enter_io(fd, flags);

	return pre ? evr_pre_leave(pre, evr_pre_send(pre, msg, flags))
		   : evr_pre_real()->sendmsg(fd, msg, flags);
}

int sendmmsg(int fd, struct mmsghdr *msgs, unsigned int num, int flags)
{
	struct evr_pre *pre = evr_pre_enter_io(fd, flags);
	unsigned int done;
	ssize_t ret = 0;

	if (!pre)
		return evr_pre_real()->sendmmsg(fd, msgs, num, flags);
	for (done = 0; done < num; done++) {
		ret = evr_pre_send(pre, &msgs[done].msg_hdr, flags);
		if (ret < 0)
			break;
		msgs[done].msg_len = (unsigned int)ret;
	}
	return (int)evr_pre_leave(pre, done ? (ssize_t)done : ret);
}
