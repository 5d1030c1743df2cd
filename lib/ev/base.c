#include "config.h"

#include "ev/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ev/cause.h"
#include "ev/inbox.h"
#include "ev/log.h"
#include "util/clock.h"
#include "util/options.h"

/* How long the channel is left alone when there is no memory to read it. */
enum { CM_PAUSE_MS = 10 };
/* The CM looks no more often. */
enum { LOOK_MS = 1000 };
enum { MAX_SPIN_US = 1000000 };

static const struct evrdma_base_options default_options = {
	.turn_budget_us = 500,
	.cq_budget = 256,
	.cq_entries = 4096,
	.device_idle_ms = 1000,
	.data_priority = -1,
	.cm_priority = -1,
	.comp_vector = -1,
};

void evrdma_base_options_init_sized(struct evrdma_base_options *options, size_t size)
{
	evr_options_init(options, size, &default_options, sizeof(default_options));
}

const char *evrdma_version(void)
{
	return PACKAGE_VERSION;
}

uint32_t evrdma_version_number(void)
{
	return EVRDMA_VERSION_NUMBER;
}

bool evr_base_closing(const struct evrdma_base *base)
{
	return base->closing || base->shutting_down;
}

/* --- the turn ------------------------------------------------------------------------------- */

void evr_base_kick(struct evrdma_base *base)
{
	if (base->kicked)
		return;
	base->kicked = true;
	if (!base->in_turn)
		event_active(&base->turn_event, EV_TIMEOUT, 0);
}

void evr_base_kick_if_closing(struct evrdma_base *base)
{
	if (evr_base_closing(base))
		evr_base_kick(base);
}

static void queue(struct evrdma_base *base, struct evr_task_list *list, struct evr_task *task)
{
	if (task->queued)
		return;
	task->queued = true;
	TAILQ_INSERT_TAIL(list, task, link);
	evr_base_kick(base);
}

static void cancel(struct evr_task_list *list, struct evr_task *task)
{
	if (!task->queued)
		return;
	task->queued = false;
	TAILQ_REMOVE(list, task, link);
}

void evr_base_queue(struct evrdma_base *base, struct evr_task *task)
{
	queue(base, &base->tasks[task->kind], task);
}

void evr_base_cancel(struct evrdma_base *base, struct evr_task *task)
{
	cancel(&base->tasks[task->kind], task);
}

void evr_base_queue_post(struct evrdma_base *base, struct evr_task *task)
{
	queue(base, &base->posts, task);
}

void evr_base_queue_post_first(struct evrdma_base *base, struct evr_task *task)
{
	if (task->queued)
		return;
	task->queued = true;
	TAILQ_INSERT_HEAD(&base->posts, task, link);
	evr_base_kick(base);
}

void evr_base_cancel_post(struct evrdma_base *base, struct evr_task *task)
{
	cancel(&base->posts, task);
}

void evr_base_queue_tell(struct evrdma_base *base, struct evr_task *task)
{
	queue(base, &base->tells, task);
}

void evr_base_cancel_tell(struct evrdma_base *base, struct evr_task *task)
{
	cancel(&base->tells, task);
}

/* A channel that is lost is left alone, and one that waits for memory is read when it has. */
void evr_base_poll_cm(struct evrdma_base *base)
{
	if (event_pending(&base->cm_event, EV_READ, NULL))
		event_active(&base->cm_event, EV_READ, 0);
}

void evr_base_keep_polling_cm(struct evrdma_base *base)
{
	if (!evtimer_pending(&base->look_timer, NULL))
		evr_base_add_timer(&base->look_timer, LOOK_MS);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
	struct evrdma_base *base = arg;

	if (base->closing)
		return;
	evr_base_poll_cm(base);
	evr_base_keep_polling_cm(base);
}

void evr_base_add_timer(struct event *timer, int timeout_ms)
{
	struct timeval tv = { timeout_ms / 1000, timeout_ms % 1000 * 1000 };

	event_add(timer, &tv);
}

void evr_base_set_priority(struct event *event, int priority)
{
	/* In range: the options were looked at. */
	if (priority >= 0)
		event_priority_set(event, priority);
}

void evr_base_set_urgent(const struct evrdma_base *base, struct event *event)
{
	int data = base->options.data_priority;

	if (data >= 0 && data < event_get_priority(event))
		event_priority_set(event, data);
}

void evr_base_assign_timer(
	struct evrdma_base *base, struct event *timer, event_callback_fn cb, void *arg)
{
	evtimer_assign(timer, base->event_base, cb, arg);
	evr_base_set_urgent(base, timer);
}

