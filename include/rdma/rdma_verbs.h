/*
 * Shorthands of the verbs for the queue pair of an rdma_cm_id. All are inline, take the id's pd, qp
 * or srq, and may be called from the threads from which the verb may.
 *
 * Where nothing else is said they return 0, or -1 and set errno to what the verb failed with; an id
 * or a queue that is not there is not checked for. context comes back as wr_id of the completion.
 * Memory belongs to the device from the post until that completion.
 */
#ifndef RDMA_VERBS_H
#define RDMA_VERBS_H

#include <assert.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Turns the result of a verb, 0 or an errno, into 0 or -1 and errno. Some drivers give a negative
 * errno. A -1 keeps its errno.
 */
static inline int rdma_seterrno(int ret)
{
	if (ret > 0)
		errno = ret;
	else if (ret < -1)
		errno = -ret;
	return ret ? -1 : 0;
}

/*
 * Makes the shared receive queue of an id: for IBV_QPT_XRC_RECV one of XRC, else a basic one. Later
 * queue pairs of the id receive from it, and rdma_post_recv() posts to it. pd NULL takes the id's.
 * One of XRC is in the XRC domain that all ids on the device share, and its receives complete in
 * id->recv_cq, which is made with a channel for attr->max_wr completions where the id has none. The
 * SRQ stands in id->srq until rdma_destroy_srq(); attr->attr comes back as granted. Fails with:
 * EINVAL (an argument is NULL, the id has no device or has an SRQ, a foreign pd, more than the
 * device can), EOPNOTSUPP (the device has no SRQs, or no XRC), ENOMEM, and what else the verbs fail
 * with. Nothing is left behind then, and attr is as it was. In RDMACM_1.0.
 */
int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr);

/*
 * The same with extended attributes: srq_type must be given (IBV_SRQ_INIT_ATTR_TYPE), or EINVAL;
 * what is not given of pd, and for IBV_SRQT_XRC of xrcd and cq, is found as above. In RDMACM_1.0.
 */
int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr);

/*
 * Destroys the SRQ of an id, after the queue pairs on it, and the completion queue and channel that
 * stand on the id for an SRQ of XRC. While a queue pair is on it, it stays, and id->srq too. Waits
 * until the asynchronous events of the SRQ and the completion events of the queue have been
 * acknowledged. Does nothing when id is NULL or has none. In RDMACM_1.0.
 */
void rdma_destroy_srq(struct rdma_cm_id *id);

/*
 * Memory regions for local use, as a source of the peer's reads, and as a target of its writes. The
 * region is the caller's until rdma_dereg_mr(). NULL and errno on failure: ENOMEM (also for the
 * limit on locked memory), EFAULT.
 */
static inline struct ibv_mr *rdma_reg_msgs(struct rdma_cm_id *id, void *addr, size_t length)
{
	return ibv_reg_mr(id->pd, addr, length, IBV_ACCESS_LOCAL_WRITE);
}

