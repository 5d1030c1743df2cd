/* Queue pairs: birth, states, death. */
#include "fake/fake_verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_QP_NUM = 16, MAX_INLINE = 256 };

static struct fake_table qps;

struct fake_qp *fake_qp_find(uint32_t qp_num)
{
	return qp_num > FIRST_QP_NUM ? fake_table_find(&qps, qp_num - FIRST_QP_NUM) : NULL;
}

void fake_qp_reset(void)
{
	fake_table_free(&qps);
}

/* --- birth and death --- */

static uint32_t most_inline(const struct fake_profile *profile)
{
	if (!profile->max_inline)
		return MAX_INLINE;
	return profile->max_inline < 0 ? 0 : (uint32_t)profile->max_inline;
}

int fake_too_big(const struct fake_profile *profile)
{
	if (profile->too_big < 0)
		return FAKE_NO_ERRNO;
	return profile->too_big ? profile->too_big : EINVAL;
}

static int caps_fit(const struct fake_device *device, const struct ibv_qp_cap *cap)
{
	const struct ibv_device_attr *attr = &device->attr;
	const struct fake_profile *profile = device->profile;

	if (cap->max_send_wr > (uint32_t)attr->max_qp_wr ||
		cap->max_recv_wr > (uint32_t)attr->max_qp_wr ||
		cap->max_send_sge > (uint32_t)attr->max_sge ||
		cap->max_recv_sge > (uint32_t)attr->max_sge)
		return fake_too_big(profile);
	if (cap->max_inline_data > most_inline(profile) && !profile->inline_is_lowered)
		return fake_too_big(profile);
	return 0;
}

static uint32_t rounded(uint32_t n)
{
	uint32_t power = 1;

	while (power < n)
		power *= 2;
	return power;
}

/* The caller sees what there is, and the queue pair has no more than was asked for. */
static void give_caps(struct fake_qp *qp, struct ibv_qp_cap *asked)
{
	const struct fake_profile *profile = fake_profile_at(&qp->node);
	struct ibv_qp_cap *cap = &qp->init.cap;

	if (cap->max_inline_data > most_inline(profile))
		cap->max_inline_data = most_inline(profile);
	*asked = *cap;
	if (!profile->caps_are_rounded)
		return;
	asked->max_send_wr = rounded(cap->max_send_wr);
	asked->max_recv_wr = rounded(cap->max_recv_wr);
	asked->max_send_sge = rounded(cap->max_send_sge);
}

/* The kernel knows more types than the devices have. */
static int type_fits(const struct fake_device *device, enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return 0;
	case IBV_QPT_UD:
		return device->kind == FAKE_IWARP || device->profile->no_ud ? EOPNOTSUPP : 0;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return device->kind == FAKE_IB ? 0 : EOPNOTSUPP;
	case IBV_QPT_UC:
	case IBV_QPT_RAW_PACKET:
		return EOPNOTSUPP;
	default:
		return EINVAL;
	}
}

static bool is_cq_of(const struct ibv_cq *cq, const struct fake_context *context)
{
	return cq && cq->context == &context->v.context;
}

static int init_fits(struct fake_context *context, const struct ibv_qp_init_attr *init)
{
	bool xrc_recv = init->qp_type == IBV_QPT_XRC_RECV;
	bool receives = !xrc_recv && init->qp_type != IBV_QPT_XRC_SEND;
	int err = type_fits(context->device, init->qp_type);

	if (err)
		return err;
	if ((!xrc_recv && !is_cq_of(init->send_cq, context)) ||
		(receives && !is_cq_of(init->recv_cq, context)))
		return EINVAL;
	if (receives && init->srq && fake_srq_of(init->srq)->xrcd)
		return EINVAL;
	if (fake_node_count(FAKE_QP, context) >= (unsigned)context->device->attr.max_qp)
		return ENOMEM;
	return caps_fit(context->device, &init->cap);
}

