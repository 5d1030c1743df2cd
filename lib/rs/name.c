/* Addresses: its own, and its peer's. */
#include "rs/rs.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

static socklen_t len_of(const struct sockaddr *addr)
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

/* As much as there is room for; the length is that of the whole. */
static int copy_name(const struct sockaddr *name, struct sockaddr *addr, socklen_t *addrlen)
{
	socklen_t len = len_of(name);

	if (!addr || !addrlen)
		return -EFAULT;
	memcpy(addr, name, *addrlen < len ? *addrlen : len);
	*addrlen = len;
	return 0;
}

static int get_own(struct evr_rs *rs, struct sockaddr *addr, socklen_t *addrlen)
{
	struct sockaddr_storage none = { .ss_family = (sa_family_t)rs->domain };
	struct sockaddr *name = rs->id ? rdma_get_local_addr(rs->id) : NULL;

	if (!name || !name->sa_family)
		name = (struct sockaddr *)&none;
	return copy_name(name, addr, addrlen);
}

int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct evr_rs *rs = evr_rs_enter(socket);

	return rs ? (int)evr_rs_leave(rs, get_own(rs, addr, addrlen)) : -1;
}

static int get_peer(struct evr_rs *rs, struct sockaddr *addr, socklen_t *addrlen)
{
	if (rs->state != EVR_RS_CONNECTED || !rs->id || rs->stream.error)
		return -ENOTCONN;
	return copy_name(rdma_get_peer_addr(rs->id), addr, addrlen);
}

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct evr_rs *rs = evr_rs_enter(socket);

	return rs ? (int)evr_rs_leave(rs, get_peer(rs, addr, addrlen)) : -1;
}

static int bind_to(struct evr_rs *rs, const struct sockaddr *addr, socklen_t addrlen)
{
	struct sockaddr_storage name = { 0 };

	if (rs->state != EVR_RS_NEW || !addr || addrlen > sizeof(name) || addrlen < sizeof(*addr))
		return -EINVAL;
	if (addr->sa_family != rs->domain)
		return -EAFNOSUPPORT;
	if (addrlen < len_of(addr))
		return -EINVAL;
	memcpy(&name, addr, addrlen);
	return rdma_bind_addr(rs->id, (struct sockaddr *)&name) ? -errno : 0;
}

int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct evr_rs *rs = evr_rs_enter(socket);

	return rs ? (int)evr_rs_leave(rs, bind_to(rs, addr, addrlen)) : -1;
}