uint64_t evr_base_turn_deadline(const struct evrdma_base *base)
{
	return evr_clock_now_us() + base->options.turn_budget_us;
}

static bool has_tasks(const struct evrdma_base *base)
{
	unsigned kind;

	for (kind = 0; kind < EVR_TASK_KINDS; kind++)
		if (!TAILQ_EMPTY(&base->tasks[kind]))
			return true;
	return false;
}

/* Of the kind whose turn it is, or of the next that has one; NULL: none has. */
static struct evr_task *next_task(struct evrdma_base *base)
{
	struct evr_task *task = NULL;
	unsigned i;

	for (i = 0; i < EVR_TASK_KINDS && !task; i++) {
		task = TAILQ_FIRST(&base->tasks[base->next_kind]);
		base->next_kind = (base->next_kind + 1) % EVR_TASK_KINDS;
	}
	return task;
}

/* At least one task, so that there is progress on a machine however slow. */
static void run_tasks(struct evrdma_base *base)
{
	uint64_t deadline = has_tasks(base) ? evr_base_turn_deadline(base) : 0;
	struct evr_task *task;

	while ((task = next_task(base))) {
		evr_base_cancel(base, task);
		task->run(task);
		base->stats.tasks++;
		if (evr_clock_now_us() >= deadline)
			break;
	}
	base->stats.turns_over_budget += task && has_tasks(base);
}

/* The same. What is left goes to the end of the next turn. */
static void run_posts(struct evrdma_base *base)
{
	uint64_t deadline = TAILQ_EMPTY(&base->posts) ? 0 : evr_base_turn_deadline(base);
	struct evr_task *task;

	while ((task = TAILQ_FIRST(&base->posts))) {
		evr_base_cancel_post(base, task);
		task->run(task);
		if (evr_clock_now_us() >= deadline)
			break;
	}
}

/* Those that were not done come first, so that all of one queue are told in order. */
static void run_tells(struct evrdma_base *base)
{
	struct evr_task *task;

	base->tell_budget = (int)base->options.cq_budget;
	while (base->tell_budget > 0 && (task = TAILQ_FIRST(&base->tells))) {
		evr_base_cancel_tell(base, task);
		task->run(task);
	}
	evr_cq_service_ready(base);
}

/* A CQ that cannot be armed is always ready, and does not hold up the end of a base. */
static bool has_completions(const struct evrdma_base *base)
{
	return !TAILQ_EMPTY(&base->ready_cqs) && !(base->closing && TAILQ_EMPTY(&base->objs));
}

static bool has_work(const struct evrdma_base *base)
{
	return has_tasks(base) || !TAILQ_EMPTY(&base->posts) || !TAILQ_EMPTY(&base->tells) ||
		has_completions(base);
}

static void count_turn(struct evrdma_base *base, uint64_t us)
{
	base->stats.turns++;
	if (us > base->stats.longest_turn_us)
		base->stats.longest_turn_us = us;
}

static void finish(struct evrdma_base *base);

static bool is_deserted(const struct evrdma_base *base)
{
	return base->closing && TAILQ_EMPTY(&base->objs) && TAILQ_EMPTY(&base->cmids);
}

static bool can_finish(struct evrdma_base *base)
{
	if (!is_deserted(base))
		return false;
	/* It may bring requests from other threads, which are then objects to close. */
	return !evr_inbox_deliver(base) && TAILQ_EMPTY(&base->objs);
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval now = { 0, 0 };
	struct evrdma_base *base = arg;
	uint64_t start = evr_clock_now_us();

	base->kicked = false;
	base->in_turn = true;
	run_tells(base);
	run_tasks(base);
	run_posts(base);
	evr_shutdown_look(base);
	base->in_turn = false;
	count_turn(base, evr_clock_now_us() - start);
	if (has_work(base) ||
		(is_deserted(base) && evr_device_shed_all(base, evr_base_turn_deadline(base))))
		base->kicked = true;
	/* By a timer, not by activation: every other event of the loop has its turn first. */
	if (base->kicked)
		event_add(&base->turn_event, &now);
	else if (can_finish(base))
		finish(base);
}

/* --- the channel ---------------------------------------------------------------------------- */

