#include "drive.h"
#include "common.h"
#include "sock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include <event2/event.h>

struct loop {
	const struct drive *drive;
	struct event_base *base;
	struct event *event;
	unsigned serial; /* of the socket; 0: none */
	short events;
	int result;
};

static int run_plain(const struct drive *drive)
{
	int want;

	while ((want = drive->step(drive->arg)) > 0)
		;
	return want;
}

static short poll_events(int want)
{
	return (short)((want & DRIVE_READ ? POLLIN : 0) | (want & DRIVE_WRITE ? POLLOUT : 0));
}

static int run_poll(const struct drive *drive)
{
	int want, ret;

	while ((want = drive->step(drive->arg)) > 0) {
		if (want & DRIVE_AGAIN)
			continue;
		ret = sock_poll(drive->sock(drive->arg), poll_events(want), -1);
		if (ret < 0 && ret != -EINTR)
			return tool_complain(drive->name, "poll: %s", strerror(-ret));
	}
	return want;
}

static void loop_turn(evutil_socket_t fd, short what, void *arg);

static short loop_events(int want)
{
	return (short)((want & DRIVE_READ ? EV_READ : 0) | (want & DRIVE_WRITE ? EV_WRITE : 0));
}

/* The same event stays as long as the same is waited for, which costs no system call. */
static int loop_wait(struct loop *loop, int fd, unsigned serial, short events)
{
	if (loop->event && loop->serial == serial && loop->events == events)
		return 0;
	if (loop->event)
		event_free(loop->event);
	loop->serial = serial;
	loop->events = events;
	loop->event = event_new(loop->base, fd, (short)(events | EV_PERSIST), loop_turn, loop);
	return loop->event ? event_add(loop->event, NULL) : -1;
}

static int loop_next(struct loop *loop, int want)
{
	const struct sock *sock = loop->drive->sock(loop->drive->arg);
	int again = want & DRIVE_AGAIN;

	if (loop_wait(loop, again ? -1 : sock->fd, again ? 0 : sock->serial, loop_events(want)))
		return tool_complain(loop->drive->name, "event loop: cannot wait for a socket");
	if (again)
		event_active(loop->event, EV_TIMEOUT, 0);
	return 0;
}

static void loop_turn(evutil_socket_t fd, short what, void *arg)
{
	struct loop *loop = arg;
	int want = loop->drive->step(loop->drive->arg);

	if (want > 0 && !loop_next(loop, want))
		return;
	loop->result = want > 0 ? DRIVE_FAILED : want;
	event_base_loopbreak(loop->base);
}

static int run_loop(const struct drive *drive)
{
	struct loop loop = { .drive = drive, .result = DRIVE_FAILED };

	loop.base = event_base_new();
	if (!loop.base)
		return tool_complain(drive->name, "cannot make an event loop");
	if (loop_next(&loop, DRIVE_AGAIN) == 0)
		event_base_dispatch(loop.base);
	if (loop.event)
		event_free(loop.event);
	event_base_free(loop.base);
	return loop.result;
}

int drive_run(const struct drive *drive)
{
	switch (drive->mode) {
	case DRIVE_PLAIN:
		return run_plain(drive);
	case DRIVE_POLL:
		return run_poll(drive);
	default:
		return run_loop(drive);
	}
}

enum drive_mode drive_choose(const char *name, const struct sock *sock)
{
	if (sock_is_watchable(sock))
		return DRIVE_LOOP;
	tool_complain(name,
		"note: this librdmacm's rsockets cannot be waited for in an event loop; "
		"rpoll waits");
	return DRIVE_POLL;
}
