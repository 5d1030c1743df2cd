/* Sockets over RDMA: so far what programs of the CM use of them. */
#ifndef RSOCKET_H
#define RSOCKET_H

#include <poll.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * poll(2), in every detail, for file descriptors of the kernel: event channels, completion
 * channels, sockets. Returns the number of entries with revents, 0 when timeout milliseconds are
 * over (negative: never), or -1 and sets errno: EINTR, EINVAL (too many entries), EFAULT, ENOMEM.
 * Since RDMACM_1.0.
 */
int rpoll(struct pollfd *fds, nfds_t nfds, int timeout);

#ifdef __cplusplus
}
#endif

#endif
