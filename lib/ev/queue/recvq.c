#include "ev/queue/recvq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ev/core/base.h"
#include "ev/device/cq.h"
#include "ev/device/pd.h"
#include "util/clock.h"

enum {
	CHAIN = 32,    /* work requests given to the device in one call */
	RETRY_MS = 100 /* until memory that could not be had is asked for again */
};

/* What InfiniBand allows: no message is longer. */
static const size_t longest_message = (size_t)1 << 31;

static void fill(struct evr_recvq *recvq);
static int post_new(struct evr_recvq *recvq, int *err);

static void on_pool_available(struct evr_pool_waiter *waiter)
{
	fill(evr_container_of(waiter, struct evr_recvq, pool_waiter));
}

static void on_retry_timer(evutil_socket_t fd, short what, void *arg)
{
	struct evr_recvq *recvq = arg;

	recvq->lack = 0;
	fill(recvq);
	recvq->ops->unposted(recvq);
}

/* --- life ----------------------------------------------------------------------------------- */

static int alloc_slots(struct evr_recvq *recvq)
{
	uint32_t n = recvq->depth ? recvq->depth : 1;
	uint32_t i;

	recvq->bufs = calloc(n, sizeof(*recvq->bufs));
	recvq->free_slots = calloc(n, sizeof(*recvq->free_slots));
	recvq->new_slots = calloc(n, sizeof(*recvq->new_slots));
	if (!recvq->bufs || !recvq->free_slots || !recvq->new_slots)
		return -ENOMEM;
	for (i = 0; i < recvq->depth; i++)
		recvq->free_slots[i] = recvq->depth - 1 - i;
	recvq->free_count = recvq->depth;
	return 0;
}

static void free_slots(struct evr_recvq *recvq)
{
	free(recvq->bufs);
	free(recvq->free_slots);
	free(recvq->new_slots);
}

int evr_recvq_init(struct evr_recvq *recvq, struct evrdma_base *base, uint32_t depth,
	struct evrdma_pool *pool, const struct evr_recvq_ops *ops)
{
	recvq->depth = depth;
	recvq->pool = depth ? pool : NULL;
	recvq->ops = ops;
	recvq->pool_waiter.available = on_pool_available;
	if (alloc_slots(recvq)) {
		free_slots(recvq);
		return -ENOMEM;
	}
	evr_pool_ref(recvq->pool);
	evr_timer_assign(&recvq->retry_timer, base, on_retry_timer, recvq);
	return 0;
}

void evr_recvq_fini(struct evr_recvq *recvq)
{
	evr_recvq_stop(recvq);
	evr_pool_unref(recvq->pool);
	free_slots(recvq);
}

int evr_recvq_open(struct evr_recvq *recvq, struct evr_pd *pd, const struct evr_cq *cq,
	uint32_t number)
{
	int ret, err = 0;

	recvq->pd = pd;
	recvq->cq = cq;
	recvq->number = number;
	recvq->open = true;
	errno = 0;
	fill(recvq);
	ret = recvq->pool && !recvq->new_count ? -errno : post_new(recvq, &err);
	if (!ret)
		ret = err;
	if (ret)
		evr_recvq_stop(recvq);
	return ret;
}

/* With the caller's reference. */
static void add(struct evr_recvq *recvq, struct evrdma_buf *buf)
{
	uint32_t slot = recvq->free_slots[--recvq->free_count];

	recvq->bufs[slot] = buf;
	recvq->new_slots[recvq->new_count++] = slot;
	if (recvq->open)
		recvq->ops->unposted(recvq);
}

static bool has_room(const struct evr_recvq *recvq)
{
	return recvq->free_count > recvq->held;
}

/* For the slots that are free, most of them at most. 0, or why the pool has no more. */
static int take_from_pool(struct evr_recvq *recvq, uint32_t most)
{
	struct evrdma_buf *buf;

	while (has_room(recvq) && most--) {
		buf = evr_pool_get(recvq->pool);
		if (!buf)
			return errno;
		add(recvq, buf);
	}
	return 0;
}

/* What was registered before is passed over quickly; what cannot be shows when it opens. */
int evr_recvq_prepare(struct evr_recvq *recvq, struct evr_pd *pd, uint64_t deadline_us)
{
	uint32_t i, key;
	unsigned made;

	if (recvq->pool)
		(void)take_from_pool(recvq, recvq->depth);
	for (i = 0; i < recvq->new_count; i++) {
		made = pd->made;
		if (evr_buf_lkey(recvq->bufs[recvq->new_slots[i]], pd, 0, &key))
			return 0;
		if (made != pd->made && evr_clock_now_us() >= deadline_us)
			return -EAGAIN;
	}
	return 0;
}

void evr_recvq_stop(struct evr_recvq *recvq)
{
	recvq->open = false;
	recvq->pool_waiter.starved = false;
	recvq->lack = 0;
	evr_timer_stop(&recvq->retry_timer);
	if (recvq->pool)
		evr_pool_stop_waiting(recvq->pool, &recvq->pool_waiter);
}

