#include "ev/recvq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CHAIN = 32 }; /* work requests given to the device in one call */

static void fill(struct evr_recvq *recvq);

static void on_pool_available(struct evr_pool_waiter *waiter)
{
	fill(evr_container_of(waiter, struct evr_recvq, pool_waiter));
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

int evr_recvq_init(struct evr_recvq *recvq, uint32_t depth, struct evrdma_pool *pool,
	const struct evr_recvq_ops *ops)
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
	return 0;
}

void evr_recvq_fini(struct evr_recvq *recvq)
{
	if (recvq->pool)
		evr_pool_stop_waiting(recvq->pool, &recvq->pool_waiter);
	evr_pool_unref(recvq->pool);
	free_slots(recvq);
}

int evr_recvq_open(struct evr_recvq *recvq, struct evr_pd *pd, uint32_t number)
{
	int ret;

	recvq->pd = pd;
	recvq->number = number;
	recvq->open = true;
	errno = 0;
	fill(recvq);
	ret = recvq->pool && !recvq->new_count ? -errno : evr_recvq_post(recvq);
	if (ret)
		evr_recvq_stop(recvq);
	return ret;
}

void evr_recvq_stop(struct evr_recvq *recvq)
{
	recvq->open = false;
}

void evr_recvq_close(struct evr_recvq *recvq)
{
	uint32_t i;

	recvq->open = false;
	recvq->posted = 0;
	recvq->new_count = 0;
	for (i = 0; i < recvq->depth; i++)
		if (recvq->bufs[i])
			recvq->new_slots[recvq->new_count++] = i;
}

/* --- in ------------------------------------------------------------------------------------- */

int evr_recvq_submit(struct evr_recvq *recvq, struct evrdma_buf *buf)
{
	uint32_t slot;

	if (!recvq->free_count)
		return -EAGAIN;
	slot = recvq->free_slots[--recvq->free_count];
	recvq->bufs[slot] = evrdma_buf_ref(buf);
	recvq->new_slots[recvq->new_count++] = slot;
	if (recvq->open)
		recvq->ops->unposted(recvq);
	return 0;
}

/* Keeps an open queue full from the pool, or waits for a buffer to come back to it. */
static void fill(struct evr_recvq *recvq)
{
	struct evrdma_buf *buf;

	if (!recvq->pool || !recvq->open)
		return;
	while (recvq->free_count) {
		buf = evrdma_pool_get(recvq->pool);
		if (!buf) {
			evr_pool_wait(recvq->pool, &recvq->pool_waiter);
			return;
		}
		evr_recvq_submit(recvq, buf);
		evrdma_buf_unref(buf);
	}
}

/* Posts the last n of the new slots. Returns 0, or -errno with those not posted still new. */
static int post_chain(struct evr_recvq *recvq, uint32_t n)
{
	struct ibv_recv_wr wrs[CHAIN], *bad = NULL;
	struct ibv_sge sges[CHAIN];
	uint32_t *slots = &recvq->new_slots[recvq->new_count - n];
	uint32_t i, done;
	int ret;

	for (i = 0; i < n; i++) {
		struct evrdma_buf *buf = recvq->bufs[slots[i]];

		sges[i] = (struct ibv_sge){ .addr = (uintptr_t)evrdma_buf_data(buf),
			.length = (uint32_t)evrdma_buf_size(buf) };
		ret = evr_buf_lkey(buf, recvq->pd, &sges[i].lkey);
		if (ret)
			return ret;
		wrs[i] = (struct ibv_recv_wr){ .wr_id = evr_wr_id(
						       recvq->number, EVR_WR_RECV | slots[i]),
			.sg_list = &sges[i],
			.num_sge = 1,
			.next = i + 1 < n ? &wrs[i + 1] : NULL };
	}
	ret = recvq->ops->post(recvq, wrs, &bad);
	done = ret && bad ? (uint32_t)(bad - wrs) : n;
	recvq->posted += done;
	memmove(slots, slots + done, (n - done) * sizeof(*slots));
	recvq->new_count -= done;
	return -abs(ret);
}

int evr_recvq_post(struct evr_recvq *recvq)
{
	int ret = 0;

	while (recvq->new_count && !ret)
		ret = post_chain(recvq, recvq->new_count < CHAIN ? recvq->new_count : CHAIN);
	return ret;
}

/* --- out ------------------------------------------------------------------------------------ */

static struct evrdma_buf *take(struct evr_recvq *recvq, uint32_t slot)
{
	struct evrdma_buf *buf = recvq->bufs[slot];

	recvq->bufs[slot] = NULL;
	recvq->free_slots[recvq->free_count++] = slot;
	return buf;
}

struct evrdma_buf *evr_recvq_complete(struct evr_recvq *recvq, uint32_t slot)
{
	if (slot >= recvq->depth || !recvq->bufs[slot])
		return NULL;
	recvq->posted--;
	return take(recvq, slot);
}

void evr_recvq_recycle(struct evr_recvq *recvq, struct evrdma_buf *buf)
{
	if (recvq->pool && recvq->open && buf->refs == 1)
		evr_recvq_submit(recvq, buf);
	evrdma_buf_unref(buf);
	fill(recvq);
}

struct evrdma_buf *evr_recvq_take_any(struct evr_recvq *recvq)
{
	return recvq->new_count ? take(recvq, recvq->new_slots[--recvq->new_count]) : NULL;
}
