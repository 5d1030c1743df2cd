#include "interop/end.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>

enum {
	GRH_BYTES = 40,
	SLOT_BYTES = GRH_BYTES + END_BYTES,
	RECEIVES = 4 * END_DATAGRAMS,
	SLOTS = RECEIVES + 1, /* the last one is sent from */
	WAIT_MS = 10000
};

/* --- the way up, and down ------------------------------------------------------------------- */

void end_open(struct end *end, const char *ip)
{
	memset(end, 0, sizeof(*end));
	end->channel = rdma_create_event_channel();
	ck_assert_ptr_nonnull(end->channel);
	ck_assert_ok(rdma_create_id(end->channel, &end->id, end, RDMA_PS_UDP));
	if (ip)
		ck_assert_ok(rdma_bind_addr(end->id, end_addr(ip, 0)));
}

static void close_qp(struct end *end)
{
	if (!end->qp)
		return;
	if (end->id->qp)
		rdma_destroy_qp(end->id);
	else
		ck_assert_int_eq(ibv_destroy_qp(end->qp), 0);
	ck_assert_int_eq(ibv_dereg_mr(end->mr), 0);
	ck_assert_int_eq(ibv_destroy_cq(end->cq), 0);
	ck_assert_int_eq(ibv_destroy_comp_channel(end->comp), 0);
	ck_assert_int_eq(ibv_dealloc_pd(end->pd), 0);
	free(end->memory);
}

void end_close(struct end *end)
{
	if (end->ah)
		ck_assert_int_eq(ibv_destroy_ah(end->ah), 0);
	close_qp(end);
	ck_assert_ok(rdma_destroy_id(end->id));
	rdma_destroy_event_channel(end->channel);
}

static void post_receive(struct end *end, uint64_t slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)end->memory + slot * SLOT_BYTES,
		.length = SLOT_BYTES,
		.lkey = end->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	ck_assert_int_eq(ibv_post_recv(end->qp, &wr, &bad), 0);
}

static void post_receives(struct end *end)
{
	uint64_t slot;

	for (slot = 0; slot < RECEIVES; slot++)
		post_receive(end, slot);
}

static struct ibv_qp_init_attr prepare_qp(struct end *end)
{
	struct ibv_context *verbs = end->id->verbs;

	ck_assert_ptr_nonnull(end->pd = ibv_alloc_pd(verbs));
	ck_assert_ptr_nonnull(end->comp = ibv_create_comp_channel(verbs));
	ck_assert_ptr_nonnull(end->cq = ibv_create_cq(verbs, 2 * SLOTS, NULL, end->comp, 0));
	ck_assert_ptr_nonnull(end->memory = calloc(SLOTS, SLOT_BYTES));
	end->mr = ibv_reg_mr(end->pd, end->memory, SLOTS * SLOT_BYTES, IBV_ACCESS_LOCAL_WRITE);
	ck_assert_ptr_nonnull(end->mr);
	return (struct ibv_qp_init_attr){
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = RECEIVES, 1, 1 },
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
	};
}

void end_make_qp(struct end *end)
{
	struct ibv_qp_init_attr attr = prepare_qp(end);

	ck_assert_ok(rdma_create_qp(end->id, end->pd, &attr));
	end->qp = end->id->qp;
	post_receives(end);
}

