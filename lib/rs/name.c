/* Addresses: its own, and its peer's. */
#include "rs/dgram.h"

#include <errno.h>
#include <infiniband/ib.h>
#include <limits.h>
#include <string.h>

#include "util/sockaddr.h"

static socklen_t len_of(const struct sockaddr *addr)
{
	return addr->sa_family == AF_IB ? sizeof(struct sockaddr_ib) : evr_sockaddr_len(addr);
}

int evr_rs_copy_name(const struct sockaddr *name, struct sockaddr *addr, socklen_t *addrlen)
{
	socklen_t len = len_of(name);

	if (!addr || !addrlen)
		return -EFAULT;
	if (*addrlen > INT_MAX)
		return -EINVAL;
	memcpy(addr, name, *addrlen < len ? *addrlen : len);
	*addrlen = len;
	return 0;
}

static int get_own(struct evr_rs *rs, struct sockaddr *addr, socklen_t *addrlen)
{
	struct sockaddr_storage none = { .ss_family = (sa_family_t)rs->domain };
	struct sockaddr *name = rs->id ? rdma_get_local_addr(rs->id) : NULL;

	if (rs->dgram)
		return evr_rs_dgram_name(rs, addr, addrlen, false);
	if (!name || !name->sa_family)
		name = (struct sockaddr *)&none;
	rs->named = true;
	return evr_rs_copy_name(name, addr, addrlen);
}

int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct evr_rs *rs = evr_rs_enter(socket);

	return rs ? (int)evr_rs_leave(rs, get_own(rs, addr, addrlen)) : -1;
}

static int get_peer(struct evr_rs *rs, struct sockaddr *addr, socklen_t *addrlen)
{
	if (rs->dgram)
		return evr_rs_dgram_name(rs, addr, addrlen, true);
	if (rs->state != EVR_RS_CONNECTED || !rs->id || evr_rs_is_over(rs))
		return -ENOTCONN;
	return evr_rs_copy_name(rdma_get_peer_addr(rs->id), addr, addrlen);
}

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct evr_rs *rs = evr_rs_enter(socket);

	return rs ? (int)evr_rs_leave(rs, get_peer(rs, addr, addrlen)) : -1;
}

int evr_rs_check_name(const struct evr_rs *rs, const struct sockaddr *addr, socklen_t len)
{
	if (len < sizeof(addr->sa_family) || len > sizeof(struct sockaddr_storage))
		return -EINVAL;
	if (!addr)
		return -EFAULT;
	if (addr->sa_family != rs->domain)
		return -EAFNOSUPPORT;
	return len < len_of(addr) ? -EINVAL : 0;
}

/*
 * What the kernel has found out for an id that it then could not bind, it does not ask again: a new
 * one takes its place. Where there can be none, the next attempt has to do with the old one.
 */
static void renew_id(struct evr_rs *rs)
{
	struct rdma_event_channel *channel = rs->channel;
	struct rdma_cm_id *id = rs->id;

	if (evr_rs_open_id(rs)) {
		rs->channel = channel;
		rs->id = id;
		return;
	}
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

static int bind_id(struct evr_rs *rs, struct sockaddr_storage *name)
{
	int ret = rdma_bind_addr(rs->id, (struct sockaddr *)name) ? -errno : 0;

	if (!ret)
		rs->bound = *name;
	else if (!rs->bound.ss_family)
		renew_id(rs);
	return ret;
}

static int bind_to(struct evr_rs *rs, const struct sockaddr *addr, socklen_t addrlen)
{
	struct sockaddr_storage name = { 0 };
	int ret;

	if (rs->dgram)
		return evr_rs_dgram_bind(rs, addr, addrlen);
	if (rs->state != EVR_RS_NEW)
		return -EINVAL;
	ret = evr_rs_check_name(rs, addr, addrlen);
	if (ret)
		return ret;
	memcpy(&name, addr, len_of(addr));
	return bind_id(rs, &name);
}

int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct evr_rs *rs = evr_rs_enter(socket);
	int ret;

	if (!rs)
		return -1;
	ret = bind_to(rs, addr, addrlen);
	if (ret == -EADDRINUSE && evr_rs_end_settles())
		ret = bind_to(rs, addr, addrlen);
	return (int)evr_rs_leave(rs, ret);
}
