#include "ev/device/async.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "ev/core/base.h"
#include "ev/core/lock.h"
#include "ev/device/devices.h"
#include "util/clock.h"
#include "util/ptrmap.h"

enum { MOST_IN_TURN = 64 };

struct evr_async_context {
	TAILQ_ENTRY(evr_async_context) link;
	struct ibv_context *verbs;
	int saved_fd_flags;	  /* -1: none of us reads */
	struct evr_async *reader; /* NULL: the host reads, or there is nothing to read any more */
	TAILQ_HEAD(, evr_async) members;
	struct evr_ptrmap subjects; /* a verbs object -> struct evr_async_subject */
};

static struct evr_lock lock = EVR_LOCK_INITIALIZER(EVR_LOCK_ASYNC);
/* And all that is in them. */
static TAILQ_HEAD(, evr_async_context) contexts = TAILQ_HEAD_INITIALIZER(contexts);

/* --- telling -------------------------------------------------------------------------------- */

/* With the lock held. False when the base is closing and listens to nobody. */
static bool wake(struct evrdma_base *base, struct evr_async_queue *queue)
{
	if (!queue->queued)
		queue->queued = !evr_inbox_put(base, &queue->item);
	return queue->queued;
}

/* Of a port that is up and down in turns, only how it is now counts. */
static uint32_t undone_by(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_PORT_ACTIVE:
		return 1u << IBV_EVENT_PORT_ERR;
	case IBV_EVENT_PORT_ERR:
		return 1u << IBV_EVENT_PORT_ACTIVE;
	default:
		return 0;
	}
}

static void note(struct evr_async_subject *subject, enum ibv_event_type type)
{
	struct evr_async *async = subject->async;

	if (!subject->events)
		TAILQ_INSERT_TAIL(&async->queue->subjects, subject, link);
	subject->events &= ~undone_by(type);
	subject->events |= 1u << type;
	wake(async->base, async->queue);
}

static void note_for_all(struct evr_async_context *context, int port, enum ibv_event_type type)
{
	struct evr_async *async;

	TAILQ_FOREACH (async, &context->members, link)
		if (port >= 0 && (unsigned)port <= async->port_count)
			note(&async->ports[port], type);
}

static void note_for_one(
	struct evr_async_context *context, const void *object, enum ibv_event_type type)
{
	struct evr_async_subject *subject = evr_ptrmap_find(&context->subjects, object);

	if (subject)
		note(subject, type);
}

/* With the lock held. The object is only looked up: it may be somebody else's. */
static void note_event(struct evr_async_context *context, const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		note_for_one(context, event->element.qp, event->event_type);
		break;
	case IBV_EVENT_CQ_ERR:
		note_for_one(context, event->element.cq, event->event_type);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		note_for_one(context, event->element.srq, event->event_type);
		break;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
		note_for_all(context, event->element.port_num, event->event_type);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		note_for_all(context, 0, event->event_type);
		break;
	default:
		break;
	}
}

static struct evr_async_subject *next_with_events(struct evr_async_queue *queue, uint32_t *events)
{
	struct evr_async_subject *subject;

	evr_lock(&lock);
	subject = TAILQ_FIRST(&queue->subjects);
	if (subject) {
		TAILQ_REMOVE(&queue->subjects, subject, link);
		*events = subject->events;
		subject->events = 0;
	}
	evr_unlock(&lock);
	return subject;
}

/* --- reading -------------------------------------------------------------------------------- */

/* Returns 0, or why nothing can be read. */
static int read_event(struct evr_async_context *context)
{
	struct ibv_async_event event;

	errno = 0;
	if (ibv_get_async_event(context->verbs, &event))
		return errno ? -errno : -EIO;
	/* Who hears of it may destroy the object at once, which waits to be acknowledged. */
	evr_lock(&lock);
	note_event(context, &event);
	ibv_ack_async_event(&event);
	evr_unlock(&lock);
	return 0;
}

static void stop_reading(struct evr_async *async)
{
	if (async->reading)
		event_del(&async->event);
	async->reading = false;
}