/* The CM knows what INIT takes; a queue pair for datagrams needs no peer for the rest. */
void end_make_own_qp(struct end *end)
{
	struct ibv_qp_init_attr init = prepare_qp(end);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	ck_assert_ptr_nonnull(end->qp = ibv_create_qp(end->pd, &init));
	ck_assert_ok(rdma_init_qp_attr(end->id, &attr, &mask));
	ck_assert_uint_eq(attr.qkey, RDMA_UDP_QKEY);
	ck_assert_int_eq(ibv_modify_qp(end->qp, &attr, mask), 0);
	attr.qp_state = IBV_QPS_RTR;
	ck_assert_int_eq(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = 0;
	ck_assert_int_eq(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	post_receives(end);
}

/* --- the group ------------------------------------------------------------------------------ */

struct sockaddr *end_addr(const char *ip, uint16_t port)
{
	static struct sockaddr_in ring[4];
	static unsigned turn;
	struct sockaddr_in *in = &ring[turn++ % 4];

	memset(in, 0, sizeof(*in));
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	ck_assert_int_eq(inet_pton(AF_INET, ip, &in->sin_addr), 1);
	return (struct sockaddr *)in;
}

struct rdma_cm_join_mc_attr_ex end_attr(const char *group, uint32_t flags)
{
	return (struct rdma_cm_join_mc_attr_ex){
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = flags,
		.addr = end_addr(group, 0),
	};
}

static void wait_readable(int fd, const char *what)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	ck_assert_msg(poll(&pfd, 1, WAIT_MS) == 1, "%s did not come", what);
}

void end_join(struct end *end, const char *group, uint32_t flags)
{
	struct rdma_cm_join_mc_attr_ex attr = end_attr(group, flags);
	struct rdma_cm_event *event;
	int context;

	ck_assert_ok(rdma_join_multicast_ex(end->id, &attr, &context));
	wait_readable(end->channel->fd, "the answer to the join");
	ck_assert_ok(rdma_get_cm_event(end->channel, &event));
	ck_assert_str_eq(rdma_event_str(event->event), "RDMA_CM_EVENT_MULTICAST_JOIN");
	ck_assert_int_eq(event->status, 0);
	ck_assert_ptr_eq(event->id, end->id);
	ck_assert_ptr_eq(event->param.ud.private_data, &context);
	ck_assert_uint_eq(event->param.ud.qp_num, 0xffffff);
	end->group = event->param.ud;
	ck_assert_ok(rdma_ack_cm_event(event));
}

void end_leave(struct end *end, const char *group)
{
	ck_assert_ok(rdma_leave_multicast(end->id, end_addr(group, 0)));
}

void end_attach(struct end *end)
{
	const struct ibv_ah_attr *ah = &end->group.ah_attr;

	ck_assert_int_eq(ibv_attach_mcast(end->qp, &ah->grh.dgid, ah->dlid), 0);
}

void end_detach(struct end *end)
{
	const struct ibv_ah_attr *ah = &end->group.ah_attr;

	ck_assert_int_eq(ibv_detach_mcast(end->qp, &ah->grh.dgid, ah->dlid), 0);
}

/* --- datagrams ------------------------------------------------------------------------------ */

static uint8_t pattern(uint32_t number, unsigned at)
{
	return (uint8_t)(number * 31 + at * 7 + 1);
}

static void take_datagram(struct end *end, const struct ibv_wc *wc)
{
	const uint8_t *data = end->memory + wc->wr_id * SLOT_BYTES + GRH_BYTES;
	uint32_t number = ntohl(wc->imm_data);
	unsigned i;

	ck_assert_uint_eq(wc->byte_len, SLOT_BYTES);
	ck_assert(wc->wc_flags & IBV_WC_WITH_IMM);
	ck_assert_uint_lt(number, END_NUMBERS);
	for (i = 0; i < END_BYTES; i++)
		ck_assert_uint_eq(data[i], pattern(number, i));
	end->got[number]++;
	post_receive(end, wc->wr_id);
}

static bool take_completions(struct end *end)
{
	struct ibv_wc wc;
	bool any = false;

	while (ibv_poll_cq(end->cq, 1, &wc) == 1) {
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode & IBV_WC_RECV)
			take_datagram(end, &wc);
		else
			end->sent++;
		any = true;
	}
	return any;
}

/* Returns once there was at least one completion, with the CQ empty. */
static void await_completions(struct end *end)
{
	struct ibv_cq *cq;
	void *context;

	if (take_completions(end))
		return;
	ck_assert_int_eq(ibv_req_notify_cq(end->cq, 0), 0);
	if (take_completions(end))
		return;
	wait_readable(end->comp->fd, "a completion");
	ck_assert_int_eq(ibv_get_cq_event(end->comp, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	take_completions(end);
}

static void send_one(struct end *end, struct ibv_ah *ah, uint32_t qp_num, uint32_t number)
{
	uint8_t *data = end->memory + RECEIVES * SLOT_BYTES;
	struct ibv_sge sge = { (uintptr_t)data, END_BYTES, end->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = htonl(number),
		.wr.ud = { .ah = ah, .remote_qpn = qp_num, .remote_qkey = RDMA_UDP_QKEY },
	};
	struct ibv_send_wr *bad;
	unsigned sent = end->sent, i;

	for (i = 0; i < END_BYTES; i++)
		data[i] = pattern(number, i);
	ck_assert_int_eq(ibv_post_send(end->qp, &wr, &bad), 0);
	while (end->sent == sent)
		await_completions(end);
}

void end_send(struct end *end)
{
	uint32_t number;

	if (!end->ah)
		end->ah = ibv_create_ah(end->pd, &end->group.ah_attr);
	ck_assert_ptr_nonnull(end->ah);
	for (number = 0; number < END_DATAGRAMS; number++)
		send_one(end, end->ah, end->group.qp_num, number);
}

void end_send_fence(struct end *from, struct end *to)
{
	struct ibv_ah_attr attr = from->group.ah_attr;
	unsigned got = to->got[END_FENCE];
	struct ibv_ah *ah;

	attr.grh.dgid = to->id->route.addr.addr.ibaddr.sgid;
	ck_assert_ptr_nonnull(ah = ibv_create_ah(from->pd, &attr));
	send_one(from, ah, to->qp->qp_num, END_FENCE);
	while (to->got[END_FENCE] == got)
		await_completions(to);
	ck_assert_int_eq(ibv_destroy_ah(ah), 0);
}

static bool has_all(const struct end *end)
{
	unsigned number;

	for (number = 0; number < END_DATAGRAMS; number++)
		if (!end->got[number])
			return false;
	return true;
}

void end_await_all(struct end *end)
{
	while (!has_all(end))
		await_completions(end);
}

unsigned end_received(const struct end *end)
{
	unsigned number, n = 0;

	for (number = 0; number < END_DATAGRAMS; number++)
		n += end->got[number];
	return n;
}
