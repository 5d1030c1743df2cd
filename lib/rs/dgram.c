/* A datagram rsocket from its making to its end, and what it shows. */
#include "rs/dgram.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "util/clock.h"

/* --- its beginning --------------------------------------------------------------------------- */

int evr_rs_dgram_watch(struct evr_rs *rs, int fd, void *of)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = of };

	if (!epoll_ctl(rs->dgram->epoll_fd, EPOLL_CTL_ADD, fd, &event) || errno == EEXIST)
		return 0;
	return -errno;
}

void evr_rs_dgram_unwatch(struct evr_rs *rs, int fd)
{
	epoll_ctl(rs->dgram->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static int open_fds(struct evr_rs *rs, struct evr_rs_dgram *dgram)
{
	int fd = evr_rs_udp_open(rs->domain, SOCK_NONBLOCK);

	if (fd < 0)
		return fd;
	dgram->udp_fd = fd;
	dgram->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (dgram->epoll_fd < 0)
		return -errno;
	return evr_rs_dgram_watch(rs, dgram->udp_fd, dgram);
}

int evr_rs_dgram_new(struct evr_rs *rs)
{
	struct evr_rs_dgram *dgram = calloc(1, sizeof(*dgram));
	int i;

	if (!dgram)
		return -ENOMEM;
	dgram->udp_fd = dgram->epoll_fd = -1;
	TAILQ_INIT(&dgram->uds);
	for (i = 0; i < EVR_RS_RANKS; i++)
		TAILQ_INIT(&dgram->known[i].dests);
	for (i = 0; i < EVR_RS_DEST_LISTS; i++)
		TAILQ_INIT(&dgram->by_addr[i]);
	TAILQ_INIT(&dgram->received);
	rs->dgram = dgram;
	return open_fds(rs, dgram);
}

/* --- its address ----------------------------------------------------------------------------- */

static int get_port(struct evr_rs *rs)
{
	union evr_rs_addr name;
	socklen_t len = sizeof(name);

	if (getsockname(rs->dgram->udp_fd, &name.sa, &len))
		return -errno;
	rs->dgram->port = evr_rs_addr_port(&name);
	return 0;
}

static int bind_to_any(struct evr_rs *rs)
{
	union evr_rs_addr any = { .sa.sa_family = (sa_family_t)rs->domain };
	socklen_t len = rs->domain == AF_INET ? sizeof(any.in) : sizeof(any.in6);

	return bind(rs->dgram->udp_fd, &any.sa, len) ? -errno : 0;
}

int evr_rs_dgram_open(struct evr_rs *rs)
{
	int ret;

	if (rs->state == EVR_RS_OPEN)
		return 0;
	ret = get_port(rs);
	if (!ret && !rs->dgram->port)
		ret = bind_to_any(rs);
	if (!ret && !rs->dgram->port)
		ret = get_port(rs);
	if (!ret)
		rs->state = EVR_RS_OPEN;
	return ret;
}

int evr_rs_dgram_bind(struct evr_rs *rs, const struct sockaddr *addr, socklen_t len)
{
	if (bind(rs->dgram->udp_fd, addr, len))
		return -errno;
	return evr_rs_dgram_open(rs);
}

/* UDP gives the port back too, if the kernel chose it: then it is another one from now on. */
static int leave_peer(struct evr_rs *rs, const struct sockaddr *addr, socklen_t len)
{
	if (connect(rs->dgram->udp_fd, addr, len))
		return -errno;
	rs->dgram->is_connected = false;
	rs->state = EVR_RS_NEW;
	return evr_rs_dgram_open(rs);
}

/* What can fail comes before the socket of UDP is connected: then it has the peer it had. */
static int set_peer(struct evr_rs *rs, const struct sockaddr *addr, socklen_t len)
{
	struct evr_rs_dest *dest;
	union evr_rs_addr peer;
	int ret = evr_rs_addr_set(&peer, rs->domain, addr, len);

	if (!ret)
		ret = evr_rs_dgram_open(rs);
	if (ret)
		return ret;
	dest = evr_rs_dest_get(rs, &peer);
	if (!dest)
		return -ENOMEM;
	if (connect(rs->dgram->udp_fd, addr, len))
		return -errno;
	rs->dgram->is_connected = true;
	rs->dgram->peer = peer;
	evr_rs_dest_use(rs, dest, EVR_RS_SENT_TO);
	return 0;
}

static bool is_nobody(const struct sockaddr *addr, socklen_t len)
{
	return addr && len >= sizeof(addr->sa_family) && addr->sa_family == AF_UNSPEC;
}

int evr_rs_dgram_connect(struct evr_rs *rs, const struct sockaddr *addr, socklen_t len)
{
	return is_nobody(addr, len) ? leave_peer(rs, addr, len) : set_peer(rs, addr, len);
}

/* That of UDP stays open: it has to tell the queue pair, and to be told. */
int evr_rs_dgram_shutdown(struct evr_rs *rs, int how)
{
	struct evr_rs_dgram *dgram = rs->dgram;

	if (!dgram->is_connected)
		return -ENOTCONN;
	dgram->no_recv |= how != SHUT_WR;
	dgram->no_send |= how != SHUT_RD;
	evr_rs_wake(rs);
	return 0;
}

int evr_rs_dgram_name(struct evr_rs *rs, struct sockaddr *addr, socklen_t *len, bool peer)
{
	int fd = rs->dgram->udp_fd;

	return (peer ? getpeername(fd, addr, len) : getsockname(fd, addr, len)) ? -errno : 0;
}

/* --- its state ------------------------------------------------------------------------------- */

static bool has_room(const struct evr_rs_dgram *dgram)
{
	const struct evr_rs_ud *ud;

	TAILQ_FOREACH (ud, &dgram->uds, link)
		if (ud->id && !ud->free)
			return false;
	return !dgram->udp_full;
}

int evr_rs_dgram_events(const struct evr_rs *rs)
{
	const struct evr_rs_dgram *dgram = rs->dgram;
	int events = 0;

	if (!TAILQ_EMPTY(&dgram->received) || dgram->no_recv)
		events |= POLLIN | POLLRDNORM;
	if (dgram->no_send || has_room(dgram))
		events |= POLLOUT | POLLWRNORM;
	if (dgram->error)
		events |= POLLERR;
	if (dgram->no_recv)
		events |= EVR_RS_RDHUP;
	if (dgram->no_recv && dgram->no_send)
		events |= POLLHUP;
	return events;
}

bool evr_rs_dgram_has_left(struct evr_rs *rs)
{
	struct evr_rs_ud *ud;

	TAILQ_FOREACH (ud, &rs->dgram->uds, link) {
		evr_rs_ud_poll_send(ud);
		if (ud->id && !ud->broken && ud->free < ud->sq_size)
			return false;
	}
	return true;
}

int evr_rs_dgram_take_error(struct evr_rs *rs)
{
	int ret = rs->dgram->error;

	rs->dgram->error = 0;
	return ret;
}

/* --- its end --------------------------------------------------------------------------------- */

void evr_rs_dgram_close_fds(struct evr_rs_dgram *dgram)
{
	if (dgram->udp_fd >= 0)
		close(dgram->udp_fd);
	if (dgram->epoll_fd >= 0)
		close(dgram->epoll_fd);
	dgram->udp_fd = dgram->epoll_fd = -1;
}

void evr_rs_dgram_end(struct evr_rs *rs)
{
	struct evr_rs_dgram *dgram = rs->dgram;
	struct evr_rs_packet *packet;
	struct evr_rs_ud *ud;

	if (!dgram)
		return;
	evr_rs_dests_end(rs);
	while ((ud = TAILQ_FIRST(&dgram->uds)))
		evr_rs_ud_free(ud);
	while ((packet = TAILQ_FIRST(&dgram->received)))
		evr_rs_packet_drop(rs, packet);
	evr_rs_dgram_close_fds(dgram);
}

void evr_rs_dgram_fini(struct evr_rs *rs)
{
	free(rs->dgram);
	rs->dgram = NULL;
}
