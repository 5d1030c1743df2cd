/* What an id can be asked: addresses, paths, and the attributes of a queue pair. */
#include "fake/fake_cm.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

enum { RATE_10_GBPS = 3, LIFE_TIME = 16, HOP_LIMIT = 64, FULL_PKEY = 0xffff };

/* The index of the GID that stands for an address of this family. */
static uint8_t gid_index(const struct fake_id *id)
{
	return fake_gid_index(id->device, id->src.ss_family == AF_INET6);
}

static void gid_of(const struct fake_id *id, const struct sockaddr_storage *addr, uint8_t *gid)
{
	const struct fake_device *device = id->device;

	memset(gid, 0, 16);
	if (device->kind != FAKE_ROCE || fake_addr_owner(addr) || fake_addr_any(addr)) {
		memcpy(gid, device->gids[gid_index(id)].raw, 16);
	} else if (addr->ss_family == AF_INET6) {
		memcpy(gid, &((const struct sockaddr_in6 *)addr)->sin6_addr, 16);
	} else {
		gid[10] = gid[11] = 0xff;
		memcpy(gid + 12, &((const struct sockaddr_in *)addr)->sin_addr, 4);
	}
}

void fake_ah_of(const struct fake_id *id, struct ib_uverbs_ah_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	gid_of(id, &id->dst, attr->grh.dgid);
	attr->grh.sgid_index = gid_index(id);
	attr->grh.hop_limit = HOP_LIMIT;
	attr->grh.traffic_class = id->tos;
	attr->is_global = id->device->kind != FAKE_IB;
	attr->dlid = id->device->port.lid;
	attr->port_num = 1;
}

static void put_device(const struct fake_id *id, struct rdma_ucm_query_addr_resp *resp)
{
	if (!id->device)
		return;
	resp->node_guid = id->device->guid;
	resp->port_num = 1;
	resp->pkey = htobe16(FULL_PKEY);
	resp->ibdev_index = (uint32_t)id->device->index;
}

static int query_addr(const struct fake_id *id, const struct rdma_ucm_query *cmd, size_t out_len)
{
	struct rdma_ucm_query_addr_resp resp = { 0 };

	if (out_len < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))
		return -ENOSPC;
	resp.src_size = (uint16_t)fake_addr_size(&id->src);
	memcpy(&resp.src_addr, &id->src, resp.src_size);
	resp.dst_size = (uint16_t)fake_addr_size(&id->dst);
	memcpy(&resp.dst_addr, &id->dst, resp.dst_size);
	put_device(id, &resp);
	fake_respond(cmd->response, &resp, sizeof(resp), out_len);
	return 0;
}

static void put_gid(
	const struct fake_id *id, const struct sockaddr_storage *addr, struct sockaddr_ib *out)
{
	if (addr->ss_family == AF_IB) {
		memcpy(out, addr, sizeof(*out));
		return;
	}
	out->sib_family = AF_IB;
	out->sib_pkey = htobe16(FULL_PKEY);
	if (id->device)
		gid_of(id, addr, out->sib_addr.sib_raw);
	out->sib_sid = htobe64(fake_service(id, addr));
	out->sib_sid_mask = UINT64_MAX;
}

static int query_gid(const struct fake_id *id, const struct rdma_ucm_query *cmd, size_t out_len)
{
	struct rdma_ucm_query_addr_resp resp = { 0 };
	struct sockaddr_ib addr = { 0 };

	if (out_len < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))
		return -ENOSPC;
	put_device(id, &resp);
	resp.src_size = resp.dst_size = sizeof(addr);
	put_gid(id, &id->src, &addr);
	memcpy(&resp.src_addr, &addr, sizeof(addr));
	memset(&addr, 0, sizeof(addr));
	put_gid(id, &id->dst, &addr);
	memcpy(&resp.dst_addr, &addr, sizeof(addr));
	fake_respond(cmd->response, &resp, sizeof(resp), out_len);
	return 0;
}

