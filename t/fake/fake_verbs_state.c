/* Which state changes the verbs allow, and what each must and may set. */
#include "fake/fake_verbs.h"

struct fake_change {
	enum ibv_qp_state from;
	enum ibv_qp_state to;
	int rc_must;
	int rc_may;
	int ud_must;
	int ud_may;
};

static const struct fake_change changes[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0,
		IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0,
		IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY },
	{ IBV_QPS_INIT, IBV_QPS_RTR,
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX, 0,
		IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS,
		IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			IBV_QP_MAX_QP_RD_ATOMIC,
		IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER |
			IBV_QP_PATH_MIG_STATE,
		IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0,
		IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER |
			IBV_QP_PATH_MIG_STATE,
		0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE, 0, IBV_QP_CUR_STATE },
};

/* iWARP has no attributes to speak of: the kernel sets up the connection. */
static bool iwarp_change_ok(enum ibv_qp_state from, enum ibv_qp_state next)
{
	switch (next) {
	case IBV_QPS_INIT:
		return from == IBV_QPS_RESET || from == IBV_QPS_INIT;
	case IBV_QPS_RTR:
		return from == IBV_QPS_INIT || from == IBV_QPS_RTR;
	case IBV_QPS_RTS:
		return from == IBV_QPS_RTR || from == IBV_QPS_RTS;
	case IBV_QPS_SQD:
		return from != IBV_QPS_RESET;
	default:
		return next == IBV_QPS_RESET || next == IBV_QPS_ERR;
	}
}

/* Of a connection the halves of XRC have only what a sender or a receiver needs. */
static int not_for(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_XRC_SEND:
		return IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	case IBV_QPT_XRC_RECV:
		return IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	default:
		return 0;
	}
}

static bool mask_ok(const struct fake_qp *qp, const struct fake_change *change, int mask)
{
	bool rc = qp->qp.qp_type != IBV_QPT_UD;
	int must = (rc ? change->rc_must : change->ud_must) & ~not_for(qp->qp.qp_type);
	int may = must | IBV_QP_STATE | (rc ? change->rc_may : change->ud_may);

	return (mask & must) == must && !(mask & ~may);
}

bool fake_qp_change_ok(const struct fake_qp *qp, enum ibv_qp_state next, int mask)
{
	enum ibv_qp_state from = qp->qp.state;
	size_t i;

	if (qp->node.context->device->kind == FAKE_IWARP)
		return mask == 0 || iwarp_change_ok(from, next);
	if (next == IBV_QPS_ERR || next == IBV_QPS_RESET)
		return !(mask & ~(IBV_QP_STATE | IBV_QP_CUR_STATE));
	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (changes[i].from == from && changes[i].to == next)
			return mask_ok(qp, &changes[i], mask);
	return false;
}
