#include "ev/cm/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

#include "ev/core/base.h"
#include "ev/core/log.h"

/* How long it is left alone when there is no memory to read it. */
enum { PAUSE_MS = 10 };
/* The CM looks no more often. */
enum { LOOK_MS = 1000 };

static const struct evr_part_class channel_class;

static struct evr_channel *of_part(const struct evr_part *part)
{
	return evr_container_of(part, struct evr_channel, part);
}

struct evr_channel *evr_channel_of(const struct evrdma_base *base)
{
	return of_part(evr_part_find(base, &channel_class));
}

/* One that is lost is left alone, and one that waits for memory is read when it has. */
static void poll_soon(struct evr_channel *channel)
{
	if (event_pending(&channel->readable, EV_READ, NULL))
		event_active(&channel->readable, EV_READ, 0);
}

void evr_channel_poll(struct evrdma_base *base)
{
	poll_soon(evr_channel_of(base));
}

static void keep_polling(struct evr_channel *channel)
{
	if (!evr_timer_runs(&channel->look_timer))
		evr_timer_start(&channel->look_timer, LOOK_MS);
}

void evr_channel_keep_polling(struct evrdma_base *base)
{
	keep_polling(evr_channel_of(base));
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
	struct evr_channel *channel = arg;

	if (channel->part.base->closing)
		return;
	poll_soon(channel);
	keep_polling(channel);
}

/* --- reading -------------------------------------------------------------------------------- */

/* Nothing will be heard of any id again; say so rather than spin on a readable channel. */
static void lose(struct evr_channel *channel, int err)
{
	struct evr_cmid *cmid;

	evr_log(EVRDMA_LOG_ERROR, "the event channel cannot be read any more: %s", strerror(err));
	event_del(&channel->readable);
	evr_timer_stop(&channel->pause);
	channel->err = err;
	/* Who is told may close or move any other. */
	while ((cmid = TAILQ_FIRST(&channel->cmids)) && !cmid->lost) {
		TAILQ_REMOVE(&channel->cmids, cmid, link);
		TAILQ_INSERT_TAIL(&channel->cmids, cmid, link);
		evr_cmid_lost(cmid, err);
	}
}

/* Want of memory may pass. Until then the events stay where they are, and the loop may sleep. */
static void pause_reading(struct evr_channel *channel)
{
	event_del(&channel->readable);
	evr_timer_start(&channel->pause, PAUSE_MS);
}

/* Over budget, it is asked again after all others, and not left to the channel to say that it is
   readable: of events that came with an id it does not. */
static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct evr_channel *channel = arg;
	struct evrdma_base *base = channel->part.base;
	int ret = evr_cmid_read_events(base, evr_base_turn_deadline(base));

	if (ret == -ENOMEM)
		pause_reading(channel);
	else if (ret < 0)
		lose(channel, -ret);
	else if (ret)
		evr_timer_start_now(&channel->pause);
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
	struct evr_channel *channel = arg;

	if (event_add(&channel->readable, NULL))
		evr_timer_start(&channel->pause, PAUSE_MS);
	else
		on_readable(fd, what, arg);
}

/* --- the part of the base ------------------------------------------------------------------- */

static int set_nonblocking(struct evr_channel *channel, int fd)
{
	channel->saved_fd_flags = fcntl(fd, F_GETFL);
	if (channel->saved_fd_flags < 0)
		return -errno;
	if (fcntl(fd, F_SETFL, channel->saved_fd_flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

static void give_back(struct evr_channel *channel)
{
	struct rdma_event_channel *verbs = channel->part.base->channel;

	if (channel->own)
		rdma_destroy_event_channel(verbs);
	else
		fcntl(verbs->fd, F_SETFL, channel->saved_fd_flags);
}

static void stop(struct evr_part *part)
{
	struct evr_channel *channel = of_part(part);

	evr_timer_stop(&channel->look_timer);
	event_del(&channel->readable);
	evr_timer_stop(&channel->pause);
	give_back(channel);
	evr_ptrmap_fini(&channel->map);
}

static bool any_guest(const struct evr_part *part, bool (*is)(struct evr_obj *obj))
{
	const struct evr_cmid *cmid;

	TAILQ_FOREACH (cmid, &of_part(part)->cmids, link)
		if (is(cmid->owner))
			return true;
	return false;
}

/* Connections of other bases whose events were moved here are guests. */
static const struct evr_part_class channel_class = {
	.stop = stop,
	.any_guest = any_guest,
};

static int start_reading(struct evr_channel *channel, struct evrdma_base *base)
{
	int fd = base->channel->fd;
	int ret = set_nonblocking(channel, fd);

	if (ret)
		return ret;
	event_assign(&channel->readable, base->event_base, fd, EV_READ | EV_PERSIST, on_readable,
		channel);
	evr_base_set_urgent(base, &channel->readable);
	evr_base_set_priority(&channel->readable, base->options.cm_priority);
	evr_timer_assign(&channel->pause, base, on_pause_over, channel);
	evr_timer_assign(&channel->look_timer, base, on_look, channel);
	if (!event_add(&channel->readable, NULL))
		return 0;
	fcntl(fd, F_SETFL, channel->saved_fd_flags);
	return -ENOMEM;
}

int evr_channel_start(struct evrdma_base *base)
{
	struct evr_channel *channel = calloc(1, sizeof(*channel));
	int ret;

	if (!channel)
		return -ENOMEM;
	TAILQ_INIT(&channel->cmids);
	evr_ptrmap_init(&channel->map);
	ret = start_reading(channel, base);
	if (ret)
		free(channel);
	else
		evr_part_add(&channel->part, base, &channel_class);
	return ret;
}

void evrdma_base_set_event_cb(struct evrdma_base *base, evrdma_base_event_cb cb, void *arg)
{
	struct evr_channel *channel = evr_channel_of(base);

	channel->event_cb = cb;
	channel->event_arg = arg;
}
