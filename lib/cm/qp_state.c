/* The moves of a queue pair. The kernel says what each takes for the connection of the id. */
#include "cm/cm.h"

#include <errno.h>
#include <string.h>

/* Bits that old kernels set for RoCE only, and that InfiniBand ports refuse. */
#define ROCE_MASK 0xe00000

void evr_cm_ah_from_kern(struct ibv_ah_attr *to, const struct ib_uverbs_ah_attr *from)
{
	*to = (struct ibv_ah_attr){
		.grh = {
			.flow_label = from->grh.flow_label,
			.sgid_index = from->grh.sgid_index,
			.hop_limit = from->grh.hop_limit,
			.traffic_class = from->grh.traffic_class,
		},
		.dlid = from->dlid,
		.sl = from->sl,
		.src_path_bits = from->src_path_bits,
		.static_rate = from->static_rate,
		.is_global = from->is_global,
		.port_num = from->port_num,
	};
	memcpy(to->grh.dgid.raw, from->grh.dgid, sizeof(to->grh.dgid.raw));
}

static void attr_from_kern(struct ibv_qp_attr *to, const struct ib_uverbs_qp_attr *from)
{
	*to = (struct ibv_qp_attr){
		.qp_state = from->qp_state,
		.cur_qp_state = from->cur_qp_state,
		.path_mtu = from->path_mtu,
		.path_mig_state = from->path_mig_state,
		.qkey = from->qkey,
		.rq_psn = from->rq_psn,
		.sq_psn = from->sq_psn,
		.dest_qp_num = from->dest_qp_num,
		.qp_access_flags = from->qp_access_flags,
		.cap = {
			.max_send_wr = from->max_send_wr,
			.max_recv_wr = from->max_recv_wr,
			.max_send_sge = from->max_send_sge,
			.max_recv_sge = from->max_recv_sge,
			.max_inline_data = from->max_inline_data,
		},
		.pkey_index = from->pkey_index,
		.alt_pkey_index = from->alt_pkey_index,
		.en_sqd_async_notify = from->en_sqd_async_notify,
		.sq_draining = from->sq_draining,
		.max_rd_atomic = from->max_rd_atomic,
		.max_dest_rd_atomic = from->max_dest_rd_atomic,
		.min_rnr_timer = from->min_rnr_timer,
		.port_num = from->port_num,
		.timeout = from->timeout,
		.retry_cnt = from->retry_cnt,
		.rnr_retry = from->rnr_retry,
		.alt_port_num = from->alt_port_num,
		.alt_timeout = from->alt_timeout,
	};
	evr_cm_ah_from_kern(&to->ah_attr, &from->ah_attr);
	evr_cm_ah_from_kern(&to->alt_ah_attr, &from->alt_ah_attr);
}

static int ask(struct evr_cm_id *id, enum ibv_qp_state state, struct ibv_qp_attr *attr, int *mask)
{
	struct ib_uverbs_qp_attr kern;
	int ret = evr_ucma_init_qp_attr(evr_cm_fd(id), id->handle, state, &kern);

	if (ret)
		return ret;
	attr_from_kern(attr, &kern);
	*mask = (int)kern.qp_attr_mask;
	return 0;
}

static int modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	return evr_cm_verbs_result(ibv_modify_qp(qp, attr, mask));
}

static int move_as_told(struct evr_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr;
	int mask;
	int ret = ask(id, state, &attr, &mask);

	return ret ? ret : modify(qp, &attr, mask);
}

static int move_plainly(struct ibv_qp *qp, enum ibv_qp_state state, int more)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return qp ? modify(qp, &attr, IBV_QP_STATE | more) : 0;
}

static int strip_roce_bits(struct evr_cm_id *id, int *mask)
{
	struct ibv_port_attr port;
	int ret;

	if (!(*mask & ROCE_MASK))
		return 0;
	ret = ibv_query_port(id->id.verbs, id->id.port_num, &port);
	if (ret)
		return evr_cm_verbs_result(ret);
	if (port.link_layer == IBV_LINK_LAYER_INFINIBAND)
		*mask &= ~ROCE_MASK;
	return 0;
}

static int move_to_rtr(struct evr_cm_id *id, uint8_t responder_resources)
{
	struct ibv_qp_attr attr;
	int mask;
	int ret = ask(id, IBV_QPS_RTR, &attr, &mask);

	if (!ret)
		ret = strip_roce_bits(id, &mask);
	if (ret)
		return ret;
	if (responder_resources != RDMA_MAX_RESP_RES)
		attr.max_dest_rd_atomic = responder_resources;
	return modify(id->id.qp, &attr, mask);
}

static int move_to_rts(struct evr_cm_id *id, uint8_t initiator_depth)
{
	struct ibv_qp_attr attr;
	int mask;
	int ret = ask(id, IBV_QPS_RTS, &attr, &mask);

	if (ret)
		return ret;
	if (initiator_depth != RDMA_MAX_INIT_DEPTH)
		attr.max_rd_atomic = initiator_depth;
	return modify(id->id.qp, &attr, mask);
}

/* A datagram queue pair needs no peer: it goes all the way at once. */
int evr_cm_qp_init(struct evr_cm_id *id, struct ibv_qp *qp)
{
	int ret = move_as_told(id, qp, IBV_QPS_INIT);

	if (ret)
		return ret;
	if (!evr_cm_is_ud(id)) {
		id->init_qp = id->passive ? qp : NULL;
		return 0;
	}
	ret = move_plainly(qp, IBV_QPS_RTR, 0);
	return ret ? ret : move_plainly(qp, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

/*
 * INIT once more, for the access flags: on the side that connects they are known only now that
 * there is a connection. On the other side a queue pair that is still in INIT has them.
 */
static int init_again(struct evr_cm_id *id)
{
	struct ibv_qp *qp = id->id.qp;

	if (qp == id->init_qp && qp->state == IBV_QPS_INIT)
		return 0;
	return move_as_told(id, qp, IBV_QPS_INIT);
}

int evr_cm_qp_connected(struct evr_cm_id *id, uint8_t responder_resources, uint8_t initiator_depth)
{
	int ret;

	if (!id->id.qp)
		return 0;
	ret = init_again(id);
	if (!ret)
		ret = move_to_rtr(id, responder_resources);
	return ret ? ret : move_to_rts(id, initiator_depth);
}

/* There is no way out of the error state but through RESET, which the queue pair would tell. */
int evr_cm_qp_error(struct evr_cm_id *id)
{
	if (id->id.qp && id->id.qp->state == IBV_QPS_ERR)
		return 0;
	return move_plainly(id->id.qp, IBV_QPS_ERR, 0);
}

int evr_cm_qp_drain(struct evr_cm_id *id)
{
	return move_plainly(id->id.qp, IBV_QPS_SQD, 0);
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	if (!id || !qp_attr || !qp_attr_mask)
		return evr_cm_result(-EINVAL);
	return evr_cm_result(ask(evr_cm_id(id), qp_attr->qp_state, qp_attr, qp_attr_mask));
}
