/* Waiting, for calls of sockets that the program has blocking. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <signal.h>

#include "preload/preload.h"
#include "preload/real.h"

bool evr_pre_is_nonblocking(int fd)
{
	return evr_pre_real()->fcntl(fd, F_GETFL) & O_NONBLOCK;
}

bool evr_pre_waits(const struct evr_pre *pre, int flags)
{
	return !(flags & MSG_DONTWAIT) && !evr_pre_is_nonblocking(pre->rs);
}

static bool ends_calls(int number)
{
	struct sigaction action;

	if (sigaction(number, NULL, &action))
		return false;
	if (action.sa_flags & SA_RESTART)
		return false;
	return action.sa_flags & SA_SIGINFO ||
	       (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

/* Which one it was is not known: it was none of these, where there are none. */
bool evr_pre_is_interrupted(void)
{
	int number, saved = errno;
	bool any = false;

	for (number = 1; number < NSIG && !any; number++)
		any = ends_calls(number);
	errno = saved;
	return any;
}

static int wait_by(int (*call)(struct pollfd *, nfds_t, int), int fd, short events, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	int ret;

	do {
		ret = call(&pfd, 1, timeout_ms ? timeout_ms : -1);
	} while (ret < 0 && errno == EINTR && !timeout_ms && !evr_pre_is_interrupted());
	if (ret)
		return ret < 0 ? -1 : 0;
	errno = EAGAIN;
	return -1;
}

int evr_pre_wait_fd(int fd, short events, int timeout_ms)
{
	return wait_by(poll, fd, events, timeout_ms);
}

/* The caller itself looks at the rsocket, without the thread between. */
int evr_pre_wait(struct evr_pre *pre, short events)
{
	return wait_by(rpoll, pre->rs, events, events & POLLIN ? pre->recv_ms : pre->send_ms);
}
