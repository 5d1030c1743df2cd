#include "config.h"

#include "preload/broker.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "preload/real.h"
#include "util/clock.h"
#include "util/thread.h"

enum { EXIT_US = 500000, PAUSE_NS = 10000000 };

static struct {
	pthread_mutex_t lock; /* nobody else has one meanwhile */
	int epoll_fd, timer_fd;
	pid_t pid;
	TAILQ_HEAD(, evr_brokered) things;
} broker = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.epoll_fd = -1,
	.timer_fd = -1,
	.things = TAILQ_HEAD_INITIALIZER(broker.things),
};

bool evr_broker_is_wanted(void)
{
	const char *value = getenv("RDMAV_FORK_SAFE");

	return value && atoi(value) != 0;
}

/* --- the thread ------------------------------------------------------------------------------ */

static void close_fds(void)
{
	if (broker.epoll_fd >= 0)
		evr_pre_real()->close(broker.epoll_fd);
	if (broker.timer_fd >= 0)
		evr_pre_real()->close(broker.timer_fd);
	broker.epoll_fd = broker.timer_fd = -1;
}

/* One ends itself only, and new ones come last. */
static void end_pauses(void)
{
	struct evr_brokered *thing, *next;
	uint64_t count;

	if (evr_pre_real()->read(broker.timer_fd, &count, sizeof(count)) < 0)
		return;
	TAILQ_FOREACH_SAFE (thing, &broker.things, link, next) {
		if (!thing->is_paused)
			continue;
		thing->is_paused = false;
		thing->look(thing);
	}
}

/* One at a time: none of those that come is of a thing that has ended meanwhile. */
static void *run(void *arg)
{
	struct epoll_event event;

	pthread_mutex_lock(&broker.lock);
	while (!TAILQ_EMPTY(&broker.things)) {
		int epoll_fd = broker.epoll_fd, num;

		pthread_mutex_unlock(&broker.lock);
		num = epoll_wait(epoll_fd, &event, 1, -1);
		pthread_mutex_lock(&broker.lock);
		if (num == 1 && event.data.ptr)
			((struct evr_brokered *)event.data.ptr)->look(event.data.ptr);
		else if (num == 1)
			end_pauses();
	}
	close_fds();
	pthread_mutex_unlock(&broker.lock);
	return arg;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	pthread_mutex_lock(&broker.lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&broker.lock);
}

/* The broker's ends stay the parent's: whoever has them keeps the others from seeing the end. */
static void in_child(void)
{
	struct evr_brokered *thing;
	int i;

	TAILQ_FOREACH (thing, &broker.things, link)
		for (i = 0; i < EVR_BROKER_FDS; i++)
			if (thing->fds[i].fd >= 0)
				evr_pre_real()->close(thing->fds[i].fd);
	TAILQ_INIT(&broker.things);
	close_fds();
	pthread_mutex_unlock(&broker.lock);
}

/* After rsockets did so: their lock is taken while the broker's is held. */
static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

static int open_fds(void)
{
	struct epoll_event event = { .events = EPOLLIN };

	broker.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	broker.timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (broker.epoll_fd < 0 || broker.timer_fd < 0)
		return -errno;
	return evr_pre_real()->epoll_ctl(
		       broker.epoll_fd, EPOLL_CTL_ADD, broker.timer_fd, &event)
		       ? -errno
		       : 0;
}

static int start_thread(void)
{
	int ret;

	if (broker.epoll_fd >= 0)
		return 0;
	pthread_once(&once, watch_forks);
	ret = open_fds();
	if (!ret)
		ret = evr_thread_start(run, NULL);
	if (ret)
		close_fds();
	else
		broker.pid = getpid();
	return ret;
}

/* --- things ---------------------------------------------------------------------------------- */

void evr_broker_watch(struct evr_brokered *thing, int which, uint32_t events, bool keep)
{
	struct epoll_event event = { .events = events, .data.ptr = thing };
	bool *is_watched = &thing->fds[which].is_watched, wanted = events || keep;
	int op = !*is_watched ? EPOLL_CTL_ADD : wanted ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;
	int fd = thing->fds[which].fd;

	if (fd < 0 || (!wanted && !*is_watched))
		return;
	if (!evr_pre_real()->epoll_ctl(broker.epoll_fd, op, fd, &event))
		*is_watched = wanted;
}

/* Each that pauses goes on with the first of them. */
void evr_broker_pause(struct evr_brokered *thing)
{
	const struct itimerspec later = { .it_value.tv_nsec = PAUSE_NS };
	struct itimerspec now = { .it_value.tv_nsec = 0 };

	thing->is_paused = true;
	timerfd_gettime(broker.timer_fd, &now);
	if (!now.it_value.tv_sec && !now.it_value.tv_nsec)
		timerfd_settime(broker.timer_fd, 0, &later, NULL);
}

int evr_broker_start_within(struct evr_brokered *thing)
{
	int ret = start_thread();

	if (ret)
		return ret;
	TAILQ_INSERT_TAIL(&broker.things, thing, link);
	thing->look(thing);
	return 0;
}

int evr_broker_start(struct evr_brokered *thing)
{
	int ret;

	pthread_mutex_lock(&broker.lock);
	ret = evr_broker_start_within(thing);
	pthread_mutex_unlock(&broker.lock);
	return ret;
}

void evr_broker_stop(struct evr_brokered *thing)
{
	int i;

	for (i = 0; i < EVR_BROKER_FDS; i++)
		evr_broker_watch(thing, i, 0, false);
	TAILQ_REMOVE(&broker.things, thing, link);
}

/* --- exit ------------------------------------------------------------------------------------ */

static bool flush_all(bool is_last)
{
	struct evr_brokered *thing;
	bool more = false;

	pthread_mutex_lock(&broker.lock);
	TAILQ_FOREACH (thing, &broker.things, link)
		more = evr_broker_flush(thing, is_last) || more;
	pthread_mutex_unlock(&broker.lock);
	return more;
}

/* What the process wrote before its end has to come as far as its rsockets. */
__attribute__((destructor)) static void finish(void)
{
	uint64_t end = evr_clock_now_us() + EXIT_US;

	if (broker.pid != getpid())
		return;
	while (flush_all(false) && evr_clock_now_us() < end)
		poll(NULL, 0, 1);
	flush_all(true);
}
