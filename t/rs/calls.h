/* The calls of sockets, of TCP and of rsockets, under one name each: one suite runs on both. */
#ifndef RS_CALLS_H
#define RS_CALLS_H

#include <poll.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>

struct rs_calls {
	const char *name;
	bool is_rs;
	int (*socket)(int domain, int type, int protocol);
	int (*bind)(int fd, const struct sockaddr *addr, socklen_t len);
	int (*listen)(int fd, int backlog);
	int (*accept)(int fd, struct sockaddr *addr, socklen_t *len);
	int (*connect)(int fd, const struct sockaddr *addr, socklen_t len);
	int (*shutdown)(int fd, int how);
	int (*close)(int fd);
	ssize_t (*recv)(int fd, void *buf, size_t len, int flags);
	ssize_t (*recvfrom)(int fd, void *buf, size_t len, int flags, struct sockaddr *addr,
		socklen_t *addrlen);
	ssize_t (*recvmsg)(int fd, struct msghdr *msg, int flags);
	ssize_t (*read)(int fd, void *buf, size_t len);
	ssize_t (*readv)(int fd, const struct iovec *pieces, int num);
	ssize_t (*send)(int fd, const void *buf, size_t len, int flags);
	ssize_t (*sendto)(int fd, const void *buf, size_t len, int flags,
		const struct sockaddr *addr, socklen_t addrlen);
	ssize_t (*sendmsg)(int fd, const struct msghdr *msg, int flags);
	ssize_t (*write)(int fd, const void *buf, size_t len);
	ssize_t (*writev)(int fd, const struct iovec *pieces, int num);
	int (*select)(
		int num, fd_set *read, fd_set *write, fd_set *except, struct timeval *timeout);
	int (*poll)(struct pollfd *fds, nfds_t num, int timeout_ms);
	int (*getsockopt)(int fd, int level, int name, void *value, socklen_t *len);
	int (*setsockopt)(int fd, int level, int name, const void *value, socklen_t len);
	int (*getsockname)(int fd, struct sockaddr *addr, socklen_t *len);
	int (*getpeername)(int fd, struct sockaddr *addr, socklen_t *len);
	int (*fcntl)(int fd, int cmd, ...);
	int (*epoll_create)(int flags);
	int (*epoll_ctl)(int epoll_fd, int op, int fd, struct epoll_event *event);
	int (*epoll_wait)(int epoll_fd, struct epoll_event *events, int max, int timeout_ms);
};

extern const struct rs_calls rs_calls_tcp, rs_calls_rs;

#endif
