/* What comes by a queue pair, and who it is from. */
#include "rs/dgram.h"

#include "proto/grh.h"

/*
 * Where the device tells the address that a packet came from, what its header says is believed no
 * further. On a machine of many addresses the stock library may send from the link-local one of the
 * port, whose neighbours can do that too: then it is from the queue pair that its address has told.
 */
static bool is_from(const struct evr_rs_ud *ud, const struct evr_dgram_header *header,
	const union evr_rs_addr *from, const uint8_t *grh, const struct ibv_wc *wc)
{
	const struct evr_rs_dest *dest;

	if (!ud->is_roce || !(wc->wc_flags & IBV_WC_GRH) || evr_grh_is_from(grh, header))
		return true;
	dest = evr_grh_is_link_local(grh) ? evr_rs_dest_find(ud->rs, from) : NULL;
	return dest && dest->qpn == wc->src_qp;
}

static void set_scope(const struct evr_rs_ud *ud, union evr_rs_addr *from)
{
	if (from->sa.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&from->in6.sin6_addr))
		from->in6.sin6_scope_id = ud->addr.in6.sin6_scope_id;
}

bool evr_rs_packet_read(const struct evr_rs_ud *ud, struct evr_rs_packet *packet,
	const uint8_t *bytes, const struct ibv_wc *wc)
{
	const uint8_t *data = bytes + EVR_GRH_LEN;
	struct evr_dgram_header header;
	int ret;

	if (wc->byte_len < EVR_GRH_LEN || wc->byte_len > EVR_GRH_LEN + EVR_DGRAM_MAX)
		return false;
	ret = evr_dgram_decode(&header, data, wc->byte_len - EVR_GRH_LEN);
	if (ret < 0)
		return false;
	evr_rs_addr_from_header(&packet->from, &header);
	set_scope(ud, &packet->from);
	packet->data = data + ret;
	packet->len = wc->byte_len - EVR_GRH_LEN - (size_t)ret;
	return evr_rs_dgram_takes(ud->rs, &packet->from) &&
	       is_from(ud, &header, &packet->from, bytes, wc);
}
