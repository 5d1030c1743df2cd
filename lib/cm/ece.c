/*
 * Enhanced connection establishment: what two queue pairs of one vendor agree on beyond the
 * specification. A device that knows nothing of it has the vendor 0.
 */
#include "cm/cm.h"

#include <errno.h>

static int query(struct ibv_qp *qp, struct evr_ucma_ece *ece)
{
	struct ibv_ece found = { 0 };
	int ret = ibv_query_ece(qp, &found);

	if (ret && ret != EOPNOTSUPP && ret != ENOSYS)
		return -ret;
	*ece = (struct evr_ucma_ece){ 0 };
	if (!ret)
		*ece = (struct evr_ucma_ece){ found.vendor_id, found.options };
	return 0;
}

static int set(struct ibv_qp *qp, const struct evr_ucma_ece *from)
{
	struct ibv_ece ece = { .vendor_id = from->vendor_id, .options = from->attr_mod };

	return -ibv_set_ece(qp, &ece);
}

/* What the queue pair has, to be told to the peer: nothing, if the peer's is of another vendor. */
int evr_cm_ece_refresh(struct evr_cm_id *id, struct ibv_qp *qp)
{
	const uint32_t peer = id->remote_ece.vendor_id;
	int ret = query(qp, &id->local_ece);

	if (!ret && peer && peer != id->local_ece.vendor_id)
		id->local_ece = (struct evr_ucma_ece){ 0 };
	return ret;
}

/* A queue pair made for a request takes the peer's options. */
int evr_cm_ece_of_new_qp(struct evr_cm_id *id, struct ibv_qp *qp)
{
	int ret = evr_cm_ece_refresh(id, qp);

	if (ret || !id->remote_ece.vendor_id || !id->local_ece.vendor_id)
		return ret;
	return set(qp, &id->remote_ece);
}

/* The connecting side, when the answer arrives: an answer of another vendor is none. */
int evr_cm_ece_answer(struct evr_cm_id *id)
{
	if (!id->remote_ece.vendor_id)
		return 0;
	if (id->remote_ece.vendor_id != id->local_ece.vendor_id)
		return -EINVAL;
	return set(id->id.qp, &id->remote_ece);
}

int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || !ece || id->qp || !ece->vendor_id || ece->comp_mask)
		return evr_cm_result(-EINVAL);
	evr_cm_id(id)->local_ece = (struct evr_ucma_ece){ ece->vendor_id, ece->options };
	return 0;
}

int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	const struct evr_ucma_ece *remote;

	if (!id || !ece || id->qp)
		return evr_cm_result(-EINVAL);
	remote = &evr_cm_id(id)->remote_ece;
	*ece = (struct ibv_ece){ .vendor_id = remote->vendor_id, .options = remote->attr_mod };
	return 0;
}
