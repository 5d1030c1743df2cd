#include "config.h"

#include "preload/attempt.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "preload/real.h"
#include "preload/silent.h"
#include "util/clock.h"
#include "util/thread.h"

enum { DEFAULT_MS = 5000, EVENTS = 64 };

static struct {
	pthread_mutex_t lock; /* taken while one's own lock is held, not the other way round */
	int epoll_fd, wake_fd;
	bool running;
	uint64_t round;
	/* Without references: who goes leaves it. */
	TAILQ_HEAD(, evr_pre) list;
} attempts = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.epoll_fd = -1,
	.wake_fd = -1,
	.list = TAILQ_HEAD_INITIALIZER(attempts.list),
};

static void wake(void)
{
	eventfd_write(attempts.wake_fd, 1);
}

/* --- in the thread --------------------------------------------------------------------------- */

static struct evr_pre *find(int fd)
{
	struct evr_pre *pre;

	TAILQ_FOREACH (pre, &attempts.list, attempt.link)
		if (pre->attempt.fd == fd)
			break;
	return pre;
}

static void mark_ready(int fd, uint32_t events)
{
	struct evr_pre *pre = find(fd);
	eventfd_t count;

	if (pre)
		pre->attempt.is_ready = true;
	else if (fd == attempts.wake_fd)
		eventfd_read(fd, &count);
	else
		evr_silent_look(attempts.epoll_fd, fd, events);
}

static uint64_t first_deadline(void)
{
	uint64_t first = UINT64_MAX;
	struct evr_pre *pre;

	TAILQ_FOREACH (pre, &attempts.list, attempt.link)
		if (pre->attempt.deadline_us < first)
			first = pre->attempt.deadline_us;
	return first;
}

static int ms_until(uint64_t deadline_us)
{
	uint64_t now = evr_clock_now_us();

	if (deadline_us == UINT64_MAX)
		return -1;
	return deadline_us > now ? evr_clock_ms_of(deadline_us - now) : 0;
}

static void wait_for_any(void)
{
	int ms = ms_until(first_deadline()), num, i;
	struct epoll_event events[EVENTS];

	pthread_mutex_unlock(&attempts.lock);
	num = epoll_wait(attempts.epoll_fd, events, EVENTS, ms);
	pthread_mutex_lock(&attempts.lock);
	for (i = 0; i < num; i++)
		mark_ready(events[i].data.fd, events[i].events);
}

/* One that is about to go has no reference to take any more. */
static bool hold(struct evr_pre *pre)
{
	unsigned int refs = atomic_load(&pre->refs);

	while (refs)
		if (atomic_compare_exchange_weak(&pre->refs, &refs, refs + 1))
			return true;
	return false;
}

static void look_at(struct evr_pre *pre, bool is_over)
{
	if (!hold(pre))
		return;
	pthread_mutex_unlock(&attempts.lock);
	pthread_mutex_lock(&pre->lock);
	evr_pre_look(pre, is_over);
	pthread_mutex_unlock(&pre->lock);
	evr_pre_put(pre);
	pthread_mutex_lock(&attempts.lock);
}

/* Each is put to the end of the list, up to those that were there already. */
static void look_at_all(void)
{
	uint64_t now = evr_clock_now_us();
	struct evr_pre *pre;

	attempts.round++;
	while ((pre = TAILQ_FIRST(&attempts.list)) && pre->attempt.round != attempts.round) {
		bool is_over = pre->attempt.deadline_us <= now;
		bool is_due = pre->attempt.is_ready || is_over;

		TAILQ_REMOVE(&attempts.list, pre, attempt.link);
		TAILQ_INSERT_TAIL(&attempts.list, pre, attempt.link);
		pre->attempt.round = attempts.round;
		pre->attempt.is_ready = false;
		if (is_due)
			look_at(pre, is_over);
	}
}

static void close_fds(void)
{
	if (attempts.epoll_fd >= 0)
		evr_pre_real()->close(attempts.epoll_fd);
	if (attempts.wake_fd >= 0)
		evr_pre_real()->close(attempts.wake_fd);
	attempts.epoll_fd = attempts.wake_fd = -1;
}

