/* Whom an endpoint sends to: a group, a peer, the sender of a datagram. */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <netinet/in.h>
#include <string.h>

#include "ev/cm/addr.h"
#include "ev/connection/request.h"
#include "ev/core/error.h"
#include "ev/datagram/dgram.h"
#include "ev/datagram/reply.h"
#include "ev/device/pd.h"
#include "util/clock.h"

/* --- addresses ------------------------------------------------------------------------------ */

int evr_dgram_source(const struct evrdma_dgram *dgram, struct sockaddr_storage *src)
{
	int ret;

	if (!dgram->cmid.cm)
		return -ENOTCONN;
	ret = evr_addr_copy(src, rdma_get_local_addr(dgram->cmid.cm));
	if (src->ss_family == AF_INET)
		((struct sockaddr_in *)src)->sin_port = 0;
	else if (src->ss_family == AF_INET6)
		((struct sockaddr_in6 *)src)->sin6_port = 0;
	else if (src->ss_family == AF_IB)
		((struct sockaddr_ib *)src)->sib_sid = 0;
	return ret;
}

enum {
	IPV4_AT = 20,
	IPV4_BYTES = 20,
	IPV4_TOS_AT = IPV4_AT + 1,
	IPV4_TTL_AT = IPV4_AT + 8,
	IPV4_SOURCE_AT = IPV4_AT + 12,
	IPV4_DEST_AT = IPV4_AT + 16,
	IPV4_IN_GID_AT = 12, /* of an IPv4 address as a GID */
};

/* The ones' complement sum of a header with its checksum is all ones. */
static bool checksum_fits(const uint8_t *header)
{
	uint32_t sum = 0;
	int i;

	for (i = 0; i < IPV4_BYTES; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

static bool is_ipv6(const uint8_t *grh)
{
	return grh[0] >> 4 == 6;
}

/*
 * RoCE v2 over IPv4 has the IPv4 header, without options, in the last 20 bytes of the 40. Before it
 * is what the device left there, which may look like an IPv6 header: then the checksum decides. It
 * does not alone, since rxe computes none for what stays on the machine.
 */
static bool is_ipv4(const uint8_t *grh)
{
	return grh[IPV4_AT] == 0x45 && (!is_ipv6(grh) || checksum_fits(grh + IPV4_AT));
}

int evrdma_dgram_get_sender(const struct evrdma_dgram *dgram, const struct evrdma_recv *recv,
	struct sockaddr_storage *addr)
{
	const struct ibv_grh *grh = recv->grh;
	const uint8_t *bytes = recv->grh;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)addr;
	struct sockaddr_in *sin = (struct sockaddr_in *)addr;
	struct sockaddr_ib *sib = (struct sockaddr_ib *)addr;

	memset(addr, 0, sizeof(*addr));
	if (!grh)
		return -ENODATA;
	if (dgram->is_infiniband) {
		sib->sib_family = AF_IB;
		memcpy(&sib->sib_addr, &grh->sgid, sizeof(sib->sib_addr));
	} else if (is_ipv4(bytes)) {
		sin->sin_family = AF_INET;
		memcpy(&sin->sin_addr, bytes + IPV4_SOURCE_AT, sizeof(sin->sin_addr));
	} else if (!is_ipv6(bytes)) {
		return -ENODATA;
	} else {
		sin6->sin6_family = AF_INET6;
		memcpy(&sin6->sin6_addr, &grh->sgid, sizeof(sin6->sin6_addr));
	}
	return 0;
}

int evr_dgram_get_ah(struct evrdma_dgram *dgram, const struct ibv_ah_attr *attr, struct evr_ah **ah)
{
	if (!dgram->qp.pd)
		return -ENOTCONN;
	return evr_ah_get(&dgram->ahs, dgram->qp.pd->pd, attr, ah);
}

/*
 * From the header verbs takes the GID to answer from: that has to be ours, and not the group that
 * the datagram was for. Of what is before an IPv4 header it had better see nothing.
 */
static void address_to_us(const struct evrdma_dgram *dgram, struct ibv_grh *grh)
{
	const union ibv_gid *own = &dgram->cmid.cm->route.addr.addr.ibaddr.sgid;
	uint8_t *bytes = (uint8_t *)grh;

	if (!dgram->is_infiniband && is_ipv4(bytes)) {
		memset(bytes, 0, IPV4_AT);
		if (bytes[IPV4_DEST_AT] >> 4 == 0xe)
			memcpy(bytes + IPV4_DEST_AT, own->raw + IPV4_IN_GID_AT, 4);
	} else if (grh->dgid.raw[0] == 0xff) {
		grh->dgid = *own;
	}
}

int evr_dgram_find_ah(
	struct evrdma_dgram *dgram, const struct ibv_ah_attr *attr, struct evr_ah **ah)
{
	return dgram->is_infiniband ? evr_dgram_get_ah(dgram, attr, ah)
				    : evr_ah_find(&dgram->ahs, attr, ah);
}

static union ibv_gid gid_of_ipv4(const uint8_t *address)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	memcpy(gid.raw + IPV4_IN_GID_AT, address, 4);
	return gid;
}

