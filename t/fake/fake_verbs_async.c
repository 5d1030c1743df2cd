/* Asynchronous events of contexts. */
#include "fake/fake_verbs.h"

#include <errno.h>
#include <stdlib.h>

/* The count that holds up the destruction of what the event is about; NULL for a port's. */
static unsigned *unacked_of(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return &fake_cq_of(event->element.cq)->async_unacked;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return &fake_of(event->element.srq, fake_srq, srq)->async_unacked;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return &fake_qp_of(event->element.qp)->async_unacked;
	default:
		return NULL;
	}
}

void fake_async_raise(struct fake_context *context, const struct ibv_async_event *event)
{
	struct fake_async *async = fake_alloc(sizeof(*async));

	async->event = *event;
	TAILQ_INSERT_TAIL(&context->async, async, link);
	fake_bell_set(&context->async_bell, true);
}

static void async_free(struct fake_context *context, struct fake_async *async)
{
	TAILQ_REMOVE(&context->async, async, link);
	fake_bell_set(&context->async_bell, !TAILQ_EMPTY(&context->async));
	free(async);
}

/* All of them when element is NULL. */
void fake_async_purge(struct fake_context *context, const void *element)
{
	struct fake_async *async, *next;

	TAILQ_FOREACH_SAFE (async, &context->async, link, next)
		if (!element || (unacked_of(&async->event) && async->event.element.cq == element))
			async_free(context, async);
}

int ibv_get_async_event(struct ibv_context *verbs, struct ibv_async_event *event)
{
	struct fake_context *context = fake_context_of(verbs);
	struct fake_async *async;
	unsigned *unacked;
	int err;

	FAKE_GUARD();
	err = fake_fault_release(FAKE_VERBS, "ibv_get_async_event");
	async = TAILQ_FIRST(&context->async);
	if (!err && !async)
		err = -fake_bell_empty(&context->async_bell);
	if (err) {
		errno = err;
		return -1;
	}
	*event = async->event;
	async_free(context, async);
	unacked = unacked_of(event);
	if (unacked)
		(*unacked)++;
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	unsigned *unacked;

	FAKE_GUARD();
	fake_fault_release(FAKE_VERBS, "ibv_ack_async_event");
	unacked = unacked_of(event);
	if (!unacked)
		return;
	if (!*unacked)
		fake_die("an asynchronous event was acked twice");
	(*unacked)--;
}

void fake_async_qp(struct ibv_qp *qp, enum ibv_event_type type)
{
	struct ibv_async_event event = { .element.qp = qp, .event_type = type };

	FAKE_GUARD();
	fake_async_raise(fake_context_of(qp->context), &event);
}

void fake_async_cq(struct ibv_cq *cq, enum ibv_event_type type)
{
	struct ibv_async_event event = { .element.cq = cq, .event_type = type };

	FAKE_GUARD();
	fake_async_raise(fake_context_of(cq->context), &event);
}

void fake_async_srq(struct ibv_srq *srq, enum ibv_event_type type)
{
	struct ibv_async_event event = { .element.srq = srq, .event_type = type };

	FAKE_GUARD();
	fake_async_raise(fake_context_of(srq->context), &event);
}

void fake_async_port(enum fake_kind kind, enum ibv_event_type type)
{
	struct ibv_async_event event = { .element.port_num = 1, .event_type = type };
	struct fake_node *node = NULL;

	FAKE_GUARD();
	while ((node = fake_node_next(FAKE_CONTEXT, node)))
		if (fake_of(node, fake_context, node)->device->kind == kind)
			fake_async_raise(fake_of(node, fake_context, node), &event);
}
