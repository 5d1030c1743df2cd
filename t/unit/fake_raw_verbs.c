#include "unit/fake_raw.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum {
	ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		 IBV_ACCESS_REMOTE_ATOMIC
};

static const char *const names[FAKE_KINDS] = {
	[FAKE_ROCE] = "fake0", [FAKE_IWARP] = "fakeiw0", [FAKE_IB] = "fakeib0"
};

static struct ibv_context *open_kind(enum fake_kind kind)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	int i;

	for (i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), names[kind]))
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	ck_assert_ptr_nonnull(context);
	return context;
}

void raw_verbs_open(struct raw_verbs *v, enum fake_kind kind)
{
	v->context = open_kind(kind);
	v->pd = ibv_alloc_pd(v->context);
	v->channel = ibv_create_comp_channel(v->context);
	ck_assert_int_eq(fcntl(v->channel->fd, F_SETFL, O_NONBLOCK), 0);
	v->cq = ibv_create_cq(v->context, 4 * RAW_DEPTH, v, v->channel, 0);
	v->mr = ibv_reg_mr(v->pd, v->buf, sizeof(v->buf), ACCESS);
	ck_assert_ptr_nonnull(v->mr);
}

void raw_verbs_close(struct raw_verbs *v)
{
	ck_assert_int_eq(ibv_dereg_mr(v->mr), 0);
	ck_assert_int_eq(ibv_destroy_cq(v->cq), 0);
	ck_assert_int_eq(ibv_destroy_comp_channel(v->channel), 0);
	ck_assert_int_eq(ibv_dealloc_pd(v->pd), 0);
	ck_assert_int_eq(ibv_close_device(v->context), 0);
}

struct ibv_qp *raw_qp(struct raw_verbs *v, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = v->cq,
		.recv_cq = v->cq,
		.cap = { RAW_DEPTH, RAW_DEPTH, 2, 2, 64 },
		.qp_type = type,
	};
	struct ibv_qp *qp = ibv_create_qp(v->pd, &init);

	ck_assert_ptr_nonnull(qp);
	return qp;
}

static void rc_to_rts(struct ibv_qp *qp, uint32_t peer, uint8_t rnr_retry)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ACCESS,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = rnr_retry,
		.ah_attr = { .is_global = 1, .port_num = 1 },
	};

	ck_assert_int_eq(
		ibv_modify_qp(qp, &attr,
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	attr.qp_state = IBV_QPS_RTR;
	ck_assert_int_eq(
		ibv_modify_qp(qp, &attr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		0);
	attr.qp_state = IBV_QPS_RTS;
	ck_assert_int_eq(
		ibv_modify_qp(qp, &attr,
			IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
		0);
}

void raw_join(struct ibv_qp *a, struct ibv_qp *b, uint8_t rnr_retry)
{
	rc_to_rts(a, b->qp_num, rnr_retry);
	rc_to_rts(b, a->qp_num, rnr_retry);
}

void raw_ud_ready(struct ibv_qp *qp, uint32_t qkey)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey };

	ck_assert_int_eq(ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		0);
	attr.qp_state = IBV_QPS_RTR;
	ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

int raw_post_recv(struct raw_verbs *v, struct ibv_qp *qp, uint64_t wr_id, size_t at, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)(v->buf + at), len, v->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

struct ibv_send_wr raw_send_wr(
	struct raw_verbs *v, struct ibv_sge *sge, uint64_t wr_id, size_t at, uint32_t len)
{
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};

	sge->addr = (uintptr_t)(v->buf + at);
	sge->length = len;
	sge->lkey = v->mr->lkey;
	return wr;
}

int raw_post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int err = ibv_post_send(qp, wr, &bad);

	ck_assert(!err == !bad);
	return err;
}

int raw_post_send(struct raw_verbs *v, struct ibv_qp *qp, uint64_t wr_id, size_t at, uint32_t len)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = raw_send_wr(v, &sge, wr_id, at, len);

	return raw_post(qp, &wr);
}

struct ibv_wc raw_wc(struct raw_verbs *v)
{
	struct ibv_wc wc;

	ck_assert_int_eq(ibv_poll_cq(v->cq, 1, &wc), 1);
	return wc;
}

bool raw_no_wc(struct raw_verbs *v)
{
	struct ibv_wc wc;

	return ibv_poll_cq(v->cq, 1, &wc) == 0;
}
