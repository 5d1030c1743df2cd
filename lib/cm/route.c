#include "cm/cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { EXACTLY = 2, ENUM_MASK = 0x1f, SL_MASK = 0xf };

/*
 * From the record as it is on the wire. The selectors say that its values are what holds; what
 * a path is for takes the place of the preference.
 */
static void path_from_wire(
	struct ibv_sa_path_rec *to, const struct ibv_path_record *from, uint32_t flags)
{
	uint32_t flow_hop = be32toh(from->flowlabel_hoplimit);

	*to = (struct ibv_sa_path_rec){
		.dgid = from->dgid,
		.sgid = from->sgid,
		.dlid = from->dlid,
		.slid = from->slid,
		.flow_label = htobe32(flow_hop >> 8),
		.hop_limit = (uint8_t)flow_hop,
		.traffic_class = from->tclass,
		.reversible = from->reversible_numpath >> 7,
		.numb_path = 1,
		.pkey = from->pkey,
		.sl = be16toh(from->qosclass_sl) & SL_MASK,
		.mtu_selector = EXACTLY,
		.mtu = from->mtu & ENUM_MASK,
		.rate_selector = EXACTLY,
		.rate = from->rate & ENUM_MASK,
		.packet_life_time_selector = EXACTLY,
		.packet_life_time = from->packetlifetime & ENUM_MASK,
		.preference = (uint8_t)flags,
	};
}

static int set_paths(struct rdma_route *route, const struct evr_ucma_resp_path *resp)
{
	struct ibv_path_record wire;
	struct ibv_sa_path_rec *recs = NULL;
	uint32_t i;

	if (resp->num_paths) {
		recs = calloc(resp->num_paths, sizeof(*recs));
		if (!recs)
			return -ENOMEM;
	}
	for (i = 0; i < resp->num_paths; i++) {
		memcpy(&wire, resp->path[i].path_rec, sizeof(wire));
		path_from_wire(&recs[i], &wire, resp->path[i].flags);
	}
	free(route->path_rec);
	route->path_rec = recs;
	route->num_paths = (int)resp->num_paths;
	return 0;
}

int evr_cm_route_query(struct evr_cm_id *id)
{
	struct evr_ucma_resp_path resp;
	int ret = evr_ucma_query_path(evr_cm_fd(id), id->handle, &resp);

	return ret ? ret : set_paths(&id->id.route, &resp);
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	struct evr_cm_id *p = evr_cm_id(id);
	int ret;

	if (!id || !p->dev)
		return evr_cm_result(-EINVAL);
	ret = evr_ucma_resolve_route(evr_cm_fd(p), p->handle, (uint32_t)timeout_ms);
	return ret ? evr_cm_result(ret) : evr_cm_complete(p);
}