/* Nothing will be heard of any id again; say so rather than spin on a readable channel. */
static void lose_channel(struct evrdma_base *base, int err)
{
	struct evr_cmid *cmid;

	evr_log(EVRDMA_LOG_ERROR, "the event channel cannot be read any more: %s", strerror(err));
	event_del(&base->cm_event);
	base->channel_err = err;
	/* Who is told may close or move any other. */
	while ((cmid = TAILQ_FIRST(&base->cmids)) && !cmid->lost) {
		TAILQ_REMOVE(&base->cmids, cmid, link);
		TAILQ_INSERT_TAIL(&base->cmids, cmid, link);
		evr_cmid_lost(cmid, err);
	}
}

/* Want of memory may pass. Until then the events stay where they are, and the loop may sleep. */
static void pause_reading(struct evrdma_base *base)
{
	event_del(&base->cm_event);
	evr_base_add_timer(&base->cm_pause, CM_PAUSE_MS);
}

/* Over budget, it is asked again after all others, and not left to the channel to say that it is
   readable: of events that came with an id it does not. */
static void on_cm_readable(evutil_socket_t fd, short what, void *arg)
{
	struct evrdma_base *base = arg;
	int ret = evr_cmid_read_events(base, evr_base_turn_deadline(base));

	if (ret == -ENOMEM)
		pause_reading(base);
	else if (ret < 0)
		lose_channel(base, -ret);
	else if (ret)
		evr_base_add_timer(&base->cm_pause, 0);
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
	struct evrdma_base *base = arg;

	if (event_add(&base->cm_event, NULL))
		evr_base_add_timer(&base->cm_pause, CM_PAUSE_MS);
	else
		on_cm_readable(fd, what, arg);
}