static inline struct ibv_mr *rdma_reg_read(struct rdma_cm_id *id, void *addr, size_t length)
{
	return ibv_reg_mr(id->pd, addr, length, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
}

static inline struct ibv_mr *rdma_reg_write(struct rdma_cm_id *id, void *addr, size_t length)
{
	return ibv_reg_mr(id->pd, addr, length, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

static inline int rdma_dereg_mr(struct ibv_mr *mr)
{
	return rdma_seterrno(ibv_dereg_mr(mr));
}

/* Lists of segments: receive (into id->srq where there is one), send, RDMA read, RDMA write. */
static inline int rdma_post_recvv(
	struct rdma_cm_id *id, void *context, struct ibv_sge *sgl, int nsge)
{
	struct ibv_recv_wr wr, *bad;

	memset(&wr, 0, sizeof(wr));
	wr.wr_id = (uintptr_t)context;
	wr.sg_list = sgl;
	wr.num_sge = nsge;
	if (id->srq)
		return rdma_seterrno(ibv_post_srq_recv(id->srq, &wr, &bad));
	return rdma_seterrno(ibv_post_recv(id->qp, &wr, &bad));
}

static inline int rdma_post_sendv(
	struct rdma_cm_id *id, void *context, struct ibv_sge *sgl, int nsge, int flags)
{
	struct ibv_send_wr wr, *bad;

	memset(&wr, 0, sizeof(wr));
	wr.wr_id = (uintptr_t)context;
	wr.sg_list = sgl;
	wr.num_sge = nsge;
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = (unsigned int)flags;
	return rdma_seterrno(ibv_post_send(id->qp, &wr, &bad));
}

static inline int rdma_post_readv(struct rdma_cm_id *id, void *context, struct ibv_sge *sgl,
	int nsge, int flags, uint64_t remote_addr, uint32_t rkey)
{
	struct ibv_send_wr wr, *bad;

	memset(&wr, 0, sizeof(wr));
	wr.wr_id = (uintptr_t)context;
	wr.sg_list = sgl;
	wr.num_sge = nsge;
	wr.opcode = IBV_WR_RDMA_READ;
	wr.send_flags = (unsigned int)flags;
	wr.wr.rdma.remote_addr = remote_addr;
	wr.wr.rdma.rkey = rkey;
	return rdma_seterrno(ibv_post_send(id->qp, &wr, &bad));
}

static inline int rdma_post_writev(struct rdma_cm_id *id, void *context, struct ibv_sge *sgl,
	int nsge, int flags, uint64_t remote_addr, uint32_t rkey)
{
	struct ibv_send_wr wr, *bad;

	memset(&wr, 0, sizeof(wr));
	wr.wr_id = (uintptr_t)context;
	wr.sg_list = sgl;
	wr.num_sge = nsge;
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.send_flags = (unsigned int)flags;
	wr.wr.rdma.remote_addr = remote_addr;
	wr.wr.rdma.rkey = rkey;
	return rdma_seterrno(ibv_post_send(id->qp, &wr, &bad));
}

/*
 * The same with one segment, length bytes at addr inside mr. Sends and writes may go without a
 * region: then the data must be inline (IBV_SEND_INLINE) and is the caller's again at once.
 */
static inline int rdma_post_recv(
	struct rdma_cm_id *id, void *context, void *addr, size_t length, struct ibv_mr *mr)
{
	struct ibv_sge sge;

	assert((char *)addr >= (char *)mr->addr);
	assert((char *)addr + length <= (char *)mr->addr + mr->length);
	sge.addr = (uint64_t)(uintptr_t)addr;
	sge.length = (uint32_t)length;
	sge.lkey = mr->lkey;
	return rdma_post_recvv(id, context, &sge, 1);
}

static inline int rdma_post_send(struct rdma_cm_id *id, void *context, void *addr, size_t length,
	struct ibv_mr *mr, int flags)
{
	struct ibv_sge sge;

	sge.addr = (uint64_t)(uintptr_t)addr;
	sge.length = (uint32_t)length;
	sge.lkey = mr ? mr->lkey : 0;
	return rdma_post_sendv(id, context, &sge, 1, flags);
}

static inline int rdma_post_read(struct rdma_cm_id *id, void *context, void *addr, size_t length,
	struct ibv_mr *mr, int flags, uint64_t remote_addr, uint32_t rkey)
{
	struct ibv_sge sge;

	sge.addr = (uint64_t)(uintptr_t)addr;
	sge.length = (uint32_t)length;
	sge.lkey = mr->lkey;
	return rdma_post_readv(id, context, &sge, 1, flags, remote_addr, rkey);
}

static inline int rdma_post_write(struct rdma_cm_id *id, void *context, void *addr, size_t length,
	struct ibv_mr *mr, int flags, uint64_t remote_addr, uint32_t rkey)
{
	struct ibv_sge sge;

	sge.addr = (uint64_t)(uintptr_t)addr;
	sge.length = (uint32_t)length;
	sge.lkey = mr ? mr->lkey : 0;
	return rdma_post_writev(id, context, &sge, 1, flags, remote_addr, rkey);
}

/* Sends a datagram to a queue pair in the port space RDMA_PS_UDP. */
static inline int rdma_post_ud_send(struct rdma_cm_id *id, void *context, void *addr, size_t length,
	struct ibv_mr *mr, int flags, struct ibv_ah *ah, uint32_t remote_qpn)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	sge.addr = (uint64_t)(uintptr_t)addr;
	sge.length = (uint32_t)length;
	sge.lkey = mr ? mr->lkey : 0;
	memset(&wr, 0, sizeof(wr));
	wr.wr_id = (uintptr_t)context;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = (unsigned int)flags;
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = remote_qpn;
	wr.wr.ud.remote_qkey = RDMA_UDP_QKEY;
	return rdma_seterrno(ibv_post_send(id->qp, &wr, &bad));
}

/*
 * Wait for the next completion of the send or the receive queue. They block, and need completion
 * queues and channels that rdma_create_qp() made. Return 1 with *wc filled, whose status the
 * caller has to look at, or -1 and errno.
 */
static inline int rdma_get_send_comp(struct rdma_cm_id *id, struct ibv_wc *wc)
{
	struct ibv_cq *cq;
	void *context;
	int ret = ibv_poll_cq(id->send_cq, 1, wc);

	while (!ret) {
		ret = rdma_seterrno(ibv_req_notify_cq(id->send_cq, 0));
		if (!ret)
			ret = ibv_poll_cq(id->send_cq, 1, wc);
		if (ret)
			break;
		if (ibv_get_cq_event(id->send_cq_channel, &cq, &context))
			return -1;
		assert(cq == id->send_cq && context == id);
		ibv_ack_cq_events(id->send_cq, 1);
		ret = ibv_poll_cq(id->send_cq, 1, wc);
	}
	return ret < 0 ? -1 : ret;
}

static inline int rdma_get_recv_comp(struct rdma_cm_id *id, struct ibv_wc *wc)
{
	struct ibv_cq *cq;
	void *context;
	int ret = ibv_poll_cq(id->recv_cq, 1, wc);

	while (!ret) {
		ret = rdma_seterrno(ibv_req_notify_cq(id->recv_cq, 0));
		if (!ret)
			ret = ibv_poll_cq(id->recv_cq, 1, wc);
		if (ret)
			break;
		if (ibv_get_cq_event(id->recv_cq_channel, &cq, &context))
			return -1;
		assert(cq == id->recv_cq && context == id);
		ibv_ack_cq_events(id->recv_cq, 1);
		ret = ibv_poll_cq(id->recv_cq, 1, wc);
	}
	return ret < 0 ? -1 : ret;
}

#ifdef __cplusplus
}
#endif

#endif
