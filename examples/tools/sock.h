/*
 * A socket of either kind: of TCP or UDP, or an rsocket. Calls give 0 or a count, or -errno.
 */
#ifndef TOOLS_SOCK_H
#define TOOLS_SOCK_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

struct sock {
	int fd;		 /* -1: none */
	int plain;	 /* not an rsocket */
	unsigned serial; /* tells it from an earlier one with the same number */
};

#define SOCK_NONE                                                                                  \
	{                                                                                          \
		.fd = -1                                                                           \
	}

int sock_open(struct sock *sock, int plain, int family, int type);
void sock_close(struct sock *sock);

int sock_bind(struct sock *sock, const struct sockaddr *addr, socklen_t len);
int sock_listen(struct sock *sock, int backlog);
int sock_accept(struct sock *listener, struct sock *sock);
int sock_connect(struct sock *sock, const struct sockaddr *addr, socklen_t len);
/* The address of the other side; *len is what addr has. */
int sock_peer(struct sock *sock, struct sockaddr_storage *addr, socklen_t *len);
int sock_shutdown(struct sock *sock);

/* The result of a connect that was in progress. */
int sock_error(struct sock *sock);

ssize_t sock_send(struct sock *sock, const void *data, size_t len_bytes, int flags);
ssize_t sock_recv(struct sock *sock, void *data, size_t len_bytes, int flags);
ssize_t sock_send_to(struct sock *sock, const void *data, size_t len_bytes, int flags,
	const struct sockaddr *addr, socklen_t len);
ssize_t sock_recv_from(struct sock *sock, void *data, size_t len_bytes, int flags,
	struct sockaddr_storage *addr, socklen_t *len);

int sock_set(struct sock *sock, int level, int name, const void *value, socklen_t len);
int sock_set_int(struct sock *sock, int level, int name, int value);
int sock_set_nonblocking(struct sock *sock);

/* Waits for events; a negative timeout is none. Returns what came, 0 when the time is over. */
int sock_poll(struct sock *sock, short events, int timeout_ms);

/*
 * Whether an event loop sees the socket's own state in its number. It does for a plain one, and for
 * an rsocket of a library that gives real descriptors, which are local sockets.
 */
int sock_is_watchable(const struct sock *sock);

#endif
