/*
 * RDMA_ROUTE: the paths that a connection is to take, given in the place of the lookup, and the
 * one that it has taken.
 */
#include "rs/option.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/number.h"

enum { PATHS_MAX = 16, REVERSIBLE_SHIFT = 7, SELECTOR_SHIFT = 6, HOP_BITS = 8 };

struct evr_rs_route {
	uint32_t num;
	struct ibv_path_data path[];
};

int evr_rs_route_set(struct evr_rs *rs, const void *value, socklen_t len)
{
	size_t num = len / sizeof(struct ibv_path_data);
	struct evr_rs_route *route;

	if (rs->dgram)
		return -ENOTSUP;
	if (rs->state != EVR_RS_NEW || !num || num > PATHS_MAX || len % sizeof(*route->path))
		return -EINVAL;
	route = malloc(sizeof(*route) + len);
	if (!route)
		return -ENOMEM;
	route->num = (uint32_t)num;
	memcpy(route->path, value, len);
	free(rs->route);
	rs->route = route;
	return 0;
}

int evr_rs_route_ask(struct evr_rs *rs, int timeout_ms)
{
	struct evr_rs_route *route = rs->route;
	int ret;

	if (route)
		ret = rdma_set_option(rs->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, route->path,
			route->num * sizeof(*route->path));
	else
		ret = rdma_resolve_route(rs->id, timeout_ms);
	return ret ? -errno : 0;
}

/* --- getting --------------------------------------------------------------------------------- */

static uint8_t select_by(uint8_t selector, uint8_t value)
{
	return (uint8_t)(selector << SELECTOR_SHIFT | value);
}

/* As it is on the wire. The CM keeps what a path is for in the place of the preference. */
static struct ibv_path_data path_of(const struct ibv_sa_path_rec *rec)
{
	uint32_t flow = be32toh(rec->flow_label) << HOP_BITS;

	return (struct ibv_path_data){
		.flags = rec->preference,
		.path = {
			.dgid = rec->dgid,
			.sgid = rec->sgid,
			.dlid = rec->dlid,
			.slid = rec->slid,
			.flowlabel_hoplimit = htobe32(flow | rec->hop_limit),
			.tclass = rec->traffic_class,
			.reversible_numpath = (uint8_t)((rec->reversible ? 1 : 0)
							<< REVERSIBLE_SHIFT |
							rec->numb_path),
			.pkey = rec->pkey,
			.qosclass_sl = htobe16(rec->sl),
			.mtu = select_by(rec->mtu_selector, rec->mtu),
			.rate = select_by(rec->rate_selector, rec->rate),
			.packetlifetime = select_by(
				rec->packet_life_time_selector, rec->packet_life_time),
		},
	};
}

static size_t paths_of(const struct rdma_cm_id *id, struct ibv_path_data *paths)
{
	size_t num = evr_smaller((uint32_t)id->route.num_paths, PATHS_MAX), i;

	for (i = 0; i < num; i++)
		paths[i] = path_of(&id->route.path_rec[i]);
	return num;
}

size_t evr_rs_route_get(const struct evr_rs *rs, void *value, size_t room)
{
	struct ibv_path_data taken[PATHS_MAX];
	const void *paths = taken;
	size_t num = rs->id ? paths_of(rs->id, taken) : 0, len;

	if (!num && rs->route) {
		paths = rs->route->path;
		num = rs->route->num;
	}
	len = num * sizeof(taken[0]);
	if (len > room)
		len = room - room % sizeof(taken[0]);
	memcpy(value, paths, len);
	return len;
}
