/* Shared receive queues, plain and of XRC. */
#include "fake/fake_verbs.h"

#include <errno.h>

enum { FIRST_SRQ_NUM = 64 };

static struct fake_table srqs;

void fake_srq_reset(void)
{
	fake_table_free(&srqs);
}

struct fake_srq *fake_srq_find(const struct ibv_xrcd *xrcd, uint32_t number)
{
	struct fake_srq *srq =
		number > FIRST_SRQ_NUM ? fake_table_find(&srqs, number - FIRST_SRQ_NUM) : NULL;

	return srq && srq->xrcd == xrcd ? srq : NULL;
}

static void users_add(struct fake_srq *srq, unsigned n)
{
	fake_pd_of(srq->srq.pd)->users += n;
	if (!srq->xrcd)
		return;
	fake_xrcd_of(srq->xrcd)->users += n;
	fake_cq_of(srq->cq)->users += n;
}

static void srq_fini(struct fake_node *node)
{
	struct fake_srq *srq = fake_of(node, fake_srq, node);

	fake_async_purge(node->context, &srq->srq);
	fake_recvs_free(&srq->recvs);
	fake_table_remove(&srqs, srq->number - FIRST_SRQ_NUM);
	users_add(srq, (unsigned)-1);
}

static int init_fits(const struct fake_context *context, const struct ibv_srq_attr *attr)
{
	const struct ibv_device_attr *device = &context->device->attr;

	if (!device->max_srq)
		return EOPNOTSUPP;
	if (attr->max_wr > (uint32_t)device->max_srq_wr ||
		attr->max_sge > (uint32_t)device->max_srq_sge)
		return EINVAL;
	if (attr->max_wr == (uint32_t)device->max_srq_wr &&
		context->device->profile->srq_most_is_refused)
		return EINVAL;
	return fake_node_count(FAKE_SRQ, context) < (unsigned)device->max_srq ? 0 : ENOMEM;
}

/* The first fields of both kinds of attributes are the same. */
static struct ibv_srq *srq_new(struct ibv_pd *pd, const struct ibv_srq_init_attr *init,
	struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct fake_srq *srq = fake_node_new(sizeof(*srq), FAKE_SRQ, fake_context_of(pd->context));

	srq->node.fini = srq_fini;
	TAILQ_INIT(&srq->recvs);
	srq->attr = init->attr;
	srq->attr.srq_limit = 0;
	srq->srq.context = pd->context;
	srq->srq.srq_context = init->srq_context;
	srq->srq.pd = pd;
	srq->srq.handle = srq->node.handle;
	srq->number = fake_table_add(&srqs, srq) + FIRST_SRQ_NUM;
	srq->xrcd = xrcd;
	srq->cq = cq;
	users_add(srq, 1);
	return &srq->srq;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	FAKE_GUARD();
	FAKE_VERB_NULL(fake_context_of(pd->context), "ibv_create_srq");
	errno = init_fits(fake_context_of(pd->context), &init->attr);
	return errno ? NULL : srq_new(pd, init, NULL, NULL);
}

/* Only what is more than a plain one comes here. */
struct ibv_srq *fake_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init)
{
	const uint32_t needed = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
				IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;

	FAKE_GUARD();
	FAKE_VERB_NULL(fake_context_of(context), "ibv_create_srq_ex");
	errno = EOPNOTSUPP;
	if (fake_context_of(context)->device->kind != FAKE_IB)
		return NULL;
	errno = EINVAL;
	if (init->comp_mask != needed || init->srq_type != IBV_SRQT_XRC || !init->pd ||
		!init->xrcd || !init->cq || init->cq->context != context)
		return NULL;
	errno = init_fits(fake_context_of(context), &init->attr);
	if (errno)
		return NULL;
	return srq_new(init->pd, (const struct ibv_srq_init_attr *)init, init->xrcd, init->cq);
}

int fake_get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
	FAKE_GUARD();
	*number = fake_srq_of(srq)->number;
	return 0;
}

int ibv_modify_srq(struct ibv_srq *verbs, struct ibv_srq_attr *attr, int mask)
{
	struct fake_srq *srq = fake_srq_of(verbs);

	FAKE_GUARD();
	FAKE_VERB(srq->node.context, "ibv_modify_srq");
	if ((mask & IBV_SRQ_LIMIT && attr->srq_limit > srq->attr.max_wr) ||
		(mask & IBV_SRQ_MAX_WR && attr->max_wr < srq->count))
		return EINVAL;
	if (mask & IBV_SRQ_MAX_WR)
		srq->attr.max_wr = attr->max_wr;
	if (mask & IBV_SRQ_LIMIT)
		srq->attr.srq_limit = attr->srq_limit;
	return 0;
}

int ibv_query_srq(struct ibv_srq *verbs, struct ibv_srq_attr *attr)
{
	FAKE_GUARD();
	FAKE_VERB(fake_context_of(verbs->context), "ibv_query_srq");
	*attr = fake_srq_of(verbs)->attr;
	return 0;
}

int ibv_destroy_srq(struct ibv_srq *verbs)
{
	struct fake_srq *srq = fake_srq_of(verbs);

	FAKE_GUARD();
	FAKE_RELEASE(srq->node.context, "ibv_destroy_srq");
	if (srq->users)
		return EBUSY;
	if (srq->async_unacked)
		fake_die("ibv_destroy_srq would wait for ever: %u events are not acked",
			srq->async_unacked);
	fake_node_free(&srq->node);
	return 0;
}

int fake_post_srq_recv(struct ibv_srq *verbs, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_srq *srq = fake_srq_of(verbs);
	struct fake_recv *recv;
	int err = 0;

	FAKE_GUARD();
	for (; wr; wr = wr->next) {
		err = fake_fault(FAKE_VERBS, "ibv_post_srq_recv");
		if (!err && (wr->num_sge < 0 || wr->num_sge > (int)srq->attr.max_sge))
			err = EINVAL;
		if (!err && srq->count >= srq->attr.max_wr)
			err = ENOMEM;
		if (err) {
			*bad = wr;
			break;
		}
		recv = fake_recv_new(wr);
		TAILQ_INSERT_TAIL(&srq->recvs, recv, link);
		srq->count++;
	}
	fake_work_run();
	return fake_signed(&srq->node, err);
}
