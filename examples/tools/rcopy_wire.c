#include "rcopy.h"

#include <errno.h>
#include <poll.h>

/*
 * A connection that broke is ready for ever, and the stock library's calls may say even so that
 * they would wait.
 */
static int wait_for(struct rcopy_peer *peer, short events)
{
	int ret = peer->hung_up ? -ECONNRESET : sock_poll(&peer->sock, events, peer->timeout_ms);

	if (ret == -EINTR)
		return 0;
	if (ret < 0)
		return ret;
	peer->hung_up = (ret & (POLLERR | POLLHUP | POLLNVAL)) != 0;
	return ret ? 0 : -ETIMEDOUT;
}

/* What a call gave: how far it came, -errno, or 0 after waiting for the next one. */
static ssize_t settle(struct rcopy_peer *peer, ssize_t len, short events)
{
	if (len == -EAGAIN || len == -EWOULDBLOCK)
		return wait_for(peer, events);
	if (len == -EINTR)
		return 0;
	return len ? len : -ECONNRESET;
}

int rcopy_send(struct rcopy_peer *peer, const void *data, size_t len_bytes)
{
	const char *next = data;
	ssize_t len = 0;

	for (; len_bytes && len >= 0; len_bytes -= (size_t)(len > 0 ? len : 0)) {
		len = sock_send(&peer->sock, next, len_bytes, MSG_DONTWAIT);
		len = settle(peer, len, POLLOUT);
		next += len > 0 ? len : 0;
	}
	return len < 0 ? (int)len : 0;
}

int rcopy_recv(struct rcopy_peer *peer, void *data, size_t len_bytes)
{
	char *next = data;
	ssize_t len = 0;

	for (; len_bytes && len >= 0; len_bytes -= (size_t)(len > 0 ? len : 0)) {
		len = sock_recv(&peer->sock, next, len_bytes, MSG_DONTWAIT);
		len = settle(peer, len, POLLIN);
		next += len > 0 ? len : 0;
	}
	return len < 0 ? (int)len : 0;
}

int rcopy_send_header(struct rcopy_peer *peer, int command, size_t more_bytes, uint32_t data)
{
	const struct rcopy_header header = {
		.command = (uint8_t)command,
		.len_bytes = (uint16_t)(RCOPY_HEADER_BYTES + more_bytes),
		.data = data,
	};

	return rcopy_send(peer, &header, sizeof(header));
}

int rcopy_recv_header(struct rcopy_peer *peer, struct rcopy_header *header, int command)
{
	int ret = rcopy_recv(peer, header, sizeof(*header));

	if (ret)
		return ret;
	if (header->version || header->command != command || header->len_bytes < RCOPY_HEADER_BYTES)
		return -EPROTO;
	return 0;
}
