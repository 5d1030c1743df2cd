#include "ev/device/cq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ev/core/base.h"
#include "ev/core/error.h"
#include "ev/core/log.h"
#include "ev/device/devices.h"
#include "ev/device/owner.h"
#include "util/clock.h"
#include "util/number.h"

enum {
	ACK_BATCH = 256, /* an acknowledgement takes a lock, so they are given in bulk */
	SPIN_POLLS = 256, /* of an empty CQ, a few hundredths of a microsecond each */
};

static void tell_broken(struct evr_cq *cq)
{
	struct evr_cq_user *user;

	if (cq->told)
		return;
	cq->told = true;
	TAILQ_FOREACH (user, &cq->users, link)
		user->broken(user);
}

static void on_async(struct evr_async_subject *subject, uint32_t events)
{
	struct evr_cq *cq = evr_container_of(subject, struct evr_cq, async);

	cq->broken = true;
	tell_broken(cq);
}

static int watch(struct evr_cq *cq)
{
	cq->async.happened = on_async;
	return evr_async_watch(&cq->device->async, cq->cq, &cq->async);
}

static int make(struct evr_cq *cq, uint32_t entries)
{
	struct evr_device *device = cq->device;
	unsigned vectors = (unsigned)device->verbs->num_comp_vectors;
	int vector = vectors ? (int)(device->devices->comp_vector % vectors) : 0;

	errno = 0;
	cq->cq = ibv_create_cq(device->verbs, (int)entries, cq, device->channel, vector);
	return cq->cq ? 0 : evr_verbs_error();
}

static int create(struct evr_device *device, uint32_t entries, struct evr_cq **created)
{
	uint32_t wanted = device->base->options.cq_entries;
	uint32_t most = (uint32_t)device->attr.max_cqe;
	struct evr_cq *cq;
	int ret;

	if (entries > most)
		return -EINVAL;
	if (wanted < entries)
		wanted = entries;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	cq->device = device;
	TAILQ_INIT(&cq->users);
	TAILQ_INIT(&cq->waits);
	ret = make(cq, evr_smaller(wanted, most));
	/* Some devices give one less than a power of two, even where that was asked for. */
	if (!ret && (uint32_t)cq->cq->cqe < entries && wanted < most) {
		ibv_destroy_cq(cq->cq);
		ret = make(cq, wanted + 1);
	}
	if (ret)
		goto free_cq;
	ret = (uint32_t)cq->cq->cqe < entries ? -EINVAL : watch(cq);
	if (ret)
		goto destroy_cq;
	TAILQ_INSERT_TAIL(&device->cqs, cq, link);
	*created = cq;
	return 0;
destroy_cq:
	ibv_destroy_cq(cq->cq);
free_cq:
	free(cq);
	return ret;
}

static void set_ready(struct evr_cq *cq, bool ready)
{
	struct evr_devices *devices = cq->device->devices;

	if (cq->ready == ready)
		return;
	cq->ready = ready;
	if (ready) {
		TAILQ_INSERT_TAIL(&devices->ready_cqs, cq, ready_link);
		/* A turn looks at the list at its end. */
		if (!devices->part.base->in_turn)
			evr_base_kick(devices->part.base);
	} else {
		TAILQ_REMOVE(&devices->ready_cqs, cq, ready_link);
	}
}

/* Whoever finds out may be in the middle of something: it is told when the CQ has its turn. */
static void set_broken(struct evr_cq *cq)
{
	cq->broken = true;
	if (!cq->told)
		set_ready(cq, true);
}

int evr_cq_reserve(struct evr_device *device, uint32_t entries, struct evr_cq_user *user,
	struct evr_cq **found)
{
	struct evr_cq *cq;
	int ret;

	TAILQ_FOREACH (cq, &device->cqs, link)
		if (!cq->broken && cq->reserved + entries <= (uint32_t)cq->cq->cqe)
			break;
	if (!cq) {
		ret = create(device, entries, &cq);
		if (ret)
			return ret;
	}
	cq->reserved += entries;
	TAILQ_INSERT_TAIL(&cq->users, user, link);
	if (!cq->armed)
		set_ready(cq, true);
	*found = cq;
	return 0;
}

static bool has_several(const struct evr_cq_list *cqs)
{
	return TAILQ_FIRST(cqs) != TAILQ_LAST(cqs, evr_cq_list);
}

void evr_cq_unreserve(struct evr_cq *cq, uint32_t entries, struct evr_cq_user *user)
{
	TAILQ_REMOVE(&cq->users, user, link);
	cq->released += entries;
	set_ready(cq, true);
	if (TAILQ_EMPTY(&cq->users) && has_several(&cq->device->cqs))
		evr_device_has_spare(cq->device);
}

static void ack(struct evr_cq *cq)
{
	if (cq->unacked)
		ibv_ack_cq_events(cq->cq, cq->unacked);
	cq->unacked = 0;
}