/* What verbs makes of a header, but for the entry of ours. */
static void read_header(const struct ibv_grh *grh, struct ibv_global_route *route)
{
	const uint8_t *bytes = (const uint8_t *)grh;
	uint32_t flow = ntohl(grh->version_tclass_flow);

	if (is_ipv4(bytes))
		*route = (struct ibv_global_route){ .dgid = gid_of_ipv4(bytes + IPV4_SOURCE_AT),
			.hop_limit = bytes[IPV4_TTL_AT],
			.traffic_class = bytes[IPV4_TOS_AT] };
	else
		*route = (struct ibv_global_route){ .dgid = grh->sgid,
			.flow_label = flow & 0xfffff,
			.hop_limit = grh->hop_limit,
			.traffic_class = (uint8_t)(flow >> 20) };
}

static int ask_verbs(const struct evrdma_dgram *dgram, const struct evrdma_recv *recv,
	struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	const struct rdma_cm_id *cm = dgram->cmid.cm;
	struct ibv_wc wc = *recv->wc;

	errno = 0;
	return ibv_init_ah_from_wc(cm->verbs, cm->port_num, &wc, grh, attr) ? evr_verbs_error() : 0;
}

static bool is_known(const struct evr_own_gid *own, const struct evr_own_gid *wanted)
{
	return !memcmp(&own->gid, &wanted->gid, sizeof(own->gid)) &&
	       own->next_header == wanted->next_header && evr_clock_now_us() < own->end_us;
}

/*
 * Off InfiniBand: verbs is asked for the entry alone, and not for each datagram. What a completion
 * says of its priority is not the sender's on every device: the answer has none.
 */
static int set_route(struct evrdma_dgram *dgram, const struct evrdma_recv *recv,
	struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	const uint8_t *bytes = (const uint8_t *)grh;
	bool ipv4 = is_ipv4(bytes);
	struct evr_own_gid *own = &dgram->own_gids[ipv4];
	struct evr_own_gid wanted = { .gid = ipv4 ? gid_of_ipv4(bytes + IPV4_DEST_AT) : grh->dgid,
		.next_header = ipv4 ? 0 : grh->next_hdr,
		.end_us = evr_clock_now_us() + EVR_AH_LIFETIME_MS * EVR_US_PER_MS };
	int ret;

	if (!is_known(own, &wanted)) {
		ret = ask_verbs(dgram, recv, grh, attr);
		if (ret)
			return ret;
		*own = wanted;
		own->index = attr->grh.sgid_index;
	}
	*attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = dgram->cmid.cm->port_num };
	read_header(grh, &attr->grh);
	attr->grh.sgid_index = own->index;
	return 0;
}

int evr_dgram_sender_attr(
	struct evrdma_dgram *dgram, const struct evrdma_recv *recv, struct ibv_ah_attr *attr)
{
	struct ibv_grh grh;

	if (dgram->state != EVR_DGRAM_UP)
		return -ENOTCONN;
	if (recv->err || !recv->wc)
		return -EINVAL;
	memset(attr, 0, sizeof(*attr));
	if (!recv->grh)
		return ask_verbs(dgram, recv, NULL, attr);
	memcpy(&grh, recv->grh, sizeof(grh));
	address_to_us(dgram, &grh);
	return dgram->is_infiniband ? ask_verbs(dgram, recv, &grh, attr)
				    : set_route(dgram, recv, &grh, attr);
}

/* --- sending -------------------------------------------------------------------------------- */

static int check_send(const struct evrdma_dgram *dgram, const struct evrdma_seg *seg)
{
	if (!seg->buf)
		return -EINVAL;
	if (dgram->obj.draining)
		return -ENOTCONN;
	if (seg->len > dgram->mtu || seg->len > evrdma_buf_size(seg->buf))
		return -EMSGSIZE;
	return 0;
}