/* Only a resolved id, or one that a request made, has a path. */
static bool has_path(const struct fake_id *id)
{
	return id->device && id->device->kind != FAKE_IWARP && id->state >= FAKE_ROUTE_RESOLVED &&
	       id->state <= FAKE_DISCONNECT;
}

/* A path record as it goes over the wire. */
struct fake_wire_path {
	uint64_t service;
	uint8_t dgid[16];
	uint8_t sgid[16];
	uint16_t dlid;
	uint16_t slid;
	uint32_t flow_hop;
	uint8_t tclass;
	uint8_t reversible_count;
	uint16_t pkey;
	uint16_t qos_sl;
	uint8_t mtu;
	uint8_t rate;
	uint8_t life_time;
	uint8_t preference;
	uint8_t reserved[6];
};

enum { SELECT_EQUAL = 2 << 6 };

static void put_path(const struct fake_id *id, struct fake_wire_path *path)
{
	path->service = htobe64(fake_service(id, &id->dst));
	gid_of(id, &id->dst, path->dgid);
	gid_of(id, &id->src, path->sgid);
	path->dlid = path->slid = htobe16(id->device->port.lid);
	path->flow_hop = htobe32(HOP_LIMIT);
	path->tclass = id->tos;
	path->reversible_count = 0x80 | 1;
	path->pkey = htobe16(FULL_PKEY);
	path->mtu = (uint8_t)(SELECT_EQUAL | id->device->port.active_mtu);
	path->rate = SELECT_EQUAL | RATE_10_GBPS;
	path->life_time = SELECT_EQUAL | LIFE_TIME;
}

static int query_path(const struct fake_id *id, const struct rdma_ucm_query *cmd, size_t out_len)
{
	struct {
		uint32_t num_paths;
		uint32_t reserved;
		uint32_t flags;
		uint32_t reserved1;
		struct fake_wire_path path;
	} resp = { 0 };
	size_t size = sizeof(struct rdma_ucm_query_path_resp);

	if (out_len < size)
		return -ENOSPC;
	if (has_path(id)) {
		resp.num_paths = 1;
		resp.flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
		put_path(id, &resp.path);
		size = sizeof(resp) <= out_len ? sizeof(resp) : size;
	}
	fake_respond(cmd->response, &resp, size, out_len);
	return 0;
}

int fake_query(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_query *cmd = in;
	struct fake_id *id;
	int err = fake_id_find(file, cmd->id, &id);

	if (err)
		return err;
	switch (cmd->option) {
	case RDMA_USER_CM_QUERY_ADDR:
		return query_addr(id, cmd, out_len);
	case RDMA_USER_CM_QUERY_PATH:
		return query_path(id, cmd, out_len);
	case RDMA_USER_CM_QUERY_GID:
		return query_gid(id, cmd, out_len);
	case FAKE_QUERY_IB_SERVICE:
		return fake_query_ib_service(id, cmd, out_len);
	}
	return -ENOSYS;
}

static void put_route(const struct fake_id *id, struct ib_user_path_rec *route)
{
	gid_of(id, &id->dst, route->dgid);
	gid_of(id, &id->src, route->sgid);
	route->dlid = route->slid = htobe16(id->device->port.lid);
	route->reversible = 1;
	route->mtu = id->device->port.active_mtu;
	route->pkey = htobe16(FULL_PKEY);
	route->hop_limit = HOP_LIMIT;
	route->traffic_class = id->tos;
	route->mtu_selector = route->rate_selector = route->packet_life_time_selector = 2;
	route->rate = RATE_10_GBPS;
	route->packet_life_time = LIFE_TIME;
}