static void *run(void *arg)
{
	pthread_mutex_lock(&attempts.lock);
	while (!TAILQ_EMPTY(&attempts.list) || evr_silent_keeps_any()) {
		wait_for_any();
		look_at_all();
	}
	close_fds();
	attempts.running = false;
	pthread_mutex_unlock(&attempts.lock);
	return arg;
}

/* --- its beginning --------------------------------------------------------------------------- */

static int watch(int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	return evr_pre_real()->epoll_ctl(attempts.epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int start_thread(void)
{
	int ret;

	attempts.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	attempts.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = attempts.epoll_fd < 0 || attempts.wake_fd < 0 ? -errno : 0;
	if (!ret)
		ret = watch(attempts.wake_fd, EPOLLIN);
	if (!ret)
		ret = evr_thread_start(run, NULL);
	if (ret)
		close_fds();
	attempts.running = !ret;
	return ret;
}

/* --- one of them ----------------------------------------------------------------------------- */

/* How long a peer has to answer by RDMA. */
static uint64_t patience_us(void)
{
	const char *value = getenv("RS_TCP_AFTER_MS");
	int ms = value ? atoi(value) : 0;

	return (uint64_t)(ms > 0 ? ms : DEFAULT_MS) * EVR_US_PER_MS;
}

static int add(struct evr_pre *pre, int fd)
{
	int ret = attempts.running ? 0 : start_thread();

	if (!ret)
		ret = watch(fd, EPOLLOUT);
	if (ret)
		return ret;
	pre->attempt.fd = fd;
	pre->attempt.deadline_us = evr_clock_now_us() + patience_us();
	pre->attempt.round = 0;
	pre->attempt.is_ready = false;
	pre->attempt.is_listed = true;
	TAILQ_INSERT_TAIL(&attempts.list, pre, attempt.link);
	wake();
	return 0;
}

int evr_pre_attempt_start(struct evr_pre *pre, int fd)
{
	int ret;

	pthread_mutex_lock(&attempts.lock);
	ret = add(pre, fd);
	pthread_mutex_unlock(&attempts.lock);
	return ret;
}

static void unwatch(const struct evr_pre *pre)
{
	if (attempts.epoll_fd >= 0)
		evr_pre_real()->epoll_ctl(
			attempts.epoll_fd, EPOLL_CTL_DEL, pre->attempt.fd, NULL);
}

int evr_pre_attempt_go_on(struct evr_pre *pre, int fd)
{
	int ret = 0;

	pthread_mutex_lock(&attempts.lock);
	if (pre->attempt.is_listed) {
		unwatch(pre);
		ret = watch(fd, EPOLLOUT);
	}
	pre->attempt.fd = fd;
	pre->attempt.deadline_us = UINT64_MAX;
	pthread_mutex_unlock(&attempts.lock);
	return ret;
}

void evr_pre_attempt_stop(struct evr_pre *pre)
{
	int saved = errno;

	pthread_mutex_lock(&attempts.lock);
	if (pre->attempt.is_listed) {
		TAILQ_REMOVE(&attempts.list, pre, attempt.link);
		pre->attempt.is_listed = false;
		unwatch(pre);
		wake();
	}
	pthread_mutex_unlock(&attempts.lock);
	errno = saved;
}

/* The thread is there: it is the one that has brought an attempt to its end. */
void evr_pre_attempts_keep(int bell, int fd)
{
	pthread_mutex_lock(&attempts.lock);
	evr_silent_keep(attempts.epoll_fd, bell, fd);
	pthread_mutex_unlock(&attempts.lock);
}

/* --- fork ------------------------------------------------------------------------------------ */

void evr_pre_attempts_lock(void)
{
	pthread_mutex_lock(&attempts.lock);
}

void evr_pre_attempts_unlock(void)
{
	pthread_mutex_unlock(&attempts.lock);
}

void evr_pre_attempts_reset(void)
{
	struct evr_pre *pre;

	while ((pre = TAILQ_FIRST(&attempts.list))) {
		TAILQ_REMOVE(&attempts.list, pre, attempt.link);
		pre->attempt.is_listed = false;
	}
	evr_silent_drop_all();
	attempts.running = false;
	close_fds();
	pthread_mutex_unlock(&attempts.lock);
}
