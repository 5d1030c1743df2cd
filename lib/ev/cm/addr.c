#include "ev/cm/addr.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <evrdma/conn.h>

socklen_t evr_addr_len(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
	default:
		return 0;
	}
}

int evr_addr_copy(struct sockaddr_storage *to, const struct sockaddr *from)
{
	socklen_t len = from ? evr_addr_len(from) : 0;

	memset(to, 0, sizeof(*to));
	if (!from)
		return 0;
	memcpy(to, from, len);
	return len ? 0 : -EAFNOSUPPORT;
}

static void set_ib_port(struct sockaddr_ib *sib, uint16_t port)
{
	sib->sib_sid = htobe64((be64toh(sib->sib_sid) & ~(uint64_t)UINT16_MAX) | ntohs(port));
	sib->sib_sid_mask |= htobe64(UINT16_MAX);
}

void evr_addr_set_port(struct sockaddr_storage *addr, uint16_t port)
{
	if (addr->ss_family == AF_INET)
		((struct sockaddr_in *)addr)->sin_port = port;
	else if (addr->ss_family == AF_INET6)
		((struct sockaddr_in6 *)addr)->sin6_port = port;
	else if (addr->ss_family == AF_IB)
		set_ib_port((struct sockaddr_ib *)addr, port);
}

bool evr_addr_has_port(const struct sockaddr_storage *addr)
{
	switch (addr->ss_family) {
	case AF_INET:
		return ((const struct sockaddr_in *)addr)->sin_port;
	case AF_INET6:
		return ((const struct sockaddr_in6 *)addr)->sin6_port;
	case AF_IB:
		return be64toh(((const struct sockaddr_ib *)addr)->sib_sid) & UINT16_MAX;
	default:
		return false;
	}
}

static void text_of_in6(const struct sockaddr_in6 *in6, char *text, size_t size)
{
	char host[INET6_ADDRSTRLEN] = "", scope[16] = "";

	inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
	if (in6->sin6_scope_id)
		snprintf(scope, sizeof(scope), "%%%u", in6->sin6_scope_id);
	snprintf(text, size, "[%s%s]:%u", host, scope, ntohs(in6->sin6_port));
}

const char *evrdma_addr_text(const struct sockaddr *addr, char *text, size_t size)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	const struct sockaddr_ib *ib = (const struct sockaddr_ib *)addr;
	char host[INET6_ADDRSTRLEN] = "";

	switch (addr ? addr->sa_family : AF_UNSPEC) {
	case AF_INET:
		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(text, size, "%s:%u", host, ntohs(in->sin_port));
		break;
	case AF_INET6:
		text_of_in6((const struct sockaddr_in6 *)addr, text, size);
		break;
	case AF_IB:
		inet_ntop(AF_INET6, &ib->sib_addr, host, sizeof(host));
		snprintf(text, size, "gid %s", host);
		break;
	default:
		snprintf(text, size, "-");
		break;
	}
	return text;
}

/* What of it is the host's; NULL for a family without RDMA. */
static const uint8_t *host_of(const struct sockaddr *addr, size_t *len)
{
	switch (addr->sa_family) {
	case AF_INET:
		*len = sizeof(struct in_addr);
		return (const uint8_t *)&((const struct sockaddr_in *)addr)->sin_addr;
	case AF_INET6:
		*len = sizeof(struct in6_addr);
		return (const uint8_t *)&((const struct sockaddr_in6 *)addr)->sin6_addr;
	case AF_IB:
		*len = sizeof(struct ib_addr);
		return (const uint8_t *)&((const struct sockaddr_ib *)addr)->sib_addr;
	default:
		return NULL;
	}
}

bool evr_addr_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	size_t len;
	const uint8_t *host = host_of((const struct sockaddr *)a, &len);

	return host && a->ss_family == b->ss_family &&
		!memcmp(host, host_of((const struct sockaddr *)b, &len), len);
}

bool evr_addr_is_group(const struct sockaddr_storage *addr)
{
	static const uint8_t zero[sizeof(struct ib_addr)];
	size_t len;
	const uint8_t *host = host_of((const struct sockaddr *)addr, &len);

	if (!host)
		return false;
	if (!memcmp(host, zero, len))
		return true;
	return addr->ss_family == AF_INET ? host[0] >> 4 == 0xe : host[0] == 0xff;
}