int fake_query_route(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_query *cmd = in;
	struct rdma_ucm_query_route_resp resp = { 0 };
	struct fake_id *id;
	int err;

	if (out_len < offsetof(struct rdma_ucm_query_route_resp, ibdev_index))
		return -ENOSPC;
	err = fake_id_find(file, cmd->id, &id);
	if (err)
		return err;
	memcpy(&resp.src_addr, &id->src, sizeof(resp.src_addr));
	memcpy(&resp.dst_addr, &id->dst, sizeof(resp.dst_addr));
	if (id->device) {
		resp.node_guid = id->device->guid;
		resp.port_num = 1;
		resp.ibdev_index = (uint32_t)id->device->index;
	}
	if (has_path(id)) {
		resp.num_paths = 1;
		put_route(id, &resp.ib_route[0]);
	}
	fake_respond(cmd->response, &resp, sizeof(resp), out_len);
	return 0;
}

/* --- attributes of a queue pair --- */

uint32_t fake_default_qkey(const struct fake_id *id)
{
	if (id->qkey)
		return id->qkey;
	return id->ps == RDMA_PS_IPOIB ? FAKE_IPOIB_QKEY : FAKE_UDP_QKEY;
}

static void put_init(const struct fake_id *id, struct ib_uverbs_qp_attr *attr)
{
	attr->port_num = 1;
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (fake_is_ud(id)) {
		attr->qkey = fake_default_qkey(id);
		attr->qp_attr_mask |= IBV_QP_QKEY;
		return;
	}
	attr->qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
	if (!id->has_cm)
		return;
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (id->responder_resources)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
}

static void put_rtr(const struct fake_id *id, struct ib_uverbs_qp_attr *attr)
{
	fake_ah_of(id, &attr->ah_attr);
	attr->path_mtu = id->device->port.active_mtu;
	attr->dest_qp_num = id->peer_qp_num;
	attr->rq_psn = id->peer;
	attr->max_dest_rd_atomic = id->responder_resources;
	attr->qp_attr_mask =
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (id->qp_type != IBV_QPT_XRC_SEND)
		attr->qp_attr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

static void put_rts(const struct fake_id *id, struct ib_uverbs_qp_attr *attr)
{
	attr->sq_psn = id->number;
	attr->timeout = id->has_ack_timeout ? id->ack_timeout : LIFE_TIME + 1;
	attr->retry_cnt = id->retry_count;
	attr->rnr_retry = id->rnr_retry_count;
	attr->max_rd_atomic = id->initiator_depth;
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT;
	if (id->qp_type != IBV_QPT_XRC_RECV)
		attr->qp_attr_mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

static bool conn_has_peer(const struct fake_id *id)
{
	return id->conn >= FAKE_REQ_RCVD && id->conn <= FAKE_ESTABLISHED;
}

static int put_attr(const struct fake_id *id, struct ib_uverbs_qp_attr *attr)
{
	if (fake_is_iwarp(id)) {
		if (attr->qp_state == IBV_QPS_INIT || attr->qp_state == IBV_QPS_RTR)
			attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
		else if (attr->qp_state != IBV_QPS_RTS)
			return -EINVAL;
		return 0;
	}
	if (!id->has_cm || fake_is_ud(id)) {
		put_init(id, attr);
		return 0;
	}
	if (attr->qp_state == IBV_QPS_INIT && (id->conn == FAKE_REQ_SENT || conn_has_peer(id)))
		put_init(id, attr);
	else if (attr->qp_state == IBV_QPS_RTR && conn_has_peer(id))
		put_rtr(id, attr);
	else if (attr->qp_state == IBV_QPS_RTS && conn_has_peer(id))
		put_rts(id, attr);
	else
		return -EINVAL;
	return 0;
}

int fake_init_qp_attr(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_init_qp_attr *cmd = in;
	struct ib_uverbs_qp_attr attr = { .qp_state = cmd->qp_state };
	struct fake_id *id;
	int err;

	if (out_len < sizeof(attr))
		return -ENOSPC;
	if (cmd->qp_state > IBV_QPS_ERR)
		return -EINVAL;
	err = fake_id_find_bound(file, cmd->id, &id);
	if (!err)
		err = put_attr(id, &attr);
	if (err)
		return err;
	fake_respond(cmd->response, &attr, sizeof(attr), out_len);
	return 0;
}
