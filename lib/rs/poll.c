#include "config.h"

/* poll(2) of rsockets and of other descriptors at once. */
#include "rs/dgram.h"
#include "rs/helper.h"
#include "rs/ready.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "util/clock.h"

enum {
	READABLE = POLLIN | POLLRDNORM,
	WRITABLE = POLLOUT | POLLWRNORM,
	EVERYTHING = READABLE | WRITABLE | POLLRDHUP | POLLHUP,
	FEW = 8,
};

/* --- one rsocket ----------------------------------------------------------------------------- */

static int stream_events(const struct evr_rs *rs)
{
	struct evr_stream_status status = evr_stream_status(&rs->stream);
	int events = 0;

	if (status.error)
		return rs->told ? EVERYTHING : EVERYTHING | POLLERR;
	if (status.readable || status.eof)
		events |= READABLE;
	if ((status.writable && !rs->held) || !evr_stream_is_tx_open(&rs->stream))
		events |= WRITABLE;
	if (rs->stream.peer_shutdown || !rs->stream.rx_open)
		events |= POLLRDHUP;
	if (status.hangup)
		events |= POLLHUP;
	return events;
}

static int listener_events(const struct evr_rs *rs)
{
	bool none = TAILQ_EMPTY(&rs->listener.accepted);

	return none && !rs->deaf && !rs->listener.want ? 0 : READABLE;
}

static int all_events(const struct evr_rs *rs)
{
	if (rs->closed)
		return POLLNVAL;
	switch (rs->state) {
	case EVR_RS_NEW:
		return rs->dgram ? WRITABLE : WRITABLE | POLLHUP;
	case EVR_RS_OPEN:
		return evr_rs_dgram_events(rs);
	case EVR_RS_LISTENING:
		return listener_events(rs);
	case EVR_RS_CONNECTED:
		return stream_events(rs);
	case EVR_RS_FAILED:
		return rs->told ? EVERYTHING : EVERYTHING | POLLERR;
	default:
		return 0;
	}
}

short evr_rs_poll_events(const struct evr_rs *rs, short wanted)
{
	return (short)(all_events(rs) & (wanted | POLLERR | POLLHUP | POLLNVAL));
}

/* --- several --------------------------------------------------------------------------------- */

/* One entry of the caller's. What is no rsocket has none. */
struct watch {
	struct evr_rs *rs;
	struct evr_rs_sleeper sleeper;
	int at; /* where its descriptors are among those of the kernel */
	int num;
};

struct watches {
	struct pollfd *fds;
	nfds_t num;
	struct watch *watch;
	struct pollfd *kernel;
	int kernel_num;
	bool has_plain;
	struct watch few[FEW];
	struct pollfd few_kernel[FEW * EVR_RS_SLEEP_FDS + 1];
};

static int check_num(nfds_t num)
{
	struct rlimit limit;

	if (num <= FEW || getrlimit(RLIMIT_NOFILE, &limit) || num <= limit.rlim_cur)
		return 0;
	return -EINVAL;
}

static int allocate(struct watches *all)
{
	if (all->num <= FEW) {
		all->watch = all->few;
		all->kernel = all->few_kernel;
		return 0;
	}
	all->watch = calloc(all->num, sizeof(*all->watch));
	all->kernel = calloc(all->num * EVR_RS_SLEEP_FDS + 1, sizeof(*all->kernel));
	return all->watch && all->kernel ? 0 : -ENOMEM;
}

static int open_watches(struct watches *all)
{
	int ret = check_num(all->num);
	nfds_t i;

	if (!ret)
		ret = allocate(all);
	for (i = 0; !ret && i < all->num; i++) {
		all->watch[i] = (struct watch){ .rs = evr_rs_get(all->fds[i].fd) };
		all->has_plain |= !all->watch[i].rs;
	}
	return ret;
}

static void close_watch(struct evr_rs *rs)
{
	pthread_mutex_lock(&rs->lock);
	/* Also one that repoll_ctl() has given back meanwhile: what came since shall be shown. */
	if (evr_rs_is_shown(rs) && rs->state != EVR_RS_CLOSED) {
		evr_rs_settle(rs);
		evr_rs_leave_rpoll(rs);
	}
	pthread_mutex_unlock(&rs->lock);
	evr_rs_put(rs);
}

static void close_watches(struct watches *all)
{
	nfds_t i;

	for (i = 0; all->watch && i < all->num; i++)
		if (all->watch[i].rs)
			close_watch(all->watch[i].rs);
	if (all->watch != all->few) {
		free(all->watch);
		free(all->kernel);
	}
}

/* --- looking --------------------------------------------------------------------------------- */

static short look_at(struct watch *watch, short wanted, bool deep)
{
	struct evr_rs *rs = watch->rs;
	short events;

	pthread_mutex_lock(&rs->lock);
	evr_rs_enter_rpoll(rs);
	if (deep)
		evr_rs_progress_in_all(rs);
	else
		evr_rs_take_arrivals(rs);
	events = evr_rs_poll_events(rs, wanted);
	pthread_mutex_unlock(&rs->lock);
	return events;
}

/* How many have something. deep: also what takes a system call, or sleeping, to know. */
static int look(struct watches *all, bool deep)
{
	int ready = 0;
	nfds_t i;

	for (i = 0; i < all->num; i++) {
		struct pollfd *fd = &all->fds[i];

		if (!all->watch[i].rs)
			continue;
		fd->revents = look_at(&all->watch[i], fd->events, deep);
		ready += fd->revents != 0;
	}
	return ready;
}

