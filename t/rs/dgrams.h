/* What the calls of datagram sockets return: one suite, on UDP and on rsockets. */
#ifndef RS_DGRAMS_H
#define RS_DGRAMS_H

#include <check.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>

struct dgram_calls {
	const char *name;
	bool is_rs;
	int (*socket)(int domain, int type, int protocol);
	int (*bind)(int fd, const struct sockaddr *addr, socklen_t len);
	int (*connect)(int fd, const struct sockaddr *addr, socklen_t len);
	int (*listen)(int fd, int backlog);
	int (*shutdown)(int fd, int how);
	int (*close)(int fd);
	int (*poll)(struct pollfd *fds, nfds_t num, int timeout);
	ssize_t (*send_to)(int fd, const void *buf, size_t len, int flags,
		const struct sockaddr *addr, socklen_t addrlen);
	ssize_t (*recv_from)(int fd, void *buf, size_t len, int flags, struct sockaddr *addr,
		socklen_t *addrlen);
	int (*getsockopt)(int fd, int level, int name, void *value, socklen_t *len);
	int (*getsockname)(int fd, struct sockaddr *addr, socklen_t *len);
	int (*getpeername)(int fd, struct sockaddr *addr, socklen_t *len);
};

extern const struct dgram_calls dgram_calls_udp, dgram_calls_rs;

/* Chosen before the suite runs. */
extern struct dgram_place {
	const struct dgram_calls *calls;
	const char *ip;
} dgram_place;

TCase *dgrams_case(void);

#endif
