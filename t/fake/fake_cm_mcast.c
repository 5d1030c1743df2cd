/* Memberships of multicast groups. */
#include "fake/fake_cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_MLID = 0xc001, ENOTSUPP_KERNEL = 524, ALL_QPS = 0xffffff };

static struct fake_table memberships;

void fake_mc_reset(void)
{
	fake_table_free(&memberships);
}

static void mc_free(struct fake_mc *mc)
{
	fake_events_drop(mc->id, mc);
	TAILQ_REMOVE(&mc->id->mcs, mc, link);
	fake_table_remove(&memberships, mc->number);
	free(mc);
	fake_died(FAKE_MEMBERSHIP);
}

void fake_mcs_free(struct fake_id *id)
{
	while (!TAILQ_EMPTY(&id->mcs))
		mc_free(TAILQ_FIRST(&id->mcs));
}

/* RoCE v2: the group's IPv4 address in IPv6 form. */
static int map_roce(struct fake_mc *mc, const void *addr)
{
	const struct sockaddr_in *in = addr;

	if (fake_addr_any(addr))
		return -EINVAL;
	if (in->sin_family != AF_INET)
		return -ENOTSUPP_KERNEL;
	mc->mgid.raw[10] = mc->mgid.raw[11] = 0xff;
	memcpy(&mc->mgid.raw[12], &in->sin_addr, sizeof(in->sin_addr));
	return 0;
}

/* IPoIB's mapping; the UDP port space has a signature of its own in the fourth byte. */
static void map_ip(struct fake_mc *mc, const void *addr, uint8_t signature)
{
	const struct sockaddr_in6 *in6 = addr;
	const struct sockaddr_in *in = addr;
	uint8_t *raw = mc->mgid.raw;

	raw[0] = 0xff;
	raw[1] = 0x12;
	raw[2] = in->sin_family == AF_INET ? 0x40 : 0x60;
	raw[3] = signature;
	raw[4] = raw[5] = 0xff;
	if (in->sin_family == AF_INET6) {
		memcpy(raw + 6, in6->sin6_addr.s6_addr + 6, 10);
		return;
	}
	memcpy(raw + 12, &in->sin_addr, 4);
	raw[12] &= 0x0f;
}

/* The subnet manager picks the group when none was named. */
static void map_ib(struct fake_mc *mc, const void *addr)
{
	const struct sockaddr_ib *ib = addr;
	uint8_t assigned[16] = { 0xff, 0x12, 0xa0, 0x1b, 0xfe, 0x80 };

	assigned[15] = (uint8_t)mc->number;
	if (fake_addr_any(addr))
		memcpy(mc->mgid.raw, assigned, sizeof(assigned));
	else if (ib->sib_family == AF_IB)
		memcpy(mc->mgid.raw, &ib->sib_addr, 16);
	else
		map_ip(mc, addr, mc->id->ps == RDMA_PS_UDP ? 0x01 : 0x1b);
	mc->mlid = (uint16_t)(FIRST_MLID + mc->mgid.raw[15]);
}

static int map_group(struct fake_mc *mc, const void *addr)
{
	mc->qkey = fake_default_qkey(mc->id);
	switch (mc->id->device->kind) {
	case FAKE_ROCE:
		return map_roce(mc, addr);
	case FAKE_IB:
		map_ib(mc, addr);
		return 0;
	default:
		return -ENOSYS;
	}
}

static int join(struct fake_id *id, uint64_t uid, const void *addr, uint32_t *number)
{
	struct fake_packet packet = { .kind = FAKE_JOIN };
	struct fake_mc *mc;
	int err;

	if ((id->state != FAKE_ADDR_BOUND && id->state != FAKE_ADDR_RESOLVED) || !fake_is_ud(id))
		return -EINVAL;
	mc = fake_alloc(sizeof(*mc));
	mc->id = id;
	mc->uid = uid;
	mc->number = fake_table_add(&memberships, mc);
	TAILQ_INSERT_TAIL(&id->mcs, mc, link);
	fake_born(FAKE_MEMBERSHIP);
	err = map_group(mc, addr);
	if (err) {
		mc_free(mc);
		return err;
	}
	*number = packet.mc = mc->number;
	packet.status = fake_wire_status(FAKE_JOIN);
	fake_wire_send(&packet);
	return 0;
}

static void put_group(struct rdma_ucm_ud_param *ud, const struct fake_mc *mc)
{
	memcpy(ud->ah_attr.grh.dgid, mc->mgid.raw, 16);
	ud->ah_attr.grh.sgid_index = fake_gid_index(mc->id->device, false);
	ud->ah_attr.grh.hop_limit = 64;
	ud->ah_attr.dlid = mc->mlid;
	ud->ah_attr.is_global = 1;
	ud->ah_attr.port_num = 1;
	ud->qp_num = ALL_QPS;
	ud->qkey = mc->qkey;
}

void fake_join_arrive(const struct fake_packet *packet)
{
	struct fake_mc *mc = fake_table_find(&memberships, packet->mc);
	struct fake_event *event;

	if (!mc || mc->id->closed)
		return;
	event = fake_event_new(mc->id,
		packet->status ? FAKE_EV_MULTICAST_ERROR : FAKE_EV_MULTICAST_JOIN, packet->status);
	event->mc = mc;
	event->resp.uid = mc->uid;
	event->resp.id = mc->number;
	if (!packet->status)
		put_group(&event->resp.param.ud, mc);
	fake_event_queue(event);
}

static int join_command(struct fake_file *file, const struct rdma_ucm_join_mcast *cmd,
	const void *addr, size_t out_len)
{
	struct rdma_ucm_create_id_resp resp;
	struct fake_id *id;
	int err;

	if (out_len < sizeof(resp))
		return -ENOSPC;
	if (cmd->addr_size != fake_addr_size(addr) || cmd->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return -EINVAL;
	err = fake_id_find_bound(file, cmd->id, &id);
	if (!err)
		err = join(id, cmd->uid, addr, &resp.id);
	if (err)
		return err;
	fake_respond(cmd->response, &resp, sizeof(resp), out_len);
	return 0;
}

int fake_join_mcast(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_join_mcast *cmd = in;

	if (!fake_addr_size(&cmd->addr))
		return -EINVAL;
	return join_command(file, cmd, &cmd->addr, out_len);
}

int fake_join_ip_mcast(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_join_ip_mcast *old = in;
	struct rdma_ucm_join_mcast cmd = {
		.response = old->response,
		.uid = old->uid,
		.id = old->id,
		.addr_size = (uint16_t)fake_addr_size(&old->addr),
		.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
	};

	if (old->addr.sin6_family != AF_INET && old->addr.sin6_family != AF_INET6)
		return -EINVAL;
	return join_command(file, &cmd, &old->addr, out_len);
}

int fake_leave_mcast(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_destroy_id *cmd = in;
	struct rdma_ucm_destroy_id_resp resp;
	struct fake_mc *mc;

	if (out_len < sizeof(resp))
		return -ENOSPC;
	mc = fake_table_find(&memberships, cmd->id);
	if (!mc)
		return -ENOENT;
	if (mc->id->file != file)
		return -EINVAL;
	if (mc->id->closed)
		return -ENXIO;
	resp.events_reported = mc->events_reported;
	mc_free(mc);
	fake_respond(cmd->response, &resp, sizeof(resp), out_len);
	return 0;
}
