/* Endpoints: from the answer of rdma_getaddrinfo() to an id that can listen or connect. */
#include "cm/cm.h"

#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>

enum { RESOLVE_TIMEOUT_MS = 2000 };

static bool is_addr(const struct sockaddr *addr, socklen_t len)
{
	socklen_t needed = addr && len >= sizeof(addr->sa_family) ? evr_cm_addr_len(addr) : 0;

	return needed && len >= needed;
}

static bool is_passive(const struct rdma_addrinfo *res)
{
	return res->ai_flags & RAI_PASSIVE;
}

static int check(const struct rdma_addrinfo *res)
{
	if (is_passive(res) ? !is_addr(res->ai_src_addr, res->ai_src_len)
			    : !is_addr(res->ai_dst_addr, res->ai_dst_len))
		return -EINVAL;
	if (res->ai_src_len && !is_addr(res->ai_src_addr, res->ai_src_len))
		return -EINVAL;
	if ((res->ai_route_len && !res->ai_route) || (res->ai_connect_len && !res->ai_connect))
		return -EINVAL;
	return res->ai_connect_len <= UINT8_MAX ? 0 : -EINVAL;
}

/* The queue pairs are those of requests, which rdma_get_request() makes. */
static int keep_attr(struct evr_cm_id *id, const struct ibv_qp_init_attr *attr)
{
	if (!attr)
		return 0;
	id->child_attr = malloc(sizeof(*attr));
	if (!id->child_attr)
		return evr_cm_result(-ENOMEM);
	*id->child_attr = *attr;
	id->child_attr->qp_type = id->id.qp_type;
	return 0;
}

static int make_passive(struct evr_cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
	const struct ibv_qp_init_attr *attr)
{
	if (rdma_bind_addr(&id->id, res->ai_src_addr))
		return -1;
	if (pd && id->dev && pd->context != id->id.verbs)
		return evr_cm_result(-EINVAL);
	if (pd)
		id->id.pd = pd;
	return keep_attr(id, attr);
}

static int resolve(struct rdma_cm_id *id, const struct rdma_addrinfo *res)
{
	struct sockaddr *src = res->ai_src_len ? res->ai_src_addr : NULL;

	if (rdma_resolve_addr(id, src, res->ai_dst_addr, RESOLVE_TIMEOUT_MS))
		return -1;
	if (!res->ai_route_len)
		return rdma_resolve_route(id, RESOLVE_TIMEOUT_MS);
	if (rdma_set_option(
		    id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, res->ai_route, res->ai_route_len))
		return -1;
	return evr_cm_complete(evr_cm_id(id));
}

/* The caller's attributes change only when all went well. */
static int make_qp(struct evr_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr copy = *attr;

	copy.qp_type = id->id.qp_type;
	if (rdma_create_qp(&id->id, pd, &copy))
		return -1;
	*attr = copy;
	return 0;
}

/* What rdma_connect() is to put before the caller's data. */
static int keep_connect_data(struct evr_cm_id *id, const struct rdma_addrinfo *res)
{
	if (!res->ai_connect_len)
		return 0;
	id->connect_data = malloc(res->ai_connect_len);
	if (!id->connect_data)
		return evr_cm_result(-ENOMEM);
	memcpy(id->connect_data, res->ai_connect, res->ai_connect_len);
	id->connect_len = (uint8_t)res->ai_connect_len;
	return 0;
}

static int make_active(struct evr_cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
	struct ibv_qp_init_attr *attr)
{
	if (keep_connect_data(id, res) || resolve(&id->id, res))
		return -1;
	return attr ? make_qp(id, pd, attr) : 0;
}

int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
	struct ibv_qp_init_attr *qp_init_attr)
{
	struct evr_cm_id *ep;
	int ret = id && res ? check(res) : -EINVAL;

	if (!ret)
		ret = evr_cm_id_create(NULL, NULL, (enum rdma_port_space)res->ai_port_space,
			(enum ibv_qp_type)res->ai_qp_type, &ep);
	if (ret)
		return evr_cm_result(ret);
	ret = is_passive(res) ? make_passive(ep, res, pd, qp_init_attr)
			      : make_active(ep, res, pd, qp_init_attr);
	if (ret) {
		evr_cm_id_drop(ep);
		return ret;
	}
	*id = &ep->id;
	return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (!id)
		return;
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	rdma_destroy_id(id);
}