static void users_add(struct fake_qp *qp, unsigned n)
{
	if (qp->xrcd)
		fake_xrcd_of(qp->xrcd)->users += n;
	else
		fake_pd_of(qp->qp.pd)->users += n;
	if (qp->qp.send_cq)
		fake_cq_of(qp->qp.send_cq)->users += n;
	if (qp->qp.recv_cq)
		fake_cq_of(qp->qp.recv_cq)->users += n;
	if (qp->qp.srq)
		fake_srq_of(qp->qp.srq)->users += n;
}

static void purge_completions(struct fake_qp *qp)
{
	if (qp->qp.send_cq)
		fake_cq_purge(fake_cq_of(qp->qp.send_cq), qp->qp.qp_num);
	if (qp->qp.recv_cq)
		fake_cq_purge(fake_cq_of(qp->qp.recv_cq), qp->qp.qp_num);
}

void fake_qp_empty(struct fake_qp *qp)
{
	while (!TAILQ_EMPTY(&qp->sends)) {
		struct fake_send *send = TAILQ_FIRST(&qp->sends);

		fake_work_remove(qp, send);
		fake_send_free(send);
	}
	fake_recvs_free(&qp->recvs);
	qp->recv_count = qp->sq_used = qp->sq_silent = 0;
	qp->waiting = qp->waits_for_receive = false;
	qp->to_flush = qp->to_tell_last = false;
}

static void qp_fini(struct fake_node *node)
{
	struct fake_qp *qp = fake_of(node, fake_qp, node);

	fake_async_purge(node->context, &qp->qp);
	fake_qp_empty(qp);
	if (fake_profile_at(node)->orphans == FAKE_ORPHANS_PURGED)
		purge_completions(qp);
	fake_attachments_free(qp);
	free(qp->silent);
	fake_table_remove(&qps, qp->qp.qp_num - FIRST_QP_NUM);
	users_add(qp, (unsigned)-1);
}

/* What a half of XRC has no use for is not looked at. */
static void set_queues(struct fake_qp *qp, const struct ibv_qp_init_attr *init)
{
	if (init->qp_type != IBV_QPT_XRC_RECV)
		qp->qp.send_cq = init->send_cq;
	if (fake_is_xrc(qp))
		return;
	qp->qp.recv_cq = init->recv_cq;
	qp->qp.srq = init->srq;
}

static struct ibv_qp *qp_new(struct fake_context *context, struct ibv_pd *pd, struct ibv_xrcd *xrcd,
	struct ibv_qp_init_attr *init)
{
	struct fake_qp *qp = fake_node_new(sizeof(*qp), FAKE_QP, context);

	qp->node.fini = qp_fini;
	TAILQ_INIT(&qp->sends);
	TAILQ_INIT(&qp->recvs);
	TAILQ_INIT(&qp->attachments);
	qp->init = *init;
	qp->ece = context->device->ece;
	qp->xrcd = xrcd;
	qp->qp.context = &context->v.context;
	qp->qp.qp_context = init->qp_context;
	qp->qp.pd = pd;
	qp->qp.handle = qp->node.handle;
	qp->qp.qp_type = init->qp_type;
	set_queues(qp, init);
	qp->qp.qp_num = fake_table_add(&qps, qp) + FIRST_QP_NUM;
	users_add(qp, 1);
	give_caps(qp, &init->cap);
	qp->silent = fake_alloc(((size_t)init->cap.max_send_wr + 1) * sizeof(*qp->silent));
	return &qp->qp;
}

/* Some libraries leave errno as it was. */
static bool failed(int err)
{
	if (err != FAKE_NO_ERRNO)
		errno = err;
	return err != 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	FAKE_GUARD();
	FAKE_VERB_NULL(fake_context_of(pd->context), "ibv_create_qp");
	if (failed(init->qp_type == IBV_QPT_XRC_RECV
			    ? EINVAL
			    : init_fits(fake_context_of(pd->context), init)))
		return NULL;
	return qp_new(fake_context_of(pd->context), pd, NULL, init);
}

