/*
 * A listener of several processes: the thread accepts connections of both kinds, and hands each to
 * whoever asks first, as a descriptor with its names.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/broker.h"
#include "preload/real.h"

/* ACCEPTED: an rsocket that has no pair yet. HELD: a connection that could not be handed on yet. */
enum { RS, TCP, PAIR, ACCEPTED, HELD };

/* What comes with a descriptor. */
struct message {
	bool is_carried;
	struct sockaddr_storage peer, own;
};

struct shared {
	struct evr_brokered thing;
	struct sockaddr_storage accepted; /* the peer of that one */
	struct message message;		  /* of the one that is held */
	bool is_short[TCP + 1]; /* nothing of that kind can be taken for now */
};

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

/* --- handing on ------------------------------------------------------------------------------ */

static void describe(struct msghdr *msg, struct iovec *piece, union control *control)
{
	memset(control, 0, sizeof(*control));
	*msg = (struct msghdr){
		.msg_iov = piece,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(*control),
	};
}

static int give(int pair, int fd, const struct message *message)
{
	struct iovec piece = { .iov_base = (void *)message, .iov_len = sizeof(*message) };
	union control control;
	struct msghdr msg;

	describe(&msg, &piece, &control);
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return evr_pre_real()->sendmsg(pair, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int take(int pair, int flags, struct message *message)
{
	struct iovec piece = { .iov_base = message, .iov_len = sizeof(*message) };
	union control control;
	struct msghdr msg;
	ssize_t ret;
	int fd;

	describe(&msg, &piece, &control);
	ret = evr_pre_real()->recvmsg(pair, &msg, flags);
	if (ret < 0)
		return -1;
	if (ret != sizeof(*message) || msg.msg_controllen < CMSG_LEN(sizeof(fd))) {
		errno = ret ? ECONNABORTED : EINVAL;
		return -1;
	}
	memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	return fd;
}

/* --- in the thread --------------------------------------------------------------------------- */

/* Of the process, of the machine, or of what the kernel lets be on its way. */
static bool is_shortage(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -ENOBUFS ||
	       error == -EAGAIN || error == -ETOOMANYREFS || error == -EINTR;
}

/* Whether nothing is held any more: it is the receiver's, or there is none. */
static bool hand_on(struct shared *shared)
{
	int *held = &shared->thing.fds[HELD].fd;

	if (*held < 0)
		return true;
	if (is_shortage(give(shared->thing.fds[PAIR].fd, *held, &shared->message))) {
		evr_broker_pause(&shared->thing);
		return false;
	}
	evr_pre_real()->close(*held);
	*held = -1;
	return true;
}

static int accept_next_rs(struct shared *shared)
{
	socklen_t len = sizeof(shared->accepted);
	int rs;

	memset(&shared->accepted, 0, sizeof(shared->accepted));
	rs = raccept(shared->thing.fds[RS].fd, (struct sockaddr *)&shared->accepted, &len);
	if (rs < 0)
		return -errno;
	if (rfcntl(rs, F_SETFL, O_RDWR | O_NONBLOCK)) {
		int ret = -errno;

		rclose(rs);
		return ret;
	}
	evr_pre_real()->fcntl(rs, F_SETFD, FD_CLOEXEC);
	shared->thing.fds[ACCEPTED].fd = rs;
	return 0;
}

static int accept_rs(struct shared *shared)
{
	int *accepted = &shared->thing.fds[ACCEPTED].fd;
	int ret = *accepted < 0 ? accept_next_rs(shared) : 0;
	struct message message = { .is_carried = true };
	socklen_t len = sizeof(message.own);

	if (ret)
		return ret;
	rgetsockname(*accepted, (struct sockaddr *)&message.own, &len);
	ret = evr_broker_carry(*accepted, true);
	if (ret < 0)
		return ret;
	*accepted = -1;
	message.peer = shared->accepted;
	shared->message = message;
	return ret;
}

static int accept_tcp(struct shared *shared)
{
	socklen_t len = sizeof(shared->message.peer);
	int fd;

	memset(&shared->message, 0, sizeof(shared->message));
	fd = evr_pre_real()->accept4(shared->thing.fds[TCP].fd,
		(struct sockaddr *)&shared->message.peer, &len, SOCK_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void drop(struct shared *shared, int which)
{
	int fd = shared->thing.fds[which].fd;

	evr_broker_watch(&shared->thing, which, 0, false);
	shared->thing.fds[which].fd = -1;
	if (fd < 0)
		return;
	if (which == RS || which == ACCEPTED)
		rclose(fd);
	else
		evr_pre_real()->close(fd);
}

/* Its device is gone, or it does not listen: it would show that for ever. */
static bool has_ended(int error)
{
	return error == -ENODEV || error == -EINVAL || error == -EBADF;
}

/* What is short is not watched for a while: it would show that it has more all the time. */
static void look_at_error(struct shared *shared, int which, int error)
{
	if (has_ended(error))
		drop(shared, which);
	if (error == -EAGAIN || !is_shortage(error))
		return;
	shared->is_short[which] = true;
	evr_broker_pause(&shared->thing);
}

/* Whether that kind may have more. */
static bool accept_one(struct shared *shared, int which)
{
	int listener = shared->thing.fds[which].fd, fd;

	if (!hand_on(shared) || listener < 0 || shared->is_short[which])
		return false;
	fd = which == RS ? accept_rs(shared) : accept_tcp(shared);
	if (fd < 0) {
		look_at_error(shared, which, fd);
		return false;
	}
	shared->thing.fds[HELD].fd = fd;
	return hand_on(shared);
}

static void end(struct shared *shared)
{
	evr_broker_stop(&shared->thing);
	drop(shared, RS);
	drop(shared, TCP);
	drop(shared, PAIR);
	drop(shared, ACCEPTED);
	drop(shared, HELD);
	free(shared);
}

static bool is_over(const struct shared *shared, short events)
{
	return events & (POLLHUP | POLLERR) ||
	       (shared->thing.fds[RS].fd < 0 && shared->thing.fds[TCP].fd < 0 &&
		       shared->thing.fds[HELD].fd < 0);
}

static short events_of(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	return poll(&pfd, 1, 0) > 0 ? pfd.revents : 0;
}

/* While one is held, or the pair is full, those to come wait to be accepted. */
static void watch(struct shared *shared, bool has_room)
{
	bool takes = has_room && shared->thing.fds[HELD].fd < 0;
	int which;

	for (which = RS; which <= TCP; which++)
		evr_broker_watch(&shared->thing, which,
			takes && !shared->is_short[which] ? EPOLLIN : 0, false);
	evr_broker_watch(&shared->thing, PAIR, has_room ? 0 : EPOLLOUT, true);
}

static void look(struct evr_brokered *thing)
{
	struct shared *shared = evr_container_of(thing, struct shared, thing);
	bool more = true;
	short events;

	memset(shared->is_short, 0, sizeof(shared->is_short));
	while ((events = events_of(thing->fds[PAIR].fd)) == POLLOUT && more) {
		more = accept_one(shared, RS);
		more = accept_one(shared, TCP) || more;
	}
	if (is_over(shared, events))
		end(shared);
	else
		watch(shared, events);
}

/* --- its two sides --------------------------------------------------------------------------- */

int evr_broker_share(int rs, int tcp)
{
	struct shared *shared = calloc(1, sizeof(*shared));
	int ends[2], ret;

	if (!shared)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		ret = -errno;
		goto out_shared;
	}
	shared->thing.look = look;
	shared->thing.fds[RS].fd = rs;
	shared->thing.fds[TCP].fd = tcp;
	shared->thing.fds[PAIR].fd = ends[1];
	shared->thing.fds[ACCEPTED].fd = shared->thing.fds[HELD].fd = -1;
	ret = evr_broker_start(&shared->thing);
	if (!ret)
		return ends[0];
	evr_pre_real()->close(ends[0]);
	evr_pre_real()->close(ends[1]);
out_shared:
	free(shared);
	return ret;
}

/* What comes with a message is lost where there is no number for it. */
static bool has_number(int fd)
{
	int number = evr_pre_real()->fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (number >= 0)
		evr_pre_real()->close(number);
	return number >= 0;
}

int evr_broker_accept(int fd, int flags, struct sockaddr_storage *peer,
	struct sockaddr_storage *own, bool *is_carried)
{
	const struct evr_pre_real *real = evr_pre_real();
	struct message message;
	int taken = -1;

	if (has_number(fd))
		taken = take(fd, flags & SOCK_CLOEXEC ? MSG_CMSG_CLOEXEC : 0, &message);
	if (taken < 0)
		return -1;
	if (flags & SOCK_NONBLOCK)
		real->fcntl(taken, F_SETFL, real->fcntl(taken, F_GETFL) | O_NONBLOCK);
	*peer = message.peer;
	*own = message.own;
	*is_carried = message.is_carried;
	return taken;
}
