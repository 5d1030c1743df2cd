#include "config.h"

#include <errno.h>
#include <rdma/rsocket.h>
#include <stdlib.h>

#include "preload/attempt.h"
#include "preload/preload.h"
#include "preload/real.h"

struct evr_pre *evr_pre_new(int domain)
{
	struct evr_pre *pre = calloc(1, sizeof(*pre));

	if (!pre)
		return NULL;
	atomic_init(&pre->refs, 1);
	pthread_mutex_init(&pre->lock, NULL);
	atomic_init(&pre->rs, -1);
	pre->domain = domain;
	pre->tcp = pre->epoll_fd = pre->bell = -1;
	TAILQ_INIT(&pre->options);
	TAILQ_INIT(&pre->watches);
	return pre;
}

static void free_lists(struct evr_pre *pre)
{
	struct evr_pre_option *option, *next;

	TAILQ_FOREACH_SAFE (option, &pre->options, link, next)
		free(option);
	evr_pre_watches_forget(pre);
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		evr_pre_real()->close(*fd);
	*fd = -1;
}

static void close_parts(struct evr_pre *pre)
{
	if (pre->rs >= 0)
		rclose(pre->rs);
	close_one(&pre->tcp);
	close_one(&pre->epoll_fd);
	close_one(&pre->bell);
}

/*
 * A connection on its way is the parent's, too. Of a listener, TCP's connections can be taken here.
 * What watches a number is an epoll descriptor that both have: it is left alone.
 */
void evr_pre_leave_to_parent(struct evr_pre *pre)
{
	bool had_rdma = pre->rs >= 0;

	pthread_mutex_init(&pre->lock, NULL);
	evr_pre_watches_forget(pre);
	pre->rs = -1;
	if (pre->state == EVR_PRE_LISTENER && had_rdma)
		evr_pre_listen_without_rdma(pre);
	close_one(&pre->bell);
	if (pre->state != EVR_PRE_CONNECTING)
		return;
	close_one(&pre->tcp);
	pre->state = EVR_PRE_STREAM;
}

void evr_pre_put(struct evr_pre *pre)
{
	int saved = errno;

	if (!pre || atomic_fetch_sub(&pre->refs, 1) != 1)
		return;
	evr_pre_attempt_stop(pre);
	close_parts(pre);
	free_lists(pre);
	pthread_mutex_destroy(&pre->lock);
	free(pre);
	errno = saved;
}

struct evr_pre *evr_pre_enter(int fd)
{
	struct evr_pre *pre = evr_pre_get(fd);

	if (!pre)
		return NULL;
	if (pre->state != EVR_PRE_UNDECIDED && pre->state != EVR_PRE_PLAIN)
		return pre;
	evr_pre_put(pre);
	return NULL;
}

static struct evr_pre *enter_stream(int fd)
{
	struct evr_pre *pre = evr_pre_enter(fd);

	if (!pre || (pre->state != EVR_PRE_CARRIED && pre->state != EVR_PRE_SHARED))
		return pre;
	evr_pre_put(pre);
	return NULL;
}

bool evr_pre_moves_bytes(const struct evr_pre *pre)
{
	enum evr_pre_state state = pre->state;

	return state == EVR_PRE_STREAM || state == EVR_PRE_LISTENER || state == EVR_PRE_DGRAM;
}

void evr_pre_settle(struct evr_pre *pre)
{
	pthread_mutex_lock(&pre->lock);
	pthread_mutex_unlock(&pre->lock);
}

/* 0: it is on its way no more. */
static int wait_for_it(struct evr_pre *pre, int fd, int flags)
{
	if (!(flags & MSG_DONTWAIT) && !evr_pre_is_nonblocking(fd))
		return evr_pre_await(pre, fd);
	evr_pre_settle(pre);
	return pre->state == EVR_PRE_CONNECTING ? -EAGAIN : 0;
}

struct evr_pre *evr_pre_enter_io(int fd, int flags)
{
	struct evr_pre *pre = enter_stream(fd);
	int ret;

	if (!pre || evr_pre_moves_bytes(pre))
		return pre;
	ret = wait_for_it(pre, fd, flags);
	if (ret) {
		errno = -ret;
		return pre;
	}
	evr_pre_put(pre);
	return enter_stream(fd);
}

ssize_t evr_pre_leave(struct evr_pre *pre, ssize_t ret)
{
	evr_pre_put(pre);
	return ret;
}
