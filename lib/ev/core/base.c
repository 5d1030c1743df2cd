#include "config.h"

#include "ev/core/base.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "util/clock.h"
#include "util/options.h"

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
		evr_timer_fire(&base->turn);
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
	base->task_count += !task->queued;
	queue(base, &base->tasks[task->kind], task);
}

void evr_base_cancel(struct evrdma_base *base, struct evr_task *task)
{
	base->task_count -= task->queued;
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

uint64_t evr_base_turn_deadline(const struct evrdma_base *base)
{
	return evr_clock_now_us() + base->turn_budget_us;
}

bool evr_base_has_to_do(const struct evrdma_base *base)
{
	return base->task_count || !TAILQ_EMPTY(&base->posts) || !TAILQ_EMPTY(&base->tells);
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
	struct evr_task *task;
	uint64_t deadline;

	if (!base->task_count)
		return;
	deadline = evr_base_turn_deadline(base);
	while ((task = next_task(base))) {
		evr_base_cancel(base, task);
		task->run(task);
		base->stats.tasks++;
		if (evr_clock_now_us() >= deadline)
			break;
	}
	base->stats.turns_over_budget += task && base->task_count;
}

static bool has_many_posts(const struct evrdma_base *base)
{
	const struct evr_task *task = TAILQ_FIRST(&base->posts);

	return task && TAILQ_NEXT(task, link);
}

/*
 * The same. What is left goes to the end of the next turn. One alone, which is the most frequent,
 * is not measured: what it adds waits until then.
 */
static void run_posts(struct evrdma_base *base)
{
	uint64_t deadline = has_many_posts(base) ? evr_base_turn_deadline(base) : 0;
	struct evr_task *task;

	while ((task = TAILQ_FIRST(&base->posts))) {
		evr_base_cancel_post(base, task);
		task->run(task);
		if (!deadline || evr_clock_now_us() >= deadline)
			break;
	}
}

/* Those that were not done come first, so that all of one queue are told in order. */
static void run_tells(struct evrdma_base *base)
{
	struct evr_task *task;

	while (base->tell_budget > 0 && (task = TAILQ_FIRST(&base->tells))) {
		evr_base_cancel_tell(base, task);
		task->run(task);
	}
	evr_parts_tell(base);
}

/* A queue that can never be empty does not hold up the end of a base. */
static bool has_more(const struct evrdma_base *base)
{
	return evr_parts_have_more(base) && !(base->closing && TAILQ_EMPTY(&base->objs));
}

static bool has_work(const struct evrdma_base *base)
{
	return evr_base_has_to_do(base) || has_more(base);
}

static void count_turn(struct evrdma_base *base, uint64_t us)
{
	base->stats.turns++;
	if (us > base->stats.longest_turn_us)
		base->stats.longest_turn_us = us;
}

static void finish(struct evrdma_base *base);

bool evr_base_any_obj(const struct evrdma_base *base, bool (*is)(struct evr_obj *obj))
{
	struct evr_obj *obj;

	TAILQ_FOREACH (obj, &base->objs, link)
		if (is(obj))
			return true;
	return evr_parts_have_guest(base, is);
}

static bool is_there(struct evr_obj *obj)
{
	return true;
}

static bool is_deserted(const struct evrdma_base *base)
{
	return base->closing && !evr_base_any_obj(base, is_there);
}

static bool can_finish(struct evrdma_base *base)
{
	if (!is_deserted(base))
		return false;
	/* It may bring requests from other threads, which are then objects to close. */
	return !evr_inbox_deliver(base) && TAILQ_EMPTY(&base->objs);
}

static bool may_go_on(const struct evrdma_base *base)
{
	return base->tell_budget > 0 && !evr_base_has_to_do(base) && has_more(base);
}

/*
 * Whether one that spins does all once more in this turn: as long as something is told, a peer may
 * answer sooner than the loop turns. What it does again has the rest of the time, not as much anew.
 * Out of the way of the others.
 */
static __attribute__((cold)) bool goes_on(struct evrdma_base *base, uint64_t start, int *budget)
{
	uint64_t took = evr_clock_now_us() - start;
	bool told = base->tell_budget < *budget;
	bool goes = told && may_go_on(base) && took < base->options.turn_budget_us;

	*budget = base->tell_budget;
	base->turn_budget_us = base->options.turn_budget_us - (goes ? (unsigned)took : 0);
	return goes;
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct evrdma_base *base = arg;
	uint64_t start = evr_clock_now_us();
	int budget = (int)base->options.cq_budget;

	base->kicked = false;
	base->in_turn = true;
	base->tell_budget = budget;
	do {
		run_tells(base);
		run_tasks(base);
		run_posts(base);
	} while (base->options.spin_us && goes_on(base, start, &budget));
	evr_shutdown_look(base);
	base->in_turn = false;
	count_turn(base, evr_clock_now_us() - start);
	if (has_work(base) ||
		(is_deserted(base) && evr_parts_shed(base, evr_base_turn_deadline(base))))
		base->kicked = true;
	/* By a timer, not by activation: every other event of the loop has its turn first. */
	if (base->kicked)
		evr_timer_start_now(&base->turn);
	else if (can_finish(base))
		finish(base);
}

/* --- life ----------------------------------------------------------------------------------- */

static void init_lists(struct evrdma_base *base)
{
	unsigned kind;

	for (kind = 0; kind < EVR_TASK_KINDS; kind++)
		TAILQ_INIT(&base->tasks[kind]);
	TAILQ_INIT(&base->posts);
	TAILQ_INIT(&base->tells);
	TAILQ_INIT(&base->objs);
	TAILQ_INIT(&base->parts);
}

static bool in_range(int value, int low, int high)
{
	return value >= low && value <= high;
}

static bool options_valid(const struct evrdma_base_options *o, const struct event_base *event_base)
{
	int last_priority = event_base_get_npriorities((struct event_base *)event_base) - 1;

	return o->turn_budget_us <= INT_MAX && o->cq_budget && o->cq_budget <= INT_MAX &&
	       o->cq_entries && o->device_idle_ms <= INT_MAX && o->device_poll_ms <= INT_MAX &&
	       !(o->flags & ~EVRDMA_BASE_OPT_NO_ASYNC_EVENTS) && o->comp_vector >= -1 &&
	       o->spin_us <= MAX_SPIN_US && in_range(o->data_priority, -1, last_priority) &&
	       in_range(o->cm_priority, -1, last_priority);
}

static int start(struct evrdma_base *base)
{
	int ret = evr_timers_init(base);

	if (ret)
		return ret;
	evr_timer_assign(&base->turn, base, on_turn, base);
	evr_base_set_priority(&base->turn.event, base->options.data_priority);
	evr_shutdown_init(base);
	ret = evr_inbox_init(base);
	if (ret)
		evr_timers_fini(base);
	return ret;
}

int evr_base_make(struct event_base *event_base, const struct evrdma_base_options *options,
	struct evrdma_base **made)
{
	struct evrdma_base *base = calloc(1, sizeof(*base));
	int ret;

	if (!base)
		return -ENOMEM;
	base->event_base = event_base;
	base->options = default_options;
	init_lists(base);
	ret = evr_options_load(&base->options, sizeof(base->options), options);
	if (!ret && !options_valid(&base->options, event_base))
		ret = -EINVAL;
	base->turn_budget_us = base->options.turn_budget_us;
	if (!ret)
		ret = start(base);
	if (ret)
		free(base);
	else
		*made = base;
	return ret;
}

static void stop(struct evrdma_base *base)
{
	evr_parts_stop(base);
	evr_timer_stop(&base->turn);
	evr_timer_stop(&base->shutdown_timer);
	evr_timers_fini(base);
}

void evr_base_unmake(struct evrdma_base *base)
{
	stop(base);
	evr_inbox_fini(base);
	free(base);
}

static void finish(struct evrdma_base *base)
{
	evrdma_base_cb cb = base->closed_cb;
	void *arg = base->closed_arg;

	stop(base);
	if (cb)
		cb(base, arg);
	evr_inbox_fini(base);
	free(base);
}

static bool close_one(struct evr_obj *obj)
{
	evr_obj_close(obj);
	return false;
}

void evrdma_base_close(struct evrdma_base *base, evrdma_base_cb cb, void *arg)
{
	if (!base || base->closing)
		return;
	base->closing = true;
	evr_inbox_close(base);
	if (!base->shutting_down) {
		base->closed_cb = cb;
		base->closed_arg = arg;
	}
	evr_base_any_obj(base, close_one);
	evr_base_kick(base);
}

struct event_base *evrdma_base_get_event_base(const struct evrdma_base *base)
{
	return base->event_base;
}

struct rdma_event_channel *evrdma_base_get_channel(const struct evrdma_base *base)
{
	return base->channel;
}
