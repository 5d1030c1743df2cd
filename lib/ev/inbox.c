#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ev/base.h"
#include "ev/inbox.h"

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	uint64_t count;

	while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	evr_inbox_deliver(arg);
}

int evr_inbox_init(struct evrdma_base *base)
{
	TAILQ_INIT(&base->inbox);
	base->inbox_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (base->inbox_fd < 0)
		return -errno;
	pthread_mutex_init(&base->inbox_lock, NULL);
	event_assign(&base->inbox_event, base->event_base, base->inbox_fd, EV_READ | EV_PERSIST,
		on_wake, base);
	if (event_add(&base->inbox_event, NULL)) {
		evr_inbox_fini(base);
		return -ENOMEM;
	}
	return 0;
}

void evr_inbox_fini(struct evrdma_base *base)
{
	event_del(&base->inbox_event);
	close(base->inbox_fd);
	pthread_mutex_destroy(&base->inbox_lock);
}

static void wake(struct evrdma_base *base)
{
	uint64_t one = 1;

	/* A full counter wakes the reader just as well. */
	while (write(base->inbox_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

int evr_inbox_put(struct evrdma_base *base, struct evr_inbox_item *item,
	int (*prepare)(struct evrdma_base *base, struct evr_inbox_item *item))
{
	int ret;

	pthread_mutex_lock(&base->inbox_lock);
	ret = base->inbox_closed ? -EPIPE : prepare ? prepare(base, item) : 0;
	if (!ret) {
		TAILQ_INSERT_TAIL(&base->inbox, item, link);
		wake(base);
	}
	pthread_mutex_unlock(&base->inbox_lock);
	return ret;
}

void evr_inbox_close(struct evrdma_base *base)
{
	pthread_mutex_lock(&base->inbox_lock);
	base->inbox_closed = true;
	pthread_mutex_unlock(&base->inbox_lock);
}

void evr_inbox_deliver(struct evrdma_base *base)
{
	struct evr_inbox items = TAILQ_HEAD_INITIALIZER(items);
	struct evr_inbox_item *item;

	pthread_mutex_lock(&base->inbox_lock);
	TAILQ_CONCAT(&items, &base->inbox, link);
	pthread_mutex_unlock(&base->inbox_lock);
	while ((item = TAILQ_FIRST(&items))) {
		TAILQ_REMOVE(&items, item, link);
		item->deliver(base, item);
	}
}

struct call {
	struct evr_inbox_item item;
	evrdma_base_cb cb;
	void *arg;
};

static void run_call(struct evrdma_base *base, struct evr_inbox_item *item)
{
	struct call call = *evr_container_of(item, struct call, item);

	free(evr_container_of(item, struct call, item));
	call.cb(base, call.arg);
}

int evrdma_base_run_in_loop(struct evrdma_base *base, evrdma_base_cb cb, void *arg)
{
	struct call *call = malloc(sizeof(*call));
	int ret;

	if (!call)
		return -ENOMEM;
	*call = (struct call){ .item.deliver = run_call, .cb = cb, .arg = arg };
	ret = evr_inbox_put(base, &call->item, NULL);
	if (ret)
		free(call);
	return ret;
}
