/* The calls that stand behind those of the same name here. */
#ifndef EVR_PRELOAD_REAL_H
#define EVR_PRELOAD_REAL_H

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* What only programs call that were built with _FORTIFY_SOURCE; no header declares it without. */
ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t len, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags, struct sockaddr *addr,
	socklen_t *addrlen);

#define EVR_PRE_REAL_CALLS(X)                                                                      \
	X(accept4)                                                                                 \
	X(bind)                                                                                    \
	X(close)                                                                                   \
	X(close_range)                                                                             \
	X(closefrom)                                                                               \
	X(connect)                                                                                 \
	X(dup2)                                                                                    \
	X(dup3)                                                                                    \
	X(epoll_ctl)                                                                               \
	X(fcntl)                                                                                   \
	X(fcntl64)                                                                                 \
	X(getpeername)                                                                             \
	X(getsockname)                                                                             \
	X(getsockopt)                                                                              \
	X(ioctl)                                                                                   \
	X(listen)                                                                                  \
	X(read)                                                                                    \
	X(readv)                                                                                   \
	X(recv)                                                                                    \
	X(recvfrom)                                                                                \
	X(recvmmsg)                                                                                \
	X(recvmsg)                                                                                 \
	X(send)                                                                                    \
	X(sendfile)                                                                                \
	X(sendmmsg)                                                                                \
	X(sendmsg)                                                                                 \
	X(sendto)                                                                                  \
	X(setsockopt)                                                                              \
	X(shutdown)                                                                                \
	X(socket)                                                                                  \
	X(splice)                                                                                  \
	X(write)                                                                                   \
	X(writev)

struct evr_pre_real {
#define X(name) __typeof__(&name) name;
	EVR_PRE_REAL_CALLS(X)
#undef X
};

/* All of them; found when one is first asked for. What the C library does not have is NULL. */
struct evr_pre_real *evr_pre_real(void);

#endif