static void destroy(struct evr_cq_list *cqs, struct evr_cq *cq)
{
	set_ready(cq, false);
	ack(cq);
	evr_async_unwatch(cq->cq, &cq->async);
	evr_log_failure("ibv_destroy_cq", ibv_destroy_cq(cq->cq));
	TAILQ_REMOVE(cqs, cq, link);
	free(cq);
}

static bool is_spare(const struct evr_cq *cq)
{
	return TAILQ_EMPTY(&cq->users) && TAILQ_EMPTY(&cq->waits);
}

/* The last one to be made has the fewest on it: who comes takes the first that has room. */
bool evr_cq_drop_spare(struct evr_cq_list *cqs)
{
	struct evr_cq *cq, *spare = NULL;

	TAILQ_FOREACH (cq, cqs, link)
		if (is_spare(cq))
			spare = cq;
	if (!spare || !has_several(cqs))
		return false;
	destroy(cqs, spare);
	return true;
}

void evr_cq_destroy_all(struct evr_cq_list *cqs)
{
	struct evr_cq *cq;

	while ((cq = TAILQ_FIRST(cqs)))
		destroy(cqs, cq);
}

/* What comes late, for one who is gone, finds nobody. */
static void dispatch(const struct evr_devices *devices, const struct ibv_wc *wc)
{
	struct evr_work_owner *owner =
		evr_idmap_find(&devices->work_owners, (uint32_t)(wc->wr_id >> 32));

	if (owner)
		owner->complete(owner, (uint32_t)wc->wr_id, wc);
}

/* A message behind one that may be lost must not be told as if it were the next. */
static void distrust(struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_SUCCESS && (wc->opcode & IBV_WC_RECV))
		wc->status = IBV_WC_WR_FLUSH_ERR;
}

static void count_poll(struct evr_cq *cq, int n)
{
	struct evrdma_base *base = cq->device->base;

	base->stats.polls++;
	if (n <= 0)
		return;
	base->stats.completions += (uint64_t)n;
	base->tell_budget -= n;
	cq->taken += (uint64_t)n;
	if (base->options.spin_us)
		cq->last_us = evr_clock_now_us();
}

static void dispatch_batch(struct evr_cq *cq, int n)
{
	struct ibv_wc *wc;

	cq->polling = true;
	for (wc = cq->wc; wc < &cq->wc[n]; wc++) {
		if (cq->has_lost)
			distrust(wc);
		dispatch(cq->device->devices, wc);
		*wc = (struct ibv_wc){ 0 };
	}
	cq->polling = false;
}

/*
 * Takes up to most, at most a batch. Returns how many, or -EIO from a CQ that is broken: what the
 * failing call has taken is lost.
 */
static int poll_batch(struct evr_cq *cq, int most)
{
	int n = ibv_poll_cq(cq->cq, most, cq->wc);

	count_poll(cq, n);
	if (n > 0)
		dispatch_batch(cq, n);
	if (n >= 0)
		return n;
	memset(cq->wc, 0, sizeof(cq->wc));
	cq->has_lost = true;
	set_broken(cq);
	return -EIO;
}

static void set_empty(struct evr_cq *cq)
{
	cq->reserved -= cq->released;
	cq->released = 0;
	cq->times_empty++;
}

/* Returns whether there are more than the budget. Somebody's end may be told with each. */
static bool end_waits(struct evr_cq *cq, bool empty)
{
	struct evrdma_base *base = cq->device->base;
	struct evr_cq_wait *wait;

	while ((wait = TAILQ_FIRST(&cq->waits)) && (empty || wait->last <= cq->taken)) {
		if (base->tell_budget <= 0)
			return true;
		base->tell_budget--;
		evr_cq_stop_waiting(wait);
		wait->over(wait);
	}
	return false;
}

static bool may_arm(const struct evr_cq *cq)
{
	return !cq->armed && !cq->broken;
}

/*
 * Returns whether it is: else the budget is spent. Of a broken one nothing more can be taken.
 * Before the arming a batch that is not full is the last: the poll after it finds what comes later.
 */
static bool poll_until_empty(struct evr_cq *cq)
{
	struct evrdma_base *base = cq->device->base;

	while (base->tell_budget > 0) {
		int most = (int)evr_smaller((uint32_t)base->tell_budget, EVR_CQ_BATCH);
		int n = poll_batch(cq, most);

		if (!n)
			set_empty(cq);
		if (end_waits(cq, n <= 0))
			return false;
		if (n <= 0 || (n < most && may_arm(cq)))
			return true;
	}
	return false;
}

static bool may_spin(const struct evr_cq *cq)
{
	unsigned spin_us = cq->device->base->options.spin_us;

	return spin_us && !cq->broken && !cq->armed && evr_clock_now_us() < cq->last_us + spin_us;
}