/* A device that was removed has no more events, but its descriptor stays readable. */
static void give_up(struct evr_async *async)
{
	stop_reading(async);
	evr_lock(&lock);
	async->context->reader = NULL;
	evr_unlock(&lock);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct evr_async *async = arg;
	int most = MOST_IN_TURN, ret;

	do
		ret = read_event(async->context);
	while (!ret && --most);
	if (ret && ret != -EAGAIN && ret != -EINTR)
		give_up(async);
}

static int set_nonblocking(struct evr_async_context *context)
{
	int fd = context->verbs->async_fd;
	int flags = fcntl(fd, F_GETFL);

	if (context->saved_fd_flags >= 0)
		return 0;
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	context->saved_fd_flags = flags;
	return 0;
}

static int start_reading(struct evr_async *async)
{
	struct evrdma_base *base = async->base;
	int ret = set_nonblocking(async->context);

	if (ret)
		return ret;
	event_assign(&async->event, base->event_base, async->context->verbs->async_fd,
		EV_READ | EV_PERSIST, on_readable, async);
	evr_base_set_urgent(base, &async->event);
	evr_base_set_priority(&async->event, base->options.cm_priority);
	if (event_add(&async->event, NULL))
		return -ENOMEM;
	async->reading = true;
	return 0;
}

static bool may_read(const struct evr_async *async)
{
	return !(async->base->options.flags & EVRDMA_BASE_OPT_NO_ASYNC_EVENTS);
}

/* With the lock held: to the first of the others whose base still listens. */
static void pass_on(struct evr_async *async)
{
	struct evr_async_context *context = async->context;
	struct evr_async *next;

	TAILQ_FOREACH (next, &context->members, link)
		if (next != async && may_read(next) && wake(next->base, next->queue))
			break;
	context->reader = next;
}

static bool is_to_take_over(const struct evr_async *async)
{
	bool is_reader;

	evr_lock(&lock);
	is_reader = async->context->reader == async;
	evr_unlock(&lock);
	return is_reader && !async->reading;
}

static void take_over(struct evr_async *async)
{
	if (!is_to_take_over(async) || !start_reading(async))
		return;
	evr_lock(&lock);
	pass_on(async);
	evr_unlock(&lock);
}

static bool tell_next(struct evr_async_queue *queue)
{
	uint32_t events;
	struct evr_async_subject *subject = next_with_events(queue, &events);

	if (subject)
		subject->happened(subject, events);
	return subject;
}

/* What is left comes in a later turn. */
static void wake_if_more(struct evrdma_base *base, struct evr_async_queue *queue)
{
	evr_lock(&lock);
	if (!TAILQ_EMPTY(&queue->subjects))
		wake(base, queue);
	evr_unlock(&lock);
}

/* Something was noted for this base, or it is to read from now on. */
static void deliver(struct evrdma_base *base, struct evr_inbox_item *item)
{
	struct evr_devices *devices = evr_devices_of(base);
	uint64_t deadline = evr_base_turn_deadline(base);
	struct evr_device *device;

	evr_lock(&lock);
	devices->async.queued = false;
	evr_unlock(&lock);
	TAILQ_FOREACH (device, &devices->list, link)
		take_over(&device->async);
	while (tell_next(&devices->async))
		if (evr_clock_now_us() >= deadline) {
			wake_if_more(base, &devices->async);
			break;
		}
}

/* --- devices -------------------------------------------------------------------------------- */

void evr_async_queue_init(struct evr_async_queue *queue)
{
	queue->item.deliver = deliver;
	TAILQ_INIT(&queue->subjects);
}

static struct evr_async_context *find(const struct ibv_context *verbs)
{
	struct evr_async_context *context;

	TAILQ_FOREACH (context, &contexts, link)
		if (context->verbs == verbs)
			break;
	return context;
}