/* The others, as the kernel sees them. */
static int look_at_plain(struct watches *all, int ready)
{
	struct pollfd *kernel = all->kernel;
	int num = 0, at = 0, ret;
	nfds_t i;

	if (!all->has_plain)
		return ready;
	for (i = 0; i < all->num; i++)
		if (!all->watch[i].rs)
			kernel[num++] = all->fds[i];
	ret = poll(kernel, (nfds_t)num, 0);
	if (ret < 0)
		return -errno;
	for (i = 0; i < all->num; i++)
		if (!all->watch[i].rs)
			all->fds[i].revents = kernel[at++].revents;
	return ready + ret;
}

static int spin(struct watches *all)
{
	uint64_t end = evr_clock_now_us() + evr_rs_polling_time_us();
	int ready;

	do {
		ready = look(all, false);
	} while (!ready && evr_clock_now_us() < end);
	return ready;
}

/* --- sleeping -------------------------------------------------------------------------------- */

/*
 * Whether there was something new. Since it was looked at another thread may have taken what came,
 * and have woken those who slept by then.
 */
static bool enter(struct watches *all, struct watch *watch, short wanted, int sleeper_fd)
{
	struct evr_rs *rs = watch->rs;
	bool news;

	pthread_mutex_lock(&rs->lock);
	news = evr_rs_arm(rs) || evr_rs_poll_events(rs, wanted);
	watch->at = all->kernel_num;
	watch->num = evr_rs_sleep_fds(rs, &all->kernel[all->kernel_num]);
	all->kernel_num += watch->num;
	/* What this one does not wait for another may, by the number. */
	if (!news && rs->by_rpoll)
		evr_rs_show(rs);
	watch->sleeper = (struct evr_rs_sleeper){ .fd = sleeper_fd, .polls = true };
	evr_rs_sleep_on(rs, &watch->sleeper);
	pthread_mutex_unlock(&rs->lock);
	return news;
}

static bool enter_all(struct watches *all, int sleeper_fd)
{
	bool news = false;
	nfds_t i;

	all->kernel_num = 0;
	for (i = 0; i < all->num; i++) {
		struct watch *watch = &all->watch[i];

		if (watch->rs) {
			news |= enter(all, watch, all->fds[i].events, sleeper_fd);
		} else {
			watch->at = all->kernel_num;
			all->kernel[all->kernel_num++] = all->fds[i];
		}
	}
	all->kernel[all->kernel_num] = (struct pollfd){ .fd = sleeper_fd, .events = POLLIN };
	return news;
}

static void leave_all(struct watches *all)
{
	nfds_t i;

	for (i = 0; i < all->num; i++) {
		struct watch *watch = &all->watch[i];

		if (!watch->rs)
			continue;
		pthread_mutex_lock(&watch->rs->lock);
		evr_rs_sleep_off(watch->rs, &watch->sleeper);
		evr_rs_slept(watch->rs, &all->kernel[watch->at], watch->num);
		pthread_mutex_unlock(&watch->rs->lock);
	}
	if (all->kernel[all->kernel_num].revents)
		evr_rs_drain_sleeper(all->kernel[all->kernel_num].fd);
}

static int sleep_for(struct watches *all, int timeout_ms)
{
	int sleeper_fd = evr_rs_sleeper_fd(), ret = 0;

	if (sleeper_fd < 0)
		return sleeper_fd;
	if (enter_all(all, sleeper_fd))
		timeout_ms = 0;
	if (poll(all->kernel, (nfds_t)all->kernel_num + 1, timeout_ms) < 0)
		ret = -errno;
	leave_all(all);
	return ret;
}

/* --- the call -------------------------------------------------------------------------------- */

static int timeout_of(uint64_t deadline_us)
{
	uint64_t now;

	if (deadline_us == UINT64_MAX)
		return -1;
	now = evr_clock_now_us();
	return now < deadline_us ? evr_clock_ms_of(deadline_us - now) : 0;
}

static int wait_for_any(struct watches *all, uint64_t deadline_us)
{
	int ready = spin(all), timeout, ret;

	if (ready)
		return look_at_plain(all, ready);
	while (!ready) {
		timeout = timeout_of(deadline_us);
		if (!timeout)
			return 0;
		ret = sleep_for(all, timeout);
		ready = ret ? ret : look_at_plain(all, look(all, false));
	}
	return ready;
}

static int poll_all(struct watches *all, int timeout_ms)
{
	uint64_t deadline_us = UINT64_MAX;
	int ready = look_at_plain(all, look(all, true));

	if (ready || !timeout_ms)
		return ready;
	if (timeout_ms > 0)
		deadline_us = evr_clock_now_us() + (uint64_t)timeout_ms * EVR_US_PER_MS;
	return wait_for_any(all, deadline_us);
}

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	struct watches all;
	int ret;

	if (!evr_rs_table_is_used())
		return poll(fds, nfds, timeout);
	all = (struct watches){ .fds = fds, .num = nfds };
	ret = fds || !nfds ? open_watches(&all) : -EFAULT;
	if (!ret)
		ret = poll_all(&all, timeout);
	close_watches(&all);
	return (int)evr_rs_result(ret);
}
