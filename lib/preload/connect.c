/*
 * connect(2): by RDMA where it leads there, else by TCP. Whether the own side has RDMA is known at
 * once; what the other side has, by its answer: when that is none, TCP is next. All of that is done
 * by the thread of the attempts, for calls that wait as well, so that one that is interrupted goes
 * on as TCP's would. The number stands for a descriptor that shows nothing meanwhile, and then for
 * what carries the connection.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <string.h>

#include "preload/attempt.h"
#include "preload/broker.h"
#include "preload/preload.h"
#include "preload/real.h"
#include "preload/route.h"
#include "preload/silent.h"
#include "util/sockaddr.h"

static void set_nonblock(int fd)
{
	const struct evr_pre_real *real = evr_pre_real();

	real->fcntl(fd, F_SETFL, real->fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static bool has_events(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	return poll(&pfd, 1, 0) > 0;
}

/* --- the end of an attempt ------------------------------------------------------------------- */

/* What its numbers have now is shown to all that wait for them. */
static void show(struct evr_pre *pre, int fd)
{
	evr_silent_ring(pre->bell);
	if (evr_silent_is_held(pre->bell))
		evr_pre_attempts_keep(pre->bell, fd);
	else
		evr_pre_real()->close(pre->bell);
	pre->bell = -1;
}

static void close_tcp(struct evr_pre *pre)
{
	evr_pre_real()->close(pre->tcp);
	pre->tcp = -1;
}

/* The kernel did not even begin, and knows of no error: it can be tried again. */
static void become_undecided(struct evr_pre *pre, int error)
{
	evr_pre_attempt_stop(pre);
	pre->error = error;
	evr_pre_move(pre, pre->tcp, EVR_PRE_UNDECIDED);
	show(pre, pre->tcp);
	close_tcp(pre);
}

/* What the numbers show from now on; is_new is known to whoever sees that it is one. */
static void become_connected(struct evr_pre *pre, int fd, enum evr_pre_state state)
{
	pre->is_new = true;
	evr_pre_move(pre, fd, state);
	evr_pre_watches_forget(pre);
	show(pre, fd);
	close_tcp(pre);
}

/* The broker has it from now on. */
static void become_carried(struct evr_pre *pre)
{
	socklen_t len = sizeof(pre->own);
	int fd;

	rgetsockname(pre->rs, (struct sockaddr *)&pre->own, &len);
	fd = evr_broker_carry(pre->rs, false);
	if (fd < 0)
		rclose(pre->rs);
	pre->rs = -1;
	if (fd < 0) {
		become_undecided(pre, -fd);
		return;
	}
	evr_pre_give_timeouts(pre->tcp, fd);
	become_connected(pre, fd, EVR_PRE_CARRIED);
	evr_pre_real()->close(fd);
}

static void become_stream(struct evr_pre *pre)
{
	evr_pre_attempt_stop(pre);
	if (evr_broker_is_wanted())
		become_carried(pre);
	else
		become_connected(pre, pre->rs, EVR_PRE_STREAM);
}

/* Its error, if it has one, is the kernel's to tell; its end, if that is still to come, too. */
static void become_tcp(struct evr_pre *pre)
{
	evr_pre_attempt_stop(pre);
	evr_pre_move(pre, pre->tcp, EVR_PRE_PLAIN);
	evr_pre_forget(pre);
	show(pre, pre->tcp);
	close_tcp(pre);
}

/* --- in the thread --------------------------------------------------------------------------- */

static int error_of(const struct evr_pre *pre)
{
	int error = EIO;
	socklen_t len = sizeof(error);

	return rgetsockopt(pre->rs, SOL_SOCKET, SO_ERROR, &error, &len) ? EIO : error;
}

/* -EINPROGRESS: it is on its way, and cannot be watched. */
static int connect_tcp(struct evr_pre *pre)
{
	const struct sockaddr *to = (struct sockaddr *)&pre->to;

	set_nonblock(pre->tcp);
	if (!evr_pre_real()->connect(pre->tcp, to, pre->to_len))
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	return evr_pre_attempt_go_on(pre, pre->tcp) ? -EINPROGRESS : 0;
}

static void go_on_with_tcp(struct evr_pre *pre)
{
	int rs = pre->rs, ret = connect_tcp(pre);

	pre->rs = -1;
	if (ret == -EINPROGRESS || (!ret && has_events(pre->tcp)))
		become_tcp(pre);
	else if (ret)
		become_undecided(pre, -ret);
	rclose(rs);
}

void evr_pre_look(struct evr_pre *pre, bool is_over)
{
	if (pre->state != EVR_PRE_CONNECTING)
		return;
	if (pre->rs < 0) {
		if (has_events(pre->tcp))
			become_tcp(pre);
	} else if (has_events(pre->rs)) {
		if (error_of(pre))
			go_on_with_tcp(pre);
		else
			become_stream(pre);
	} else if (is_over) {
		go_on_with_tcp(pre);
	}
}

/* --- giving it up ---------------------------------------------------------------------------- */

/* What TCP does with one that is on its way, in whichever direction it is shut down. */
int evr_pre_abandon(struct evr_pre *pre, int how)
{
	int rs = pre->rs, ret = 0;

	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	if (rs >= 0) {
		pre->rs = -1;
		become_undecided(pre, ECONNRESET);
		rclose(rs);
	} else {
		ret = evr_pre_real()->shutdown(pre->tcp, how) ? -errno : 0;
		evr_pre_look(pre, false);
	}
	return ret;
}

