/*
 * A listener takes both kinds of connections: it is an epoll descriptor, which is readable when an
 * rsocket or TCP's socket has one.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <rdma/rsocket.h>

#include "preload/broker.h"
#include "preload/preload.h"
#include "preload/real.h"
#include "preload/route.h"
#include "util/sockaddr.h"

/* --- listening ------------------------------------------------------------------------------- */

static int listen_rs(struct evr_pre *pre, int tcp, int backlog)
{
	struct sockaddr_storage own;
	struct sockaddr *addr = (struct sockaddr *)&own;
	int rs, ret = evr_pre_own_addr(tcp, &own);

	if (ret)
		return ret;
	evr_pre_unmap(&own);
	if (evr_pre_is_local(&own))
		return -ENODEV;
	rs = evr_pre_open(pre, own.ss_family, SOCK_STREAM);
	if (rs < 0)
		return -errno;
	if (!rbind(rs, addr, evr_sockaddr_len(addr)) && !rlisten(rs, backlog))
		return rs;
	ret = -errno;
	rclose(rs);
	return ret;
}

static int watch(int epoll_fd, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return evr_pre_real()->epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static bool is_listening(int tcp)
{
	int yes = 0;
	socklen_t len = sizeof(yes);

	return !evr_pre_real()->getsockopt(tcp, SOL_SOCKET, SO_ACCEPTCONN, &yes, &len) && yes;
}

static int watch_both(int rs, int tcp)
{
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

	if (epoll_fd < 0)
		return -1;
	if (!watch(epoll_fd, rs) && (!is_listening(tcp) || !watch(epoll_fd, tcp)))
		return epoll_fd;
	evr_pre_real()->close(epoll_fd);
	return -1;
}

static void set_nonblock(int fd)
{
	const struct evr_pre_real *real = evr_pre_real();

	real->fcntl(fd, F_SETFL, real->fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static int become_both(struct evr_pre *pre, int fd, int rs)
{
	const struct evr_pre_real *real = evr_pre_real();
	int tcp = real->fcntl(fd, F_DUPFD_CLOEXEC, 0), epoll_fd = -1;

	if (tcp >= 0)
		epoll_fd = watch_both(rs, tcp);
	if (epoll_fd < 0) {
		if (tcp >= 0)
			real->close(tcp);
		return -1;
	}
	evr_pre_take_timeouts(pre, tcp);
	pre->rs = rs;
	pre->tcp = tcp;
	pre->epoll_fd = epoll_fd;
	evr_pre_move(pre, epoll_fd, EVR_PRE_LISTENER);
	evr_pre_watches_forget(pre);
	set_nonblock(tcp);
	return 0;
}

/* What watches both is also the parent's. */
void evr_pre_listen_without_rdma(struct evr_pre *pre)
{
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

	if (epoll_fd < 0)
		return;
	if (is_listening(pre->tcp))
		watch(epoll_fd, pre->tcp);
	evr_pre_move(pre, epoll_fd, EVR_PRE_LISTENER);
	evr_pre_real()->close(pre->epoll_fd);
	pre->epoll_fd = epoll_fd;
}

/*
 * iWARP in software takes its port where TCP's listener has it already: there it can only be one of
 * the two.
 */
static int listen_without_tcp(struct evr_pre *pre, int fd, int backlog)
{
	const struct evr_pre_real *real = evr_pre_real();
	int on = 1;

	real->shutdown(fd, SHUT_RDWR);
	real->setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	return listen_rs(pre, fd, backlog);
}

/* For several processes: the broker has an own descriptor of TCP's, which never waits. */
static int become_shared(struct evr_pre *pre, int fd, int rs)
{
	const struct evr_pre_real *real = evr_pre_real();
	int flags = real->fcntl(fd, F_GETFL), tcp = real->fcntl(fd, F_DUPFD_CLOEXEC, 0);
	int brokers = real->fcntl(fd, F_DUPFD_CLOEXEC, 0), number = -EMFILE;

	set_nonblock(fd);
	if (tcp >= 0 && brokers >= 0)
		number = evr_broker_share(rs, brokers);
	if (number < 0) {
		real->fcntl(fd, F_SETFL, flags);
		if (tcp >= 0)
			real->close(tcp);
		if (brokers >= 0)
			real->close(brokers);
		return -1;
	}
	evr_pre_give_timeouts(tcp, number);
	pre->tcp = tcp;
	evr_pre_move(pre, number, EVR_PRE_SHARED);
	evr_pre_watches_forget(pre);
	real->fcntl(number, F_SETFL, O_RDWR | (flags & O_NONBLOCK));
	real->close(number);
	return 0;
}

static int become_listener(struct evr_pre *pre, int fd, int rs)
{
	return evr_broker_is_wanted() ? become_shared(pre, fd, rs) : become_both(pre, fd, rs);
}

/* Where there is no RDMA, it is TCP's alone; which another may have taken meanwhile. */
static int listen_first(struct evr_pre *pre, int fd, int backlog)
{
	int rs = listen_rs(pre, fd, backlog);

	if (rs == -EADDRINUSE)
		rs = listen_without_tcp(pre, fd, backlog);
	if (rs >= 0 && !become_listener(pre, fd, rs))
		return 0;
	if (rs >= 0)
		rclose(rs);
	evr_pre_forget(pre);
	return is_listening(fd) ? 0 : evr_pre_real()->listen(fd, backlog);
}

static int begin(struct evr_pre *pre, int fd, int backlog)
{
	int saved = errno, ret;

	pthread_mutex_lock(&pre->lock);
	if (pre->state == EVR_PRE_LISTENER)
		rlisten(pre->rs, backlog);
	ret = evr_pre_real()->listen(pre->tcp >= 0 ? pre->tcp : fd, backlog);
	if (!ret && pre->state == EVR_PRE_UNDECIDED)
		ret = listen_first(pre, fd, backlog);
	if (!ret)
		errno = saved;
	pthread_mutex_unlock(&pre->lock);
	return ret;
}

static bool may_listen(const struct evr_pre *pre)
{
	return pre->state == EVR_PRE_UNDECIDED || pre->state == EVR_PRE_LISTENER ||
	       pre->state == EVR_PRE_SHARED;
}

int listen(int fd, int backlog)
{
	struct evr_pre *pre = evr_pre_get(fd);

	if (pre && pre->state == EVR_PRE_DGRAM)
		return (int)evr_pre_leave(pre, rlisten(pre->rs, backlog));
	if (!pre || !may_listen(pre)) {
		evr_pre_put(pre);
		return evr_pre_real()->listen(fd, backlog);
	}
	return (int)evr_pre_leave(pre, begin(pre, fd, backlog));
}

/* --- accepting ------------------------------------------------------------------------------- */

static struct evr_pre *new_stream(const struct evr_pre *listener, int rs)
{
	struct evr_pre *pre = evr_pre_new(listener->domain);

	if (!pre)
		return NULL;
	pre->recv_ms = (int)listener->recv_ms;
	pre->send_ms = (int)listener->send_ms;
	pre->rs = rs;
	pre->state = EVR_PRE_STREAM;
	return pre;
}

/* Its descriptor is nonblocking or not as the program wants it, the rsocket always is. */
static int adopt(const struct evr_pre *listener, int rs, int fd, int flags)
{
	const struct evr_pre_real *real = evr_pre_real();
	struct evr_pre *pre;
	int ret;

	if (rfcntl(rs, F_SETFL, O_RDWR | O_NONBLOCK))
		return -errno;
	real->fcntl(rs, F_SETFD, FD_CLOEXEC);
	real->fcntl(rs, F_SETFL, O_RDWR | (flags & SOCK_NONBLOCK ? O_NONBLOCK : 0));
	if (real->dup3(rs, fd, flags & SOCK_CLOEXEC ? O_CLOEXEC : 0) < 0)
		return -errno;
	pre = new_stream(listener, rs);
	if (!pre)
		return -ENOMEM;
	ret = evr_pre_add(fd, pre);
	if (ret) {
		pre->rs = -1;
		evr_pre_put(pre);
	}
	return ret;
}

static void tell_peer(const struct evr_pre *pre, struct sockaddr_storage *name,
	struct sockaddr *addr, socklen_t *len)
{
	if (addr && len)
		evr_pre_say_name(pre, name, addr, len);
}

/* The lowest number is for the program, before the rsocket takes some for itself. */
static int accept_rs(const struct evr_pre *pre, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct sockaddr_storage name = { 0 };
	socklen_t size = sizeof(name);
	const struct evr_pre_real *real = evr_pre_real();
	int fd = real->fcntl(pre->epoll_fd, F_DUPFD_CLOEXEC, 0), rs, ret;

	if (fd < 0)
		return -errno;
	rs = raccept(pre->rs, (struct sockaddr *)&name, &size);
	ret = rs < 0 ? -errno : adopt(pre, rs, fd, flags);
	if (!ret) {
		tell_peer(pre, &name, addr, len);
		return fd;
	}
	if (rs >= 0)
		rclose(rs);
	real->close(fd);
	return ret;
}

/*
 * Its device is gone, or it was shut down: TCP's socket knows which, and shows, if it does not
 * listen, that nothing will come. Other threads may be about to call the rsocket, which stays.
 */
static void end_rs(struct evr_pre *pre)
{
	pthread_mutex_lock(&pre->lock);
	if (!pre->rs_has_ended) {
		pre->rs_has_ended = true;
		evr_pre_real()->epoll_ctl(pre->epoll_fd, EPOLL_CTL_DEL, pre->rs, NULL);
		watch(pre->epoll_fd, pre->tcp);
	}
	pthread_mutex_unlock(&pre->lock);
}

static bool takes_rs(const struct evr_pre *pre)
{
	return pre->rs >= 0 && !pre->rs_has_ended;
}

static bool has_ended(int error)
{
	return error == -ENODEV || error == -EINVAL || error == -EBADF;
}

/* Who is refused for want of memory comes by TCP: that is nothing to a program of sockets. */
static bool comes_by_tcp(int error)
{
	return error == -ENOMEM || error == -EPERM;
}

static int accept_rdma(struct evr_pre *pre, struct sockaddr *addr, socklen_t *len, int flags)
{
	int fd = takes_rs(pre) ? accept_rs(pre, addr, len, flags) : -EAGAIN;

	if (has_ended(fd)) {
		end_rs(pre);
		return -EAGAIN;
	}
	if (fd >= 0)
		pre->tcp_is_next = true;
	return comes_by_tcp(fd) ? -EAGAIN : fd;
}

static int accept_tcp(struct evr_pre *pre, struct sockaddr *addr, socklen_t *len, int flags)
{
	int fd = evr_pre_fresh(evr_pre_real()->accept4(pre->tcp, addr, len, flags));

	if (fd >= 0)
		pre->tcp_is_next = false;
	else if (errno == EINVAL && takes_rs(pre))
		return -EAGAIN;
	return fd < 0 ? -errno : fd;
}

/* In turns: who comes by one of them all the time keeps out nobody. */
static int accept_any(struct evr_pre *pre, struct sockaddr *addr, socklen_t *len, int flags)
{
	int fd = pre->tcp_is_next ? accept_tcp(pre, addr, len, flags) : -EAGAIN;

	if (fd == -EAGAIN)
		fd = accept_rdma(pre, addr, len, flags);
	return fd == -EAGAIN ? accept_tcp(pre, addr, len, flags) : fd;
}

static bool waits(const struct evr_pre *pre)
{
	return !(evr_pre_real()->fcntl(pre->epoll_fd, F_GETFL) & O_NONBLOCK);
}

static int accept_one(struct evr_pre *pre, struct sockaddr *addr, socklen_t *len, int flags)
{
	int fd;

	do {
		fd = accept_any(pre, addr, len, flags);
		if (fd != -EAGAIN)
			break;
	} while (waits(pre) && !evr_pre_wait_fd(pre->epoll_fd, POLLIN, pre->recv_ms));
	if (fd >= 0)
		return fd;
	if (fd != -EAGAIN || !waits(pre))
		errno = -fd;
	return -1;
}

/* Without its place it would be no socket of TCP's. */
static int give_back(int fd, int error)
{
	evr_pre_real()->close(fd);
	errno = error;
	return -1;
}

static int accept_shared(
	struct evr_pre *pre, int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct evr_pre *carried = evr_pre_new(pre->domain);
	bool is_carried = false;
	int taken, ret;

	if (!carried) {
		errno = ENOMEM;
		return -1;
	}
	carried->state = EVR_PRE_CARRIED;
	taken = evr_broker_accept(fd, flags, &carried->to, &carried->own, &is_carried);
	if (taken < 0) {
		evr_pre_put(carried);
		return -1;
	}
	tell_peer(pre, &carried->to, addr, len);
	ret = is_carried ? evr_pre_add(taken, carried) : 0;
	if (!is_carried)
		evr_pre_fresh(taken);
	if (!is_carried || ret)
		evr_pre_put(carried);
	return ret ? give_back(taken, -ret) : taken;
}

int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct evr_pre *pre = evr_pre_get(fd);

	if (pre && pre->state == EVR_PRE_LISTENER && !(flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)))
		return (int)evr_pre_leave(pre, accept_one(pre, addr, len, flags));
	if (pre && pre->state == EVR_PRE_SHARED && !(flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)))
		return (int)evr_pre_leave(pre, accept_shared(pre, fd, addr, len, flags));
	if (pre && pre->state == EVR_PRE_DGRAM)
		return (int)evr_pre_leave(pre, raccept(pre->rs, addr, len));
	evr_pre_put(pre);
	return evr_pre_fresh(evr_pre_real()->accept4(fd, addr, len, flags));
}

int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	return accept4(fd, addr, len, 0);
}
