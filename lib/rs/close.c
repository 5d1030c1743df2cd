/*
 * Ending: in one direction or both, for good, and with the process. Nothing of it waits for longer
 * than it says.
 */
#include "rs/dgram.h"
#include "rs/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/clock.h"

enum {
	SAY_MS = 5000,	 /* for room to say it; a peer that stops for longer misses it */
	CLOSE_MS = 5000, /* for what was sent to arrive, where SO_LINGER says nothing */
	MS_PER_S = 1000,
	EXIT_US = 500000, /* what the end of the process waits, for all of them */
};

static atomic_uint closers; /* threads in rclose() */

static uint64_t in_ms(uint64_t ms)
{
	return evr_clock_now_us() + ms * EVR_US_PER_MS;
}

/* --- shutting down --------------------------------------------------------------------------- */

static bool has_said(const struct evr_rs *rs, int how)
{
	return how == SHUT_RD || rs->stream.said_shutdown ||
	       evr_stream_status(&rs->stream).finished;
}

static int shut_down_stream(struct evr_rs *rs, int how)
{
	struct evr_rs_wait wait = evr_rs_wait_until(in_ms(SAY_MS));
	int ret = evr_stream_shutdown(&rs->stream, how);

	if (ret)
		return ret;
	rs->unsaid = false;
	evr_rs_pump(rs);
	while (!rs->nonblock && !has_said(rs, how) && !evr_rs_wait(rs, &wait))
		evr_rs_take_arrivals(rs);
	evr_rs_wake(rs);
	return 0;
}

/* It takes no more connections, and those that wait are refused. */
static int shut_down_listener(struct evr_rs *rs, int how)
{
	if (how == SHUT_WR)
		return 0;
	rs->state = EVR_RS_FAILED;
	rs->error = -EINVAL;
	rs->told = true;
	evr_rs_end(rs);
	evr_rs_wake(rs);
	return 0;
}

/* Whichever direction: there will be none. */
static int shut_down_attempt(struct evr_rs *rs)
{
	evr_rs_connect_fail(rs, -ECONNRESET);
	evr_rs_wake(rs);
	return 0;
}

static int shut_down(struct evr_rs *rs, int how)
{
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	if (rs->dgram)
		return evr_rs_dgram_shutdown(rs, how);
	if (rs->state == EVR_RS_LISTENING)
		return shut_down_listener(rs, how);
	if (evr_rs_is_connecting(rs))
		return shut_down_attempt(rs);
	if (rs->state != EVR_RS_CONNECTED || evr_rs_is_over(rs))
		return -ENOTCONN;
	return shut_down_stream(rs, how);
}

int rshutdown(int socket, int how)
{
	struct evr_rs *rs = evr_rs_enter(socket);

	return rs ? (int)evr_rs_leave(rs, shut_down(rs, how)) : -1;
}

/* --- closing --------------------------------------------------------------------------------- */

bool evr_rs_has_arrived(struct evr_rs *rs)
{
	struct evr_stream_status status = evr_stream_status(&rs->stream);

	if (rs->dgram)
		return evr_rs_dgram_has_left(rs);
	return status.error || rs->transport.broken || rs->transport.gone ||
	       (status.finished && status.drained);
}

static uint64_t patience_ms(const struct evr_rs *rs)
{
	if (!rs->options.linger)
		return CLOSE_MS;
	return (uint64_t)rs->options.linger_s * MS_PER_S;
}

/* What is left to be said to the peer. Whether it knows all by now. */
static bool say_goodbye(struct evr_rs *rs)
{
	evr_stream_shutdown(&rs->stream, SHUT_RDWR);
	evr_rs_pump(rs);
	evr_rs_poll_cq(rs);
	if (!evr_rs_has_arrived(rs))
		evr_rs_read_events(rs);
	return evr_rs_has_arrived(rs);
}

static void linger(struct evr_rs *rs, uint64_t deadline_us)
{
	struct evr_rs_wait wait = evr_rs_wait_until(deadline_us);
	int ret = 0;

	wait.closes = true;
	while ((!ret || ret == -EINTR) && evr_rs_is_going(rs) && !evr_rs_has_arrived(rs)) {
		ret = evr_rs_wait(rs, &wait);
		evr_rs_take_arrivals(rs);
	}
}

/* The number is free at once, and who is in a call leaves it, whatever is still to be done. */
static void close_number(struct evr_rs *rs)
{
	rs->closed = true;
	evr_rs_unwatch(rs);
	evr_rs_keepalive_stop(rs);
	evr_rs_backlog_stop(rs);
	close(rs->fd);
	rs->fd = -1;
	evr_rs_wake(rs);
}

