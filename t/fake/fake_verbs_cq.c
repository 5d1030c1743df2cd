/* Completion channels and completion queues. */
#include "fake/fake_verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_CQE = 63 };

static struct fake_channel *channel_of(struct ibv_comp_channel *channel)
{
	return fake_of(channel, fake_channel, channel);
}

static void channel_fini(struct fake_node *node)
{
	fake_bell_close(&fake_of(node, fake_channel, node)->bell);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct fake_channel *channel;
	struct fake_bell bell;

	FAKE_GUARD();
	FAKE_VERB_NULL(fake_context_of(context), "ibv_create_comp_channel");
	if (fake_bell_open(&bell, O_CLOEXEC))
		return NULL;
	channel = fake_node_new(sizeof(*channel), FAKE_CHANNEL, fake_context_of(context));
	TAILQ_INIT(&channel->events);
	channel->bell = bell;
	channel->node.fini = channel_fini;
	channel->channel.context = context;
	channel->channel.fd = channel->bell.fd;
	return &channel->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *verbs)
{
	struct fake_channel *channel = channel_of(verbs);

	FAKE_GUARD();
	FAKE_RELEASE(channel->node.context, "ibv_destroy_comp_channel");
	if (channel->cqs)
		return EBUSY;
	fake_node_free(&channel->node);
	return 0;
}

/* --- notifications --- */

static void notify(struct fake_cq *cq)
{
	struct fake_channel *channel = channel_of(cq->cq.channel);
	struct fake_comp_event *event = fake_alloc(sizeof(*event));

	event->cq = cq;
	cq->arm = FAKE_DISARMED;
	TAILQ_INSERT_TAIL(&channel->events, event, link);
	fake_bell_set(&channel->bell, true);
}

void fake_cq_wake(struct fake_cq *cq)
{
	if (cq->arm != FAKE_DISARMED)
		notify(cq);
}

static void comp_event_free(struct fake_channel *channel, struct fake_comp_event *event)
{
	TAILQ_REMOVE(&channel->events, event, link);
	fake_bell_set(&channel->bell, channel->node.lost || !TAILQ_EMPTY(&channel->events));
	free(event);
}

void fake_channels_end(const struct fake_context *context)
{
	struct fake_node *node = NULL;

	while ((node = fake_node_next(FAKE_CHANNEL, node)))
		if (node->context == context)
			fake_bell_set(&fake_of(node, fake_channel, node)->bell, true);
}

static int take_comp_event(struct fake_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct fake_comp_event *event;
	int err;

	FAKE_GUARD();
	err = fake_fault_release(FAKE_VERBS, "ibv_get_cq_event");
	event = TAILQ_FIRST(&channel->events);
	if (!err && channel->node.lost)
		err = EIO;
	if (!err && !event)
		err = -fake_bell_empty(&channel->bell);
	if (err)
		return err;
	*cq = &event->cq->cq;
	*cq_context = event->cq->cq.cq_context;
	event->cq->unacked++;
	comp_event_free(channel, event);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *verbs, struct ibv_cq **cq, void **cq_context)
{
	int err;

	do {
		err = take_comp_event(channel_of(verbs), cq, cq_context);
	} while (err == EDEADLK && fake_bell_wait(verbs->fd));
	if (!err)
		return 0;
	errno = err;
	return -1;
}

void ibv_ack_cq_events(struct ibv_cq *verbs, unsigned n)
{
	struct fake_cq *cq = fake_cq_of(verbs);

	FAKE_GUARD();
	fake_fault_release(FAKE_VERBS, "ibv_ack_cq_events");
	if (n > cq->unacked)
		fake_die("%u completion events acked, %u were read", n, cq->unacked);
	cq->unacked -= n;
}

int fake_req_notify_cq(struct ibv_cq *verbs, int solicited_only)
{
	struct fake_cq *cq = fake_cq_of(verbs);

	FAKE_GUARD();
	FAKE_VERB(NULL, "ibv_req_notify_cq");
	if (!verbs->channel)
		return EINVAL;
	fake_work_arming();
	if (fake_profile_at(&cq->node)->arming_twice_wakes)
		fake_cq_wake(cq);
	if (!solicited_only)
		cq->arm = FAKE_ARMED;
	else if (cq->arm == FAKE_DISARMED)
		cq->arm = FAKE_ARMED_SOLICITED;
	return 0;
}