static int set_nonblocking(struct evrdma_base *base)
{
	base->saved_fd_flags = fcntl(base->channel->fd, F_GETFL);
	if (base->saved_fd_flags < 0)
		return -errno;
	if (fcntl(base->channel->fd, F_SETFL, base->saved_fd_flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

static void restore_flags(struct evrdma_base *base)
{
	fcntl(base->channel->fd, F_SETFL, base->saved_fd_flags);
}

static int start_reading(struct evrdma_base *base)
{
	int ret = set_nonblocking(base);

	if (ret)
		return ret;
	event_assign(&base->cm_event, base->event_base, base->channel->fd, EV_READ | EV_PERSIST,
		on_cm_readable, base);
	evr_base_set_urgent(base, &base->cm_event);
	evr_base_set_priority(&base->cm_event, base->options.cm_priority);
	evr_base_assign_timer(base, &base->cm_pause, on_pause_over, base);
	if (!event_add(&base->cm_event, NULL))
		return 0;
	restore_flags(base);
	return -ENOMEM;
}

static void give_channel_back(struct evrdma_base *base)
{
	event_del(&base->cm_event);
	event_del(&base->cm_pause);
	if (base->own_channel)
		rdma_destroy_event_channel(base->channel);
	else
		restore_flags(base);
}

/* --- life ----------------------------------------------------------------------------------- */

static void init_lists(struct evrdma_base *base)
{
	unsigned kind;

	for (kind = 0; kind < EVR_TASK_KINDS; kind++)
		TAILQ_INIT(&base->tasks[kind]);
	TAILQ_INIT(&base->objs);
	TAILQ_INIT(&base->cmids);
	TAILQ_INIT(&base->devices);
	TAILQ_INIT(&base->ready_cqs);
	TAILQ_INIT(&base->posts);
	TAILQ_INIT(&base->tells);
	TAILQ_INIT(&base->pools);
	TAILQ_INIT(&base->srqs);
	TAILQ_INIT(&base->domains);
	evr_ptrmap_init(&base->cmid_map);
	evr_idmap_init(&base->work_owners);
	evr_async_queue_init(&base->async);
}

static bool in_range(int value, int low, int high)
{
	return value >= low && value <= high;
}

static bool options_valid(const struct evrdma_base_options *o, const struct event_base *event_base)
{
	int last_priority = event_base_get_npriorities((struct event_base *)event_base) - 1;

	return o->cq_budget && o->cq_budget <= INT_MAX && o->device_idle_ms <= INT_MAX &&
		o->device_poll_ms <= INT_MAX && !(o->flags & ~EVRDMA_BASE_OPT_NO_ASYNC_EVENTS) &&
		o->comp_vector >= -1 && o->spin_us <= MAX_SPIN_US &&
		in_range(o->data_priority, -1, last_priority) &&
		in_range(o->cm_priority, -1, last_priority);
}

/* In turn, so that the bases of a program with many threads share its processors. */
static unsigned choose_vector(int wanted)
{
	static atomic_uint next;

	return wanted < 0 ? atomic_fetch_add(&next, 1) & INT_MAX : (unsigned)wanted;
}

static int start(struct evrdma_base *base)
{
	int ret;

	event_assign(&base->turn_event, base->event_base, -1, 0, on_turn, base);
	evr_base_assign_timer(base, &base->look_timer, on_look, base);
	evr_base_set_priority(&base->turn_event, base->options.data_priority);
	evr_shutdown_init(base);
	ret = evr_inbox_init(base);
	if (ret)
		return ret;
	ret = evr_devlist_init(base);
	if (ret)
		goto fini_inbox;
	ret = start_reading(base);
	if (ret)
		goto fini_devlist;
	return 0;
fini_devlist:
	evr_devlist_fini(base);
fini_inbox:
	evr_inbox_fini(base);
	return ret;
}

static struct evrdma_base *make(struct event_base *event_base, struct rdma_event_channel *channel,
	bool own_channel, const struct evrdma_base_options *options)
{
	struct evrdma_base *base = calloc(1, sizeof(*base));
	int ret = -ENOMEM;

	if (!base)
		goto fail;
	base->event_base = event_base;
	base->channel = channel;
	base->own_channel = own_channel;
	base->options = default_options;
	init_lists(base);
	ret = evr_options_load(&base->options, sizeof(base->options), options);
	if (!ret && !options_valid(&base->options, event_base))
		ret = -EINVAL;
	if (ret)
		goto fail;
	base->comp_vector = choose_vector(base->options.comp_vector);
	ret = start(base);
	if (ret)
		goto fail;
	return base;
fail:
	free(base);
	errno = -ret;
	return NULL;
}

struct evrdma_base *evrdma_base_new_with_channel(struct event_base *event_base,
	struct rdma_event_channel *channel, const struct evrdma_base_options *options)
{
	return make(event_base, channel, false, options);
}

/* The caller gets an errno; what is known beyond it goes to the log. */
static struct rdma_event_channel *open_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	char text[96];
	const char *cause;

	if (channel)
		return channel;
	cause = evr_cause_text(errno, EVRDMA_STEP_NONE, text, sizeof(text));
	evr_log(EVRDMA_LOG_WARN, "opening an event channel: %s%s%s", strerror(errno),
		cause ? ": " : "", cause ? cause : "");
	return NULL;
}

struct evrdma_base *evrdma_base_new(
	struct event_base *event_base, const struct evrdma_base_options *options)
{
	struct rdma_event_channel *channel = open_channel();
	struct evrdma_base *base;
	int err;

	if (!channel)
		return NULL;
	base = make(event_base, channel, true, options);
	if (!base) {
		err = errno;
		rdma_destroy_event_channel(channel);
		errno = err;
	}
	return base;
}

static void finish(struct evrdma_base *base)
{
	evrdma_base_cb cb = base->closed_cb;
	void *arg = base->closed_arg;

	evr_devlist_fini(base);
	evr_device_release_all(base);
	evr_srq_release_all(base);
	evr_domain_release_all(base);
	evr_pool_release_all(base);
	event_del(&base->turn_event);
	event_del(&base->shutdown_timer);
	event_del(&base->look_timer);
	give_channel_back(base);
	evr_ptrmap_fini(&base->cmid_map);
	evr_idmap_fini(&base->work_owners);
	if (cb)
		cb(base, arg);
	evr_inbox_fini(base);
	free(base);
}

void evrdma_base_close(struct evrdma_base *base, evrdma_base_cb cb, void *arg)
{
	struct evr_cmid *cmid;
	struct evr_obj *obj;

	if (!base || base->closing)
		return;
	base->closing = true;
	evr_inbox_close(base);
	if (!base->shutting_down) {
		base->closed_cb = cb;
		base->closed_arg = arg;
	}
	TAILQ_FOREACH (obj, &base->objs, link)
		evr_obj_close(obj);
	/* Connections of other bases whose events were moved here. */
	TAILQ_FOREACH (cmid, &base->cmids, link)
		evr_obj_close(cmid->owner);
	evr_base_kick(base);
}

void evrdma_base_set_event_cb(struct evrdma_base *base, evrdma_base_event_cb cb, void *arg)
{
	base->event_cb = cb;
	base->event_arg = arg;
}

struct event_base *evrdma_base_get_event_base(const struct evrdma_base *base)
{
	return base->event_base;
}

struct rdma_event_channel *evrdma_base_get_channel(const struct evrdma_base *base)
{
	return base->channel;
}
