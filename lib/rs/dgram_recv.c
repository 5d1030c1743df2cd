/* Receiving datagrams. */
#include "rs/dgram.h"

#include <errno.h>
#include <stdlib.h>

enum {
	FLAGS = MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC | MSG_WAITALL | MSG_NOSIGNAL | MSG_CMSG_CLOEXEC
};

/* --- messages -------------------------------------------------------------------------------- */

/* From a host, whose socket it was connected to if it is connected. */
bool evr_rs_dgram_takes(const struct evr_rs *rs, const union evr_rs_addr *from)
{
	const struct evr_rs_dgram *dgram = rs->dgram;

	if (rs->domain == AF_INET && from->sa.sa_family != AF_INET)
		return false;
	if (!evr_rs_addr_is_host(from))
		return false;
	return !dgram->is_connected || evr_rs_addr_equal(from, &dgram->peer);
}

void evr_rs_packet_drop(struct evr_rs *rs, struct evr_rs_packet *packet)
{
	struct evr_rs_ud *ud = packet->ud;

	TAILQ_REMOVE(&rs->dgram->received, packet, link);
	if (!ud) {
		rs->dgram->num_by_udp--;
		free(packet);
	} else if (evr_rs_ud_post(ud, packet)) {
		ud->broken = true;
	}
}

static ssize_t take(struct evr_rs *rs, struct evr_rs_packet *packet, struct evr_rs_iov *to,
	int flags, struct evr_rs_sender *sender)
{
	size_t len = packet->len, room = to->left;

	evr_rs_iov_put(to, packet->data, len < room ? len : room);
	if (sender->addr)
		sender->len =
			evr_rs_addr_copy(&packet->from, rs->domain, sender->addr, sender->room);
	sender->flags = len > room ? MSG_TRUNC : 0;
	if (!(flags & MSG_PEEK))
		evr_rs_packet_drop(rs, packet);
	return (ssize_t)(len < room || flags & MSG_TRUNC ? len : room);
}

/* --- waiting for one ------------------------------------------------------------------------- */

static ssize_t take_first(
	struct evr_rs *rs, struct evr_rs_iov *to, int flags, struct evr_rs_sender *sender)
{
	struct evr_rs_packet *packet;
	int ret;

	if (TAILQ_EMPTY(&rs->dgram->received))
		evr_rs_progress(rs);
	ret = evr_rs_dgram_take_error(rs);
	if (ret)
		return ret;
	packet = TAILQ_FIRST(&rs->dgram->received);
	return packet ? take(rs, packet, to, flags, sender) : -EAGAIN;
}

ssize_t evr_rs_dgram_recv(
	struct evr_rs *rs, struct evr_rs_iov *to, int flags, struct evr_rs_sender *sender)
{
	struct evr_rs_wait until = evr_rs_wait_for(rs->options.recv_limit_us);
	bool wait = !rs->nonblock && !(flags & MSG_DONTWAIT);
	ssize_t ret = flags & ~FLAGS ? -EOPNOTSUPP : evr_rs_dgram_open(rs);

	while (!ret) {
		ret = take_first(rs, to, flags, sender);
		if (ret != -EAGAIN)
			return ret;
		if (rs->dgram->no_recv)
			return 0;
		ret = wait ? evr_rs_wait_again(rs, &until) : -EAGAIN;
	}
	return ret;
}
