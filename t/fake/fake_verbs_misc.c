/* What of libibverbs has no state: the kernel's structs turned into its own, and texts. */
#include "fake/fake_verbs.h"

#include <infiniband/sa.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

/* libibverbs exports these for librdmacm; no installed header declares them. */
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *to, struct ib_uverbs_ah_attr *from);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, struct ib_uverbs_qp_attr *from);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *to, struct ib_user_path_rec *from);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *to, struct ibv_sa_path_rec *from);

void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *to, struct ib_uverbs_ah_attr *from)
{
	memcpy(to->grh.dgid.raw, from->grh.dgid, sizeof(to->grh.dgid.raw));
	to->grh.flow_label = from->grh.flow_label;
	to->grh.sgid_index = from->grh.sgid_index;
	to->grh.hop_limit = from->grh.hop_limit;
	to->grh.traffic_class = from->grh.traffic_class;
	to->dlid = from->dlid;
	to->sl = from->sl;
	to->src_path_bits = from->src_path_bits;
	to->static_rate = from->static_rate;
	to->is_global = from->is_global;
	to->port_num = from->port_num;
}

static void copy_cap(struct ibv_qp_cap *to, const struct ib_uverbs_qp_attr *from)
{
	to->max_send_wr = from->max_send_wr;
	to->max_recv_wr = from->max_recv_wr;
	to->max_send_sge = from->max_send_sge;
	to->max_recv_sge = from->max_recv_sge;
	to->max_inline_data = from->max_inline_data;
}

void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, struct ib_uverbs_qp_attr *from)
{
	to->cur_qp_state = (enum ibv_qp_state)from->cur_qp_state;
	to->path_mtu = (enum ibv_mtu)from->path_mtu;
	to->path_mig_state = (enum ibv_mig_state)from->path_mig_state;
	to->qkey = from->qkey;
	to->rq_psn = from->rq_psn;
	to->sq_psn = from->sq_psn;
	to->dest_qp_num = from->dest_qp_num;
	to->qp_access_flags = from->qp_access_flags;
	copy_cap(&to->cap, from);
	ibv_copy_ah_attr_from_kern(&to->ah_attr, &from->ah_attr);
	ibv_copy_ah_attr_from_kern(&to->alt_ah_attr, &from->alt_ah_attr);
	to->pkey_index = from->pkey_index;
	to->alt_pkey_index = from->alt_pkey_index;
	to->en_sqd_async_notify = from->en_sqd_async_notify;
	to->sq_draining = from->sq_draining;
	to->max_rd_atomic = from->max_rd_atomic;
	to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	to->min_rnr_timer = from->min_rnr_timer;
	to->port_num = from->port_num;
	to->timeout = from->timeout;
	to->retry_cnt = from->retry_cnt;
	to->rnr_retry = from->rnr_retry;
	to->alt_port_num = from->alt_port_num;
	to->alt_timeout = from->alt_timeout;
}

#define COPY_PATH(to, from)                                                                        \
	do {                                                                                       \
		(to)->dlid = (from)->dlid;                                                         \
		(to)->slid = (from)->slid;                                                         \
		(to)->flow_label = (from)->flow_label;                                             \
		(to)->hop_limit = (from)->hop_limit;                                               \
		(to)->traffic_class = (from)->traffic_class;                                       \
		(to)->numb_path = (from)->numb_path;                                               \
		(to)->pkey = (from)->pkey;                                                         \
		(to)->sl = (from)->sl;                                                             \
		(to)->mtu_selector = (from)->mtu_selector;                                         \
		(to)->rate_selector = (from)->rate_selector;                                       \
		(to)->rate = (from)->rate;                                                         \
		(to)->packet_life_time_selector = (from)->packet_life_time_selector;               \
		(to)->packet_life_time = (from)->packet_life_time;                                 \
		(to)->preference = (from)->preference;                                             \
	} while (0)

void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *to, struct ib_user_path_rec *from)
{
	memcpy(to->dgid.raw, from->dgid, sizeof(to->dgid.raw));
	memcpy(to->sgid.raw, from->sgid, sizeof(to->sgid.raw));
	COPY_PATH(to, from);
	to->raw_traffic = (int)from->raw_traffic;
	to->reversible = (int)from->reversible;
	to->mtu = (uint8_t)from->mtu;
}

void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *to, struct ibv_sa_path_rec *from)
{
	memcpy(to->dgid, from->dgid.raw, sizeof(to->dgid));
	memcpy(to->sgid, from->sgid.raw, sizeof(to->sgid));
	COPY_PATH(to, from);
	to->raw_traffic = (uint32_t)from->raw_traffic;
	to->reversible = (uint32_t)from->reversible;
	to->mtu = from->mtu;
}

/* --- texts --- */

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return "success";
	case IBV_WC_LOC_LEN_ERR:
		return "local length error";
	case IBV_WC_LOC_PROT_ERR:
		return "local protection error";
	case IBV_WC_WR_FLUSH_ERR:
		return "Work Request Flushed Error";
	case IBV_WC_REM_INV_REQ_ERR:
		return "remote invalid request error";
	case IBV_WC_REM_ACCESS_ERR:
		return "remote access error";
	case IBV_WC_REM_OP_ERR:
		return "remote operation error";
	case IBV_WC_RETRY_EXC_ERR:
		return "transport retry counter exceeded";
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return "RNR retry counter exceeded";
	default:
		return "unknown";
	}
}

const char *ibv_event_type_str(enum ibv_event_type event)
{
	return event == IBV_EVENT_DEVICE_FATAL ? "device fatal error" : "asynchronous event";
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
	return state == IBV_PORT_ACTIVE ? "active" : "not active";
}

const char *ibv_node_type_str(enum ibv_node_type type)
{
	return type == IBV_NODE_RNIC ? "iWARP NIC" : "InfiniBand channel adapter";
}

int ibv_fork_init(void)
{
	return 0;
}
