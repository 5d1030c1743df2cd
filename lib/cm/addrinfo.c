/* Names and addresses, with getaddrinfo(3) and nothing else. */
#include "cm/cm.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PKEY 0xffff

static bool wants_gid(const struct rdma_addrinfo *hints)
{
	return (hints->ai_flags & RAI_FAMILY) && hints->ai_family == AF_IB;
}

/* A GID reads like an IPv6 address. */
static void hints_to_ai(const struct rdma_addrinfo *hints, struct addrinfo *ai)
{
	if (hints->ai_flags & RAI_PASSIVE)
		ai->ai_flags |= AI_PASSIVE;
	if (hints->ai_flags & RAI_NUMERICHOST || wants_gid(hints))
		ai->ai_flags |= AI_NUMERICHOST;
	if (hints->ai_flags & RAI_FAMILY)
		ai->ai_family = wants_gid(hints) ? AF_INET6 : hints->ai_family;
	if (hints->ai_qp_type == IBV_QPT_UD)
		ai->ai_socktype = SOCK_DGRAM;
	else if (hints->ai_qp_type)
		ai->ai_socktype = SOCK_STREAM;
	if (hints->ai_port_space == RDMA_PS_TCP)
		ai->ai_protocol = IPPROTO_TCP;
	else if (hints->ai_port_space == RDMA_PS_UDP || hints->ai_port_space == RDMA_PS_IPOIB)
		ai->ai_protocol = IPPROTO_UDP;
}

static int copy_addr(struct sockaddr **to, socklen_t *to_len, const void *from, socklen_t len)
{
	if (!from || !len)
		return 0;
	*to = malloc(len);
	if (!*to)
		return -ENOMEM;
	memcpy(*to, from, len);
	*to_len = len;
	return 0;
}

static struct sockaddr_ib gid_addr(const struct sockaddr_in6 *in6, int port_space)
{
	uint16_t port = ntohs(in6->sin6_port);
	struct sockaddr_ib sib = {
		.sib_family = AF_IB,
		.sib_pkey = htobe16(DEFAULT_PKEY),
		.sib_flowinfo = in6->sin6_flowinfo,
		.sib_sid = htobe64(((uint64_t)port_space << 16) + port),
		.sib_scope_id = in6->sin6_scope_id,
	};
	uint64_t mask = port_space ? RDMA_IB_IP_PS_MASK : 0;

	sib.sib_sid_mask = htobe64(mask | (port ? RDMA_IB_IP_PORT_MASK : 0));
	memcpy(&sib.sib_addr, &in6->sin6_addr, sizeof(sib.sib_addr));
	return sib;
}

static void set_kind(
	struct rdma_addrinfo *rai, const struct rdma_addrinfo *hints, const struct addrinfo *ai)
{
	bool datagram = ai->ai_socktype == SOCK_DGRAM;

	rai->ai_qp_type = hints->ai_qp_type;
	if (!rai->ai_qp_type)
		rai->ai_qp_type = datagram ? IBV_QPT_UD : IBV_QPT_RC;
	rai->ai_port_space = hints->ai_port_space;
	if (!rai->ai_port_space)
		rai->ai_port_space = datagram ? RDMA_PS_UDP : RDMA_PS_TCP;
}

static int set_result(
	struct rdma_addrinfo *rai, const struct rdma_addrinfo *hints, const struct addrinfo *ai)
{
	bool passive = hints->ai_flags & RAI_PASSIVE;
	struct sockaddr **addr = passive ? &rai->ai_src_addr : &rai->ai_dst_addr;
	socklen_t *len = passive ? &rai->ai_src_len : &rai->ai_dst_len;
	struct sockaddr_ib sib;

	set_kind(rai, hints, ai);
	rai->ai_flags = passive ? RAI_PASSIVE : 0;
	if (!wants_gid(hints)) {
		rai->ai_family = ai->ai_family;
		return copy_addr(addr, len, ai->ai_addr, ai->ai_addrlen);
	}
	rai->ai_family = AF_IB;
	sib = gid_addr((const struct sockaddr_in6 *)ai->ai_addr, rai->ai_port_space);
	return copy_addr(addr, len, &sib, sizeof(sib));
}

/* 0, -1 with errno, or an error of getaddrinfo(3), all of which are negative. */
static int look_up(const char *node, const char *service, const struct rdma_addrinfo *hints,
	struct rdma_addrinfo *rai)
{
	struct addrinfo ai_hints = { 0 };
	struct addrinfo *ai;
	int ret;

	hints_to_ai(hints, &ai_hints);
	ret = getaddrinfo(node, service, &ai_hints, &ai);
	if (ret)
		return ret;
	ret = evr_cm_result(set_result(rai, hints, ai));
	freeaddrinfo(ai);
	return ret;
}

/* Addresses that the caller knows already, where none were looked up. */
static int copy_known(const struct rdma_addrinfo *hints, struct rdma_addrinfo *rai)
{
	int ret = 0;

	if (!rai->ai_src_len)
		ret = copy_addr(
			&rai->ai_src_addr, &rai->ai_src_len, hints->ai_src_addr, hints->ai_src_len);
	if (!ret && !rai->ai_dst_len)
		ret = copy_addr(
			&rai->ai_dst_addr, &rai->ai_dst_len, hints->ai_dst_addr, hints->ai_dst_len);
	return evr_cm_result(ret);
}

static int fill(const char *node, const char *service, const struct rdma_addrinfo *hints,
	struct rdma_addrinfo *rai)
{
	int ret = 0;

	if (node || service) {
		ret = look_up(node, service, hints, rai);
	} else {
		rai->ai_flags = hints->ai_flags;
		rai->ai_family = hints->ai_family;
		rai->ai_qp_type = hints->ai_qp_type;
		rai->ai_port_space = hints->ai_port_space;
	}
	return ret ? ret : copy_known(hints, rai);
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
	struct rdma_addrinfo **res)
{
	static const struct rdma_addrinfo no_hints;
	struct rdma_addrinfo *rai;
	int ret;

	if (!res || (!node && !service && !hints))
		return evr_cm_result(-EINVAL);
	ret = evr_cm_init();
	if (ret)
		return evr_cm_result(ret);
	rai = calloc(1, sizeof(*rai));
	if (!rai)
		return evr_cm_result(-ENOMEM);
	ret = fill(node, service, hints ? hints : &no_hints, rai);
	if (ret)
		rdma_freeaddrinfo(rai);
	else
		*res = rai;
	return ret;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *next;

	for (; res; res = next) {
		next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
	}
}
