#include "rs/option.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/time.h>

#include "rs/dgram.h"
#include "rs/helper.h"
#include "rs/ready.h"
#include "util/number.h"

enum {
	DOUBLED = 2, /* as the kernel does for its own book-keeping, and programs expect */
	SEGMENT = 2048,
	SECONDS_MAX = 32767, /* of TCP's times, and how many probes it sends at most */
	PROBES_MAX = 127,
	US_PER_S = 1000000,
	LIMIT_MAX_S = 1 << 30, /* more is for ever */
};

/* --- the CM's -------------------------------------------------------------------------------- */

static int set_flag(struct evr_rs *rs, int name, bool on)
{
	int value = on;

	if (!rs->id)
		return 0;
	return rdma_set_option(rs->id, RDMA_OPTION_ID, name, &value, sizeof(value)) ? -errno : 0;
}

static int set_tos(struct evr_rs *rs)
{
	uint8_t tos = rs->options.tos;

	if (!rs->id)
		return 0;
	return rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos))
		       ? -errno
		       : 0;
}

void evr_rs_apply_options(struct evr_rs *rs)
{
	if (rs->options.reuseaddr)
		set_flag(rs, RDMA_OPTION_ID_REUSEADDR, true);
	if (rs->options.v6only)
		set_flag(rs, RDMA_OPTION_ID_AFONLY, true);
	if (rs->options.tos)
		set_tos(rs);
}

/* --- setting --------------------------------------------------------------------------------- */

static bool is_made(const struct evr_rs *rs)
{
	return rs->state == EVR_RS_CONNECTED || rs->state == EVR_RS_CONNECTING;
}

static int set_linger(struct evr_rs *rs, const void *value, socklen_t len)
{
	struct linger linger;

	if (len < sizeof(linger))
		return -EINVAL;
	memcpy(&linger, value, sizeof(linger));
	rs->options.linger = linger.l_onoff != 0;
	rs->options.linger_s = linger.l_linger < 0 ? 0 : linger.l_linger;
	return 0;
}

static bool is_limit(int level, int name)
{
	return level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO);
}

static int64_t limit_of(const struct timeval *time)
{
	if (time->tv_sec < 0)
		return -1;
	if (time->tv_sec >= LIMIT_MAX_S)
		return 0;
	return (int64_t)time->tv_sec * US_PER_S + time->tv_usec;
}

static int set_limit(struct evr_rs *rs, int name, const void *value, socklen_t len)
{
	struct timeval time;

	if (len < sizeof(time))
		return -EINVAL;
	memcpy(&time, value, sizeof(time));
	if (time.tv_usec < 0 || time.tv_usec >= US_PER_S)
		return -EDOM;
	*(name == SO_RCVTIMEO ? &rs->options.recv_limit_us : &rs->options.send_limit_us) =
		limit_of(&time);
	return 0;
}

/* What is connected has its buffers. */
static int set_buffer(struct evr_rs *rs, int name, int value)
{
	if (is_made(rs))
		return 0;
	if (name == SO_RCVBUF)
		rs->options.rx_size = evr_rs_rx_size((int64_t)value * DOUBLED);
	else
		rs->options.tx_size = evr_rs_tx_size((int64_t)value * DOUBLED);
	return 0;
}

static int set_socket(struct evr_rs *rs, int name, int value)
{
	switch (name) {
	case SO_REUSEADDR:
		rs->options.reuseaddr = value;
		return set_flag(rs, RDMA_OPTION_ID_REUSEADDR, value);
	case SO_RCVBUF:
	case SO_SNDBUF:
		return set_buffer(rs, name, value);
	case SO_KEEPALIVE:
		rs->options.keepalive = value;
		return evr_rs_keepalive_update(rs);
	case SO_OOBINLINE:
		rs->options.oobinline = value;
		return 0;
	case SO_BROADCAST:
		rs->options.broadcast = value;
		return 0;
	default:
		return -ENOTSUP;
	}
}

static int set_positive(int *to, int value, int most)
{
	if (value <= 0 || value > most)
		return -EINVAL;
	*to = value;
	return 0;
}

static int set_keepidle(struct evr_rs *rs, int value)
{
	int ret = set_positive(&rs->options.keepidle_s, value, SECONDS_MAX);

	return ret ? ret : evr_rs_keepalive_update(rs);
}

static int set_tcp(struct evr_rs *rs, int name, int value)
{
	switch (name) {
	case TCP_NODELAY:
		rs->options.nodelay = value;
		return 0;
	case TCP_KEEPIDLE:
		return set_keepidle(rs, value);
	case TCP_KEEPINTVL:
		return set_positive(&rs->options.keepintvl_s, value, SECONDS_MAX);
	case TCP_KEEPCNT:
		return set_positive(&rs->options.keepcnt, value, PROBES_MAX);
	case TCP_MAXSEG:
		return set_positive(&rs->options.maxseg, value, INT_MAX);
	default:
		return -ENOTSUP;
	}
}

