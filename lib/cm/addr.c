#include "cm/cm.h"

#include <errno.h>
#include <string.h>

socklen_t evr_cm_addr_len(const struct sockaddr *addr)
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

static int need_device(struct evr_cm_id *id, const struct evr_ucma_addr *addr)
{
	const struct evr_device_key key = { addr->node_guid, addr->ibdev_index };
	int ret;

	if (id->dev || !addr->port_num)
		return 0;
	ret = evr_cm_device_get(&key, &id->dev);
	if (ret)
		return ret;
	id->id.verbs = id->dev->verbs;
	id->id.pd = id->dev->pd;
	id->id.port_num = addr->port_num;
	return 0;
}

int evr_cm_addr_query(struct evr_cm_id *id)
{
	struct rdma_addr *to = &id->id.route.addr;
	struct evr_ucma_addr addr;
	int ret = evr_ucma_query_addr(evr_cm_fd(id), id->handle, &addr);

	if (!ret)
		ret = need_device(id, &addr);
	if (ret)
		return ret;
	to->addr.ibaddr.pkey = addr.pkey;
	memcpy(&to->src_storage, &addr.src, addr.src_len);
	memcpy(&to->dst_storage, &addr.dst, addr.dst_len);
	return 0;
}

static void copy_gid(union ibv_gid *gid, const struct sockaddr_storage *addr, size_t len)
{
	const struct sockaddr_ib *sib = (const struct sockaddr_ib *)addr;

	if (len >= sizeof(*sib))
		memcpy(gid, &sib->sib_addr, sizeof(*gid));
}

int evr_cm_addr_query_gid(struct evr_cm_id *id)
{
	struct rdma_ib_addr *to = &id->id.route.addr.addr.ibaddr;
	struct evr_ucma_addr addr;
	int ret = evr_ucma_query_gid(evr_cm_fd(id), id->handle, &addr);

	if (ret)
		return ret;
	copy_gid(&to->sgid, &addr.src, addr.src_len);
	copy_gid(&to->dgid, &addr.dst, addr.dst_len);
	return 0;
}

/* The device may leave at once, and another thread read so. */
static int learn_bound(struct evr_cm_id *id)
{
	int ret;

	pthread_mutex_lock(&id->work_lock);
	ret = evr_cm_addr_query(id);
	if (!ret && id->dev)
		ret = evr_cm_addr_query_gid(id);
	pthread_mutex_unlock(&id->work_lock);
	return ret;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	struct evr_cm_id *p = evr_cm_id(id);
	socklen_t len = addr ? evr_cm_addr_len(addr) : 0;
	int ret;

	if (!id || !len)
		return evr_cm_result(-EINVAL);
	ret = evr_ucma_bind(evr_cm_fd(p), p->handle, addr, len);
	if (!ret)
		ret = learn_bound(p);
	return evr_cm_result(ret);
}

/* The answer may be read by another thread before the command returns: the fields come first. */
static int resolve(struct evr_cm_id *id, const struct sockaddr *src, socklen_t src_len,
	const struct sockaddr *dst, socklen_t dst_len, int timeout_ms)
{
	struct rdma_addr *to = &id->id.route.addr;
	const struct rdma_addr before = *to;
	int ret;

	if (src)
		memcpy(&to->src_storage, src, src_len);
	memcpy(&to->dst_storage, dst, dst_len);
	ret = evr_ucma_resolve_addr(
		evr_cm_fd(id), id->handle, src, src_len, dst, dst_len, (uint32_t)timeout_ms);
	if (ret)
		*to = before;
	return ret;
}

int rdma_resolve_addr(
	struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr, int timeout_ms)
{
	socklen_t src_len = src_addr ? evr_cm_addr_len(src_addr) : 0;
	socklen_t dst_len = dst_addr ? evr_cm_addr_len(dst_addr) : 0;
	int ret;

	if (!id || !dst_len || (src_addr && !src_len))
		return evr_cm_result(-EINVAL);
	ret = resolve(evr_cm_id(id), src_addr, src_len, dst_addr, dst_len, timeout_ms);
	return ret ? evr_cm_result(ret) : evr_cm_complete(evr_cm_id(id));
}

static __be16 port_of(const struct sockaddr *addr)
{
	const struct sockaddr_ib *sib = (const struct sockaddr_ib *)addr;

	switch (addr->sa_family) {
	case AF_INET:
		return ((const struct sockaddr_in *)addr)->sin_port;
	case AF_INET6:
		return ((const struct sockaddr_in6 *)addr)->sin6_port;
	case AF_IB:
		return htobe16((uint16_t)be64toh(sib->sib_sid));
	default:
		return 0;
	}
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return id ? port_of(&id->route.addr.src_addr) : 0;
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return id ? port_of(&id->route.addr.dst_addr) : 0;
}