/* --- by RDMA --------------------------------------------------------------------------------- */

static int open_bound(struct evr_pre *pre, int tcp)
{
	struct sockaddr_storage from;
	int rs, ret = evr_pre_source(tcp, &pre->to, &from);

	if (ret)
		return ret;
	rs = evr_pre_open(pre, pre->to.ss_family, SOCK_STREAM);
	if (rs < 0)
		return -errno;
	if (!rbind(rs, (struct sockaddr *)&from, evr_sockaddr_len((struct sockaddr *)&from)))
		return rs;
	ret = -errno;
	rclose(rs);
	return ret;
}

static int start(struct evr_pre *pre, int tcp)
{
	const struct sockaddr *to = (const struct sockaddr *)&pre->to;
	int rs = open_bound(pre, tcp);

	if (rs < 0)
		return rs;
	if (!rconnect(rs, to, evr_sockaddr_len(to)) || errno == EINPROGRESS)
		return rs;
	rclose(rs);
	return -ECONNREFUSED;
}

/* 0: it is on its way, and the number shows nothing any more. */
static int become_connecting(struct evr_pre *pre, int fd)
{
	const struct evr_pre_real *real = evr_pre_real();
	int silent = evr_silent_open(&pre->bell), ret;

	if (silent < 0)
		return silent;
	pre->tcp = real->fcntl(fd, F_DUPFD_CLOEXEC, 0);
	ret = pre->tcp < 0 ? -errno : evr_pre_attempt_start(pre, pre->rs);
	if (!ret) {
		evr_pre_take_timeouts(pre, pre->tcp);
		evr_pre_move(pre, silent, EVR_PRE_CONNECTING);
	} else {
		real->close(pre->bell);
		pre->bell = -1;
		if (pre->tcp >= 0)
			close_tcp(pre);
	}
	real->close(silent);
	return ret;
}

static int begin(struct evr_pre *pre, int fd, const struct sockaddr *addr, socklen_t len)
{
	int rs, ret;

	pre->to_len = len;
	memset(&pre->to, 0, sizeof(pre->to));
	memcpy(&pre->to, addr, len);
	evr_pre_unmap(&pre->to);
	rs = start(pre, fd);
	if (rs < 0)
		return rs;
	memcpy(&pre->to, addr, len);
	pre->rs = rs;
	ret = become_connecting(pre, fd);
	if (!ret)
		return 0;
	pre->rs = -1;
	rclose(rs);
	return ret;
}

/* --- the call -------------------------------------------------------------------------------- */

int evr_pre_await(struct evr_pre *pre, int fd)
{
	int own = evr_pre_real()->fcntl(fd, F_DUPFD_CLOEXEC, 0), ret;

	if (own < 0)
		return -errno;
	ret = 0;
	if (pre->state == EVR_PRE_CONNECTING && evr_pre_wait_fd(own, POLLOUT, pre->send_ms))
		ret = -errno;
	evr_pre_settle(pre);
	evr_pre_real()->close(own);
	return ret;
}

/* 1: the kernel says it. */
static int result(struct evr_pre *pre)
{
	int error = atomic_exchange(&pre->error, 0);

	if (error)
		return -error;
	switch (pre->state) {
	case EVR_PRE_STREAM:
	case EVR_PRE_CARRIED:
		return atomic_exchange(&pre->is_new, false) ? 0 : -EISCONN;
	case EVR_PRE_CONNECTING:
		return -EALREADY;
	default:
		return 1;
	}
}

static int wait_for_result(struct evr_pre *pre, int fd)
{
	int ret = evr_pre_await(pre, fd);

	if (ret)
		return ret == -EAGAIN ? -EINPROGRESS : ret;
	return result(pre);
}

static int connect_first(struct evr_pre *pre, int fd, const struct sockaddr *addr, socklen_t len)
{
	int ret;

	pthread_mutex_lock(&pre->lock);
	ret = pre->state == EVR_PRE_UNDECIDED ? begin(pre, fd, addr, len) : 0;
	if (ret)
		evr_pre_forget(pre);
	pthread_mutex_unlock(&pre->lock);
	if (ret)
		return 1;
	return evr_pre_is_nonblocking(fd) ? -EINPROGRESS : wait_for_result(pre, fd);
}

static int connect_to(struct evr_pre *pre, int fd, const struct sockaddr *addr, socklen_t len)
{
	evr_pre_settle(pre);
	if (pre->state == EVR_PRE_CONNECTING && !evr_pre_is_nonblocking(fd))
		return wait_for_result(pre, fd);
	if (pre->state != EVR_PRE_UNDECIDED || pre->error)
		return result(pre);
	return connect_first(pre, fd, addr, len);
}

/* What makes no sense is for the kernel to refuse. */
static bool makes_sense(const struct sockaddr *addr, socklen_t len)
{
	socklen_t wanted = addr && len >= sizeof(*addr) ? evr_sockaddr_len(addr) : 0;

	return wanted && len >= wanted && len <= sizeof(struct sockaddr_storage);
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct evr_pre *pre = evr_pre_get(fd);
	int ret = 1;

	if (pre && pre->state == EVR_PRE_DGRAM)
		return (int)evr_pre_leave(pre, rconnect(pre->rs, addr, len));
	if (pre && makes_sense(addr, len))
		ret = connect_to(pre, fd, addr, len);
	evr_pre_put(pre);
	if (ret > 0)
		return evr_pre_real()->connect(fd, addr, len);
	if (!ret)
		return 0;
	errno = -ret;
	return -1;
}
