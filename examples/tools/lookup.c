#include "lookup.h"
#include "common.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>

static int complain(const struct lookup *lookup, const char *node, const char *why)
{
	/* Tools without -f have names. */
	return tool_complain(lookup->name,
		"%s: %s; give an address, or a name that this machine knows%s",
		node ? node : "any address", why,
		lookup->format == ADDRESS_NAME ? "" : ", of the format that -f says");
}

/* Port 0 is any, for who connects. */
static int find_plain(const struct lookup *lookup, const char *node, long port,
	struct sockaddr_storage *addr, socklen_t *len)
{
	struct addrinfo hints = { .ai_socktype = lookup->type,
		.ai_flags = node ? 0 : AI_PASSIVE,
		.ai_family = lookup->format == ADDRESS_IPV6 ? AF_INET6 : AF_UNSPEC };
	struct addrinfo *found;
	char service[8];
	int ret;

	if (lookup->format != ADDRESS_NAME)
		hints.ai_flags |= AI_NUMERICHOST;
	snprintf(service, sizeof(service), "%ld", port);
	ret = getaddrinfo(node, service, &hints, &found);
	if (ret)
		return complain(lookup, node, gai_strerror(ret));
	memcpy(addr, found->ai_addr, found->ai_addrlen);
	*len = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

/* An address of AF_IB to connect from has no other way in. */
static int find_src(struct lookup *lookup)
{
	if (!lookup->server || !lookup->bind)
		return 0;
	if (lookup->format != ADDRESS_GID)
		return find_plain(lookup, lookup->bind, 0, &lookup->src, &lookup->src_len);
	if (address_parse(&lookup->src, ADDRESS_GID, lookup->bind, RDMA_PS_TCP, 0))
		return complain(lookup, lookup->bind, "not a GID");
	lookup->src_len = sizeof(struct sockaddr_ib);
	return 0;
}

static int keep_route(struct lookup *lookup, const struct rdma_addrinfo *found)
{
	if (!found->ai_route_len)
		return 0;
	lookup->route = malloc(found->ai_route_len);
	if (!lookup->route)
		return tool_complain(lookup->name, "out of memory");
	memcpy(lookup->route, found->ai_route, found->ai_route_len);
	lookup->route_len = (socklen_t)found->ai_route_len;
	return 0;
}

/* What a result says is bounded by what an address may have. */
static int keep_addr(struct lookup *lookup, const struct rdma_addrinfo *found)
{
	const struct sockaddr *addr = lookup->server ? found->ai_dst_addr : found->ai_src_addr;
	socklen_t len = lookup->server ? found->ai_dst_len : found->ai_src_len;

	if (!addr || !len || len > sizeof(lookup->addr))
		return complain(lookup, lookup->server, "the RDMA CM found no address");
	memcpy(&lookup->addr, addr, len);
	lookup->len = len;
	return 0;
}

static int find_rdma(struct lookup *lookup)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP,
		.ai_qp_type = IBV_QPT_RC,
		.ai_flags = lookup->server ? 0 : RAI_PASSIVE };
	const char *node = lookup->server ? lookup->server : lookup->bind;
	struct rdma_addrinfo *found;
	char service[8];
	int ret;

	if (lookup->format == ADDRESS_GID) {
		hints.ai_flags |= RAI_NUMERICHOST | RAI_FAMILY;
		hints.ai_family = AF_IB;
	} else if (lookup->format != ADDRESS_NAME) {
		hints.ai_flags |= RAI_NUMERICHOST;
	}
	if (lookup->src_len) {
		hints.ai_src_addr = (struct sockaddr *)&lookup->src;
		hints.ai_src_len = lookup->src_len;
	}
	snprintf(service, sizeof(service), "%ld", lookup->port);
	ret = rdma_getaddrinfo(node, service, &hints, &found);
	if (ret)
		return complain(lookup, node, ret == -1 ? strerror(errno) : gai_strerror(ret));
	ret = keep_addr(lookup, found) || keep_route(lookup, found) ? -1 : 0;
	rdma_freeaddrinfo(found);
	return ret;
}

int lookup_run(struct lookup *lookup)
{
	if (find_src(lookup))
		return -1;
	if (lookup->resolve || lookup->format == ADDRESS_GID)
		return find_rdma(lookup);
	return find_plain(lookup, lookup->server ? lookup->server : lookup->bind, lookup->port,
		&lookup->addr, &lookup->len);
}

void lookup_fini(struct lookup *lookup)
{
	free(lookup->route);
	lookup->route = NULL;
}
