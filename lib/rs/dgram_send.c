/* Sending datagrams. */
#include "rs/dgram.h"

#include <errno.h>

#include "util/clock.h"

enum {
	/* A host that was silent for so long may be another by now, which only UDP finds. */
	SILENT_US = 1000000,
	FLAGS = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_CONFIRM,
};

/* --- which way ------------------------------------------------------------------------------- */

static size_t header_len(const struct evr_rs_dest *dest)
{
	return evr_rs_addr_version(&dest->addr) == 4 ? EVR_DGRAM_LEN4 : EVR_DGRAM_LEN6;
}

static bool is_silent(struct evr_rs_dest *dest)
{
	uint64_t now = evr_clock_now_us();

	if (now - dest->heard_us < SILENT_US || now - dest->asked_us < SILENT_US)
		return false;
	dest->asked_us = now;
	return true;
}

static bool goes_by_udp(struct evr_rs_dest *dest, size_t len)
{
	return !dest->ah || !dest->ud->id || dest->ud->broken ||
	       header_len(dest) + len > dest->mtu || is_silent(dest);
}

static int encode(const struct evr_rs *rs, const struct evr_rs_dest *dest, uint8_t *bytes)
{
	struct evr_dgram_header header = {
		.version = evr_rs_addr_version(&dest->addr),
		.port = rs->dgram->port,
	};

	evr_rs_addr_bytes(&dest->ud->addr, header.addr);
	return evr_dgram_encode(&header, bytes, EVR_DGRAM_MAX);
}

/* What the device does not take goes the other way. */
static ssize_t send_by_ud(struct evr_rs *rs, struct evr_rs_dest *dest, struct evr_rs_iov *from)
{
	uint8_t *place = evr_rs_ud_place(dest->ud);
	struct evr_rs_iov copy = *from;
	int header;

	if (!place && !dest->ud->broken)
		return -EAGAIN;
	if (!place)
		return evr_rs_udp_send(rs, dest, EVR_DGRAM_DATA, from);
	header = encode(rs, dest, place);
	evr_rs_iov_get(&copy, place + header, from->left);
	if (evr_rs_ud_send(dest->ud, (size_t)header + from->left, dest->ah, dest->qpn))
		return evr_rs_udp_send(rs, dest, EVR_DGRAM_DATA, from);
	return (ssize_t)from->left;
}

static ssize_t send_to(struct evr_rs *rs, struct evr_rs_dest *dest, struct evr_rs_iov *from)
{
	if (goes_by_udp(dest, from->left))
		return evr_rs_udp_send(rs, dest, EVR_DGRAM_DATA, from);
	return send_by_ud(rs, dest, from);
}

/* --- waiting --------------------------------------------------------------------------------- */

static ssize_t send_one(struct evr_rs *rs, const union evr_rs_addr *to, struct evr_rs_iov *from)
{
	struct evr_rs_dest *dest = evr_rs_dest_get(rs, to);

	if (!dest)
		return -ENOMEM;
	evr_rs_dest_use(rs, dest, EVR_RS_SENT_TO);
	return send_to(rs, dest, from);
}

/* Whom it goes to may be forgotten while it waits. */
static ssize_t send_or_wait(
	struct evr_rs *rs, const union evr_rs_addr *to, struct evr_rs_iov *from, bool wait)
{
	struct evr_rs_wait until = evr_rs_wait_for(rs->options.send_limit_us);
	ssize_t ret;

	for (;;) {
		evr_rs_progress(rs);
		ret = evr_rs_dgram_take_error(rs);
		if (!ret)
			ret = send_one(rs, to, from);
		if (ret != -EAGAIN || !wait)
			return ret;
		ret = evr_rs_wait_again(rs, &until);
		if (ret)
			return ret;
	}
}

/* --- the call -------------------------------------------------------------------------------- */

static int find_dest(
	struct evr_rs *rs, const struct sockaddr *to, socklen_t len, union evr_rs_addr *addr)
{
	int ret = 0;

	if (to || len)
		ret = evr_rs_addr_set(addr, rs->domain, to, len);
	else if (rs->dgram->is_connected)
		*addr = rs->dgram->peer;
	else
		ret = -EDESTADDRREQ;
	if (!ret && !evr_rs_addr_port(addr))
		ret = -EINVAL;
	return ret;
}

/* What the longer one of the headers leaves: it goes both ways. */
static size_t longest(const union evr_rs_addr *to)
{
	if (evr_rs_addr_version(to) == 4)
		return EVR_DGRAM_MAX - EVR_DGRAM_UDP_LEN4;
	return EVR_DGRAM_MAX - EVR_DGRAM_UDP_LEN6;
}

static int check(struct evr_rs *rs, const struct evr_rs_iov *from, int flags)
{
	if (flags & ~FLAGS)
		return -EOPNOTSUPP;
	if (rs->dgram->no_send)
		return -EPIPE;
	if (from->left > UINT16_MAX)
		return -EMSGSIZE;
	return 0;
}

ssize_t evr_rs_dgram_send(struct evr_rs *rs, struct evr_rs_iov *from, int flags,
	const struct sockaddr *to, socklen_t to_len)
{
	union evr_rs_addr addr;
	int ret = check(rs, from, flags);

	if (!ret)
		ret = find_dest(rs, to, to_len, &addr);
	if (!ret && from->left > longest(&addr))
		ret = -EMSGSIZE;
	if (!ret)
		ret = evr_rs_dgram_open(rs);
	return ret ? ret : send_or_wait(rs, &addr, from, !rs->nonblock && !(flags & MSG_DONTWAIT));
}
