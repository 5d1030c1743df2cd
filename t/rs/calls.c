#include "rs/calls.h"

#include <fcntl.h>
#include <rdma/rsocket.h>
#include <unistd.h>

static int tcp_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	return bind(fd, addr, len);
}

static int tcp_accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	return accept(fd, addr, len);
}

static int tcp_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return connect(fd, addr, len);
}

static int tcp_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	return getsockname(fd, addr, len);
}

static ssize_t tcp_send(int fd, const void *buf, size_t len, int flags)
{
	return send(fd, buf, len, flags | MSG_NOSIGNAL);
}

const struct rs_calls rs_calls_tcp = {
	.name = "tcp",
	.socket = socket,
	.bind = tcp_bind,
	.listen = listen,
	.accept = tcp_accept,
	.connect = tcp_connect,
	.shutdown = shutdown,
	.close = close,
	.recv = recv,
	.send = tcp_send,
	.getsockopt = getsockopt,
	.setsockopt = setsockopt,
	.getsockname = tcp_getsockname,
	.fcntl = fcntl,
	.epoll_create = epoll_create1,
	.epoll_ctl = epoll_ctl,
	.epoll_wait = epoll_wait,
};

const struct rs_calls rs_calls_rs = {
	.name = "rs",
	.is_rs = true,
	.socket = rsocket,
	.bind = rbind,
	.listen = rlisten,
	.accept = raccept,
	.connect = rconnect,
	.shutdown = rshutdown,
	.close = rclose,
	.recv = rrecv,
	.send = rsend,
	.getsockopt = rgetsockopt,
	.setsockopt = rsetsockopt,
	.getsockname = rgetsockname,
	.fcntl = rfcntl,
	.epoll_create = repoll_create,
	.epoll_ctl = repoll_ctl,
	.epoll_wait = repoll_wait,
};
