#include "rs/helper.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rs/ready.h"
#include "util/clock.h"

enum {
	TICK_MS = 2,	 /* how often it looks at those that have no event to wait for */
	LATE_US = 2000,	 /* for so long nobody was in rpoll() */
	EXIT_US = 500000 /* what the end of the process waits for those that are closing */
};

enum { EVENTS = 64, CQ_SHIFT = 32 };

/*
 * Its lock may be taken while an rsocket's is held, not the other way round. A child of fork() has
 * no such thread, and what it inherits here is not its own: it begins anew.
 */
static struct {
	pthread_mutex_t lock;
	int epoll_fd;
	int wake_fd;
	pid_t pid;
	bool running;
	unsigned int users; /* rsockets that are watched, and the entries of the lists */
	struct evr_rs_list late;
	struct evr_rs_list closing;
} helper = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.epoll_fd = -1,
	.wake_fd = -1,
	.late = TAILQ_HEAD_INITIALIZER(helper.late),
	.closing = TAILQ_HEAD_INITIALIZER(helper.closing),
};

static void wake(void)
{
	const uint64_t one = 1;
	ssize_t ret = write(helper.wake_fd, &one, sizeof(one));

	(void)ret;
}

/* --- in the thread --------------------------------------------------------------------------- */

static void serve(uint64_t data)
{
	struct evr_rs *rs = evr_rs_get((int)(uint32_t)data);

	if (!rs)
		return;
	pthread_mutex_lock(&rs->lock);
	if (rs->watched) {
		if (data >> CQ_SHIFT)
			evr_rs_take_cq_event(rs);
		else
			evr_rs_read_events(rs);
		evr_rs_progress(rs);
		evr_rs_wake(rs);
		evr_rs_settle(rs);
	}
	pthread_mutex_unlock(&rs->lock);
	evr_rs_put(rs);
}

static bool is_done(struct evr_rs *rs, uint64_t now)
{
	evr_rs_read_events(rs);
	if (rs->state == EVR_RS_CONNECTED)
		evr_rs_poll_cq(rs);
	if (now < rs->deadline_us && rs->state == EVR_RS_CONNECTED && !evr_rs_has_arrived(rs))
		return false;
	rs->state = EVR_RS_CLOSED;
	evr_rs_end(rs);
	return true;
}

/* Whether it needs no more looking at. */
static bool comes_back(struct evr_rs *rs, uint64_t now)
{
	if (rs->state == EVR_RS_CLOSED)
		return true;
	if (rs->closing)
		return is_done(rs, now);
	/* Its user sleeps, and says when it wakes up. */
	if (!rs->by_rpoll || !TAILQ_EMPTY(&rs->sleepers))
		return true;
	if (now - rs->rpolled_us < LATE_US)
		return false;
	rs->by_rpoll = false;
	rs->late = false;
	evr_rs_settle(rs);
	return true;
}

static struct evr_rs *first_of(struct evr_rs_list *list)
{
	struct evr_rs *rs;

	pthread_mutex_lock(&helper.lock);
	rs = TAILQ_FIRST(list);
	pthread_mutex_unlock(&helper.lock);
	return rs;
}

/* The list's reference, and its count. */
static void forget(struct evr_rs *rs)
{
	pthread_mutex_lock(&helper.lock);
	helper.users--;
	pthread_mutex_unlock(&helper.lock);
	evr_rs_put(rs);
}

static struct evr_rs *take_first(struct evr_rs_list *list, struct evr_rs *last)
{
	struct evr_rs *rs;

	pthread_mutex_lock(&helper.lock);
	rs = last ? TAILQ_FIRST(list) : NULL;
	if (rs)
		TAILQ_REMOVE(list, rs, helper_link);
	pthread_mutex_unlock(&helper.lock);
	return rs;
}

static void put_last(struct evr_rs_list *list, struct evr_rs *rs)
{
	pthread_mutex_lock(&helper.lock);
	TAILQ_INSERT_TAIL(list, rs, helper_link);
	pthread_mutex_unlock(&helper.lock);
}

/* Only the thread takes from the lists, so that the last one stays where it is meanwhile. */
static void look_at(struct evr_rs_list *list, bool (*is_over)(struct evr_rs *rs, uint64_t now))
{
	uint64_t now = evr_clock_now_us();
	struct evr_rs *rs, *last;
	bool over;

	pthread_mutex_lock(&helper.lock);
	last = TAILQ_LAST(list, evr_rs_list);
	pthread_mutex_unlock(&helper.lock);
	do {
		rs = take_first(list, last);
		if (!rs)
			return;
		pthread_mutex_lock(&rs->lock);
		over = is_over(rs, now);
		if (over)
			rs->late = false;
		else
			put_last(list, rs);
		pthread_mutex_unlock(&rs->lock);
		if (over)
			forget(rs);
	} while (rs != last);
}

static bool is_idle(void)
{
	bool idle;

	pthread_mutex_lock(&helper.lock);
	idle = !helper.users;
	if (idle)
		helper.running = false;
	pthread_mutex_unlock(&helper.lock);
	return idle;
}

static void *run(void *arg)
{
	struct epoll_event events[EVENTS];
	int num, i;

	do {
		bool ticks = first_of(&helper.late) || first_of(&helper.closing);

		num = epoll_wait(helper.epoll_fd, events, EVENTS, ticks ? TICK_MS : -1);
		for (i = 0; i < num; i++) {
			if (events[i].data.u64 == UINT64_MAX)
				evr_rs_drain_sleeper(helper.wake_fd);
			else
				serve(events[i].data.u64);
		}
		look_at(&helper.late, comes_back);
		look_at(&helper.closing, is_done);
	} while (!is_idle());
	return arg;
}

/* --- its beginning and its end --------------------------------------------------------------- */