/* Of this device and all others. */
static bool is_only_one(const struct evr_cq *cq)
{
	const struct evr_device *device = cq->device;

	return TAILQ_FIRST(&device->devices->list) == device && !TAILQ_NEXT(device, link) &&
	       !has_several(&device->cqs);
}

static bool does_another_wait(const struct evr_cq *cq)
{
	return evr_base_has_to_do(cq->device->base) || !is_only_one(cq);
}

/*
 * The next turn looks again: nobody else of the loop waits for it. Where nothing came, and neither
 * another CQ nor the end of this turn waits, it looks many times more first: for some microseconds,
 * as a turn of the loop takes.
 */
static void spin(struct evr_cq *cq, bool came)
{
	int i;

	for (i = 0; i < SPIN_POLLS && !came && !does_another_wait(cq); i++)
		came = poll_batch(cq, 1);
	set_ready(cq, true);
}

/*
 * Leaves the CQ either armed and seen empty since, or ready for another turn. What completes
 * between the last poll and the arming would raise no event: hence the second poll.
 */
static void service(struct evr_cq *cq)
{
	uint64_t taken = cq->taken;
	bool empty = poll_until_empty(cq);

	if (empty && may_spin(cq)) {
		spin(cq, cq->taken != taken);
		return;
	}
	if (empty && may_arm(cq)) {
		cq->armed = !ibv_req_notify_cq(cq->cq, 0);
		cq->device->base->stats.arms++;
		empty = cq->armed && poll_until_empty(cq);
	}
	set_ready(cq, !empty);
	if (cq->broken)
		tell_broken(cq);
}

void evr_cq_look(struct evr_cq *cq)
{
	set_ready(cq, true);
}

/* No more can be there than the queue has room for. */
void evr_cq_wait(struct evr_cq *cq, struct evr_cq_wait *wait)
{
	if (wait->cq)
		return;
	wait->cq = cq;
	wait->last = cq->taken + (uint64_t)cq->cq->cqe;
	TAILQ_INSERT_TAIL(&cq->waits, wait, link);
	set_ready(cq, true);
}

void evr_cq_stop_waiting(struct evr_cq_wait *wait)
{
	if (wait->cq)
		TAILQ_REMOVE(&wait->cq->waits, wait, link);
	wait->cq = NULL;
}

static bool may_pass(int err)
{
	return err == EAGAIN || err == EINTR;
}

/* Of a device that went without waiting for anybody; its removal is told by the CM. */
static bool is_lost(const struct evr_device *device)
{
	struct ibv_port_attr attr;

	return abs(ibv_query_port(device->verbs, 1, &attr)) == EIO;
}

void evr_cq_break_all(struct evr_device *device)
{
	struct evr_cq *cq;

	evr_device_set_deaf(device);
	TAILQ_FOREACH (cq, &device->cqs, link)
		set_broken(cq);
}

/* It would be readable for ever: of what completes on the device nobody hears any more. */
static void lose_channel(struct evr_device *device, int err)
{
	if (is_lost(device)) {
		evr_device_set_deaf(device);
		return;
	}
	evr_log_failure("ibv_get_cq_event", err);
	evr_cq_break_all(device);
}

static bool is_any_armed(const struct evr_device *device)
{
	const struct evr_cq *cq;

	TAILQ_FOREACH (cq, &device->cqs, link)
		if (cq->armed)
			return true;
	return false;
}

static void on_cq_event(struct evr_cq *cq)
{
	cq->armed = false;
	cq->device->base->stats.cq_events++;
	if (++cq->unacked >= ACK_BATCH)
		ack(cq);
	set_ready(cq, true);
}

/* One event for each that is armed: most often one, and then a second call would find nothing. */
void evr_cq_read_channel(struct evr_device *device)
{
	struct ibv_cq *ibv_cq;
	void *context;

	do {
		errno = 0;
		if (ibv_get_cq_event(device->channel, &ibv_cq, &context)) {
			if (!may_pass(errno))
				lose_channel(device, errno);
			return;
		}
		on_cq_event(context);
	} while (is_any_armed(device));
}

void evr_cq_service_ready(struct evr_devices *devices)
{
	const struct evrdma_base *base = devices->part.base;
	struct evr_cq_list round = TAILQ_HEAD_INITIALIZER(round);
	struct evr_cq *cq;

	/* Each one once: those that have more come back to the list, for the next turn. */
	TAILQ_CONCAT(&round, &devices->ready_cqs, ready_link);
	while (base->tell_budget > 0 && (cq = TAILQ_FIRST(&round))) {
		TAILQ_REMOVE(&round, cq, ready_link);
		cq->ready = false;
		service(cq);
	}
	/* Those that were not reached are the first then. */
	TAILQ_CONCAT(&round, &devices->ready_cqs, ready_link);
	TAILQ_CONCAT(&devices->ready_cqs, &round, ready_link);
}