static int set_rdma(struct evr_rs *rs, int name, int value)
{
	if (rs->state != EVR_RS_NEW && rs->state != EVR_RS_LISTENING)
		return -EINVAL;
	switch (name) {
	case RDMA_SQSIZE:
		rs->options.sq_size = evr_rs_queue_size(value);
		return 0;
	case RDMA_RQSIZE:
		rs->options.rq_size = evr_rs_queue_size(value);
		return 0;
	case RDMA_INLINE:
		rs->options.inline_size =
			value < 0 ? 0 : evr_smaller((uint32_t)value, EVR_RS_INLINE_MAX);
		return 0;
	case RDMA_IOMAPSIZE:
		rs->options.iomap_size = evr_rs_iomap_size(value);
		return 0;
	default:
		return -ENOTSUP;
	}
}

static int set_ip(struct evr_rs *rs, int level, int name, int value)
{
	if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY) {
		rs->options.v6only = value;
		return set_flag(rs, RDMA_OPTION_ID_AFONLY, value);
	}
	if (level == IPPROTO_IP && name == IP_TOS) {
		rs->options.tos = (uint8_t)value;
		return set_tos(rs);
	}
	return -ENOTSUP;
}

/* An option of IP that is one byte may be given as one. */
static int value_of(int level, const void *value, socklen_t len, int *number)
{
	if (len >= sizeof(*number))
		memcpy(number, value, sizeof(*number));
	else if (len && level == IPPROTO_IP)
		*number = *(const uint8_t *)value;
	else
		return -EINVAL;
	return 0;
}

static int set(struct evr_rs *rs, int level, int name, const void *value, socklen_t len)
{
	int number, ret;

	if (len > INT_MAX)
		return -EINVAL;
	if (!value)
		return -EFAULT;
	if (is_limit(level, name))
		return set_limit(rs, name, value, len);
	if (rs->dgram && level != SOL_RDMA)
		return evr_rs_dgram_set(rs, level, name, value, len);
	if (level == SOL_SOCKET && name == SO_LINGER)
		return set_linger(rs, value, len);
	if (level == IPPROTO_TCP && name == TCP_CONGESTION)
		return 0;
	if (level == SOL_RDMA && name == RDMA_ROUTE)
		return evr_rs_route_set(rs, value, len);
	ret = value_of(level, value, len, &number);
	if (ret)
		return ret;
	switch (level) {
	case SOL_SOCKET:
		return set_socket(rs, name, number);
	case IPPROTO_TCP:
		return set_tcp(rs, name, number);
	case SOL_RDMA:
		return set_rdma(rs, name, number);
	default:
		return set_ip(rs, level, name, number);
	}
}

int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	struct evr_rs *rs = evr_rs_enter(socket);

	return rs ? (int)evr_rs_leave(rs, set(rs, level, optname, optval, optlen)) : -1;
}

/* --- getting --------------------------------------------------------------------------------- */

/* Told once. */
static int take_error(struct evr_rs *rs)
{
	int error = 0;

	if (rs->state == EVR_RS_FAILED)
		error = rs->error;
	else if (rs->state == EVR_RS_CONNECTED)
		error = rs->stream.error;
	if (!error || rs->told)
		return 0;
	evr_rs_tell_error(rs);
	return -error;
}

static int get_socket(struct evr_rs *rs, int name, int *value)
{
	switch (name) {
	case SO_REUSEADDR:
		*value = rs->options.reuseaddr;
		return 0;
	case SO_RCVBUF:
		*value = (int)rs->options.rx_size;
		return 0;
	case SO_SNDBUF:
		*value = (int)rs->options.tx_size;
		return 0;
	case SO_KEEPALIVE:
		*value = rs->options.keepalive;
		return 0;
	case SO_OOBINLINE:
		*value = rs->options.oobinline;
		return 0;
	case SO_BROADCAST:
		*value = rs->options.broadcast;
		return 0;
	case SO_ERROR:
		*value = take_error(rs);
		return 0;
	case SO_TYPE:
		*value = SOCK_STREAM;
		return 0;
	case SO_DOMAIN:
		*value = rs->domain;
		return 0;
	case SO_PROTOCOL:
		*value = IPPROTO_TCP;
		return 0;
	case SO_ACCEPTCONN:
		*value = rs->state == EVR_RS_LISTENING;
		return 0;
	default:
		return -ENOTSUP;
	}
}

static int mtu_of(const struct evr_rs *rs)
{
	struct ibv_port_attr attr;

	if (!is_made(rs) || !rs->id || ibv_query_port(rs->id->verbs, rs->id->port_num, &attr))
		return rs->options.maxseg ? rs->options.maxseg : SEGMENT;
	return 1 << (attr.active_mtu + 7);
}