/* What is sent on behalf of an owner is counted, and the address handle is held by each. */
int evr_dgram_submit(struct evrdma_dgram *dgram, struct evr_dest *dest, struct evr_send *send,
	const struct evrdma_seg *seg)
{
	int ret;

	send->wr.ud.ah = dest->ah;
	send->wr.ud.remote_qpn = dest->qp_num;
	send->wr.ud.remote_qkey = dest->qkey;
	send->cookie = dest->owner ? dest : NULL;
	ret = evr_qp_submit_send(&dgram->qp, send, seg, 1);
	if (ret)
		return ret;
	evr_ah_ref(dest->ah);
	dest->sends++;
	return 0;
}

static int send_to(struct evrdma_dgram *dgram, struct evr_dest *dest, struct evr_send *send,
	const struct evrdma_seg *seg)
{
	int ret = check_send(dgram, seg);

	return ret ? ret : evr_dgram_submit(dgram, dest, send, seg);
}

static struct evr_send make_send(const uint32_t *imm, evrdma_dgram_send_cb cb, void *arg)
{
	return (struct evr_send){
		.opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
		.imm = imm ? *imm : 0,
		.cb = (void (*)(void))cb,
		.arg = arg,
	};
}

int evrdma_dgram_send(struct evrdma_dgram *dgram, struct evrdma_mcast *group,
	struct evrdma_buf *buf, size_t len, const uint32_t *imm, evrdma_dgram_send_cb cb, void *arg)
{
	const struct evrdma_seg seg = { .buf = buf, .len = len };
	struct evr_send send = make_send(imm, cb, arg);

	if (group->dgram != dgram)
		return -EXDEV;
	if (dgram->state != EVR_DGRAM_UP || !evr_mcast_is_member(group))
		return -ENOTCONN;
	return send_to(dgram, &group->dest, &send, &seg);
}

int evrdma_dgram_send_to(struct evrdma_dgram *dgram, struct evrdma_peer *peer,
	struct evrdma_buf *buf, size_t len, const uint32_t *imm, evrdma_dgram_send_cb cb, void *arg)
{
	const struct evrdma_seg seg = { .buf = buf, .len = len };
	struct evr_send send = make_send(imm, cb, arg);

	if (peer->dgram != dgram)
		return -EXDEV;
	if (dgram->state != EVR_DGRAM_UP || !evr_peer_is_ready(peer))
		return -ENOTCONN;
	return send_to(dgram, &peer->dest, &send, &seg);
}

int evrdma_dgram_reply(struct evrdma_dgram *dgram, const struct evrdma_recv *recv,
	struct evrdma_buf *buf, size_t len, const uint32_t *imm, evrdma_dgram_send_cb cb, void *arg)
{
	const struct evrdma_seg seg = { .buf = buf, .len = len };
	struct evr_send send = make_send(imm, cb, arg);
	struct evr_dest sender = { .qp_num = recv->src_qp, .qkey = dgram->qkey };
	struct ibv_ah_attr attr;
	int ret = evr_dgram_sender_attr(dgram, recv, &attr);

	if (!ret)
		ret = check_send(dgram, &seg);
	if (!ret)
		ret = evr_dgram_find_ah(dgram, &attr, &sender.ah);
	if (ret == -ENOENT)
		return evr_reply_later(dgram, recv, &attr, &send, &seg);
	if (ret)
		return ret;
	ret = evr_dgram_submit(dgram, &sender, &send, &seg);
	evr_ah_unref(sender.ah);
	return ret;
}

/* --- as a service --------------------------------------------------------------------------- */

enum { MAX_ANSWER_DATA = 136 };

static int check_request(const struct evrdma_dgram *dgram, const struct evrdma_request *request)
{
	const struct rdma_cm_id *asked = request->cmid.cm, *ours = dgram->cmid.cm;
	int ret = evr_request_check(request);

	if (dgram->state != EVR_DGRAM_UP)
		return -ENOTCONN;
	if (ret)
		return ret;
	if (asked->qp_type != IBV_QPT_UD)
		return -EINVAL;
	if (request->obj.base != dgram->obj.base || asked->verbs != ours->verbs ||
		asked->port_num != ours->port_num)
		return -EXDEV;
	return 0;
}

int evrdma_dgram_accept(
	struct evrdma_dgram *dgram, struct evrdma_request *request, const void *data, size_t len)
{
	struct rdma_conn_param param = {
		.private_data = len ? data : NULL,
		.private_data_len = (uint8_t)len,
		.qp_num = evrdma_dgram_get_qp_num(dgram),
	};
	int ret = check_request(dgram, request);

	if (!ret && (len > MAX_ANSWER_DATA || (len && !data)))
		ret = -EINVAL;
	if (!ret && rdma_accept(request->cmid.cm, &param))
		ret = evr_errno(-errno);
	if (!ret)
		evr_slots_give(evr_request_accepted(request));
	return ret;
}