/* The receiving half of XRC lives in a domain of its own kind; it may have a PD besides. */
static struct ibv_qp *create_xrc_recv(
	struct fake_context *context, struct ibv_qp_init_attr_ex *init)
{
	errno = EINVAL;
	if (init->qp_type != IBV_QPT_XRC_RECV || !init->xrcd ||
		init->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD))
		return NULL;
	if (failed(init_fits(context, (struct ibv_qp_init_attr *)init)))
		return NULL;
	return qp_new(context, init->comp_mask & IBV_QP_INIT_ATTR_PD ? init->pd : NULL, init->xrcd,
		(struct ibv_qp_init_attr *)init);
}

/* Only what is asked for beyond a PD comes here: the creation flags, the XRC domain. */
struct ibv_qp *fake_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
	struct ibv_qp *qp;

	FAKE_GUARD();
	FAKE_VERB_NULL(fake_context_of(context), "ibv_create_qp_ex");
	if (init->comp_mask & IBV_QP_INIT_ATTR_XRCD)
		return create_xrc_recv(fake_context_of(context), init);
	errno = EINVAL;
	if (!(init->comp_mask & IBV_QP_INIT_ATTR_PD) || !init->pd)
		return NULL;
	errno = EOPNOTSUPP;
	if (init->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS))
		return NULL;
	if (init->create_flags && (init->create_flags != IBV_QP_CREATE_BLOCK_SELF_MCAST_LB ||
					  fake_context_of(context)->device->kind != FAKE_IB))
		return NULL;
	/* The first fields of both structs are the same. */
	if (failed(init_fits(fake_context_of(context), (struct ibv_qp_init_attr *)init)))
		return NULL;
	qp = qp_new(fake_context_of(context), init->pd, NULL, (struct ibv_qp_init_attr *)init);
	fake_qp_of(qp)->block_self = init->create_flags != 0;
	return qp;
}

int ibv_destroy_qp(struct ibv_qp *verbs)
{
	struct fake_qp *qp = fake_qp_of(verbs);

	FAKE_GUARD();
	FAKE_RELEASE(qp->node.context, "ibv_destroy_qp");
	if (!TAILQ_EMPTY(&qp->attachments))
		return EBUSY;
	if (qp->async_unacked)
		fake_die("ibv_destroy_qp would wait for ever: %u events are not acked",
			qp->async_unacked);
	fake_node_free(&qp->node);
	return 0;
}

/* --- states --- */

static void copy_path(struct ibv_qp_attr *to, const struct ibv_qp_attr *from, int mask)
{
	if (mask & IBV_QP_AV)
		to->ah_attr = from->ah_attr;
	if (mask & IBV_QP_PATH_MTU)
		to->path_mtu = from->path_mtu;
	if (mask & IBV_QP_DEST_QPN)
		to->dest_qp_num = from->dest_qp_num;
	if (mask & IBV_QP_RQ_PSN)
		to->rq_psn = from->rq_psn;
	if (mask & IBV_QP_SQ_PSN)
		to->sq_psn = from->sq_psn;
	if (mask & IBV_QP_PORT)
		to->port_num = from->port_num;
	if (mask & IBV_QP_PKEY_INDEX)
		to->pkey_index = from->pkey_index;
}

static void copy_limits(struct ibv_qp_attr *to, const struct ibv_qp_attr *from, int mask)
{
	if (mask & IBV_QP_ACCESS_FLAGS)
		to->qp_access_flags = from->qp_access_flags;
	if (mask & IBV_QP_QKEY)
		to->qkey = from->qkey;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = from->max_rd_atomic;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = from->min_rnr_timer;
	if (mask & IBV_QP_TIMEOUT)
		to->timeout = from->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		to->retry_cnt = from->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		to->rnr_retry = from->rnr_retry;
}

static void enter(struct fake_qp *qp, enum ibv_qp_state state)
{
	qp->qp.state = state;
	qp->attr.qp_state = state;
	if (state == IBV_QPS_RESET) {
		fake_qp_empty(qp);
		purge_completions(qp);
	} else if (state == IBV_QPS_ERR) {
		fake_qp_flush(qp);
	}
}

