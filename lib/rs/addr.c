#include "rs/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

enum { IPV4_AT = 12, IPV4_LEN = 4, IPV6_LEN = 16 };

static socklen_t len_of(int family)
{
	return family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static void set_in(union evr_rs_addr *addr, const void *bytes, in_port_t port)
{
	*addr = (union evr_rs_addr){ .in = { .sin_family = AF_INET, .sin_port = port } };
	memcpy(&addr->in.sin_addr, bytes, IPV4_LEN);
}

static void unmap(union evr_rs_addr *addr)
{
	struct sockaddr_in6 in6 = addr->in6;

	if (addr->sa.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr))
		set_in(addr, &in6.sin6_addr.s6_addr[IPV4_AT], in6.sin6_port);
}

/* Elsewhere it says nothing, and the kernel does not look at it. */
static void drop_idle_scope(struct sockaddr_in6 *in6)
{
	const struct in6_addr *addr = &in6->sin6_addr;

	if (!IN6_IS_ADDR_LINKLOCAL(addr) && !IN6_IS_ADDR_MC_LINKLOCAL(addr) &&
		!IN6_IS_ADDR_MC_NODELOCAL(addr))
		in6->sin6_scope_id = 0;
}

int evr_rs_addr_set(union evr_rs_addr *addr, int domain, const struct sockaddr *from, socklen_t len)
{
	if (!from || len < sizeof(from->sa_family))
		return from ? -EINVAL : -EFAULT;
	if (from->sa_family != domain && (domain != AF_INET6 || from->sa_family != AF_INET))
		return -EAFNOSUPPORT;
	if (len < len_of(from->sa_family))
		return -EINVAL;
	*addr = (union evr_rs_addr){ 0 };
	memcpy(addr, from, len_of(from->sa_family));
	if (from->sa_family == AF_INET6)
		drop_idle_scope(&addr->in6);
	unmap(addr);
	return 0;
}

static void map(union evr_rs_addr *addr)
{
	struct sockaddr_in in = addr->in;
	struct in6_addr *bytes = &addr->in6.sin6_addr;

	*addr = (union evr_rs_addr){
		.in6 = { .sin6_family = AF_INET6, .sin6_port = in.sin_port },
	};
	bytes->s6_addr[IPV4_AT - 2] = bytes->s6_addr[IPV4_AT - 1] = 0xff;
	memcpy(&bytes->s6_addr[IPV4_AT], &in.sin_addr, IPV4_LEN);
}

socklen_t evr_rs_addr_for(const union evr_rs_addr *addr, int domain, union evr_rs_addr *to)
{
	*to = *addr;
	if (domain == AF_INET6 && addr->sa.sa_family == AF_INET)
		map(to);
	return len_of(to->sa.sa_family);
}

socklen_t evr_rs_addr_copy(
	const union evr_rs_addr *addr, int domain, struct sockaddr *to, socklen_t room)
{
	union evr_rs_addr whole;
	socklen_t len = evr_rs_addr_for(addr, domain, &whole);

	memcpy(to, &whole, room < len ? room : len);
	return len;
}

uint16_t evr_rs_addr_port(const union evr_rs_addr *addr)
{
	return ntohs(addr->sa.sa_family == AF_INET ? addr->in.sin_port : addr->in6.sin6_port);
}

void evr_rs_addr_set_port(union evr_rs_addr *addr, uint16_t port)
{
	if (addr->sa.sa_family == AF_INET)
		addr->in.sin_port = htons(port);
	else
		addr->in6.sin6_port = htons(port);
}

bool evr_rs_addr_equal(const union evr_rs_addr *a, const union evr_rs_addr *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->in.sin_port == b->in.sin_port &&
		       a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	return a->in6.sin6_port == b->in6.sin6_port &&
	       a->in6.sin6_scope_id == b->in6.sin6_scope_id &&
	       IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr);
}

uint32_t evr_rs_addr_hash(const union evr_rs_addr *addr)
{
	uint32_t hash = evr_rs_addr_port(addr);
	uint8_t bytes[IPV6_LEN];
	size_t i;

	evr_rs_addr_bytes(addr, bytes);
	for (i = 0; i < sizeof(bytes); i++)
		hash = (hash ^ bytes[i]) * UINT32_C(16777619);
	return hash;
}

bool evr_rs_addr_is_any(const union evr_rs_addr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		return addr->in.sin_addr.s_addr == INADDR_ANY;
	return IN6_IS_ADDR_UNSPECIFIED(&addr->in6.sin6_addr);
}

bool evr_rs_addr_is_host(const union evr_rs_addr *addr)
{
	if (evr_rs_addr_is_any(addr))
		return false;
	if (addr->sa.sa_family == AF_INET6)
		return !IN6_IS_ADDR_MULTICAST(&addr->in6.sin6_addr);
	return !IN_MULTICAST(ntohl(addr->in.sin_addr.s_addr)) &&
	       addr->in.sin_addr.s_addr != INADDR_BROADCAST;
}

uint8_t evr_rs_addr_version(const union evr_rs_addr *addr)
{
	return addr->sa.sa_family == AF_INET ? 4 : 6;
}

void evr_rs_addr_bytes(const union evr_rs_addr *addr, uint8_t bytes[16])
{
	memset(bytes, 0, IPV6_LEN);
	if (addr->sa.sa_family == AF_INET)
		memcpy(bytes, &addr->in.sin_addr, IPV4_LEN);
	else
		memcpy(bytes, &addr->in6.sin6_addr, IPV6_LEN);
}

void evr_rs_addr_from_header(union evr_rs_addr *addr, const struct evr_dgram_header *header)
{
	if (header->version == 4) {
		set_in(addr, header->addr, htons(header->port));
		return;
	}
	*addr = (union evr_rs_addr){
		.in6 = {
			.sin6_family = AF_INET6,
			.sin6_port = htons(header->port),
			.sin6_flowinfo = htonl(header->flowinfo),
		},
	};
	memcpy(&addr->in6.sin6_addr, header->addr, IPV6_LEN);
	unmap(addr);
}
