/* Datagrams: to one queue pair, or to all that are attached to a group. */
#include "fake/fake_verbs.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { GRH_SIZE = 40, IPV4_AT = 20, IPV4_SIZE = 20, OWN_QKEY = 1u << 31, STALE = 0x66 };

static bool is_group(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (gid->raw[0] == 0xff)
		return true;
	return !memcmp(gid->raw, mapped, sizeof(mapped)) && (gid->raw[12] & 0xf0) == 0xe0;
}

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

uint16_t fake_ip_checksum(const uint8_t *header)
{
	uint32_t sum = 0;
	int i;

	for (i = 0; i < IPV4_SIZE; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~(sum + (sum >> 16));
}

static void put_ipv4(uint8_t *out, const struct ibv_ah_attr *attr, const union ibv_gid *sgid)
{
	uint16_t checksum;

	memset(out, 0, IPV4_SIZE);
	out[0] = 0x45;
	out[1] = attr->grh.traffic_class;
	out[8] = attr->grh.hop_limit;
	out[9] = 17;
	memcpy(out + 12, &sgid->raw[12], 4);
	memcpy(out + 16, &attr->grh.dgid.raw[12], 4);
	checksum = htons(fake_ip_checksum(out));
	memcpy(out + 10, &checksum, sizeof(checksum));
}

static union ibv_gid source_of(const struct fake_qp *from, const struct ibv_ah_attr *attr)
{
	const struct fake_device *device = from->node.context->device;
	union ibv_gid gid = device->gids[attr->grh.sgid_index];

	if (!device->is_loopback || memcmp(&gid, &attr->grh.dgid, sizeof(gid)) != 0)
		return gid;
	if (!is_ipv4(&gid))
		return (union ibv_gid){ .raw = { [15] = 1 } };
	return (union ibv_gid){ .raw = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 } };
}

/* RoCE v2 over IPv4 puts the IPv4 header into the last 20 bytes of the 40. */
static void put_grh(
	uint8_t *out, const struct fake_qp *from, const struct ibv_ah_attr *attr, size_t len)
{
	const union ibv_gid sgid = source_of(from, attr);
	struct ibv_grh grh = {
		.version_tclass_flow = htonl(6u << 28 | (uint32_t)attr->grh.traffic_class << 20),
		.paylen = htons((uint16_t)(len + 24)),
		.next_hdr = 0x1b,
		.hop_limit = attr->grh.hop_limit,
		.sgid = sgid,
		.dgid = attr->grh.dgid,
	};

	memset(out, fake_profile_at(&from->node)->grh_is_stale ? STALE : 0, GRH_SIZE);
	if (!attr->is_global)
		return;
	if (!is_ipv4(&attr->grh.dgid)) {
		memcpy(out, &grh, sizeof(grh));
		return;
	}
	put_ipv4(out + IPV4_AT, attr, &sgid);
}

/* Nothing is posted, the key is wrong: a datagram is dropped without a word. */
static void deliver(struct fake_qp *from, struct fake_qp *to, const struct fake_send *send,
	const uint8_t *packet, size_t len)
{
	const struct ibv_ah_attr *attr = &fake_of(send->wr.wr.ud.ah, fake_ah, ah)->attr;
	uint32_t qkey = send->wr.wr.ud.remote_qkey;
	struct ibv_wc wc = { .opcode = IBV_WC_RECV, .src_qp = from->qp.qp_num };
	struct fake_recv *recv;

	if (qkey & OWN_QKEY)
		qkey = from->attr.qkey;
	if ((to->qp.state != IBV_QPS_RTR && to->qp.state != IBV_QPS_RTS) || to->attr.qkey != qkey)
		return;
	recv = fake_recv_take(to, NULL);
	if (!recv)
		return;
	wc.status = fake_receive(fake_profile_at(&to->node), to->qp.pd, recv, packet, len);
	wc.byte_len = (uint32_t)len;
	wc.slid = from->node.context->device->port.lid;
	if (attr->is_global)
		wc.wc_flags |= IBV_WC_GRH;
	if (send->wr.opcode == IBV_WR_SEND_WITH_IMM) {
		wc.imm_data = send->wr.imm_data;
		wc.wc_flags |= IBV_WC_WITH_IMM;
	}
	fake_recv_complete(to, recv, &wc, send->wr.send_flags & IBV_SEND_SOLICITED);
	if (wc.status != IBV_WC_SUCCESS)
		fake_qp_to_error(to);
}

static bool attached(const struct fake_qp *qp, const union ibv_gid *gid)
{
	struct fake_attachment *attachment;

	TAILQ_FOREACH (attachment, &qp->attachments, link)
		if (!memcmp(&attachment->gid, gid, sizeof(*gid)))
			return true;
	return false;
}

static void deliver_group(struct fake_qp *from, const struct fake_send *send,
	const union ibv_gid *gid, const uint8_t *packet, size_t len)
{
	const struct fake_device *device = from->node.context->device;
	struct fake_node *node = NULL;
	struct fake_qp *to;

	while ((node = fake_node_next(FAKE_QP, node))) {
		to = fake_of(node, fake_qp, node);
		if (node->context->device == device && attached(to, gid) &&
			!(to == from && from->block_self))
			deliver(from, to, send, packet, len);
	}
}

bool fake_run_ud(struct fake_qp *qp, struct fake_send *send)
{
	const struct fake_device *device = qp->node.context->device;
	const struct ibv_ah_attr *attr = &fake_of(send->wr.wr.ud.ah, fake_ah, ah)->attr;
	struct fake_qp *to = fake_qp_find(send->wr.wr.ud.remote_qpn);
	enum ibv_wc_status status;
	uint8_t *data, *packet;
	size_t len = 0;

	status = fake_gather(qp, send, &data, &len);
	if (status == IBV_WC_SUCCESS && len > 128u << device->port.active_mtu)
		status = IBV_WC_LOC_LEN_ERR;
	if (status == IBV_WC_SUCCESS) {
		packet = fake_alloc(GRH_SIZE + len);
		put_grh(packet, qp, attr, len);
		memcpy(packet + GRH_SIZE, data, len);
		if (attr->is_global && is_group(&attr->grh.dgid))
			deliver_group(qp, send, &attr->grh.dgid, packet, GRH_SIZE + len);
		else if (to && to->node.context->device == device && to->qp.qp_type == IBV_QPT_UD)
			deliver(qp, to, send, packet, GRH_SIZE + len);
		free(packet);
	}
	free(data);
	fake_send_complete(qp, send, status, (uint32_t)len);
	if (status != IBV_WC_SUCCESS)
		fake_qp_to_error(qp);
	return true;
}
