/* Queue pairs in multicast groups. */
#include "fake/fake_verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct fake_attachment *attachment_of(
	struct fake_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct fake_attachment *attachment;

	TAILQ_FOREACH (attachment, &qp->attachments, link)
		if (!memcmp(&attachment->gid, gid, sizeof(*gid)) && attachment->lid == lid)
			return attachment;
	return NULL;
}

void fake_attachments_free(struct fake_qp *qp)
{
	struct fake_attachment *attachment;

	while ((attachment = TAILQ_FIRST(&qp->attachments))) {
		TAILQ_REMOVE(&qp->attachments, attachment, link);
		free(attachment);
		fake_died(FAKE_ATTACHMENT);
	}
}

void fake_qps_detach(const struct fake_context *context)
{
	struct fake_node *node = NULL;

	while ((node = fake_node_next(FAKE_QP, node)))
		if (node->context == context)
			fake_attachments_free(fake_of(node, fake_qp, node));
}

int ibv_attach_mcast(struct ibv_qp *verbs, const union ibv_gid *gid, uint16_t lid)
{
	struct fake_qp *qp = fake_qp_of(verbs);
	struct fake_attachment *attachment;

	FAKE_GUARD();
	FAKE_VERB(qp->node.context, "ibv_attach_mcast");
	if (verbs->qp_type != IBV_QPT_UD)
		return EINVAL;
	if (!qp->node.context->device->attr.max_mcast_grp)
		return EOPNOTSUPP;
	if (attachment_of(qp, gid, lid))
		return 0;
	attachment = fake_alloc(sizeof(*attachment));
	attachment->gid = *gid;
	attachment->lid = lid;
	TAILQ_INSERT_TAIL(&qp->attachments, attachment, link);
	fake_born(FAKE_ATTACHMENT);
	return 0;
}

int ibv_detach_mcast(struct ibv_qp *verbs, const union ibv_gid *gid, uint16_t lid)
{
	struct fake_qp *qp = fake_qp_of(verbs);
	struct fake_attachment *attachment;

	FAKE_GUARD();
	FAKE_RELEASE(qp->node.context, "ibv_detach_mcast");
	attachment = attachment_of(qp, gid, lid);
	if (!attachment)
		return EINVAL;
	TAILQ_REMOVE(&qp->attachments, attachment, link);
	free(attachment);
	fake_died(FAKE_ATTACHMENT);
	return 0;
}