/* --- queues --- */

static struct fake_cqe *take_cqe(struct fake_cq *cq)
{
	struct fake_cqe *cqe = &cq->ring[cq->first];

	cq->first = (cq->first + 1) % (unsigned)cq->cq.cqe;
	cq->count--;
	return cqe;
}

static void cqe_free(struct fake_cqe *cqe)
{
	if (cqe->recv)
		fake_recv_free(cqe->recv);
	cqe->recv = NULL;
}

static void cq_fini(struct fake_node *node)
{
	struct fake_cq *cq = fake_of(node, fake_cq, node);
	struct fake_comp_event *event, *next;
	struct fake_channel *channel;

	fake_async_purge(node->context, &cq->cq);
	while (cq->count)
		cqe_free(take_cqe(cq));
	free(cq->ring);
	if (!cq->cq.channel)
		return;
	channel = channel_of(cq->cq.channel);
	channel->cqs--;
	TAILQ_FOREACH_SAFE (event, &channel->events, link, next)
		if (event->cq == cq)
			comp_event_free(channel, event);
}

static bool cq_fits(struct fake_context *context, int cqe, int vector)
{
	const struct ibv_device_attr *attr = &context->device->attr;

	errno = EINVAL;
	if (cqe < 1 || cqe > attr->max_cqe || vector < 0 ||
		vector >= context->v.context.num_comp_vectors)
		return false;
	errno = ENOMEM;
	return fake_node_count(FAKE_CQ, context) < (unsigned)attr->max_cq;
}

static int cqe_given(const struct fake_profile *profile, int asked)
{
	int power = profile->cqe == FAKE_ONE_LESS ? MIN_CQE + 1 : 1;

	if (profile->cqe == FAKE_EXACT)
		return asked;
	while (power < asked + (profile->cqe == FAKE_POWER_OF_TWO))
		power *= 2;
	return power - 1;
}

static unsigned on_vector[8];

unsigned fake_cqs_on(unsigned vector)
{
	return on_vector[vector & 7];
}

struct ibv_cq *ibv_create_cq(struct ibv_context *verbs, int cqe, void *cq_context,
	struct ibv_comp_channel *channel, int vector)
{
	struct fake_context *context = fake_context_of(verbs);
	struct fake_cq *cq;

	FAKE_GUARD();
	FAKE_VERB_NULL(context, "ibv_create_cq");
	if (!cq_fits(context, cqe, vector))
		return NULL;
	cqe = cqe_given(context->device->profile, cqe);
	cq = fake_node_new(sizeof(*cq), FAKE_CQ, context);
	cq->node.fini = cq_fini;
	cq->ring = fake_alloc((size_t)cqe * sizeof(*cq->ring));
	cq->cq.context = verbs;
	on_vector[vector & 7]++;
	cq->cq.channel = channel;
	cq->cq.cq_context = cq_context;
	cq->cq.handle = cq->node.handle;
	cq->cq.cqe = cqe;
	if (channel)
		channel_of(channel)->cqs++;
	return &cq->cq;
}

int ibv_resize_cq(struct ibv_cq *verbs, int cqe)
{
	struct fake_cq *cq = fake_cq_of(verbs);
	struct fake_cqe *ring;
	unsigned i;

	FAKE_GUARD();
	FAKE_VERB(cq->node.context, "ibv_resize_cq");
	if (cqe < 1 || (unsigned)cqe < cq->count || cqe > cq->node.context->device->attr.max_cqe)
		return EINVAL;
	ring = fake_alloc((size_t)cqe * sizeof(*ring));
	for (i = 0; i < cq->count; i++)
		ring[i] = cq->ring[(cq->first + i) % (unsigned)verbs->cqe];
	free(cq->ring);
	cq->ring = ring;
	cq->first = 0;
	verbs->cqe = cqe;
	return 0;
}

int ibv_destroy_cq(struct ibv_cq *verbs)
{
	struct fake_cq *cq = fake_cq_of(verbs);

	FAKE_GUARD();
	FAKE_RELEASE(cq->node.context, "ibv_destroy_cq");
	if (cq->users)
		return EBUSY;
	if (cq->unacked || cq->async_unacked)
		fake_die("ibv_destroy_cq would wait for ever: %u events are not acked",
			cq->unacked + cq->async_unacked);
	fake_node_free(&cq->node);
	return 0;
}

