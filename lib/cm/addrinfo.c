/* Names and addresses, with getaddrinfo(3): no daemon is asked, and no route comes with them. */
#include "cm/cm.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PKEY 0xffff

static const struct rdma_addrinfo no_hints;

static bool wants_gid(const struct rdma_addrinfo *hints)
{
	const int flags = RAI_NUMERICHOST | RAI_FAMILY;

	return (hints->ai_flags & flags) == flags && hints->ai_family == AF_IB;
}

/* A GID reads like an IPv6 address; what else AF_IB may be called, getaddrinfo(3) cannot know. */
static void hints_to_ai(const struct rdma_addrinfo *hints, struct addrinfo *ai)
{
	if (hints->ai_flags & RAI_PASSIVE)
		ai->ai_flags |= AI_PASSIVE;
	if (hints->ai_flags & RAI_NUMERICHOST)
		ai->ai_flags |= AI_NUMERICHOST;
	if (hints->ai_family != AF_IB)
		ai->ai_family = hints->ai_family;
	else if (wants_gid(hints))
		ai->ai_family = AF_INET6;
	if (hints->ai_qp_type == IBV_QPT_UD)
		ai->ai_socktype = SOCK_DGRAM;
	else if (hints->ai_qp_type)
		ai->ai_socktype = SOCK_STREAM;
	if (hints->ai_port_space == RDMA_PS_TCP)
		ai->ai_protocol = IPPROTO_TCP;
	else if (hints->ai_port_space == RDMA_PS_UDP || hints->ai_port_space == RDMA_PS_IPOIB)
		ai->ai_protocol = IPPROTO_UDP;
}

int evr_cm_copy_addr(struct sockaddr **to, socklen_t *to_len, const void *from, socklen_t len)
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
		return evr_cm_copy_addr(addr, len, ai->ai_addr, ai->ai_addrlen);
	}
	rai->ai_family = AF_IB;
	sib = gid_addr((const struct sockaddr_in6 *)ai->ai_addr, rai->ai_port_space);
	return evr_cm_copy_addr(addr, len, &sib, sizeof(sib));
}

static int error_of(int eai)
{
	switch (eai) {
	case EAI_SYSTEM:
		return errno ? -errno : -EIO;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_AGAIN:
		return -EAGAIN;
	case EAI_FAIL:
		return -EIO;
	case EAI_FAMILY:
		return -EAFNOSUPPORT;
	case EAI_BADFLAGS:
	case EAI_SOCKTYPE:
		return -EINVAL;
	default:
		return -ENOENT; /* no such name or service, or none of the kind asked for */
	}
}

static int look_up(const char *node, const char *service, const struct rdma_addrinfo *hints,
	struct rdma_addrinfo *rai, int *eai)
{
	struct addrinfo ai_hints = { 0 };
	struct addrinfo *ai;
	int ret;

	hints_to_ai(hints, &ai_hints);
	*eai = getaddrinfo(node, service, hints == &no_hints ? NULL : &ai_hints, &ai);
	if (*eai)
		return error_of(*eai);
	ret = set_result(rai, hints, ai);
	freeaddrinfo(ai);
	return ret;
}

static int copy_hints(const struct rdma_addrinfo *hints, struct rdma_addrinfo *rai)
{
	rai->ai_flags = hints->ai_flags;
	rai->ai_family = hints->ai_family;
	rai->ai_qp_type = hints->ai_qp_type;
	rai->ai_port_space = hints->ai_port_space;
	return evr_cm_copy_addr(
		&rai->ai_dst_addr, &rai->ai_dst_len, hints->ai_dst_addr, hints->ai_dst_len);
}

static int fill(const char *node, const char *service, const struct rdma_addrinfo *hints,
	struct rdma_addrinfo *rai, int *eai)
{
	int ret;

	if (node || service)
		ret = look_up(node, service, hints, rai, eai);
	else
		ret = copy_hints(hints, rai);
	if (ret || rai->ai_src_len)
		return ret;
	return evr_cm_copy_addr(
		&rai->ai_src_addr, &rai->ai_src_len, hints->ai_src_addr, hints->ai_src_len);
}

int evr_cm_asks_sa(const char *node, const char *service, const struct rdma_addrinfo *hints)
{
	if (!hints || !(hints->ai_flags & RAI_SA))
		return 0;
	if (node || hints->ai_flags & RAI_DNS)
		return -EOPNOTSUPP;
	return !service || hints->ai_flags & RAI_PASSIVE ? -EINVAL : 1;
}

int evr_cm_look_up(const char *node, const char *service, const struct rdma_addrinfo *hints,
	struct rdma_addrinfo **res, int *eai)
{
	struct rdma_addrinfo *rai;
	int ret = node || service || hints ? evr_cm_init() : -EINVAL;

	if (ret)
		return ret;
	rai = calloc(1, sizeof(*rai));
	if (!rai)
		return -ENOMEM;
	ret = fill(node, service, hints ? hints : &no_hints, rai, eai);
	if (ret)
		rdma_freeaddrinfo(rai);
	else
		*res = rai;
	return ret;
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
	struct rdma_addrinfo **res)
{
	int eai = 0;
	int ret = res ? evr_cm_asks_sa(node, service, hints) : -EINVAL;

	if (ret > 0)
		ret = evr_cm_service_look_up(service, hints, res);
	else if (!ret)
		ret = evr_cm_look_up(node, service, hints, res, &eai);
	ret = evr_cm_result(ret);
	return eai ? eai : ret;
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
