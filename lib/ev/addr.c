#include "ev/addr.h"

#include <errno.h>
#include <infiniband/ib.h>
#include <netinet/in.h>
#include <string.h>

socklen_t evr_addr_len(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
	default:
		return 0;
	}
}

int evr_addr_copy(struct sockaddr_storage *to, const struct sockaddr *from)
{
	socklen_t len = from ? evr_addr_len(from) : 0;

	memset(to, 0, sizeof(*to));
	if (!from)
		return 0;
	memcpy(to, from, len);
	return len ? 0 : -EAFNOSUPPORT;
}
