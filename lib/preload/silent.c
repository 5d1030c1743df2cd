#include "config.h"

#include "preload/silent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "preload/real.h"
#include "util/list.h"

enum { FILL_MAX = 64 };

/* --- the pair -------------------------------------------------------------------------------- */

static short events_of(int fd, short wanted)
{
	struct pollfd pfd = { .fd = fd, .events = wanted };

	return poll(&pfd, 1, 0) > 0 ? pfd.revents : 0;
}

/* Its buffer is full, so that it is not writable. */
int evr_silent_open(int *bell)
{
	const struct evr_pre_real *real = evr_pre_real();
	int ends[2], least = 1, i;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	real->setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
	for (i = 0; i < FILL_MAX && events_of(ends[0], POLLOUT); i++)
		if (real->send(ends[0], "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			break;
	*bell = ends[1];
	return ends[0];
}

/* It can be written to, and read from, and is not hung up. */
void evr_silent_ring(int bell)
{
	char byte;

	while (evr_pre_real()->recv(bell, &byte, 1, MSG_DONTWAIT) > 0)
		;
	evr_pre_real()->shutdown(bell, SHUT_WR);
}

bool evr_silent_is_held(int bell)
{
	return !(events_of(bell, 0) & POLLHUP);
}

/* --- who is still there ---------------------------------------------------------------------- */

struct kept {
	TAILQ_ENTRY(kept) link;
	int bell, fd;
	uint32_t left; /* of the kinds of events of fd, those that were not shown yet */
};

static TAILQ_HEAD(, kept) all = TAILQ_HEAD_INITIALIZER(all);

static int control(int epoll_fd, int op, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	return evr_pre_real()->epoll_ctl(epoll_fd, op, fd, &event);
}

static void drop(struct kept *kept)
{
	evr_pre_real()->close(kept->bell);
	evr_pre_real()->close(kept->fd);
	free(kept);
}

static int watch(const struct kept *kept, int epoll_fd)
{
	if (control(epoll_fd, EPOLL_CTL_ADD, kept->bell, 0))
		return -1;
	if (!control(epoll_fd, EPOLL_CTL_ADD, kept->fd, kept->left | EPOLLONESHOT))
		return 0;
	control(epoll_fd, EPOLL_CTL_DEL, kept->bell, 0);
	return -1;
}

/* Without memory or descriptors for it, the bell was rung once. */
void evr_silent_keep(int epoll_fd, int bell, int fd)
{
	struct kept *kept = malloc(sizeof(*kept));
	int own = evr_pre_real()->fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (kept && own >= 0) {
		*kept = (struct kept){ .bell = bell, .fd = own };
		kept->left = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP;
		if (!watch(kept, epoll_fd)) {
			TAILQ_INSERT_TAIL(&all, kept, link);
			return;
		}
	}
	free(kept);
	evr_pre_real()->close(bell);
	if (own >= 0)
		evr_pre_real()->close(own);
}

static struct kept *find(int fd)
{
	struct kept *kept;

	TAILQ_FOREACH (kept, &all, link)
		if (kept->bell == fd || kept->fd == fd)
			break;
	return kept;
}

/* A duplicate of a descriptor that others have stays watched when it is closed. */
static void end(struct kept *kept, int epoll_fd)
{
	TAILQ_REMOVE(&all, kept, link);
	control(epoll_fd, EPOLL_CTL_DEL, kept->bell, 0);
	control(epoll_fd, EPOLL_CTL_DEL, kept->fd, 0);
	drop(kept);
}

/* After the end of a connection nothing new can come of it. */
void evr_silent_look(int epoll_fd, int fd, uint32_t events)
{
	struct kept *kept = find(fd);

	if (!kept)
		return;
	if (fd == kept->fd) {
		evr_silent_ring(kept->bell);
		kept->left &= ~events;
	}
	if (fd == kept->bell || events & (EPOLLHUP | EPOLLERR))
		end(kept, epoll_fd);
	else
		control(epoll_fd, EPOLL_CTL_MOD, kept->fd, kept->left | EPOLLONESHOT);
}

bool evr_silent_keeps_any(void)
{
	return !TAILQ_EMPTY(&all);
}

void evr_silent_drop_all(void)
{
	struct kept *kept;

	while ((kept = TAILQ_FIRST(&all))) {
		TAILQ_REMOVE(&all, kept, link);
		drop(kept);
	}
}
