/* Messages by UDP: those that tell a queue pair, and those that do not go by one. */
#include "rs/dgram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/number.h"

enum { READ_MAX = 64 /* at once */ };

/* Not by socket(2), for which a module that is preloaded makes another such rsocket. */
int evr_rs_udp_open(int domain, int flags)
{
	long fd = syscall(SYS_socket, domain, SOCK_DGRAM | SOCK_CLOEXEC | flags, 0);

	return fd < 0 ? -errno : (int)fd;
}

/* --- sending --------------------------------------------------------------------------------- */

static int encode(const struct evr_rs_dest *dest, enum evr_dgram_op op, uint8_t *bytes, size_t size)
{
	const struct evr_rs_ud *ud = dest->ud;
	struct evr_dgram_message message = {
		.version = evr_rs_addr_version(&dest->addr),
		.op = (uint8_t)op,
		.qpn = ud && ud->id ? ud->id->qp->qp_num : 0,
	};

	if (ud)
		evr_rs_addr_bytes(&ud->addr, message.addr);
	return evr_dgram_message_encode(&message, bytes, size);
}

void evr_rs_udp_set_full(struct evr_rs *rs, bool full)
{
	struct evr_rs_dgram *dgram = rs->dgram;
	struct epoll_event event = {
		.events = full ? EPOLLIN | EPOLLOUT : EPOLLIN,
		.data.ptr = dgram,
	};

	if (dgram->udp_full == full)
		return;
	dgram->udp_full = full;
	epoll_ctl(dgram->epoll_fd, EPOLL_CTL_MOD, dgram->udp_fd, &event);
}

static int send_bytes(
	struct evr_rs *rs, const struct evr_rs_dest *dest, const uint8_t *bytes, size_t len)
{
	union evr_rs_addr to;
	socklen_t to_len = evr_rs_addr_for(&dest->addr, rs->domain, &to);
	ssize_t ret = sendto(rs->dgram->udp_fd, bytes, len, MSG_NOSIGNAL, &to.sa, to_len);

	if (ret >= 0)
		return 0;
	if (errno == EAGAIN)
		evr_rs_udp_set_full(rs, true);
	return -errno;
}

ssize_t evr_rs_udp_send(
	struct evr_rs *rs, struct evr_rs_dest *dest, enum evr_dgram_op op, struct evr_rs_iov *iov)
{
	struct evr_rs_iov copy = { 0 };
	uint8_t bytes[EVR_DGRAM_MAX];
	int len = encode(dest, op, bytes, sizeof(bytes)), ret;
	size_t data_len = iov ? iov->left : 0;

	if (len < 0)
		return len;
	if (data_len > sizeof(bytes) - (size_t)len)
		return -EMSGSIZE;
	if (data_len) {
		copy = *iov;
		evr_rs_iov_get(&copy, bytes + len, data_len);
	}
	ret = send_bytes(rs, dest, bytes, (size_t)len + data_len);
	evr_rs_dgram_expect(rs);
	return ret ? ret : (ssize_t)data_len;
}

/* --- receiving ------------------------------------------------------------------------------- */

/* As many wait as there are receives; the next one is lost, as with any buffer that is full. */
static bool is_full(const struct evr_rs *rs)
{
	uint32_t most = evr_smaller(rs->options.rq_size, rs->options.rx_size / EVR_DGRAM_MAX);

	return rs->dgram->num_by_udp >= (most ? most : 1);
}

static bool keep(struct evr_rs *rs, const union evr_rs_addr *from, const uint8_t *data, size_t len)
{
	struct evr_rs_packet *packet = is_full(rs) ? NULL : malloc(sizeof(*packet) + len);

	if (!packet)
		return false;
	*packet = (struct evr_rs_packet){ .from = *from, .data = (uint8_t *)(packet + 1) };
	packet->len = len;
	memcpy(packet + 1, data, len);
	TAILQ_INSERT_TAIL(&rs->dgram->received, packet, link);
	rs->dgram->num_by_udp++;
	return true;
}

/* Whoever sends data by UDP does not know our queue pair. */
static void meet(
	struct evr_rs *rs, const union evr_rs_addr *from, const struct evr_dgram_message *message)
{
	struct evr_rs_dest *dest = evr_rs_dest_get(rs, from);

	if (!dest)
		return;
	evr_rs_dest_use(rs, dest, EVR_RS_HEARD);
	if (message->op == EVR_DGRAM_DATA && dest->ud && dest->ud->id)
		evr_rs_udp_send(rs, dest, EVR_DGRAM_CONTROL, NULL);
	evr_rs_dest_told(rs, dest, message->qpn);
}

static bool take(struct evr_rs *rs, const union evr_rs_addr *from, const uint8_t *bytes, size_t len)
{
	struct evr_dgram_message message;
	int header = evr_dgram_message_decode(&message, bytes, len);

	if (header < 0)
		return false;
	meet(rs, from, &message);
	if (message.op != EVR_DGRAM_DATA)
		return false;
	return keep(rs, from, bytes + header, len - (size_t)header);
}

/* 1: a message more; 0: what came is none; -EAGAIN: nothing did; -errno: an error did. */
static int read_one(struct evr_rs *rs)
{
	uint8_t bytes[EVR_DGRAM_MAX];
	union evr_rs_addr name, from;
	socklen_t len = sizeof(name);
	ssize_t ret = recvfrom(rs->dgram->udp_fd, bytes, sizeof(bytes), MSG_TRUNC, &name.sa, &len);

	if (ret < 0)
		return -errno;
	if ((size_t)ret > sizeof(bytes) || evr_rs_addr_set(&from, rs->domain, &name.sa, len))
		return 0;
	return take(rs, &from, bytes, (size_t)ret);
}

bool evr_rs_udp_read(struct evr_rs *rs)
{
	bool any = false;
	int ret = 0, i;

	for (i = 0; i < READ_MAX && ret >= 0; i++) {
		ret = read_one(rs);
		any |= ret > 0;
	}
	evr_rs_dgram_expect(rs);
	if (ret >= 0 || ret == -EAGAIN)
		return any;
	rs->dgram->error = ret;
	return true;
}
