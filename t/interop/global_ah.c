/*
 * global_ah: for the stock library's datagram rsockets on RoCE, to be preloaded. It makes an
 * address handle for its own queue pair by LID alone, which RoCE refuses: here it gets the GRH that
 * it needs.
 */
#include "config.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>

static int is_link_local(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

static int is_there(const union ibv_gid *gid)
{
	return gid->global.subnet_prefix || gid->global.interface_id;
}

/* From the port to itself. */
static void add_grh(struct ibv_context *verbs, struct ibv_ah_attr *attr)
{
	struct ibv_port_attr port;
	union ibv_gid gid;
	int i;

	if (ibv_query_port(verbs, attr->port_num, &port) ||
		port.link_layer != IBV_LINK_LAYER_ETHERNET)
		return;
	for (i = 0; i < port.gid_tbl_len && !attr->is_global; i++) {
		if (ibv_query_gid(verbs, attr->port_num, i, &gid) || !is_there(&gid) ||
			is_link_local(&gid))
			continue;
		attr->is_global = 1;
		attr->grh = (struct ibv_global_route){
			.dgid = gid,
			.sgid_index = (uint8_t)i,
			.hop_limit = 64,
		};
	}
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah *(*create)(struct ibv_pd *, struct ibv_ah_attr *);
	struct ibv_ah_attr own = *attr;

	*(void **)&create = dlvsym(RTLD_NEXT, "ibv_create_ah", "IBVERBS_1.1");
	if (!own.is_global)
		add_grh(pd->context, &own);
	return create(pd, &own);
}