static bool wakes(const struct fake_cq *cq, const struct fake_cqe *cqe, bool solicited)
{
	if (cq->arm == FAKE_ARMED_SOLICITED)
		return solicited || cqe->wc.status != IBV_WC_SUCCESS;
	return cq->arm == FAKE_ARMED;
}

void fake_cq_push(struct fake_cq *cq, const struct fake_cqe *cqe, bool solicited)
{
	if (cq->count == (unsigned)cq->cq.cqe) {
		fake_misuse("a CQ of %d entries overran", cq->cq.cqe);
		fake_recv_free(cqe->recv);
		fake_async_cq(&cq->cq, IBV_EVENT_CQ_ERR);
		return;
	}
	cq->ring[(cq->first + cq->count) % (unsigned)cq->cq.cqe] = *cqe;
	cq->count++;
	if (!cq->polled && wakes(cq, cqe, solicited))
		notify(cq);
}

void fake_cq_purge(struct fake_cq *cq, uint32_t qp_num)
{
	unsigned i, kept = 0, size = (unsigned)cq->cq.cqe;

	for (i = 0; i < cq->count; i++) {
		struct fake_cqe *cqe = &cq->ring[(cq->first + i) % size];

		if (cqe->wc.qp_num != qp_num)
			cq->ring[(cq->first + kept++) % size] = *cqe;
		else
			cqe_free(cqe);
	}
	cq->count = kept;
}

/* What was polled by the same call before it failed is lost. */
static int poll_failed(struct fake_cq *cq)
{
	const struct fake_profile *profile = fake_profile_at(&cq->node);
	int lost;

	for (lost = 0; lost < profile->poll_loses && cq->count; lost++)
		cqe_free(take_cqe(cq));
	cq->failed = true;
	cq->dead |= profile->poll_fails_for_ever;
	return profile->poll_failure ? profile->poll_failure : -1;
}

/* Where the device has nothing to say, what was there before stays. */
static void fill(enum fake_wc_fields fields, const struct ibv_wc *from, struct ibv_wc *wc)
{
	enum { IP_VERSION = 4 }; /* which bnxt_re has in the place of a service level */
	const struct ibv_wc before = *wc;

	*wc = *from;
	if (fields == FAKE_WC_ALL)
		return;
	wc->slid = before.slid;
	wc->sl = IP_VERSION;
	wc->pkey_index = before.pkey_index;
	wc->dlid_path_bits = before.dlid_path_bits;
}

static void poll_one(struct fake_cq *cq, struct ibv_wc *wc)
{
	const struct fake_profile *profile = fake_profile_at(&cq->node);
	struct fake_cqe *cqe = take_cqe(cq);
	struct fake_qp *qp = fake_qp_find(cqe->wc.qp_num);

	if (qp)
		qp->sq_used -= cqe->sq_slots;
	else if (profile->orphans == FAKE_ORPHANS_FATAL)
		fake_misuse("a completion of a queue pair that was destroyed was polled");
	if (cqe->recv)
		fake_receive_late(cqe->recv);
	fill(profile->wc, &cqe->wc, wc);
	cqe_free(cqe);
}

int fake_poll_cq(struct ibv_cq *verbs, int entries, struct ibv_wc *wc)
{
	struct fake_cq *cq = fake_cq_of(verbs);
	int n = 0;

	FAKE_GUARD();
	if (fake_fault_release(FAKE_VERBS, "ibv_poll_cq") || cq->dead)
		return poll_failed(cq);
	if (!cq->count) {
		cq->polled = true;
		fake_flush_late(cq);
		cq->polled = false;
	}
	while (n < entries && cq->count)
		poll_one(cq, &wc[n++]);
	return n;
}

void fake_break_cq(struct ibv_cq *cq)
{
	FAKE_GUARD();
	fake_cq_of(cq)->dead = true;
}

bool fake_poll_failed(const struct ibv_cq *cq)
{
	FAKE_GUARD();
	return fake_cq_of((struct ibv_cq *)cq)->failed;
}

unsigned fake_unpolled(void)
{
	struct fake_node *node = NULL;
	unsigned n = 0;

	FAKE_GUARD();
	while ((node = fake_node_next(FAKE_CQ, node)))
		n += fake_of(node, fake_cq, node)->failed ? 0 : fake_of(node, fake_cq, node)->count;
	return n;
}