int fake_depths_fit(const struct fake_device *device, unsigned initiator, unsigned responder)
{
	return initiator > (unsigned)device->attr.max_qp_init_rd_atom ||
			       responder > (unsigned)device->attr.max_qp_rd_atom
		       ? EINVAL
		       : 0;
}

static int modify(struct fake_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state next = mask & IBV_QP_STATE ? attr->qp_state : qp->qp.state;

	if (!fake_qp_change_ok(qp, next, mask))
		return EINVAL;
	if ((mask & IBV_QP_PORT && attr->port_num != 1) ||
		(mask & IBV_QP_CUR_STATE && attr->cur_qp_state != qp->qp.state))
		return EINVAL;
	if ((mask & IBV_QP_AV) && qp->node.context->device->kind == FAKE_ROCE &&
		!attr->ah_attr.is_global)
		return EINVAL;
	if (fake_depths_fit(qp->node.context->device,
		    mask & IBV_QP_MAX_QP_RD_ATOMIC ? attr->max_rd_atomic : 0,
		    mask & IBV_QP_MAX_DEST_RD_ATOMIC ? attr->max_dest_rd_atomic : 0))
		return EINVAL;
	copy_path(&qp->attr, attr, mask);
	copy_limits(&qp->attr, attr, mask);
	if (next != qp->qp.state)
		enter(qp, next);
	else if (next == IBV_QPS_ERR)
		fake_qp_flush(qp);
	fake_work_run();
	return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	FAKE_GUARD();
	FAKE_VERB(fake_context_of(qp->context), "ibv_modify_qp");

	return modify(fake_qp_of(qp), attr, mask);
}

int ibv_query_qp(
	struct ibv_qp *verbs, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct fake_qp *qp = fake_qp_of(verbs);

	FAKE_GUARD();
	FAKE_VERB(qp->node.context, "ibv_query_qp");
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = verbs->state;
	attr->cap = qp->init.cap;
	*init = qp->init;
	return 0;
}

void fake_qp_to_error(struct fake_qp *qp)
{
	if (qp->qp.state != IBV_QPS_ERR)
		enter(qp, IBV_QPS_ERR);
}

/* --- what the iWARP kernel does to queue pairs --- */

bool fake_qp_exists(uint32_t qp_num)
{
	return fake_qp_find(qp_num) != NULL;
}

void fake_qp_join(
	uint32_t qp_num, uint32_t peer_qp_num, uint8_t initiator_depth, uint8_t responder_resources)
{
	struct fake_qp *qp = fake_qp_find(qp_num);

	if (!qp || qp->qp.state == IBV_QPS_ERR)
		return;
	qp->attr.dest_qp_num = peer_qp_num;
	qp->attr.rnr_retry = 0;
	qp->attr.max_rd_atomic = initiator_depth;
	qp->attr.max_dest_rd_atomic = responder_resources;
	qp->attr.qp_access_flags =
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_LOCAL_WRITE;
	enter(qp, IBV_QPS_RTS);
	fake_work_run();
}

void fake_qp_fail(uint32_t qp_num)
{
	struct fake_qp *qp = fake_qp_find(qp_num);

	if (qp)
		fake_qp_to_error(qp);
}

/* --- enhanced connection establishment: what the device has, and the peer's after that --- */

static bool has_ece(struct ibv_qp *qp)
{
	return fake_context_of(qp->context)->device->ece.vendor_id;
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	FAKE_GUARD();
	FAKE_VERB(fake_context_of(qp->context), "ibv_set_ece");
	if (!has_ece(qp) || fake_profile_at(&fake_qp_of(qp)->node)->ece == FAKE_ECE_QUERY)
		return EOPNOTSUPP;
	fake_qp_of(qp)->ece = *ece;
	return 0;
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	FAKE_GUARD();
	FAKE_VERB(fake_context_of(qp->context), "ibv_query_ece");
	if (!has_ece(qp))
		return EOPNOTSUPP;
	*ece = fake_qp_of(qp)->ece;
	return 0;
}