void evr_recvq_close(struct evr_recvq *recvq)
{
	uint32_t i;

	evr_recvq_stop(recvq);
	recvq->posted = 0;
	recvq->posted_before = 0;
	recvq->new_count = 0;
	for (i = 0; i < recvq->depth; i++)
		if (recvq->bufs[i])
			recvq->new_slots[recvq->new_count++] = i;
}

/* --- in ------------------------------------------------------------------------------------- */

int evr_recvq_submit(struct evr_recvq *recvq, struct evrdma_buf *buf)
{
	if (!has_room(recvq))
		return -EAGAIN;
	add(recvq, evr_buf_ref(buf));
	return 0;
}

/* May be inside a call of the user's: it is told from evr_recvq_post(). */
static void set_lack(struct evr_recvq *recvq, int err)
{
	if (err == ENOBUFS || recvq->lack)
		return;
	recvq->lack = -err;
	recvq->ops->unposted(recvq);
}

/*
 * Keeps an open queue full from the pool, or waits for a buffer to come back to it. Where some
 * could not be registered a chain shows whether they can be now: each message asks.
 */
static void fill(struct evr_recvq *recvq)
{
	uint32_t most = recvq->pool_waiter.starved ? CHAIN : recvq->depth;
	int err = recvq->pool && recvq->open ? take_from_pool(recvq, most) : 0;

	if (!err)
		return;
	set_lack(recvq, err);
	evr_pool_wait(recvq->pool, &recvq->pool_waiter);
}

/*
 * What was told has to be replaced, or its answer is with the peer before a buffer is with the
 * device. From a pool nothing else has a place: what is held has none to be replaced in.
 */
void evr_recvq_pause(struct evr_recvq *recvq)
{
	recvq->paused = !recvq->pool;
}

void evr_recvq_resume(struct evr_recvq *recvq)
{
	recvq->paused = false;
	if (recvq->open && recvq->new_count)
		recvq->ops->unposted(recvq);
}

static uint32_t room_in(const struct evrdma_buf *buf)
{
	size_t size = buf->size;

	return (uint32_t)(size < longest_message ? size : longest_message);
}

static int set_work(struct evr_recvq *recvq, uint32_t slot, struct ibv_recv_wr *wr,
	struct ibv_sge *sge)
{
	struct evrdma_buf *buf = recvq->bufs[slot];

	*sge = (struct ibv_sge){ .addr = (uintptr_t)buf->data, .length = room_in(buf) };
	*wr = (struct ibv_recv_wr){ .wr_id = evr_wr_id(recvq->number, EVR_WR_RECV | slot),
		.sg_list = sge,
		.num_sge = 1 };
	return evr_buf_lkey(buf, recvq->pd, 0, &sge->lkey);
}

/* Of the new slots, how many are passed over, at their beginning, and from where they are new. */
struct round {
	uint32_t passed;
	uint32_t next;
	int err; /* of the last one passed over */
};

/* Takes the next new slots that can be registered, at most a chain. Returns how many. */
static uint32_t build_chain(struct evr_recvq *recvq, struct round *round, uint32_t *slots,
	struct ibv_recv_wr *wrs, struct ibv_sge *sges)
{
	uint32_t n = 0;

	while (n < CHAIN && round->next < recvq->new_count) {
		uint32_t slot = recvq->new_slots[round->next++];
		int ret = set_work(recvq, slot, &wrs[n], &sges[n]);

		if (ret) {
			round->err = ret;
			recvq->new_slots[round->passed++] = slot;
			continue;
		}
		if (n)
			wrs[n - 1].next = &wrs[n];
		slots[n++] = slot;
	}
	return n;
}

/* Once for each time that the CQ was seen empty, before the number changes. */
static void note_posted(struct evr_recvq *recvq)
{
	if (recvq->cq_times_empty == recvq->cq->times_empty)
		return;
	recvq->cq_times_empty = recvq->cq->times_empty;
	recvq->posted_before = recvq->posted;
}

static int post_chain(struct evr_recvq *recvq, struct round *round)
{
	struct ibv_recv_wr wrs[CHAIN], *bad = NULL;
	struct ibv_sge sges[CHAIN];
	uint32_t slots[CHAIN];
	uint32_t n = build_chain(recvq, round, slots, wrs, sges);
	uint32_t done;
	int ret;

	if (!n)
		return 0;
	ret = recvq->ops->post(recvq, wrs, &bad);
	done = ret && bad ? (uint32_t)(bad - wrs) : n;
	note_posted(recvq);
	recvq->posted += done;
	/* What the device did not take is new again. */
	round->next -= n - done;
	memcpy(&recvq->new_slots[round->next], &slots[done], (n - done) * sizeof(*slots));
	return -abs(ret);
}