static void close_inherited(void)
{
	if (helper.epoll_fd >= 0)
		close(helper.epoll_fd);
	if (helper.wake_fd >= 0)
		close(helper.wake_fd);
	helper.epoll_fd = helper.wake_fd = -1;
	helper.running = false;
	helper.users = 0;
	TAILQ_INIT(&helper.late);
	TAILQ_INIT(&helper.closing);
}

static int open_fds(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = UINT64_MAX };

	if (helper.pid == getpid())
		return 0;
	close_inherited();
	helper.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	helper.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (helper.epoll_fd < 0 || helper.wake_fd < 0 ||
		epoll_ctl(helper.epoll_fd, EPOLL_CTL_ADD, helper.wake_fd, &event))
		return -errno;
	helper.pid = getpid();
	return 0;
}

/* The program's signals are for the program's threads. */
static int start(void)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	ret = -pthread_create(&thread, &attr, run, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	helper.running = !ret;
	return ret;
}

static int use(struct evr_rs_list *list, struct evr_rs *rs)
{
	int ret;

	pthread_mutex_lock(&helper.lock);
	ret = open_fds();
	if (!ret && !helper.running)
		ret = start();
	if (!ret)
		helper.users++;
	if (!ret && list) {
		if (TAILQ_EMPTY(list))
			wake();
		TAILQ_INSERT_TAIL(list, rs, helper_link);
	}
	pthread_mutex_unlock(&helper.lock);
	return ret;
}

static void stop_using(void)
{
	pthread_mutex_lock(&helper.lock);
	helper.users--;
	if (!helper.users)
		wake();
	pthread_mutex_unlock(&helper.lock);
}

static bool has_closing(void)
{
	struct evr_rs *rs;
	bool any;

	pthread_mutex_lock(&helper.lock);
	any = !TAILQ_EMPTY(&helper.closing);
	TAILQ_FOREACH (rs, &helper.late, helper_link)
		any = any || rs->closing;
	pthread_mutex_unlock(&helper.lock);
	return any;
}

/* What was sent before exit() has somebody to send it. */
__attribute__((destructor)) static void finish(void)
{
	uint64_t end = evr_clock_now_us() + EXIT_US;

	while (helper.pid == getpid() && has_closing() && evr_clock_now_us() < end)
		usleep(EVR_US_PER_MS);
}

/* --- watching -------------------------------------------------------------------------------- */

static bool add(struct evr_rs *rs, int fd, bool is_cq)
{
	struct epoll_event event = {
		.events = EPOLLIN,
		.data.u64 = (uint32_t)rs->fd | (uint64_t)is_cq << CQ_SHIFT,
	};

	return !epoll_ctl(helper.epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static void unwatch_cq(struct evr_rs *rs)
{
	if (rs->cq_watched && rs->transport.channel)
		epoll_ctl(helper.epoll_fd, EPOLL_CTL_DEL, rs->transport.channel->fd, NULL);
	rs->cq_watched = false;
}

/* A child of fork() leaves alone what its parent watches. */
void evr_rs_unwatch(struct evr_rs *rs)
{
	if (!rs->watched || helper.pid != getpid())
		return;
	unwatch_cq(rs);
	if (rs->channel)
		epoll_ctl(helper.epoll_fd, EPOLL_CTL_DEL, rs->channel->fd, NULL);
	rs->watched = false;
	stop_using();
}

static void watch(struct evr_rs *rs)
{
	if (!rs->watched && rs->channel) {
		if (use(NULL, NULL))
			return;
		rs->watched = true;
		add(rs, rs->channel->fd, false);
	}
	if (rs->watched && !rs->cq_watched && !rs->by_rpoll && rs->transport.channel &&
		rs->state == EVR_RS_CONNECTED)
		rs->cq_watched = add(rs, rs->transport.channel->fd, true);
}

static bool needs_help(const struct evr_rs *rs)
{
	return rs->nonblock && (rs->state == EVR_RS_LISTENING || rs->state == EVR_RS_CONNECTED ||
				       evr_rs_is_connecting(rs));
}

void evr_rs_settle(struct evr_rs *rs)
{
	if (!rs->nonblock || rs->fd < 0) {
		evr_rs_unwatch(rs);
		return;
	}
	if (!needs_help(rs))
		evr_rs_unwatch(rs);
	else
		watch(rs);
	if (rs->by_rpoll && rs->watched)
		return;
	evr_rs_show(rs);
	while (rs->cq_watched && !evr_rs_shows_all(rs) && evr_rs_arm(rs))
		evr_rs_show(rs);
}

/* --- rpoll ----------------------------------------------------------------------------------- */

void evr_rs_enter_rpoll(struct evr_rs *rs)
{
	if (!rs->nonblock || rs->by_rpoll)
		return;
	rs->by_rpoll = true;
	unwatch_cq(rs);
}

void evr_rs_leave_rpoll(struct evr_rs *rs, uint64_t now_us)
{
	if (!rs->by_rpoll)
		return;
	rs->rpolled_us = now_us;
	if (rs->late || !rs->watched)
		return;
	atomic_fetch_add(&rs->refs, 1);
	rs->late = true;
	if (!use(&helper.late, rs))
		return;
	rs->late = false;
	atomic_fetch_sub(&rs->refs, 1);
}

/* --- closing --------------------------------------------------------------------------------- */

int evr_rs_helper_close(struct evr_rs *rs, uint64_t deadline_us)
{
	int ret;

	rs->deadline_us = deadline_us;
	rs->closing = true;
	if (rs->late)
		return 0;
	atomic_fetch_add(&rs->refs, 1);
	ret = use(&helper.closing, rs);
	if (ret)
		atomic_fetch_sub(&rs->refs, 1);
	return ret;
}
