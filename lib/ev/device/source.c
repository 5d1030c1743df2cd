#include "ev/device/source.h"

#include <errno.h>
#include <infiniband/ib.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "ev/core/base.h"
#include "ev/core/error.h"
#include "ev/device/devices.h"

int evr_source_init(struct evr_source *source, const char *device, int port_num, int gid_index)
{
	*source = (struct evr_source){ .port_num = port_num, .gid_index = gid_index };
	if (!device)
		return port_num || gid_index >= 0 ? -EINVAL : 0;
	if (gid_index >= 0 && !port_num)
		return -EINVAL;
	source->device = strdup(device);
	return source->device ? 0 : -ENOMEM;
}

void evr_source_fini(struct evr_source *source)
{
	free(source->device);
}

static bool is_named(const struct evr_source *source, struct ibv_device *device)
{
	return !strcmp(source->device, ibv_get_device_name(device));
}

/* --- GIDs that are addresses ---------------------------------------------------------------- */

static bool set_in(struct sockaddr_storage *addr, const union ibv_gid *gid)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)addr;

	if (!IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid->raw))
		return false;
	*sin = (struct sockaddr_in){ .sin_family = AF_INET };
	memcpy(&sin->sin_addr, &gid->raw[12], sizeof(sin->sin_addr));
	return true;
}

/* A link-local GID lacks the interface that its address would need. */
static bool set_in6(struct sockaddr_storage *addr, const union ibv_gid *gid)
{
	const struct in6_addr *in6 = (const struct in6_addr *)gid->raw;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)addr;

	if (IN6_IS_ADDR_V4MAPPED(in6) || IN6_IS_ADDR_UNSPECIFIED(in6) || IN6_IS_ADDR_LINKLOCAL(in6))
		return false;
	*sin6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_addr = *in6 };
	return true;
}

static bool set_ib(struct sockaddr_storage *addr, const union ibv_gid *gid)
{
	struct sockaddr_ib *sib = (struct sockaddr_ib *)addr;

	*sib = (struct sockaddr_ib){ .sib_family = AF_IB };
	memcpy(&sib->sib_addr, gid->raw, sizeof(gid->raw));
	return true;
}

static bool set_addr(struct sockaddr_storage *addr, int family, const union ibv_gid *gid)
{
	switch (family) {
	case AF_INET:
		return set_in(addr, gid);
	case AF_INET6:
		return set_in6(addr, gid);
	case AF_IB:
		return set_ib(addr, gid);
	default:
		return false;
	}
}

/* --- looking -------------------------------------------------------------------------------- */

/* 0, or why there is none: -EADDRNOTAVAIL, or what the device says. */
static int find_in_table(const struct evr_source *source, struct ibv_context *verbs, uint8_t port,
	int entries, int family, struct sockaddr_storage *addr)
{
	int i = source->gid_index < 0 ? 0 : source->gid_index;
	int end = source->gid_index < 0 || i >= entries ? entries : i + 1;
	int ret = -EADDRNOTAVAIL;
	union ibv_gid gid;

	for (; i < end; i++) {
		errno = 0;
		if (ibv_query_gid(verbs, port, i, &gid))
			ret = evr_verbs_error();
		else if (set_addr(addr, family, &gid))
			return 0;
	}
	return ret;
}

/* GIDs are addresses on RoCE, and are what AF_IB addresses; iWARP's are MACs. */
static bool has_addresses(
	const struct ibv_context *verbs, const struct ibv_port_attr *attr, int family)
{
	return verbs->device->transport_type == IBV_TRANSPORT_IB &&
	       (family == AF_IB || attr->link_layer == IBV_LINK_LAYER_ETHERNET);
}

static int find_on_port(const struct evr_source *source, struct ibv_context *verbs, uint8_t port,
	int family, struct sockaddr_storage *addr)
{
	struct ibv_port_attr attr;
	int ret = ibv_query_port(verbs, port, &attr);

	if (ret)
		return -abs(ret);
	if (!has_addresses(verbs, &attr, family))
		return -EADDRNOTAVAIL;
	return find_in_table(source, verbs, port, attr.gid_tbl_len, family, addr);
}

/* Without an address the CM chooses, and evr_source_matches() looks at what it chose. */
static int find_on(const struct evr_source *source, struct ibv_context *verbs, int family,
	struct sockaddr_storage *addr)
{
	struct ibv_device_attr attr;
	int port, last, ret = ibv_query_device(verbs, &attr);

	if (ret)
		return -abs(ret);
	if (source->port_num > attr.phys_port_cnt)
		return -ENODEV;
	port = source->port_num ? source->port_num : 1;
	last = source->port_num ? source->port_num : attr.phys_port_cnt;
	ret = -EADDRNOTAVAIL;
	for (; ret && port <= last; port++)
		ret = find_on_port(source, verbs, (uint8_t)port, family, addr);
	return source->gid_index < 0 ? 0 : ret;
}

static int open_and_find(const struct evr_source *source, struct ibv_device *device, int family,
	struct sockaddr_storage *addr)
{
	struct ibv_context *verbs;
	int ret;

	errno = 0;
	verbs = ibv_open_device(device);
	if (!verbs)
		return evr_verbs_error();
	ret = find_on(source, verbs, family, addr);
	ibv_close_device(verbs);
	return ret;
}

static int look_among_all(
	const struct evr_source *source, int family, struct sockaddr_storage *addr)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int ret = -ENODEV;
	int i;

	for (i = 0; list && list[i]; i++)
		if (is_named(source, list[i])) {
			ret = open_and_find(source, list[i], family, addr);
			break;
		}
	if (list)
		ibv_free_device_list(list);
	return ret;
}

int evr_source_find(const struct evr_source *source, struct evrdma_base *base, int family,
	struct sockaddr_storage *addr)
{
	struct evr_device *device;

	memset(addr, 0, sizeof(*addr));
	if (!source->device)
		return 0;
	TAILQ_FOREACH (device, &evr_devices_of(base)->list, link)
		if (!device->removed && is_named(source, device->verbs->device))
			return find_on(source, device->verbs, family, addr);
	return look_among_all(source, family, addr);
}

bool evr_source_matches(const struct evr_source *source, const struct rdma_cm_id *cm)
{
	if (!source->device)
		return true;
	return cm->verbs && is_named(source, cm->verbs->device) &&
	       (!source->port_num || source->port_num == cm->port_num);
}
