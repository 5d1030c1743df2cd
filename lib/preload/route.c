/* Where RDMA leads: what can be known without asking the network. */
#include "config.h"

#include "preload/route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "preload/real.h"
#include "util/sockaddr.h"

enum { V4_AT = 12, V4_LEN = 4, LOOPBACK_NET = 127 };

/* --- addresses ------------------------------------------------------------------------------- */

/* An IPv4 address is one in an IPv6 socket, too. */
void evr_pre_unmap(struct sockaddr_storage *addr)
{
	struct sockaddr_in6 six;
	struct sockaddr_in four = { .sin_family = AF_INET };

	memcpy(&six, addr, sizeof(six));
	if (addr->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
		return;
	four.sin_port = six.sin6_port;
	memcpy(&four.sin_addr, &six.sin6_addr.s6_addr[V4_AT], V4_LEN);
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, &four, sizeof(four));
}

void evr_pre_map(struct sockaddr_storage *addr)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in four;

	if (addr->ss_family != AF_INET)
		return;
	memcpy(&four, addr, sizeof(four));
	six.sin6_port = four.sin_port;
	if (four.sin_addr.s_addr) {
		memset(&six.sin6_addr.s6_addr[V4_AT - 2], 0xff, 2);
		memcpy(&six.sin6_addr.s6_addr[V4_AT], &four.sin_addr, V4_LEN);
	}
	memcpy(addr, &six, sizeof(six));
}

bool evr_pre_is_local(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)addr;

	if (addr->ss_family == AF_INET)
		return ntohl(four->sin_addr.s_addr) >> 24 == LOOPBACK_NET;
	return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

static bool is_any(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)addr;

	if (addr->ss_family == AF_INET)
		return four->sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr);
}

static void set_port(struct sockaddr_storage *addr, in_port_t port)
{
	if (addr->ss_family == AF_INET)
		((struct sockaddr_in *)addr)->sin_port = port;
	else
		((struct sockaddr_in6 *)addr)->sin6_port = port;
}

static in_port_t port_of(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET)
		return ((const struct sockaddr_in *)addr)->sin_port;
	return ((const struct sockaddr_in6 *)addr)->sin6_port;
}

/* --- sources --------------------------------------------------------------------------------- */

int evr_pre_own_addr(int tcp, struct sockaddr_storage *addr)
{
	socklen_t len = sizeof(*addr);

	memset(addr, 0, sizeof(*addr));
	return evr_pre_real()->getsockname(tcp, (struct sockaddr *)addr, &len) ? -errno : 0;
}

/* A datagram socket that is connected knows its source, and has sent nothing. */
static int routed_source(const struct sockaddr_storage *to, struct sockaddr_storage *from)
{
	const struct evr_pre_real *real = evr_pre_real();
	const struct sockaddr *addr = (const struct sockaddr *)to;
	int fd = real->socket(to->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return -errno;
	ret = real->connect(fd, addr, evr_sockaddr_len(addr)) ? -errno : evr_pre_own_addr(fd, from);
	real->close(fd);
	set_port(from, 0);
	return ret;
}

/* What the socket is bound to counts first. */
int evr_pre_source(int tcp, const struct sockaddr_storage *to, struct sockaddr_storage *from)
{
	struct sockaddr_storage own;
	int ret = evr_pre_own_addr(tcp, &own);

	if (ret)
		return ret;
	evr_pre_unmap(&own);
	if (own.ss_family == to->ss_family && !is_any(&own)) {
		*from = own;
	} else {
		ret = routed_source(to, from);
		if (!ret)
			set_port(from, port_of(&own));
	}
	if (ret)
		return ret;
	return evr_pre_is_local(from) ? -ENODEV : 0;
}
