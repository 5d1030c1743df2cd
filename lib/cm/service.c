/* Services by name or number, as InfiniBand's subnet administrator (SA) has them in its records. */
#include "cm/cm.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_AT_FIRST = 8 };

static int parse(const char *text, struct evr_ucma_service *service)
{
	char *end;

	*service = (struct evr_ucma_service){ 0 };
	errno = 0;
	service->id = strtoull(text, &end, 0);
	if (isdigit((unsigned char)*text) && !*end) {
		service->flags = EVR_UCMA_SERVICE_ID;
		return errno ? -EINVAL : 0;
	}
	service->id = 0;
	if (!*text || strlen(text) >= sizeof(service->name))
		return -EINVAL;
	strcpy(service->name, text);
	service->flags = EVR_UCMA_SERVICE_NAME;
	return 0;
}

int evr_cm_service_resolve(struct evr_cm_id *id, const char *text)
{
	struct evr_ucma_service service;
	int ret = parse(text, &service);

	return ret ? ret : evr_ucma_resolve_service(evr_cm_fd(id), id->handle, &service);
}

/* --- the answer --- */

static struct sockaddr_ib addr_of(const struct evr_ucma_service_rec *rec)
{
	struct sockaddr_ib sib = {
		.sib_family = AF_IB,
		.sib_pkey = rec->pkey,
		.sib_sid = rec->id,
		.sib_sid_mask = UINT64_MAX,
	};

	memcpy(&sib.sib_addr, rec->gid, sizeof(sib.sib_addr));
	return sib;
}

static int fill(struct rdma_addrinfo *rai, const struct rdma_cm_id *id,
	const struct evr_ucma_service_rec *rec)
{
	const struct sockaddr_ib addr = addr_of(rec);

	rai->ai_flags = RAI_SA;
	rai->ai_family = AF_IB;
	rai->ai_qp_type = id->qp_type;
	rai->ai_port_space = id->ps;
	if (*rec->name) {
		rai->ai_dst_canonname = strndup(rec->name, sizeof(rec->name));
		if (!rai->ai_dst_canonname)
			return -ENOMEM;
	}
	return evr_cm_copy_addr(&rai->ai_dst_addr, &rai->ai_dst_len, &addr, sizeof(addr));
}

static int to_list(const struct rdma_cm_id *id, const struct evr_ucma_resp_service *resp,
	uint32_t room, struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *first = NULL, **next = &first;
	int ret = resp->num ? 0 : -ENOENT;
	uint32_t i;

	for (i = 0; !ret && i < resp->num && i < room; i++) {
		*next = calloc(1, sizeof(**next));
		if (!*next) {
			ret = -ENOMEM;
			break;
		}
		ret = fill(*next, id, &resp->rec[i]);
		next = &(*next)->ai_next;
	}
	if (ret)
		rdma_freeaddrinfo(first);
	else
		*res = first;
	return ret;
}

static int fetch(struct evr_cm_id *id, uint32_t room, struct evr_ucma_resp_service **resp)
{
	int ret;

	*resp = calloc(1, sizeof(**resp) + room * sizeof((*resp)->rec[0]));
	if (!*resp)
		return -ENOMEM;
	ret = evr_ucma_query_service(evr_cm_fd(id), id->handle, *resp, room);
	if (ret)
		free(*resp);
	return ret;
}

/* There are seldom more than a few, and there may be hundreds. */
static int fetch_all(struct evr_cm_id *id, struct evr_ucma_resp_service **resp, uint32_t *room)
{
	int ret = fetch(id, *room = ROOM_AT_FIRST, resp);

	if (ret || (*resp)->num <= *room)
		return ret;
	*room = (*resp)->num;
	if (*room > EVR_UCMA_SERVICES_MAX)
		*room = EVR_UCMA_SERVICES_MAX;
	free(*resp);
	return fetch(id, *room, resp);
}

static void set_destination(struct rdma_addr *addr, const struct evr_ucma_service_rec *rec)
{
	const struct sockaddr_ib sib = addr_of(rec);

	memcpy(&addr->dst_storage, &sib, sizeof(sib));
	memcpy(&addr->addr.ibaddr.dgid, rec->gid, sizeof(addr->addr.ibaddr.dgid));
	addr->addr.ibaddr.pkey = rec->pkey;
}

