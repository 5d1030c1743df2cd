/*
 * Sockets over RDMA: rsocket(7). Each call is named after the one of <sys/socket.h>, <unistd.h>,
 * <poll.h> or <sys/uio.h> that it stands for, takes its arguments, and returns what it returns;
 * here is what differs. Programs on both sides use rsockets, ours or the stock library's.
 *
 * The number of an rsocket is a descriptor of the process, but not one to read(2) or write(2):
 * bytes go through these calls only. It ends with rclose(), not close(2).
 *
 * Threads: any call may run beside any other, on the same rsocket too. A call that waits is ended
 * by rclose() of another thread, with EBADF; its number may be another rsocket's from then on. A
 * child of fork() has none of its parent's rsockets: their numbers are EBADF there.
 *
 * Errors: -1 with errno. Every call fails with EBADF for a number that is no rsocket's, where
 * nothing else is said, and with EFAULT or EINVAL for arguments that make no sense. EFAULT is for
 * NULL where there must be something: bytes are copied in the process, so that a pointer to
 * memory that is not there ends in SIGSEGV, as with memcpy(). All of it is in RDMACM_1.0 where
 * nothing else is said.
 */
#ifndef RSOCKET_H
#define RSOCKET_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * domain: AF_INET, AF_INET6, or for a stream AF_IB. type: SOCK_STREAM or SOCK_DGRAM, with
 * SOCK_NONBLOCK and SOCK_CLOEXEC if wanted. protocol: 0 or that of the type. Fails with:
 * EAFNOSUPPORT or ENOTSUP (another domain, type or protocol), ENODEV (a stream: there is no RDMA
 * device), EACCES (its descriptor may not be opened), EMFILE, ENOMEM.
 *
 * Addresses of AF_IB are a struct sockaddr_ib: the GID of a port of InfiniBand, and a service of
 * RDMA_PS_TCP, (uint64_t)RDMA_PS_TCP << 16 | port. Of another device ENODEV is said.
 *
 * What follows speaks of streams. Datagrams are as those of UDP, which may be lost, with up to 2032
 * bytes each to an IPv4 address and 2020 to an IPv6 one (EMSGSIZE); rconnect() returns at once,
 * rlisten(), raccept() and mappings are EOPNOTSUPP.
 */
int rsocket(int domain, int type, int protocol);
/*
 * Fails with: EADDRINUSE, EADDRNOTAVAIL (no such address; or the port is taken, and one of the two
 * addresses is a wildcard) and ENODEV (the address is none of a device), EACCES (a port below 1024,
 * or the device may not be opened; EPERM where a container forbids that). One of the loopback is
 * taken, but nobody can connect to it.
 */
int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen);
/* backlog: how many connections may wait for raccept(). */
int rlisten(int socket, int backlog);
/*
 * A connection whose peer has confirmed it. It is blocking, whatever the listener is. Fails with:
 * EAGAIN (none waits, and the listener is nonblocking, or SO_RCVTIMEO is over), EINVAL (it does not
 * listen, or the length of the name makes no sense), EFAULT (there is none), EINTR, EMFILE,
 * ENODEV (told once: the device of the listener's address was removed, and it listens no more),
 * ENOMEM and the like (the kernel's events could not be read; the listener goes on). EMFILE,
 * ENFILE, ENOMEM and EPERM are also told, once and if none waits, when peers were refused for want
 * of descriptors, or of memory that may be locked.
 */
