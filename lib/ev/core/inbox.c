#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ev/core/base.h"
#include "ev/core/inbox.h"
#include "util/clock.h"

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	uint64_t count;

	while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	evr_inbox_deliver(arg);
	evr_base_kick_if_closing(arg);
}

int evr_inbox_init(struct evrdma_base *base)
{
	TAILQ_INIT(&base->inbox);
	base->inbox_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (base->inbox_fd < 0)
		return -errno;
	evr_lock_init(&base->inbox_lock, EVR_LOCK_INBOX);
	event_assign(&base->inbox_event, base->event_base, base->inbox_fd, EV_READ | EV_PERSIST,
		on_wake, base);
	evr_base_set_urgent(base, &base->inbox_event);
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
	evr_lock_fini(&base->inbox_lock);
}

static void wake(struct evrdma_base *base)
{
	uint64_t one = 1;

	/* A full counter wakes the reader just as well. */
	while (write(base->inbox_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static int announce(struct evrdma_base *base, bool is_call)
{
	int ret;

	evr_lock(&base->inbox_lock);
	ret = base->inbox_closed || (base->inbox_for_calls && !is_call) ? -EPIPE : 0;
	base->inbox_coming += !ret;
	evr_unlock(&base->inbox_lock);
	return ret;
}

int evr_inbox_announce(struct evrdma_base *base)
{
	return announce(base, false);
}

/* With the lock held: when it is given up, the base may be gone. */
void evr_inbox_bring(struct evrdma_base *base, struct evr_inbox_item *item)
{
	evr_lock(&base->inbox_lock);
	base->inbox_coming--;
	if (item)
		TAILQ_INSERT_TAIL(&base->inbox, item, link);
	wake(base);
	evr_unlock(&base->inbox_lock);
}

int evr_inbox_put(struct evrdma_base *base, struct evr_inbox_item *item)
{
	int ret = announce(base, true);

	if (!ret)
		evr_inbox_bring(base, item);
	return ret;
}

void evr_inbox_refuse_objects(struct evrdma_base *base)
{
	evr_lock(&base->inbox_lock);
	base->inbox_for_calls = true;
	evr_unlock(&base->inbox_lock);
}

void evr_inbox_close(struct evrdma_base *base)
{
	evr_lock(&base->inbox_lock);
	base->inbox_closed = true;
	evr_unlock(&base->inbox_lock);
}

/* One at least. What comes meanwhile is for the next time. */
static void deliver_some(struct evrdma_base *base, struct evr_inbox *items)
{
	uint64_t deadline = TAILQ_EMPTY(items) ? 0 : evr_base_turn_deadline(base);
	struct evr_inbox_item *item;

	while ((item = TAILQ_FIRST(items))) {
		TAILQ_REMOVE(items, item, link);
		evr_lock_expect_none();
		item->deliver(base, item);
		if (evr_clock_now_us() >= deadline)
			break;
	}
}

bool evr_inbox_deliver(struct evrdma_base *base)
{
	struct evr_inbox items = TAILQ_HEAD_INITIALIZER(items);
	bool more;

	evr_lock(&base->inbox_lock);
	TAILQ_CONCAT(&items, &base->inbox, link);
	evr_unlock(&base->inbox_lock);
	deliver_some(base, &items);
	evr_lock(&base->inbox_lock);
	TAILQ_CONCAT(&items, &base->inbox, link);
	TAILQ_CONCAT(&base->inbox, &items, link);
	if (!TAILQ_EMPTY(&base->inbox))
		wake(base);
	more = base->inbox_coming || !TAILQ_EMPTY(&base->inbox);
	evr_unlock(&base->inbox_lock);
	return more;
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
	struct call *call;
	int ret;

	if (!cb)
		return -EINVAL;
	call = malloc(sizeof(*call));
	if (!call)
		return -ENOMEM;
	*call = (struct call){ .item.deliver = run_call, .cb = cb, .arg = arg };
	ret = evr_inbox_put(base, &call->item);
	if (ret)
		free(call);
	return ret;
}
