#include "rs/helper.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/thread.h"

enum {
	TICK_MS = 2, /* how often it looks at those that have no event to wait for */
	NS_PER_US = 1000
};

/*
 * What of an rsocket a descriptor in the epoll set is; its number is in the lower half. What is the
 * helper's own has only a kind.
 */
enum { EVENTS = 64, KIND_SHIFT = 32 };
enum { WAKE = EVR_RS_KINDS, LATE };

/*
 * Its lock may be taken while an rsocket's is held, not the other way round. The descriptors are
 * there while the thread runs, and it runs while there are users. A child of fork() has no such
 * thread: it begins anew.
 */
static struct {
	pthread_mutex_t lock;
	int epoll_fd;
	int wake_fd;
	int late_fd; /* a timer: somebody left rpoll(), and may not have come back */
	pid_t pid;   /* whose the thread is, or was */
	bool running;
	unsigned int users; /* rsockets that are watched, timers, and the entries of the lists */
	struct evr_rs_list late;
	struct evr_rs_list closing;
	struct evr_rs *in_hand; /* of a list, while it is looked at */
} helper = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.epoll_fd = -1,
	.wake_fd = -1,
	.late_fd = -1,
	.late = TAILQ_HEAD_INITIALIZER(helper.late),
	.closing = TAILQ_HEAD_INITIALIZER(helper.closing),
};

static void wake(void)
{
	const uint64_t one = 1;
	ssize_t ret = write(helper.wake_fd, &one, sizeof(one));

	(void)ret;
}

/* Not at once: who comes back to rpoll() soon, and most do, shall not have paid for a wake-up. */
static void wake_late(void)
{
	const struct itimerspec when = { .it_value.tv_nsec = (long)EVR_RS_LATE_US * NS_PER_US };

	timerfd_settime(helper.late_fd, 0, &when, NULL);
}

/* --- in the thread --------------------------------------------------------------------------- */

static void serve(uint64_t data)
{
	struct evr_rs *rs = evr_rs_get((int)(uint32_t)data);

	if (!rs)
		return;
	pthread_mutex_lock(&rs->lock);
	evr_rs_serve(rs, (enum evr_rs_kind)(data >> KIND_SHIFT));
	pthread_mutex_unlock(&rs->lock);
	evr_rs_put(rs);
}

static void serve_event(uint64_t data)
{
	switch (data >> KIND_SHIFT) {
	case WAKE:
		evr_rs_drain_sleeper(helper.wake_fd);
		break;
	case LATE:
		evr_rs_drain_sleeper(helper.late_fd);
		break;
	default:
		serve(data);
		break;
	}
}

static bool has_to_say(struct evr_rs *rs)
{
	return evr_rs_is_going(rs) && !evr_rs_has_arrived(rs);
}

static bool is_done(struct evr_rs *rs, uint64_t now)
{
	evr_rs_read_events(rs);
	if (rs->state == EVR_RS_CONNECTED)
		evr_rs_poll_cq(rs);
	if (now < rs->deadline_us && (rs->unanswered || has_to_say(rs)))
		return false;
	rs->unanswered = false;
	evr_rs_close_unwaited(rs);
	evr_rs_wake(rs);
	return true;
}

static struct evr_rs *last_of(struct evr_rs_list *list)
{
	struct evr_rs *rs;

	pthread_mutex_lock(&helper.lock);
	rs = TAILQ_LAST(list, evr_rs_list);
	pthread_mutex_unlock(&helper.lock);
	return rs;
}

/* The list's reference, and its count. */
static void forget(struct evr_rs *rs)
{
	pthread_mutex_lock(&helper.lock);
	helper.in_hand = NULL;
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
	helper.in_hand = rs;
	pthread_mutex_unlock(&helper.lock);
	return rs;
}

static void put_last(struct evr_rs_list *list, struct evr_rs *rs)
{
	pthread_mutex_lock(&helper.lock);
	TAILQ_INSERT_TAIL(list, rs, helper_link);
	helper.in_hand = NULL;
	pthread_mutex_unlock(&helper.lock);
}

