/*
 * Enhanced connection establishment: what two queue pairs of one vendor agree on beyond the
 * specification. A device that knows nothing of it has the vendor 0.
 */
#include "cm/cm.h"

#include <errno.h>

/* A device without any, or one that names its vendor and takes no options all the same. */
static bool is_without(int error)
{
	return error == EOPNOTSUPP || error == ENOSYS;
}

static int query(struct ibv_qp *qp, struct evr_ucma_ece *ece)
{
	struct ibv_ece found = { 0 };
	int ret = ibv_query_ece(qp, &found);

	if (ret && !is_without(ret))
		return -ret;
	*ece = (struct evr_ucma_ece){ 0 };
	if (!ret)
		*ece = (struct evr_ucma_ece){ found.vendor_id, found.options };
	return 0;
}

/* The queue pair takes the peer's options, but of another vendor or of none there are none. */
static int agree(struct evr_cm_id *id, struct ibv_qp *qp)
{
	const struct evr_ucma_ece *peer = &id->remote_ece;
	struct ibv_ece ece = { .vendor_id = id->local_ece.vendor_id };
	int ret;

	if (peer->vendor_id == ece.vendor_id)
		ece.options = peer->attr_mod;
	ret = ibv_set_ece(qp, &ece);
	return is_without(ret) ? 0 : -ret;
}

/* With one that is made for a request, the peer's are known. */
int evr_cm_ece_of_new_qp(struct evr_cm_id *id, struct ibv_qp *qp)
{
	int ret = evr_cm_ece_refresh(id, qp);

	return ret || !id->remote_ece.vendor_id ? ret : agree(id, qp);
}

int evr_cm_ece_refresh(struct evr_cm_id *id, struct ibv_qp *qp)
{
	return query(qp, &id->local_ece);
}

/* An answer of another vendor is none. */
int evr_cm_ece_of_answer(struct evr_cm_id *id)
{
	const uint32_t vendor = id->remote_ece.vendor_id;

	if (vendor && vendor != id->local_ece.vendor_id)
		return -EINVAL;
	return agree(id, id->id.qp);
}

struct evr_ucma_ece evr_cm_ece_to_answer(const struct evr_cm_id *id)
{
	return (struct evr_ucma_ece){ id->remote_ece.vendor_id, id->local_ece.attr_mod };
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
