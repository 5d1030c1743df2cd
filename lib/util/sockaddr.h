/* Addresses of IP. */
#ifndef EVR_UTIL_SOCKADDR_H
#define EVR_UTIL_SOCKADDR_H

#include <netinet/in.h>
#include <sys/socket.h>

/* 0: of another family. */
static inline socklen_t evr_sockaddr_len(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

#endif