/* Posts what can be registered; *err says why something could not. 0, or -errno of the verb. */
static int post_new(struct evr_recvq *recvq, int *err)
{
	struct round round = { .err = 0 };
	uint32_t left;
	int ret = 0;

	while (round.next < recvq->new_count && !ret)
		ret = post_chain(recvq, &round);
	left = recvq->new_count - round.next;
	memmove(&recvq->new_slots[round.passed], &recvq->new_slots[round.next],
		left * sizeof(*recvq->new_slots));
	recvq->new_count = round.passed + left;
	*err = round.err;
	return ret;
}

static struct evrdma_buf *take_new(struct evr_recvq *recvq);

/* Those passed over, which is all that is left. What is submitted meanwhile is another round's. */
static void refuse_new(struct evr_recvq *recvq, int err)
{
	uint32_t n = recvq->new_count;

	while (n-- && recvq->new_count)
		recvq->ops->refused(recvq, take_new(recvq), err);
}

/* Those passed over go behind others of the pool, which may be registered already. */
static void give_new_back(struct evr_recvq *recvq)
{
	struct evrdma_buf *buf, *bufs = NULL;

	while ((buf = evr_recvq_take_any(recvq))) {
		buf->next_free = bufs;
		bufs = buf;
	}
	evr_pool_give_back(recvq->pool, bufs);
}

/* Tried again so long after it began: others that are posted meanwhile do not put it off. */
static void starve(struct evr_recvq *recvq, int err)
{
	bool again = recvq->pool_waiter.starved;

	recvq->pool_waiter.starved = true;
	give_new_back(recvq);
	evr_pool_wait(recvq->pool, &recvq->pool_waiter);
	if (!evr_timer_runs(&recvq->retry_timer))
		evr_timer_start(&recvq->retry_timer, RETRY_MS);
	if (!again)
		evr_pool_tell_starved(recvq->pool, -err);
}

static void recover(struct evr_recvq *recvq)
{
	if (!recvq->pool_waiter.starved)
		return;
	recvq->pool_waiter.starved = false;
	fill(recvq);
}

int evr_recvq_post(struct evr_recvq *recvq)
{
	bool some = recvq->new_count;
	int err, ret;

	if (recvq->paused)
		return 0;
	ret = post_new(recvq, &err);
	if (ret)
		return ret;
	if (!err)
		err = recvq->lack;
	if (err && !recvq->pool)
		refuse_new(recvq, err);
	else if (err)
		starve(recvq, err);
	else if (some)
		recover(recvq);
	return 0;
}

/* What cannot be had now is not asked for with every message. */
static bool is_due(const struct evr_recvq *recvq)
{
	return recvq->open && !recvq->pool_waiter.starved && recvq->new_count &&
		(recvq->new_count >= CHAIN || recvq->new_count * 3 >= recvq->posted);
}

int evr_recvq_post_due(struct evr_recvq *recvq)
{
	return is_due(recvq) ? evr_recvq_post(recvq) : 0;
}

/* --- out ------------------------------------------------------------------------------------ */

static struct evrdma_buf *take(struct evr_recvq *recvq, uint32_t slot)
{
	struct evrdma_buf *buf = recvq->bufs[slot];

	recvq->bufs[slot] = NULL;
	recvq->free_slots[recvq->free_count++] = slot;
	return buf;
}

/*
 * The device does not say when its queue is empty, and completions come later: that those behind
 * were posted in time is not known before the CQ is seen empty.
 */
static bool uses_up(struct evr_recvq *recvq)
{
	note_posted(recvq);
	recvq->posted--;
	return recvq->posted_before ? !--recvq->posted_before : !recvq->posted;
}

struct evrdma_buf *evr_recvq_complete(struct evr_recvq *recvq, uint32_t slot)
{
	if (slot >= recvq->depth || !recvq->bufs[slot])
		return NULL;
	if (uses_up(recvq) && recvq->open)
		recvq->ops->used_up(recvq);
	return take(recvq, slot);
}

void evr_recvq_recycle(struct evr_recvq *recvq, struct evrdma_buf *buf)
{
	if (recvq->pool && recvq->open && buf->refs == 1 && has_room(recvq))
		add(recvq, buf);
	else
		evr_buf_unref(buf);
	if (recvq->open && has_room(recvq))
		fill(recvq);
}

/* The oldest. */
static struct evrdma_buf *take_new(struct evr_recvq *recvq)
{
	uint32_t slot = recvq->new_slots[0];

	recvq->new_count--;
	memmove(recvq->new_slots, recvq->new_slots + 1,
		recvq->new_count * sizeof(*recvq->new_slots));
	return take(recvq, slot);
}

struct evrdma_buf *evr_recvq_take_any(struct evr_recvq *recvq)
{
	return recvq->new_count ? take(recvq, recvq->new_slots[--recvq->new_count]) : NULL;
}