static int get_tcp(struct evr_rs *rs, int name, int *value)
{
	switch (name) {
	case TCP_NODELAY:
		*value = rs->options.nodelay;
		return 0;
	case TCP_KEEPIDLE:
		*value = rs->options.keepidle_s;
		return 0;
	case TCP_KEEPINTVL:
		*value = rs->options.keepintvl_s;
		return 0;
	case TCP_KEEPCNT:
		*value = rs->options.keepcnt;
		return 0;
	case TCP_MAXSEG:
		*value = mtu_of(rs);
		return 0;
	default:
		return -ENOTSUP;
	}
}

static int get_rdma(struct evr_rs *rs, int name, int *value)
{
	switch (name) {
	case RDMA_SQSIZE:
		*value = rs->options.sq_size;
		return 0;
	case RDMA_RQSIZE:
		*value = rs->options.rq_size;
		return 0;
	case RDMA_INLINE:
		*value = (int)rs->options.inline_size;
		return 0;
	case RDMA_IOMAPSIZE:
		*value = (int)rs->options.iomap_size;
		return 0;
	default:
		return -ENOTSUP;
	}
}

static int get_number(struct evr_rs *rs, int level, int name, int *value)
{
	if (level == SOL_SOCKET)
		return get_socket(rs, name, value);
	if (level == IPPROTO_TCP)
		return get_tcp(rs, name, value);
	if (level == SOL_RDMA)
		return get_rdma(rs, name, value);
	if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY)
		*value = rs->options.v6only;
	else if (level == IPPROTO_IP && name == IP_TOS)
		*value = rs->options.tos;
	else
		return -ENOTSUP;
	return 0;
}

static int copy(void *to, socklen_t *to_len, const void *value, socklen_t len)
{
	*to_len = evr_smaller(*to_len, len);
	memcpy(to, value, *to_len);
	return 0;
}

static int get_limit(const struct evr_rs *rs, int name, void *value, socklen_t *len)
{
	int64_t limit = name == SO_RCVTIMEO ? rs->options.recv_limit_us : rs->options.send_limit_us;
	struct timeval time = { 0 };

	if (limit > 0)
		time = (struct timeval){ limit / US_PER_S, limit % US_PER_S };
	return copy(value, len, &time, sizeof(time));
}

static int get_route(const struct evr_rs *rs, void *value, socklen_t *len)
{
	if (rs->dgram)
		return -ENOTSUP;
	*len = (socklen_t)evr_rs_route_get(rs, value, *len);
	return 0;
}

/* --- what TCP tells of itself ---------------------------------------------------------------- */

static uint8_t state_of_stream(const struct evr_stream *stream)
{
	if (stream->error || (stream->peer_shutdown && !evr_stream_is_tx_open(stream)))
		return TCP_CLOSE;
	if (stream->peer_shutdown)
		return TCP_CLOSE_WAIT;
	return evr_stream_is_tx_open(stream) ? TCP_ESTABLISHED : TCP_FIN_WAIT2;
}

static uint8_t state_of(const struct evr_rs *rs)
{
	if (evr_rs_is_connecting(rs))
		return TCP_SYN_SENT;
	if (rs->state == EVR_RS_LISTENING)
		return TCP_LISTEN;
	return rs->state == EVR_RS_CONNECTED ? state_of_stream(&rs->stream) : TCP_CLOSE;
}

/* Messages are in the place of packets; the rest has no like here, and is 0. */
static int get_info(const struct evr_rs *rs, void *value, socklen_t *len)
{
	struct tcp_info info = {
		.tcpi_state = state_of(rs),
		.tcpi_snd_mss = (uint32_t)mtu_of(rs),
		.tcpi_rcv_mss = (uint32_t)mtu_of(rs),
		.tcpi_snd_cwnd = rs->options.sq_size,
	};

	return copy(value, len, &info, sizeof(info));
}

static int get(struct evr_rs *rs, int level, int name, void *value, socklen_t *len)
{
	struct linger linger = { .l_onoff = rs->options.linger, .l_linger = rs->options.linger_s };
	int number, ret;

	if (!value || !len)
		return -EFAULT;
	if (*len > INT_MAX)
		return -EINVAL;
	if (is_limit(level, name))
		return get_limit(rs, name, value, len);
	if (rs->dgram && level != SOL_RDMA)
		return evr_rs_dgram_get(rs, level, name, value, len);
	if (level == SOL_SOCKET && name == SO_LINGER)
		return copy(value, len, &linger, sizeof(linger));
	if (level == IPPROTO_TCP && name == TCP_INFO)
		return get_info(rs, value, len);
	if (level == SOL_RDMA && name == RDMA_ROUTE)
		return get_route(rs, value, len);
	ret = get_number(rs, level, name, &number);
	return ret ? ret : copy(value, len, &number, sizeof(number));
}

int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	struct evr_rs *rs = evr_rs_enter(socket);

	return rs ? (int)evr_rs_leave(rs, get(rs, level, optname, optval, optlen)) : -1;
}