int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen);
/*
 * A nonblocking rsocket returns -1 with EINPROGRESS, and a blocking one when SO_SNDTIMEO is over;
 * it is writable when the connection is there or has failed, and SO_ERROR tells which. Fails with:
 * ECONNREFUSED, ETIMEDOUT, ENETUNREACH, EHOSTUNREACH (also when no neighbour is found, after a
 * minute), EADDRINUSE (the port that was bound, or each of ten, is TCP's: on iWARP only), ENODEV
 * (no RDMA device leads there; of 127.0.0.1 and ::1 it is EINVAL on iWARP), EACCES and EPERM (the
 * device may not be opened), EISCONN, EALREADY, EINTR (the attempt goes on), ENOTSUP (the peer does
 * not speak the protocol), EPROTO (it does, and what it says of itself makes no sense),
 * ECONNABORTED (it was there, and has ended with an error that was told), ENOMEM and the like (no
 * more memory may be locked, see ulimit -l, or the kernel's events cannot be read). RDMA_SQSIZE and
 * RDMA_RQSIZE that the device has not are as many as it has.
 */
int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen);
/*
 * how: SHUT_RD, SHUT_WR or SHUT_RDWR. What was sent before still arrives. An attempt to connect
 * ends with ECONNRESET. ENOTCONN: there is no connection, or both sides have ended it.
 */
int rshutdown(int socket, int how);
/*
 * A blocking rsocket waits until what it has sent has arrived, for a few seconds at most, or as
 * long as SO_LINGER says; of a nonblocking one that goes on by itself, and so does the end of any
 * whose connect has no answer yet. exit(3) does the same for all that is open, and waits for half a
 * second at most.
 */
int rclose(int socket);

/*
 * flags of a stream: MSG_DONTWAIT, MSG_PEEK, MSG_WAITALL for receiving, MSG_DONTWAIT for sending.
 * Those that ask for what there is not are ENOTSUP: MSG_ERRQUEUE, MSG_TRUNC; MSG_OOB, MSG_ZEROCOPY,
 * MSG_FASTOPEN; receiving with MSG_OOB is EINVAL: nothing is ever urgent. Others change nothing.
 * There is no ancillary data: rrecvmsg() and rsendmsg() with room for it are ENOTSUP. An address
 * given to rsendto() is EISCONN. No signal is ever raised. Fails with: EAGAIN (also when the time
 * of SO_RCVTIMEO or SO_SNDTIMEO is over), EINTR, ENOTCONN, EPIPE (this side was shut down),
 * ECONNRESET (the peer has closed, was killed, or refused what was sent), ETIMEDOUT (the peer does
 * not answer any more), EIO, EPROTO and the like (the peer broke the protocol); EMSGSIZE (a message
 * of too many pieces); EFAULT and EINVAL (memory, a length or a number of pieces that makes no
 * sense). Why it ended is told once: then receiving is the end, and sending EPIPE.
 */
ssize_t rrecv(int socket, void *buf, size_t len, int flags);
ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr,
	socklen_t *addrlen);
ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags);
ssize_t rsend(int socket, const void *buf, size_t len, int flags);
ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
	const struct sockaddr *dest_addr, socklen_t addrlen);
ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags);
ssize_t rread(int socket, void *buf, size_t count);
ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt);
ssize_t rwrite(int socket, const void *buf, size_t count);
ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt);

/*
 * Of rsockets and of any other descriptors at once. While it waits it first polls for polling_time
 * microseconds without sleeping. An rsocket that another thread closes meanwhile is POLLNVAL.
 * rselect() leaves timeout as it was.
 */
int rpoll(struct pollfd *fds, nfds_t nfds, int timeout);
int rselect(
	int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout);

/*
 * epoll(7) of rsockets and of any other descriptors at once, by level, by edge, and once. An
 * instance is an epoll descriptor: it can be polled, and be a member of another. It ends with
 * rclose(), with members or without; to the other calls it is EBADF. In RDMACM_1.5, where the stock
 * library returns errors as positive numbers, and knows neither EPOLLET nor EPOLLONESHOT.
 *
 * flags: 0 or EPOLL_CLOEXEC. Fails with: EINVAL (another flag), EMFILE, ENFILE, ENOMEM.
 */