static void release_if_unused(struct evr_async_context *context)
{
	if (!TAILQ_EMPTY(&context->members))
		return;
	if (context->saved_fd_flags >= 0)
		fcntl(context->verbs->async_fd, F_SETFL, context->saved_fd_flags);
	TAILQ_REMOVE(&contexts, context, link);
	evr_ptrmap_fini(&context->subjects);
	free(context);
}

static struct evr_async_context *make(struct ibv_context *verbs)
{
	struct evr_async_context *context = calloc(1, sizeof(*context));

	if (!context)
		return NULL;
	context->verbs = verbs;
	context->saved_fd_flags = -1;
	TAILQ_INIT(&context->members);
	evr_ptrmap_init(&context->subjects);
	TAILQ_INSERT_TAIL(&contexts, context, link);
	return context;
}

/* With the lock held. */
static int join(struct evr_async *async, struct ibv_context *verbs)
{
	int ret;

	async->context = find(verbs);
	if (!async->context)
		async->context = make(verbs);
	if (!async->context)
		return -ENOMEM;
	TAILQ_INSERT_TAIL(&async->context->members, async, link);
	if (async->context->reader || !may_read(async))
		return 0;
	ret = start_reading(async);
	if (!ret) {
		async->context->reader = async;
		return 0;
	}
	TAILQ_REMOVE(&async->context->members, async, link);
	release_if_unused(async->context);
	return ret;
}

static int make_ports(struct evr_async *async,
	void (*happened)(struct evr_async_subject *subject, uint32_t events))
{
	unsigned i;

	async->ports = calloc(async->port_count + 1, sizeof(*async->ports));
	if (!async->ports)
		return -ENOMEM;
	for (i = 0; i <= async->port_count; i++) {
		async->ports[i].async = async;
		async->ports[i].happened = happened;
	}
	return 0;
}

int evr_async_start(struct evr_async *async, struct evrdma_base *base, struct ibv_context *verbs,
	unsigned port_count,
	void (*port_happened)(struct evr_async_subject *subject, uint32_t events))
{
	int ret;

	async->base = base;
	async->queue = &evr_devices_of(base)->async;
	async->port_count = port_count;
	ret = make_ports(async, port_happened);
	if (ret)
		return ret;
	evr_lock(&lock);
	ret = join(async, verbs);
	evr_unlock(&lock);
	if (ret)
		free(async->ports);
	return ret;
}

static void forget_events(struct evr_async_subject *subject)
{
	if (subject->events)
		TAILQ_REMOVE(&subject->async->queue->subjects, subject, link);
	subject->events = 0;
}

void evr_async_stop(struct evr_async *async)
{
	struct evr_async_context *context = async->context;
	unsigned i;

	stop_reading(async);
	evr_lock(&lock);
	for (i = 0; i <= async->port_count; i++)
		forget_events(&async->ports[i]);
	TAILQ_REMOVE(&context->members, async, link);
	if (context->reader == async)
		pass_on(async);
	release_if_unused(context);
	evr_unlock(&lock);
	free(async->ports);
}

unsigned evr_async_port_of(const struct evr_async_subject *subject)
{
	return (unsigned)(subject - subject->async->ports);
}

/* --- objects -------------------------------------------------------------------------------- */

int evr_async_watch(struct evr_async *async, const void *object, struct evr_async_subject *subject)
{
	int ret;

	evr_lock(&lock);
	ret = evr_ptrmap_add(&async->context->subjects, object, subject);
	/* From here on its events are noted, on whichever thread. */
	subject->async = ret ? NULL : async;
	evr_unlock(&lock);
	return ret;
}

void evr_async_unwatch(const void *object, struct evr_async_subject *subject)
{
	if (!subject->async)
		return;
	evr_lock(&lock);
	evr_ptrmap_remove(&subject->async->context->subjects, object);
	forget_events(subject);
	subject->async = NULL;
	evr_unlock(&lock);
}

int evrdma_async_event(struct ibv_context *verbs, const struct ibv_async_event *event)
{
	struct evr_async_context *context;

	evr_lock(&lock);
	context = find(verbs);
	if (context)
		note_event(context, event);
	evr_unlock(&lock);
	return context ? 0 : -ENODEV;
}
