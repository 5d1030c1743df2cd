/*
 * What watches a number whose descriptor may still be exchanged is remembered, to go on with the
 * other one. Waiting needs nothing: the descriptors are real.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "preload/preload.h"
#include "preload/real.h"

/* --- what is remembered ---------------------------------------------------------------------- */

static struct evr_pre_watch *find(struct evr_pre *pre, int epoll_fd, int fd)
{
	struct evr_pre_watch *watch;

	TAILQ_FOREACH (watch, &pre->watches, link)
		if (watch->epoll_fd == epoll_fd && watch->fd == fd)
			break;
	return watch;
}

static void forget(struct evr_pre *pre, struct evr_pre_watch *watch)
{
	if (!watch)
		return;
	TAILQ_REMOVE(&pre->watches, watch, link);
	free(watch);
}

static int prepare(struct evr_pre *pre, int epoll_fd, int fd, struct evr_pre_watch **watch)
{
	*watch = find(pre, epoll_fd, fd);
	if (*watch)
		return 0;
	*watch = calloc(1, sizeof(**watch));
	if (!*watch)
		return -1;
	(*watch)->epoll_fd = epoll_fd;
	(*watch)->fd = fd;
	TAILQ_INSERT_TAIL(&pre->watches, *watch, link);
	return 0;
}

void evr_pre_watches_forget(struct evr_pre *pre)
{
	while (!TAILQ_EMPTY(&pre->watches))
		forget(pre, TAILQ_FIRST(&pre->watches));
}

static void unwatch(struct evr_pre *pre, int fd)
{
	struct evr_pre_watch *watch, *next;

	TAILQ_FOREACH_SAFE (watch, &pre->watches, link, next) {
		if (watch->fd != fd)
			continue;
		evr_pre_real()->epoll_ctl(watch->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
		forget(pre, watch);
	}
}

/* The number is about to be another file's, which nobody watches. */
void evr_pre_unwatch(int fd)
{
	struct evr_pre *pre = evr_pre_get(fd);
	int saved = errno;

	if (!pre)
		return;
	pthread_mutex_lock(&pre->lock);
	unwatch(pre, fd);
	pthread_mutex_unlock(&pre->lock);
	errno = saved;
	evr_pre_put(pre);
}

/* --- exchanging ------------------------------------------------------------------------------ */

/* What is always told, and what is about how. */
static const uint32_t beside = EPOLLERR | EPOLLHUP | EPOLLONESHOT | EPOLLET | EPOLLWAKEUP;

/* The kernel tells what it still waits for; where it cannot be asked, nothing has happened yet. */
static bool is_spent(const struct evr_pre_watch *watch)
{
	unsigned int events = 0;
	char line[128];
	FILE *file;
	int fd = -1;

	snprintf(line, sizeof(line), "/proc/self/fdinfo/%d", watch->epoll_fd);
	file = fopen(line, "re");
	while (file && fd != watch->fd && fgets(line, sizeof(line), file))
		if (sscanf(line, "tfd: %d events: %x", &fd, &events) != 2)
			fd = -1;
	if (file)
		fclose(file);
	return fd == watch->fd && !(events & ~beside);
}

void evr_pre_watches_stop(struct evr_pre *pre)
{
	struct evr_pre_watch *watch, *next;

	TAILQ_FOREACH_SAFE (watch, &pre->watches, link, next) {
		watch->spent = watch->event.events & EPOLLONESHOT && is_spent(watch);
		if (evr_pre_real()->epoll_ctl(watch->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL))
			forget(pre, watch);
	}
}

/* An epoll descriptor, which is what a listener is, cannot be watched exclusively. */
static int add_any(int epoll_fd, int fd, const struct epoll_event *event)
{
	struct epoll_event shared = *event;

	if (!evr_pre_real()->epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &shared))
		return 0;
	if (errno != EINVAL || !(event->events & EPOLLEXCLUSIVE))
		return -1;
	shared.events &= ~(uint32_t)EPOLLEXCLUSIVE;
	return evr_pre_real()->epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &shared);
}

/* One that fired once is not armed again: of it there can be an error at most. */
void evr_pre_watches_go_on(struct evr_pre *pre)
{
	struct evr_pre_watch *watch;

	TAILQ_FOREACH (watch, &pre->watches, link) {
		struct epoll_event event = watch->event;

		if (watch->spent)
			event.events = EPOLLONESHOT;
		add_any(watch->epoll_fd, watch->fd, &event);
	}
}

/* --- the call -------------------------------------------------------------------------------- */

static int control(struct evr_pre *pre, int epoll_fd, int op, int fd, struct epoll_event *event)
{
	struct evr_pre_watch *watch = NULL;
	int ret;

	if (op == EPOLL_CTL_ADD && prepare(pre, epoll_fd, fd, &watch)) {
		errno = ENOMEM;
		return -1;
	}
	ret = evr_pre_real()->epoll_ctl(epoll_fd, op, fd, event);
	if (op != EPOLL_CTL_ADD)
		watch = find(pre, epoll_fd, fd);
	if (!ret && watch && op != EPOLL_CTL_DEL)
		watch->event = *event;
	else if (op == EPOLL_CTL_DEL || (ret && op == EPOLL_CTL_ADD && errno != EEXIST))
		forget(pre, watch);
	return ret;
}

static int control_locked(
	struct evr_pre *pre, int epoll_fd, int op, int fd, struct epoll_event *event)
{
	int ret;

	pthread_mutex_lock(&pre->lock);
	if (pre->state == EVR_PRE_LISTENER && op == EPOLL_CTL_ADD && event)
		ret = add_any(epoll_fd, fd, event);
	else if (pre->state == EVR_PRE_UNDECIDED || pre->state == EVR_PRE_CONNECTING)
		ret = control(pre, epoll_fd, op, fd, event);
	else
		ret = evr_pre_real()->epoll_ctl(epoll_fd, op, fd, event);
	pthread_mutex_unlock(&pre->lock);
	return ret;
}

int epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event)
{
	struct evr_pre *pre = evr_pre_get(fd);

	if (!pre)
		return evr_pre_real()->epoll_ctl(epoll_fd, op, fd, event);
	return (int)evr_pre_leave(pre, control_locked(pre, epoll_fd, op, fd, event));
}