typedef bool is_over_fn(struct evr_rs *rs, uint64_t now);

/* Who uses it is not made to hand over its lock: it stays on the list. */
static bool is_over_now(struct evr_rs *rs, is_over_fn *is_over, uint64_t now)
{
	bool over;

	if (pthread_mutex_trylock(&rs->lock))
		return false;
	over = is_over(rs, now);
	if (over)
		rs->late = false;
	pthread_mutex_unlock(&rs->lock);
	return over;
}

/* Only the thread takes from the lists, so that the last one stays where it is meanwhile. */
static void look_at(struct evr_rs_list *list, is_over_fn *is_over)
{
	struct evr_rs *rs, *last = last_of(list);
	uint64_t now = last ? evr_clock_now_us() : 0;

	do {
		rs = take_first(list, last);
		if (!rs)
			return;
		if (is_over_now(rs, is_over, now))
			forget(rs);
		else
			put_last(list, rs);
	} while (rs != last);
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_fds(void)
{
	close_one(&helper.epoll_fd);
	close_one(&helper.wake_fd);
	close_one(&helper.late_fd);
}

static bool is_idle(void)
{
	bool idle;

	pthread_mutex_lock(&helper.lock);
	idle = !helper.users;
	if (idle) {
		helper.running = false;
		close_fds();
	}
	pthread_mutex_unlock(&helper.lock);
	return idle;
}

static bool comes_back(struct evr_rs *rs, uint64_t now)
{
	if (rs->closing && rs->state != EVR_RS_CLOSED)
		return is_done(rs, now);
	return evr_rs_comes_back(rs, now);
}

static void *run(void *arg)
{
	struct epoll_event events[EVENTS];
	int num, i;

	do {
		bool ticks = last_of(&helper.late) || last_of(&helper.closing);

		num = epoll_wait(helper.epoll_fd, events, EVENTS, ticks ? TICK_MS : -1);
		for (i = 0; i < num; i++)
			serve_event(events[i].data.u64);
		look_at(&helper.late, comes_back);
		look_at(&helper.closing, is_done);
	} while (!is_idle());
	return arg;
}

/* --- its beginning and its end --------------------------------------------------------------- */

static int add(int fd, uint64_t data)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = data };

	return epoll_ctl(helper.epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int open_epoll(void)
{
	helper.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return helper.epoll_fd < 0 ? -errno : 0;
}

static int open_wake(void)
{
	helper.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return helper.wake_fd < 0 ? -errno : add(helper.wake_fd, (uint64_t)WAKE << KIND_SHIFT);
}

static int open_late(void)
{
	helper.late_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return helper.late_fd < 0 ? -errno : add(helper.late_fd, (uint64_t)LATE << KIND_SHIFT);
}

static int start(void)
{
	int ret = open_epoll();

	if (!ret)
		ret = open_wake();
	if (!ret)
		ret = open_late();
	if (!ret)
		ret = evr_thread_start(run, NULL);
	if (ret) {
		close_fds();
		return ret;
	}
	helper.pid = evr_rs_pid();
	helper.running = true;
	return 0;
}

/* With the lock. */
static int count_user(void)
{
	int ret = helper.running ? 0 : start();

	if (!ret)
		helper.users++;
	return ret;
}

int evr_rs_helper_use(void)
{
	int ret;

	pthread_mutex_lock(&helper.lock);
	ret = count_user();
	pthread_mutex_unlock(&helper.lock);
	return ret;
}

void evr_rs_helper_stop_using(void)
{
	pthread_mutex_lock(&helper.lock);
	helper.users--;
	if (!helper.users)
		wake();
	pthread_mutex_unlock(&helper.lock);
}

bool evr_rs_helper_is_ours(void)
{
	return helper.pid == evr_rs_pid();
}

static bool holds_up_exit(const struct evr_rs *rs)
{
	return rs && rs->closing && !rs->apart;
}

/* With the lock. */
static bool has_closing(void)
{
	bool any = holds_up_exit(helper.in_hand);
	struct evr_rs *rs;

	TAILQ_FOREACH (rs, &helper.closing, helper_link)
		any = any || holds_up_exit(rs);
	TAILQ_FOREACH (rs, &helper.late, helper_link)
		any = any || holds_up_exit(rs);
	return any;
}

bool evr_rs_helper_has_closing(void)
{
	bool any;

	if (pthread_mutex_trylock(&helper.lock))
		return true;
	any = has_closing();
	pthread_mutex_unlock(&helper.lock);
	return any;
}

/* --- fork ------------------------------------------------------------------------------------ */

void evr_rs_helper_before_fork(void)
{
	pthread_mutex_lock(&helper.lock);
}

void evr_rs_helper_after_fork(void)
{
	pthread_mutex_unlock(&helper.lock);
}

/* At once: the numbers may soon be other files of the child's. */
void evr_rs_helper_begin_child(void)
{
	close_fds();
	helper.running = false;
	helper.users = 0;
	TAILQ_INIT(&helper.late);
	TAILQ_INIT(&helper.closing);
	helper.in_hand = NULL;
	pthread_mutex_unlock(&helper.lock);
}

/* --- what it watches ------------------------------------------------------------------------- */

static uint64_t data_of(const struct evr_rs *rs, enum evr_rs_kind kind)
{
	return (uint32_t)rs->fd | (uint64_t)kind << KIND_SHIFT;
}

int evr_rs_helper_add(const struct evr_rs *rs, int fd, enum evr_rs_kind kind)
{
	return add(fd, data_of(rs, kind));
}

/* It stays in the set, where it had its place: that nothing can fail. */
void evr_rs_helper_mute(const struct evr_rs *rs, int fd, enum evr_rs_kind kind, bool muted)
{
	struct epoll_event event = {
		.events = muted ? 0 : EPOLLIN,
		.data.u64 = data_of(rs, kind),
	};

	epoll_ctl(helper.epoll_fd, EPOLL_CTL_MOD, fd, &event);
}

void evr_rs_helper_remove(int fd)
{
	epoll_ctl(helper.epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

int evr_rs_helper_add_timer(struct evr_rs *rs, int fd)
{
	int ret = evr_rs_helper_use();

	if (ret)
		return ret;
	ret = evr_rs_helper_add(rs, fd, EVR_RS_TIMER);
	if (ret)
		evr_rs_helper_stop_using();
	return ret;
}

void evr_rs_helper_remove_timer(int fd)
{
	if (!evr_rs_helper_is_ours())
		return;
	evr_rs_helper_remove(fd);
	evr_rs_helper_stop_using();
}

/* --- what it looks at ------------------------------------------------------------------------ */

void evr_rs_helper_expect(struct evr_rs *rs)
{
	atomic_fetch_add(&rs->refs, 1);
	rs->late = true;
	pthread_mutex_lock(&helper.lock);
	helper.users++;
	if (TAILQ_EMPTY(&helper.late))
		wake_late();
	TAILQ_INSERT_TAIL(&helper.late, rs, helper_link);
	pthread_mutex_unlock(&helper.lock);
}

int evr_rs_helper_close(struct evr_rs *rs, uint64_t deadline_us)
{
	int ret;

	rs->deadline_us = deadline_us;
	rs->closing = true;
	if (rs->late)
		return 0;
	pthread_mutex_lock(&helper.lock);
	ret = count_user();
	if (!ret) {
		atomic_fetch_add(&rs->refs, 1);
		if (TAILQ_EMPTY(&helper.closing))
			wake();
		TAILQ_INSERT_TAIL(&helper.closing, rs, helper_link);
	}
	pthread_mutex_unlock(&helper.lock);
	return ret;
}