/* Whether it takes time until the peer knows all, or datagrams have left. */
static bool takes_time(struct evr_rs *rs)
{
	if (rs->state == EVR_RS_OPEN)
		return !evr_rs_has_arrived(rs);
	return rs->state == EVR_RS_CONNECTED && patience_ms(rs) && !say_goodbye(rs);
}

/* Frames that nobody took may wait for somebody still, and the kernel for them. */
static bool is_unheard(const struct evr_rs *rs)
{
	struct evr_stream_status status = evr_stream_status(&rs->stream);

	if (rs->dgram)
		return !TAILQ_EMPTY(&rs->dgram->uds);
	return rs->transport.id && !(status.finished && status.drained);
}

/* What the peer can do to memory ends here, and it is told; the rest is for end.c. */
static void leave_to_end(struct evr_rs *rs)
{
	evr_rs_unwatch(rs);
	evr_rs_keepalive_stop(rs);
	if (rs->state == EVR_RS_CONNECTED)
		rdma_disconnect(rs->id);
	evr_rs_unmap_all(rs);
	if (rs->dgram)
		evr_rs_dgram_close_fds(rs->dgram);
	rs->ends_apart = true;
}

void evr_rs_close_unwaited(struct evr_rs *rs)
{
	bool unheard = is_unheard(rs);

	if (unheard)
		leave_to_end(rs);
	rs->state = EVR_RS_CLOSED;
	if (!unheard)
		evr_rs_end(rs);
}

static void close_waiting(struct evr_rs *rs, uint64_t deadline_us)
{
	if (takes_time(rs))
		linger(rs, deadline_us);
	rs->state = EVR_RS_CLOSED;
	evr_rs_end(rs);
}

static void finish(struct evr_rs *rs)
{
	uint64_t deadline = in_ms(patience_ms(rs));

	if (!rs->nonblock)
		close_waiting(rs, deadline);
	else if (!takes_time(rs))
		evr_rs_close_unwaited(rs);
	else if (evr_rs_helper_close(rs, deadline))
		close_waiting(rs, deadline);
}

static int close_one(int socket)
{
	struct evr_rs *rs = evr_rs_table_remove(socket);

	if (!rs)
		return evr_rs_repoll_close(socket);
	pthread_mutex_lock(&rs->lock);
	close_number(rs);
	finish(rs);
	evr_rs_wake(rs);
	pthread_mutex_unlock(&rs->lock);
	evr_rs_put(rs);
	return 0;
}

int rclose(int socket)
{
	int ret;

	atomic_fetch_add(&closers, 1);
	ret = close_one(socket);
	atomic_fetch_sub(&closers, 1);
	return (int)evr_rs_result(ret);
}

/* --- the end of the process ------------------------------------------------------------------ */

void evr_rs_close_begin_child(void)
{
	atomic_store(&closers, 0);
}

/* As with rclose(), who is in a call leaves it. The number stays. */
static bool end_one(struct evr_rs *rs)
{
	bool takes = takes_time(rs);

	evr_rs_wake(rs);
	return takes;
}

/*
 * Other threads may be in calls still, or this one, in a signal handler: one that is in use has its
 * turn later.
 */
static bool end_unless_used(int fd)
{
	struct evr_rs *rs = evr_rs_try(fd);
	bool left = true;

	if (!rs)
		return true;
	if (!pthread_mutex_trylock(&rs->lock)) {
		left = end_one(rs);
		pthread_mutex_unlock(&rs->lock);
	}
	evr_rs_put(rs);
	return left;
}

/* Whether any of them has something left to say. */
static bool end_all(uint64_t end_us)
{
	bool left = false;
	int fd;

	for (fd = evr_rs_table_next(0); fd >= 0; fd = evr_rs_table_next(fd + 1)) {
		if (evr_clock_now_us() >= end_us)
			break;
		left = end_unless_used(fd) || left;
	}
	return left || atomic_load(&closers) || evr_rs_helper_has_closing();
}

/* What was sent before exit() has somebody to send it; a child's are not its parent's. */
__attribute__((destructor)) static void end_with_process(void)
{
	uint64_t end_us = evr_clock_now_us() + EXIT_US;

	if (evr_rs_pid() != getpid())
		return;
	while (end_all(end_us) && evr_clock_now_us() < end_us)
		usleep(EVR_US_PER_MS);
}
