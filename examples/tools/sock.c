#include "sock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>

/* A call of the socket's kind, with -errno for -1. */
#define CALL(sock, name, ...)                                                                      \
	result((sock)->plain ? name((sock)->fd, ##__VA_ARGS__) : r##name((sock)->fd, ##__VA_ARGS__))

static ssize_t result(ssize_t ret)
{
	return ret == -1 ? -errno : ret;
}

static void set(struct sock *sock, int fd, int plain)
{
	static unsigned serial;

	*sock = (struct sock){ .fd = fd, .plain = plain, .serial = ++serial };
}

int sock_open(struct sock *sock, int plain, int family, int type)
{
	int fd = plain ? socket(family, type, 0) : rsocket(family, type, 0);

	if (fd < 0)
		return -errno;
	set(sock, fd, plain);
	return 0;
}

void sock_close(struct sock *sock)
{
	if (sock->fd < 0)
		return;
	if (sock->plain)
		close(sock->fd);
	else
		rclose(sock->fd);
	sock->fd = -1;
}

int sock_bind(struct sock *sock, const struct sockaddr *addr, socklen_t len)
{
	return (int)CALL(sock, bind, addr, len);
}

int sock_listen(struct sock *sock, int backlog)
{
	return (int)CALL(sock, listen, backlog);
}

int sock_accept(struct sock *listener, struct sock *sock)
{
	int fd = (int)CALL(listener, accept, NULL, NULL);

	if (fd < 0)
		return fd;
	set(sock, fd, listener->plain);
	return 0;
}

int sock_connect(struct sock *sock, const struct sockaddr *addr, socklen_t len)
{
	return (int)CALL(sock, connect, addr, len);
}

int sock_peer(struct sock *sock, struct sockaddr_storage *addr, socklen_t *len)
{
	return (int)CALL(sock, getpeername, (struct sockaddr *)addr, len);
}

int sock_shutdown(struct sock *sock)
{
	return (int)CALL(sock, shutdown, SHUT_RDWR);
}

int sock_error(struct sock *sock)
{
	int error = 0;
	socklen_t len = sizeof(error);
	int ret = (int)CALL(sock, getsockopt, SOL_SOCKET, SO_ERROR, &error, &len);

	return ret ? ret : -error;
}

ssize_t sock_send(struct sock *sock, const void *data, size_t len_bytes, int flags)
{
	return CALL(sock, send, data, len_bytes, flags | (sock->plain ? MSG_NOSIGNAL : 0));
}

ssize_t sock_recv(struct sock *sock, void *data, size_t len_bytes, int flags)
{
	return CALL(sock, recv, data, len_bytes, flags);
}

ssize_t sock_send_to(struct sock *sock, const void *data, size_t len_bytes, int flags,
	const struct sockaddr *addr, socklen_t len)
{
	return CALL(sock, sendto, data, len_bytes, flags, addr, len);
}

ssize_t sock_recv_from(struct sock *sock, void *data, size_t len_bytes, int flags,
	struct sockaddr_storage *addr, socklen_t *len)
{
	*len = sizeof(*addr);
	return CALL(sock, recvfrom, data, len_bytes, flags, (struct sockaddr *)addr, len);
}

int sock_set(struct sock *sock, int level, int name, const void *value, socklen_t len)
{
	return (int)CALL(sock, setsockopt, level, name, value, len);
}

int sock_set_int(struct sock *sock, int level, int name, int value)
{
	return sock_set(sock, level, name, &value, sizeof(value));
}

int sock_set_nonblocking(struct sock *sock)
{
	return (int)CALL(sock, fcntl, F_SETFL, O_NONBLOCK);
}

int sock_poll(struct sock *sock, short events, int timeout_ms)
{
	struct pollfd pollfd = { .fd = sock->fd, .events = events };
	int ret = sock->plain ? poll(&pollfd, 1, timeout_ms) : rpoll(&pollfd, 1, timeout_ms);

	if (ret < 0)
		return -errno;
	return ret ? pollfd.revents : 0;
}

int sock_is_watchable(const struct sock *sock)
{
	int family = 0;
	socklen_t len = sizeof(family);

	if (sock->plain)
		return 1;
	return !getsockopt(sock->fd, SOL_SOCKET, SO_DOMAIN, &family, &len) && family == AF_UNIX;
}
