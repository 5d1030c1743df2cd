/* The calls that receive. */
#include "config.h"

#include <errno.h>

#include "preload/preload.h"
#include "preload/real.h"
#include "util/clock.h"

enum { US_PER_S = 1000000, NS_PER_US = 1000 };

/* A stream does not say where from. */
static ssize_t receive_from(struct evr_pre *pre, void *buf, size_t len, int flags,
	struct sockaddr *addr, socklen_t *addrlen)
{
	struct iovec piece = { .iov_base = buf, .iov_len = len };
	struct msghdr msg = {
		.msg_name = addrlen ? addr : NULL,
		.msg_namelen = addr && addrlen ? *addrlen : 0,
		.msg_iov = &piece,
		.msg_iovlen = 1,
	};
	ssize_t ret = evr_pre_recv(pre, &msg, flags);

	if (ret >= 0 && addr && addrlen)
		*addrlen = msg.msg_namelen;
	return evr_pre_leave(pre, ret);
}

static ssize_t receive(struct evr_pre *pre, void *buf, size_t len, int flags)
{
	return receive_from(pre, buf, len, flags, NULL, NULL);
}

ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	struct evr_pre *pre = evr_pre_enter_io(fd, flags);

	return pre ? receive(pre, buf, len, flags) : evr_pre_real()->recv(fd, buf, len, flags);
}

ssize_t read(int fd, void *buf, size_t len)
{
	struct evr_pre *pre = evr_pre_enter_io(fd, 0);

	return pre ? receive(pre, buf, len, 0) : evr_pre_real()->read(fd, buf, len);
}

ssize_t recvfrom(
	int fd, void *buf, size_t len, int flags, struct sockaddr *addr, socklen_t *addrlen)
{
	struct evr_pre *pre = evr_pre_enter_io(fd, flags);

	return pre ? receive_from(pre, buf, len, flags, addr, addrlen)
		   : evr_pre_real()->recvfrom(fd, buf, len, flags, addr, addrlen);
}

ssize_t readv(int fd, const struct iovec *pieces, int num)
{
	struct evr_pre *pre = evr_pre_enter_io(fd, 0);
	struct msghdr msg = { .msg_iov = (struct iovec *)pieces, .msg_iovlen = (size_t)num };

	if (!pre)
		return evr_pre_real()->readv(fd, pieces, num);
	if (num >= 0)
		return evr_pre_leave(pre, evr_pre_recv(pre, &msg, 0));
	errno = EINVAL;
	return evr_pre_leave(pre, -1);
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct evr_pre *pre = evr_pre_enter_io(fd, flags);

	return pre ? evr_pre_leave(pre, evr_pre_recv(pre, msg, flags))
		   : evr_pre_real()->recvmsg(fd, msg, flags);
}

/* Of a stream, what is there is all there is. */
static int flags_of_next(const struct evr_pre *pre, int flags, unsigned int done)
{
	bool waits = !done || (pre->state == EVR_PRE_DGRAM && !(flags & MSG_WAITFORONE));

	return (flags & ~MSG_WAITFORONE) | (waits ? 0 : MSG_DONTWAIT);
}

/* The time is looked at after a message only, as the kernel does; what is left of it is told. */
static bool is_over(struct timespec *left, uint64_t deadline_us)
{
	uint64_t now = left ? evr_clock_now_us() : 0;
	uint64_t rest = now < deadline_us ? deadline_us - now : 0;

	if (!left)
		return false;
	left->tv_sec = (time_t)(rest / US_PER_S);
	left->tv_nsec = (long)(rest % US_PER_S) * NS_PER_US;
	return !rest;
}

static uint64_t deadline_of(const struct timespec *left)
{
	if (!left)
		return 0;
	return evr_clock_now_us() + (uint64_t)left->tv_sec * US_PER_S +
	       (uint64_t)left->tv_nsec / NS_PER_US;
}

static int receive_several(struct evr_pre *pre, struct mmsghdr *msgs, unsigned int num, int flags,
	struct timespec *left)
{
	uint64_t deadline_us = deadline_of(left);
	unsigned int done = 0;
	ssize_t ret = 0;

	while (done < num) {
		ret = evr_pre_recv(pre, &msgs[done].msg_hdr, flags_of_next(pre, flags, done));
		if (ret < 0)
			break;
		msgs[done++].msg_len = (unsigned int)ret;
		if (is_over(left, deadline_us))
			break;
	}
	return done ? (int)done : (int)ret;
}

int recvmmsg(int fd, struct mmsghdr *msgs, unsigned int num, int flags, struct timespec *timeout)
{
	struct evr_pre *pre = evr_pre_enter_io(fd, flags);

	if (!pre)
		return evr_pre_real()->recvmmsg(fd, msgs, num, flags, timeout);
	return (int)evr_pre_leave(pre, receive_several(pre, msgs, num, flags, timeout));
}

/* --- of programs built with _FORTIFY_SOURCE -------------------------------------------------- */

static void check(size_t len, size_t room)
{
	if (len > room)
		__builtin_trap();
}

ssize_t __read_chk(int fd, void *buf, size_t len, size_t room)
{
	check(len, room);
	return read(fd, buf, len);
}

ssize_t __recv_chk(int fd, void *buf, size_t len, size_t room, int flags)
{
	check(len, room);
	return recv(fd, buf, len, flags);
}

ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags, struct sockaddr *addr,
	socklen_t *addrlen)
{
	check(len, room);
	return recvfrom(fd, buf, len, flags, addr, addrlen);
}
