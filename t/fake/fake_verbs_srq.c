/* Shared receive queues. */
#include "fake/fake_verbs.h"

#include <errno.h>

static struct fake_srq *srq_of(struct ibv_srq *srq)
{
	return fake_of(srq, fake_srq, srq);
}

static void srq_fini(struct fake_node *node)
{
	struct fake_srq *srq = fake_of(node, fake_srq, node);

	fake_async_purge(node->context, &srq->srq);
	fake_recvs_free(&srq->recvs);
	fake_pd_of(srq->srq.pd)->users--;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct fake_context *context = fake_pd_of(pd)->node.context;
	struct fake_srq *srq;

	FAKE_GUARD();
	FAKE_VERB_NULL("ibv_create_srq");
	errno = EINVAL;
	if (init->attr.max_wr > (uint32_t)context->device->attr.max_srq_wr ||
		init->attr.max_sge > (uint32_t)context->device->attr.max_srq_sge)
		return NULL;
	errno = ENOMEM;
	if (fake_node_count(FAKE_SRQ, context) >= (unsigned)context->device->attr.max_srq)
		return NULL;
	srq = fake_node_new(sizeof(*srq), FAKE_SRQ, context);
	srq->node.fini = srq_fini;
	TAILQ_INIT(&srq->recvs);
	srq->attr = init->attr;
	srq->attr.srq_limit = 0;
	srq->srq.context = pd->context;
	srq->srq.srq_context = init->srq_context;
	srq->srq.pd = pd;
	srq->srq.handle = srq->node.handle;
	fake_pd_of(pd)->users++;
	return &srq->srq;
}

int ibv_modify_srq(struct ibv_srq *verbs, struct ibv_srq_attr *attr, int mask)
{
	struct fake_srq *srq = srq_of(verbs);

	FAKE_GUARD();
	FAKE_VERB("ibv_modify_srq");
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
	FAKE_VERB("ibv_query_srq");
	*attr = srq_of(verbs)->attr;
	return 0;
}

int ibv_destroy_srq(struct ibv_srq *verbs)
{
	struct fake_srq *srq = srq_of(verbs);

	FAKE_GUARD();
	FAKE_RELEASE("ibv_destroy_srq");
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
	struct fake_srq *srq = srq_of(verbs);
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
	return err;
}
