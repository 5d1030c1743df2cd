/* Options of datagrams: those of the socket of UDP, and what the queue pairs are made of. */
#include "rs/dgram.h"

#include <errno.h>
#include <string.h>

enum { DOUBLED = 2 };

static int64_t int_of(const void *value)
{
	int number;

	memcpy(&number, value, sizeof(number));
	return number;
}

/* What UDP keeps, and the queues have to know of. */
static void note(struct evr_rs *rs, int name, const void *value)
{
	if (name == SO_RCVBUF)
		rs->options.rx_size = evr_rs_rx_size(int_of(value) * DOUBLED);
	else if (name == SO_SNDBUF)
		rs->options.tx_size = evr_rs_tx_size(int_of(value) * DOUBLED);
}

/* What UDP does with single packets cannot be had: nor ancillary data. */
static bool is_for_udp(int level, int name)
{
	if (level == IPPROTO_IP)
		return name == IP_TOS || name == IP_TTL || name == IP_MTU_DISCOVER;
	if (level == IPPROTO_IPV6)
		return name == IPV6_V6ONLY || name == IPV6_TCLASS || name == IPV6_UNICAST_HOPS;
	return level == SOL_SOCKET && name != SO_TIMESTAMP && name != SO_ATTACH_FILTER;
}

int evr_rs_dgram_set(struct evr_rs *rs, int level, int name, const void *value, socklen_t len)
{
	if (!is_for_udp(level, name))
		return -ENOTSUP;
	if (setsockopt(rs->dgram->udp_fd, level, name, value, len))
		return -errno;
	if (level == SOL_SOCKET)
		note(rs, name, value);
	return 0;
}

/* One that came is told once, be it known already or not. */
static int get_error(struct evr_rs *rs, void *value, socklen_t *len)
{
	int error;

	if (!rs->dgram->error || *len < sizeof(error))
		return getsockopt(rs->dgram->udp_fd, SOL_SOCKET, SO_ERROR, value, len) ? -errno : 0;
	error = -evr_rs_dgram_take_error(rs);
	memcpy(value, &error, sizeof(error));
	*len = sizeof(error);
	return 0;
}

int evr_rs_dgram_get(struct evr_rs *rs, int level, int name, void *value, socklen_t *len)
{
	if (level == SOL_SOCKET && name == SO_ERROR)
		return get_error(rs, value, len);
	if (!is_for_udp(level, name))
		return -ENOTSUP;
	return getsockopt(rs->dgram->udp_fd, level, name, value, len) ? -errno : 0;
}