int evr_cm_service_query(struct evr_cm_id *id, struct rdma_addrinfo **res)
{
	struct evr_ucma_resp_service *resp;
	uint32_t room;
	int ret = fetch_all(id, &resp, &room);

	if (ret)
		return ret;
	ret = to_list(&id->id, resp, room, res);
	if (!ret)
		set_destination(&id->id.route.addr, &resp->rec[0]);
	free(resp);
	return ret;
}

/* --- through every port --- */

struct search {
	const char *service;
	const struct rdma_addrinfo *hints;
	struct rdma_addrinfo **next; /* where the next result goes */
	int error;		     /* why a port had none; want of memory outweighs the rest */
};

static void note(struct search *search, int ret)
{
	if (ret && search->error != -ENOMEM)
		search->error = ret;
}

/*
 * The id is synchronous and waits for the administrator: for seconds, if that is gone. The source
 * has no service identifier, so that it can be bound to more than once.
 */
static int ask(struct search *search, struct rdma_cm_id *id, const union ibv_gid *gid)
{
	struct sockaddr_ib src = { .sib_family = AF_IB, .sib_pkey = UINT16_MAX };
	struct rdma_addrinfo *rai;
	int ret = 0;

	memcpy(&src.sib_addr, gid, sizeof(src.sib_addr));
	if (rdma_bind_addr(id, (struct sockaddr *)&src) ||
		rdma_resolve_addrinfo(id, NULL, search->service, search->hints) ||
		rdma_query_addrinfo(id, search->next))
		return -errno;
	while ((rai = *search->next)) {
		if (!ret)
			ret = evr_cm_copy_addr(
				&rai->ai_src_addr, &rai->ai_src_len, &src, sizeof(src));
		search->next = &rai->ai_next;
	}
	return ret;
}

static int ask_port(struct search *search, const union ibv_gid *gid)
{
	int ps = search->hints->ai_port_space;
	struct evr_cm_id *id;
	int ret = evr_cm_id_create(NULL, NULL, ps ? (enum rdma_port_space)ps : RDMA_PS_IB,
		(enum ibv_qp_type)search->hints->ai_qp_type, &id);

	if (ret)
		return ret;
	ret = ask(search, &id->id, gid);
	evr_cm_id_drop(id);
	return ret;
}

/* 1 and its GID for a port of a subnet with an administrator, 0 for any other. */
static int find_sa(struct ibv_context *verbs, uint8_t port, union ibv_gid *gid)
{
	struct ibv_port_attr attr;
	int ret = evr_cm_verbs_result(ibv_query_port(verbs, port, &attr));

	if (ret || attr.link_layer != IBV_LINK_LAYER_INFINIBAND || attr.state != IBV_PORT_ACTIVE)
		return ret;
	ret = evr_cm_verbs_result(ibv_query_gid(verbs, port, 0, gid));
	return ret ? ret : 1;
}

static void ask_device(struct search *search, struct ibv_context *verbs)
{
	struct ibv_device_attr attr;
	union ibv_gid gid;
	int ret = evr_cm_verbs_result(ibv_query_device(verbs, &attr));
	int port;

	note(search, ret);
	if (ret || verbs->device->transport_type != IBV_TRANSPORT_IB)
		return;
	for (port = 1; port <= attr.phys_port_cnt; port++) {
		ret = find_sa(verbs, (uint8_t)port, &gid);
		note(search, ret > 0 ? ask_port(search, &gid) : ret);
	}
}

int evr_cm_service_look_up(
	const char *service, const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *first = NULL;
	struct search search = { service, hints, &first, -EOPNOTSUPP };
	struct ibv_context **devices;
	int i, num, left_out;
	int ret = evr_cm_device_get_all(&devices, &num, &left_out);

	if (ret)
		return ret;
	note(&search, left_out);
	for (i = 0; i < num; i++)
		ask_device(&search, devices[i]);
	rdma_free_devices(devices);
	if (first && search.error != -ENOMEM) {
		*res = first;
		return 0;
	}
	rdma_freeaddrinfo(first);
	return search.error;
}
