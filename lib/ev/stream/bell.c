#include "ev/stream/bell.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OURS, THEIRS };

static int remember(struct evr_bell *bell)
{
	struct stat st;

	if (fstat(bell->theirs, &st))
		return -errno;
	bell->dev = st.st_dev;
	bell->ino = st.st_ino;
	return 0;
}

/* The least that the kernel has: a few bytes fill it. */
static int make_small(int fd)
{
	int size = 1;

	return setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) ? -errno : 0;
}

int evr_bell_open(struct evr_bell *bell)
{
	int fds[2], ret;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds))
		return -errno;
	bell->ours = fds[OURS];
	bell->theirs = fds[THEIRS];
	ret = make_small(bell->theirs);
	if (!ret)
		ret = remember(bell);
	if (!ret)
		return 0;
	close(bell->theirs);
	evr_bell_close(bell);
	return ret;
}

void evr_bell_close(struct evr_bell *bell)
{
	if (bell->ours >= 0)
		close(bell->ours);
	bell->ours = -1;
}

bool evr_bell_is_theirs(const struct evr_bell *bell)
{
	struct stat st;

	return !fstat(bell->theirs, &st) && st.st_dev == bell->dev && st.st_ino == bell->ino;
}

ssize_t evr_bell_fill(struct evr_bell *bell)
{
	ssize_t n = 0;

	while (send(bell->theirs, "", 1, MSG_NOSIGNAL) == 1)
		n++;
	return errno == EAGAIN ? n : -errno;
}

int evr_bell_ring(struct evr_bell *bell, unsigned char byte)
{
	return send(bell->ours, &byte, 1, MSG_NOSIGNAL) == 1 ? 0 : -errno;
}

bool evr_bell_is_heard(const struct evr_bell *bell)
{
	int unread;

	return !ioctl(bell->theirs, FIONREAD, &unread) && !unread;
}

void evr_bell_withdraw(struct evr_bell *bell)
{
	unsigned char byte;

	while (recv(bell->theirs, &byte, 1, MSG_DONTWAIT) == 1)
		;
}

void evr_bell_end(struct evr_bell *bell)
{
	shutdown(bell->ours, SHUT_WR);
}

/* Who closes with something unread resets the other end: that is an end, too. */
ssize_t evr_bell_take(struct evr_bell *bell, void *to, size_t size)
{
	ssize_t n = recv(bell->ours, to, size, 0);

	if (n >= 0)
		return n;
	return errno == EAGAIN ? -EAGAIN : 0;
}

void evr_bell_hang_up(struct evr_bell *bell)
{
	unsigned char bytes[64];

	shutdown(bell->ours, SHUT_RDWR);
	while (evr_bell_take(bell, bytes, sizeof(bytes)) > 0)
		;
}
