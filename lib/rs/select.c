/* select(2) of rsockets, as a poll of as many. */
#include "rs/rs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>

enum { US_PER_S = 1000000, US_PER_MS = 1000 };

struct sets {
	int nfds;
	fd_set *set[3]; /* to read, to write, exceptions */
};

static const short wanted[] = { POLLIN, POLLOUT, POLLPRI };
/* What of poll's makes them ready. */
static const short meant[] = { POLLIN | POLLHUP | POLLERR, POLLOUT | POLLERR, POLLPRI };

static bool has(const struct sets *sets, int which, int fd)
{
	return sets->set[which] && FD_ISSET(fd, sets->set[which]);
}

static short events_of(const struct sets *sets, int fd)
{
	int events = 0, i;

	for (i = 0; i < 3; i++)
		if (has(sets, i, fd))
			events |= wanted[i];
	return (short)events;
}

static nfds_t fill(const struct sets *sets, struct pollfd *fds)
{
	nfds_t num = 0;
	int fd;

	for (fd = 0; fd < sets->nfds; fd++)
		if (events_of(sets, fd))
			fds[num++] = (struct pollfd){ .fd = fd, .events = events_of(sets, fd) };
	return num;
}

/* Of one descriptor: in how many sets it stays. */
static int tell(struct sets *sets, const struct pollfd *fd)
{
	int count = 0, i;

	for (i = 0; i < 3; i++) {
		if (!(fd->events & wanted[i]))
			continue;
		if (fd->revents & meant[i])
			count++;
		else
			FD_CLR(fd->fd, sets->set[i]);
	}
	return count;
}

static int tell_all(struct sets *sets, const struct pollfd *fds, nfds_t num)
{
	int count = 0;
	nfds_t i;

	for (i = 0; i < num; i++)
		if (fds[i].revents & POLLNVAL)
			return -EBADF;
	for (i = 0; i < num; i++)
		count += tell(sets, &fds[i]);
	return count;
}

/* -1: for ever; -2: it is none. */
static int timeout_of(const struct timeval *timeout)
{
	int64_t ms;

	if (!timeout)
		return -1;
	if (timeout->tv_sec < 0 || timeout->tv_usec < 0 || timeout->tv_usec >= US_PER_S)
		return -2;
	if (timeout->tv_sec > INT32_MAX / US_PER_MS - 1)
		return INT32_MAX;
	ms = (int64_t)timeout->tv_sec * US_PER_MS + (timeout->tv_usec + US_PER_MS - 1) / US_PER_MS;
	return (int)ms;
}

static int select_by_poll(struct sets *sets, struct pollfd *fds, int timeout_ms)
{
	nfds_t num = fill(sets, fds);
	int ret = rpoll(fds, num, timeout_ms);

	return ret < 0 ? -errno : tell_all(sets, fds, num);
}

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	struct sets sets = { .nfds = nfds, .set = { readfds, writefds, exceptfds } };
	int timeout_ms = timeout_of(timeout), ret;
	struct pollfd *fds;

	if (nfds < 0 || nfds > FD_SETSIZE || timeout_ms == -2)
		return (int)evr_rs_result(-EINVAL);
	fds = calloc((size_t)nfds + 1, sizeof(*fds));
	ret = fds ? select_by_poll(&sets, fds, timeout_ms) : -ENOMEM;
	free(fds);
	return (int)evr_rs_result(ret);
}
