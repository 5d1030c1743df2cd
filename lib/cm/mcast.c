#include "cm/cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct evr_cm_mc *mc_new(struct evr_cm_id *id, const struct sockaddr *addr, socklen_t len,
	uint16_t flags, void *context)
{
	struct evr_cm_mc *mc = calloc(1, sizeof(*mc));

	if (!mc)
		return NULL;
	mc->id = id;
	mc->context = context;
	mc->join_flags = flags;
	memcpy(&mc->addr, addr, len);
	if (evr_cm_map_add_mc(mc)) {
		free(mc);
		return NULL;
	}
	return mc;
}

static void mc_free(struct evr_cm_mc *mc)
{
	evr_cm_map_remove_mc(mc);
	free(mc);
}

void evr_cm_mc_free_all(struct evr_cm_id *id)
{
	struct evr_cm_mc *mc;

	while ((mc = TAILQ_FIRST(&id->groups))) {
		TAILQ_REMOVE(&id->groups, mc, link);
		mc_free(mc);
	}
}

/* The lock keeps a leave, which needs the handle, from coming between. */
static int join(struct evr_cm_id *id, const struct sockaddr *addr, socklen_t len, uint16_t flags,
	void *context)
{
	struct evr_cm_mc *mc = mc_new(id, addr, len, flags, context);
	int ret;

	if (!mc)
		return -ENOMEM;
	pthread_mutex_lock(&id->work_lock);
	ret = evr_ucma_join_mcast(
		evr_cm_fd(id), id->handle, evr_cm_uid(mc), addr, len, flags, &mc->handle);
	if (!ret)
		TAILQ_INSERT_TAIL(&id->groups, mc, link);
	pthread_mutex_unlock(&id->work_lock);
	if (ret)
		mc_free(mc);
	return ret;
}

static int check_attr(const struct rdma_cm_join_mc_attr_ex *attr)
{
	const uint32_t both = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;

	if (attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
		return -ENOTSUP;
	if (attr->comp_mask != both || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return -EINVAL;
	return attr->addr && evr_cm_addr_len(attr->addr) ? 0 : -EINVAL;
}

int rdma_join_multicast_ex(
	struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *mc_join_attr, void *context)
{
	int ret = id && mc_join_attr ? check_attr(mc_join_attr) : -EINVAL;

	if (!ret)
		ret = join(evr_cm_id(id), mc_join_attr->addr, evr_cm_addr_len(mc_join_attr->addr),
			(uint16_t)mc_join_attr->join_flags, context);
	return ret ? evr_cm_result(ret) : evr_cm_complete(evr_cm_id(id));
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
		.addr = addr,
	};

	return rdma_join_multicast_ex(id, &attr, context);
}

static void detach(struct evr_cm_mc *mc)
{
	struct ibv_qp *qp = mc->id->id.qp;

	if (qp && mc->attached)
		ibv_detach_mcast(qp, &mc->mgid, mc->mlid);
	mc->attached = false;
}

/*
 * MULTICAST_JOIN was read: the group has its address now, and the queue pair can be attached. If it
 * comes once more, the address before is none any longer.
 */
int evr_cm_mc_joined(struct evr_cm_mc *mc, const struct evr_ucma_event *raw)
{
	const struct ib_uverbs_ah_attr *ah = &raw->param.ud.ah_attr;
	struct ibv_qp *qp = mc->id->id.qp;
	int ret;

	detach(mc);
	memcpy(mc->mgid.raw, ah->grh.dgid, sizeof(mc->mgid.raw));
	mc->mlid = ah->dlid;
	if (!qp || mc->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER)
		return 0;
	ret = ibv_attach_mcast(qp, &mc->mgid, mc->mlid);
	if (ret)
		return evr_cm_verbs_result(ret);
	mc->attached = true;
	return 0;
}

/* A queue pair that is attached cannot be destroyed. */
void evr_cm_mc_detach_all(struct evr_cm_id *id)
{
	struct evr_cm_mc *mc;

	TAILQ_FOREACH (mc, &id->groups, link)
		detach(mc);
}

static struct evr_cm_mc *find_group(
	struct evr_cm_id *id, const struct sockaddr *addr, socklen_t len)
{
	struct evr_cm_mc *mc;

	TAILQ_FOREACH (mc, &id->groups, link)
		if (!memcmp(&mc->addr, addr, len))
			return mc;
	return NULL;
}

static int leave(struct evr_cm_id *id, const struct sockaddr *addr, socklen_t len)
{
	struct evr_cm_mc *mc;
	uint32_t reported;
	int ret = -EADDRNOTAVAIL;

	pthread_mutex_lock(&id->work_lock);
	mc = find_group(id, addr, len);
	if (mc) {
		detach(mc);
		ret = evr_ucma_leave_mcast(evr_cm_fd(id), mc->handle, &reported);
	}
	if (!ret) {
		mc->gone = true;
		TAILQ_REMOVE(&id->groups, mc, link);
	}
	pthread_mutex_unlock(&id->work_lock);
	if (ret)
		return ret;
	/* It may be the one about the group. */
	if (id->sync)
		evr_cm_release_event(id);
	evr_cm_wait_mc_events(mc, reported);
	mc_free(mc);
	return 0;
}

int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	socklen_t len = addr ? evr_cm_addr_len(addr) : 0;

	if (!id || !len)
		return evr_cm_result(-EINVAL);
	return evr_cm_result(leave(evr_cm_id(id), addr, len));
}
