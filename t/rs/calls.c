#include "rs/calls.h"

#include <fcntl.h>
#include <rdma/rsocket.h>
#include <unistd.h>

/* --- what takes an address: there it is a union ---------------------------------------------- */

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

static int tcp_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	return getpeername(fd, addr, len);
}

static ssize_t tcp_recvfrom(
	int fd, void *buf, size_t len, int flags, struct sockaddr *addr, socklen_t *addrlen)
{
	return recvfrom(fd, buf, len, flags, addr, addrlen);
}

/* --- what raises a signal, which an rsocket never does --------------------------------------- */

static ssize_t tcp_sendto(int fd, const void *buf, size_t len, int flags,
	const struct sockaddr *addr, socklen_t addrlen)
{
	return sendto(fd, buf, len, flags | MSG_NOSIGNAL, addr, addrlen);
}

static ssize_t tcp_send(int fd, const void *buf, size_t len, int flags)
{
	return send(fd, buf, len, flags | MSG_NOSIGNAL);
}

static ssize_t tcp_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return sendmsg(fd, msg, flags | MSG_NOSIGNAL);
}

/* --- all ------------------------------------------------------------------------------------- */

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
	.recvfrom = tcp_recvfrom,
	.recvmsg = recvmsg,
	.read = read,
	.readv = readv,
	.send = tcp_send,
	.sendto = tcp_sendto,
	.sendmsg = tcp_sendmsg,
	.write = write,
	.writev = writev,
	.select = select,
	.poll = poll,
	.getsockopt = getsockopt,
	.setsockopt = setsockopt,
	.getsockname = tcp_getsockname,
	.getpeername = tcp_getpeername,
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
	.recvfrom = rrecvfrom,
	.recvmsg = rrecvmsg,
	.read = rread,
	.readv = rreadv,
	.send = rsend,
	.sendto = rsendto,
	.sendmsg = rsendmsg,
	.write = rwrite,
	.writev = rwritev,
	.select = rselect,
	.poll = rpoll,
	.getsockopt = rgetsockopt,
	.setsockopt = rsetsockopt,
	.getsockname = rgetsockname,
	.getpeername = rgetpeername,
	.fcntl = rfcntl,
	.epoll_create = repoll_create,
	.epoll_ctl = repoll_ctl,
	.epoll_wait = repoll_wait,
};