int repoll_create(int flags);
/*
 * op: EPOLL_CTL_ADD, EPOLL_CTL_MOD or EPOLL_CTL_DEL. A blocking rsocket, too, can be a member, and
 * shows on its number what there is from then on. One that is closed is no member any more. Fails
 * with: EBADF (a number that is no descriptor), EINVAL (epfd is no instance, or fd itself; another
 * op), EEXIST and ENOENT (fd is a member, or none), EFAULT (there is no event, where there must be
 * one), EPERM, ELOOP, ENOSPC (as epoll_ctl(2) says), EMFILE, ENFILE, ENOMEM, EAGAIN (nobody can
 * look after the rsocket).
 */
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
/*
 * timeout: milliseconds, or -1. How many events there are. Fails with: EBADF (no descriptor),
 * EINVAL (it is no instance; maxevents is not positive), EFAULT, EINTR.
 */
int repoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout);

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen);
int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen);

/*
 * Options of level SOL_RDMA; they can be set until the rsocket connects (EINVAL). A number out of
 * its range is brought into it, as rgetsockopt() shows.
 */
#define SOL_RDMA 0x10000
enum {
	RDMA_SQSIZE, /* int: places of the send queue, 16 to 65534 */
	RDMA_RQSIZE, /* int: places of the receive queue, the same */
	RDMA_INLINE, /* int: messages up to so many bytes are posted inline, where the device can */
	RDMA_IOMAPSIZE, /* int: how many mappings the peer may show to this side */
	/*
	 * struct ibv_path_data[], 1 to 16: paths of InfiniBand or RoCE that rconnect() is to take,
	 * as rdma_set_option() takes them with RDMA_OPTION_IB_PATH; there EINVAL is of those that
	 * make no sense. Got: the one that was taken, or those that were set, or none. Of streams.
	 */
	RDMA_ROUTE
};

/*
 * SOL_SOCKET: SO_REUSEADDR, SO_RCVBUF, SO_SNDBUF, SO_LINGER, SO_RCVTIMEO and SO_SNDTIMEO (EDOM: no
 * time), SO_KEEPALIVE (EMFILE, ENOMEM: there is no timer for it), SO_OOBINLINE, SO_BROADCAST, and
 * to get only SO_ERROR, SO_TYPE, SO_ACCEPTCONN, SO_DOMAIN, SO_PROTOCOL. IPPROTO_TCP: TCP_NODELAY,
 * TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT, TCP_MAXSEG; TCP_INFO and TCP_CONGESTION as rsocket(7)
 * says. IPPROTO_IP: IP_TOS. IPPROTO_IPV6: IPV6_V6ONLY. Others are ENOTSUP.
 */
int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen);
int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen);
/* F_GETFL, F_SETFL (O_NONBLOCK), F_GETFD, F_SETFD; others are EINVAL. */
int rfcntl(int socket, int cmd, ...);

/*
 * Shows len bytes of memory to the peer, which can write to them by riowrite() under an offset: the
 * one that is given, or with -1 the memory's address. prot: PROT_WRITE, or PROT_NONE, which ends
 * the connection when the peer writes there. flags is 0. The peer is told with the next call that
 * sends. Returns the offset, or -1 with errno: ENOTCONN, EINVAL (len is 0, buf is NULL, or a flag;
 * of riounmap(), it is no mapping), ENOSPC (all places are taken that the peer has by its
 * RDMA_IOMAPSIZE, which is 0 where nothing else was set). After riounmap() the memory is the
 * caller's at once, and the peer hears of it only when its place has another mapping: what it
 * writes there before ends the connection, so agree on it first.
 */
off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset);
int riounmap(int socket, void *buf, size_t len);
/*
 * Writes into a mapping of the peer's. What was sent before by rsend() arrives before. Returns how
 * many bytes were written, fewer than count where the mapping ends before, or (size_t)-1 with
 * errno: ENXIO (nothing is mapped there), and as rsend().
 */
size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags);

#ifdef __cplusplus
}
#endif

#endif
