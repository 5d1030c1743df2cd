/* A connection by RDMA, between an rsocket and the program's end of a pair. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <stdlib.h>

#include "preload/broker.h"
#include "preload/real.h"

enum { RS, PAIR, SIZE = 64 * 1024 };

/* What goes one way. It is filled when it is empty. */
struct way {
	size_t start, end;
	bool has_ended, is_told;
	char data[SIZE];
};

struct carried {
	struct evr_brokered thing;
	bool is_gone; /* the program has closed its end, in each process */
	struct way in, out;
};

static int rs_of(const struct carried *carried)
{
	return carried->thing.fds[RS].fd;
}

static int pair_of(const struct carried *carried)
{
	return carried->thing.fds[PAIR].fd;
}

/* --- one way --------------------------------------------------------------------------------- */

static bool is_empty(const struct way *way)
{
	return way->start == way->end;
}

static bool wants(const struct way *way)
{
	return is_empty(way) && !way->has_ended;
}

static void fill(struct way *way, ssize_t (*call)(int, void *, size_t, int), int fd)
{
	ssize_t ret;

	if (!wants(way))
		return;
	ret = call(fd, way->data, SIZE, MSG_DONTWAIT);
	way->start = 0;
	way->end = ret > 0 ? (size_t)ret : 0;
	way->has_ended = !ret || (ret < 0 && errno != EAGAIN && errno != EINTR);
}

/* Whether it can take more; one that cannot, ever, loses the rest. */
static bool empty(struct way *way, ssize_t (*call)(int, const void *, size_t, int), int fd)
{
	while (!is_empty(way)) {
		ssize_t ret = call(fd, way->data + way->start, way->end - way->start,
			MSG_DONTWAIT | MSG_NOSIGNAL);

		if (ret < 0)
			return errno == EAGAIN || errno == EINTR;
		way->start += (size_t)ret;
	}
	return true;
}

static void give_up(struct way *way)
{
	way->start = way->end;
	way->has_ended = way->is_told = true;
}

static bool has_to_tell(const struct way *way)
{
	return way->has_ended && is_empty(way) && !way->is_told;
}

/* --- both ------------------------------------------------------------------------------------ */

static void move_in(struct carried *carried)
{
	struct way *in = &carried->in;

	fill(in, rrecv, rs_of(carried));
	if (!empty(in, evr_pre_real()->send, pair_of(carried)))
		give_up(in);
	if (!has_to_tell(in))
		return;
	in->is_told = true;
	evr_pre_real()->shutdown(pair_of(carried), SHUT_WR);
}

static void move_out(struct carried *carried)
{
	struct way *out = &carried->out;

	fill(out, evr_pre_real()->recv, pair_of(carried));
	if (!empty(out, rsend, rs_of(carried))) {
		give_up(out);
		evr_pre_real()->shutdown(pair_of(carried), SHUT_RD);
	}
	if (!has_to_tell(out))
		return;
	out->is_told = true;
	rshutdown(rs_of(carried), SHUT_WR);
}

static bool is_hung_up(int fd)
{
	struct pollfd pfd = { .fd = fd };

	return poll(&pfd, 1, 0) > 0 && pfd.revents & (POLLHUP | POLLERR);
}

/* What came too late is read: left there, it would make a reset of the end. */
static void close_pair(int fd)
{
	char late[1024];

	evr_pre_real()->shutdown(fd, SHUT_RDWR);
	while (evr_pre_real()->recv(fd, late, sizeof(late), MSG_DONTWAIT) > 0)
		;
	evr_pre_real()->close(fd);
}

static void end(struct carried *carried)
{
	evr_broker_stop(&carried->thing);
	close_pair(pair_of(carried));
	rclose(rs_of(carried));
	free(carried);
}

/* An end that nobody looks at may hang up, and would say so again and again. */
static void watch(struct carried *carried)
{
	const struct way *in = &carried->in, *out = &carried->out;
	uint32_t rs = (wants(in) ? EPOLLIN : 0) | (is_empty(out) ? 0 : EPOLLOUT);
	uint32_t pair = (wants(out) ? EPOLLIN : 0) | (is_empty(in) ? 0 : EPOLLOUT);

	evr_broker_watch(&carried->thing, RS, rs, false);
	evr_broker_watch(&carried->thing, PAIR, pair, !carried->is_gone);
}

static void look(struct evr_brokered *thing)
{
	struct carried *carried = evr_container_of(thing, struct carried, thing);

	carried->is_gone = carried->is_gone || is_hung_up(pair_of(carried));
	if (carried->is_gone)
		give_up(&carried->in);
	move_in(carried);
	move_out(carried);
	if (carried->in.is_told && carried->out.is_told)
		end(carried);
	else
		watch(carried);
}

static bool has_bytes(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	char byte;

	return poll(&pfd, 1, 0) > 0 && evr_pre_real()->recv(fd, &byte, 1, MSG_PEEK) > 0;
}

bool evr_broker_flush(struct evr_brokered *thing, bool is_last)
{
	struct carried *carried = evr_container_of(thing, struct carried, thing);

	if (thing->look != look || rs_of(carried) < 0)
		return false;
	move_out(carried);
	if (!is_last)
		return !is_empty(&carried->out) || has_bytes(pair_of(carried));
	evr_broker_watch(thing, RS, 0, false);
	rclose(rs_of(carried));
	thing->fds[RS].fd = -1;
	return false;
}

int evr_broker_carry(int rs, bool is_within)
{
	struct carried *carried = calloc(1, sizeof(*carried));
	int ends[2], ret, i;

	if (!carried)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		ret = -errno;
		goto out_carried;
	}
	carried->thing.look = look;
	for (i = 0; i < EVR_BROKER_FDS; i++)
		carried->thing.fds[i].fd = -1;
	carried->thing.fds[RS].fd = rs;
	carried->thing.fds[PAIR].fd = ends[1];
	ret = is_within ? evr_broker_start_within(&carried->thing)
			: evr_broker_start(&carried->thing);
	if (!ret)
		return ends[0];
	evr_pre_real()->close(ends[0]);
	evr_pre_real()->close(ends[1]);
out_carried:
	free(carried);
	return ret;
}
