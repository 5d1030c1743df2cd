#include "rs/ready.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FILL_MAX = 16, DRAIN = 64 };

/* --- one state at a time --------------------------------------------------------------------- */

static void send_byte(int fd)
{
	ssize_t ret = send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);

	(void)ret;
}

static void drain(int fd)
{
	char bytes[DRAIN];

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) == (ssize_t)sizeof(bytes))
		;
}

static bool is_writable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	return poll(&pfd, 1, 0) > 0 && pfd.revents & POLLOUT;
}

static void show_readable(struct evr_rs *rs, bool readable)
{
	if (rs->shown.readable == readable)
		return;
	rs->shown.readable = readable;
	if (readable)
		send_byte(rs->other_fd);
	else
		drain(rs->fd);
}

/* How many bytes a buffer takes is the kernel's affair. */
static void show_writable(struct evr_rs *rs, bool writable)
{
	int i;

	if (rs->shown.full == !writable)
		return;
	rs->shown.full = !writable;
	if (writable)
		drain(rs->other_fd);
	for (i = 0; !writable && i < FILL_MAX && is_writable(rs->fd); i++)
		send_byte(rs->fd);
}

static void show_end_of_reading(struct evr_rs *rs)
{
	if (!rs->shown.rdhup)
		shutdown(rs->other_fd, SHUT_WR);
	rs->shown.rdhup = true;
}

static void show_hangup(struct evr_rs *rs)
{
	if (!rs->shown.hangup)
		shutdown(rs->other_fd, SHUT_RDWR);
	rs->shown.hangup = true;
}

/* An end that closes with something unread is a reset to the other. */
static void show_error(struct evr_rs *rs)
{
	if (!rs->shown.full)
		send_byte(rs->fd);
	close(rs->other_fd);
	rs->other_fd = -1;
	rs->shown.hangup = true;
}

void evr_rs_tell_error(struct evr_rs *rs)
{
	int error;
	socklen_t len = sizeof(error);

	rs->told = true;
	if (rs->fd >= 0 && rs->shown.hangup)
		getsockopt(rs->fd, SOL_SOCKET, SO_ERROR, &error, &len);
}

/* --- all of it ------------------------------------------------------------------------------- */

bool evr_rs_shows_all(const struct evr_rs *rs)
{
	return rs->shown.hangup;
}

static bool can_show(const struct evr_rs *rs)
{
	return rs->other_fd >= 0 && rs->fd >= 0 && rs->state != EVR_RS_NEW;
}

/*
 * A new one cannot show that it is hung up: it could never be undone. Nor can it show an error of
 * datagrams, which passes: it is readable then.
 */
void evr_rs_show(struct evr_rs *rs)
{
	int events = evr_rs_poll_events(rs, POLLIN | POLLOUT | EVR_RS_RDHUP);

	if (!can_show(rs))
		return;
	if (events & POLLERR && !rs->dgram) {
		show_error(rs);
		return;
	}
	show_readable(rs, events & (POLLIN | POLLERR));
	show_writable(rs, events & POLLOUT);
	if (events & EVR_RS_RDHUP)
		show_end_of_reading(rs);
	if (events & POLLHUP)
		show_hangup(rs);
}

void evr_rs_hide(struct evr_rs *rs)
{
	int events = evr_rs_poll_events(rs, POLLIN | POLLOUT | EVR_RS_RDHUP);

	if (!can_show(rs))
		return;
	if (!(events & (POLLIN | POLLERR)))
		show_readable(rs, false);
	if (!(events & (POLLOUT | POLLERR)))
		show_writable(rs, false);
}

void evr_rs_show_nothing(struct evr_rs *rs)
{
	if (!can_show(rs) || evr_rs_shows_all(rs))
		return;
	show_readable(rs, false);
	show_writable(rs, false);
}
