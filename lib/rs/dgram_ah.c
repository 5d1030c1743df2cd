/* Address handles, by the path that an id has resolved. */
#include "rs/dgram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- which GID it is sent from --------------------------------------------------------------- */

/* On RoCE one GID may be there in two versions; a path that is routed is one of the second. */
static bool is_of_version(const struct rdma_cm_id *id, int index, bool routed)
{
	struct ibv_gid_entry entry;

	if (ibv_query_gid_ex(id->verbs, id->port_num, (uint32_t)index, &entry, 0))
		return true;
	if (entry.gid_type == IBV_GID_TYPE_IB)
		return true;
	return (entry.gid_type == IBV_GID_TYPE_ROCE_V2) == routed;
}

static int find_gid(const struct rdma_cm_id *id, const struct ibv_port_attr *port,
	const struct ibv_sa_path_rec *path)
{
	int found = -ENOENT, i;
	union ibv_gid gid;

	for (i = 0; i < port->gid_tbl_len; i++) {
		if (ibv_query_gid(id->verbs, id->port_num, i, &gid) ||
			memcmp(&gid, &path->sgid, sizeof(gid)) != 0)
			continue;
		if (is_of_version(id, i, path->hop_limit > 1))
			return i;
		found = i;
	}
	return found;
}

/* --- making ---------------------------------------------------------------------------------- */

static int set_global(struct ibv_ah_attr *attr, const struct rdma_cm_id *id,
	const struct ibv_port_attr *port, const struct ibv_sa_path_rec *path)
{
	int index;

	if (port->link_layer != IBV_LINK_LAYER_ETHERNET && path->hop_limit <= 1)
		return 0;
	index = find_gid(id, port, path);
	if (index < 0)
		return index;
	attr->is_global = 1;
	attr->grh = (struct ibv_global_route){
		.dgid = path->dgid,
		.flow_label = be32toh(path->flow_label),
		.sgid_index = (uint8_t)index,
		.hop_limit = path->hop_limit,
		.traffic_class = path->traffic_class,
	};
	return 0;
}

static int set_attr(struct ibv_ah_attr *attr, const struct rdma_cm_id *id)
{
	const struct ibv_sa_path_rec *path = id->route.path_rec;
	struct ibv_port_attr port;

	if (!path || ibv_query_port(id->verbs, id->port_num, &port))
		return -ENODEV;
	*attr = (struct ibv_ah_attr){
		.dlid = be16toh(path->dlid),
		.sl = path->sl,
		.src_path_bits = (uint8_t)(be16toh(path->slid) & ((1u << port.lmc) - 1)),
		.static_rate = path->rate,
		.port_num = id->port_num,
	};
	return set_global(attr, id, &port, path);
}

struct evr_rs_ah *evr_rs_ah_new(const struct rdma_cm_id *id, struct ibv_pd *pd)
{
	struct evr_rs_ah *ah = calloc(1, sizeof(*ah));
	struct ibv_ah_attr attr;

	if (ah && !set_attr(&attr, id))
		ah->ah = ibv_create_ah(pd, &attr);
	if (!ah || !ah->ah) {
		free(ah);
		return NULL;
	}
	ah->refs = 1;
	return ah;
}

void evr_rs_ah_put(struct evr_rs_ah *ah)
{
	if (!ah || --ah->refs)
		return;
	ibv_destroy_ah(ah->ah);
	free(ah);
}
