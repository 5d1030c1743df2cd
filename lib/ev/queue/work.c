#include "ev/queue/work.h"

#include <errno.h>

#include "ev/queue/qp.h"

enum { ATOMIC_BYTES = 8 };

static enum ibv_wr_opcode opcode_of(const struct evrdma_work *work)
{
	bool imm = work->flags & EVRDMA_WORK_OPT_IMM;

	switch (work->op) {
	case EVRDMA_OP_WRITE:
		return imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
	case EVRDMA_OP_READ:
		return IBV_WR_RDMA_READ;
	case EVRDMA_OP_COMPARE_SWAP:
		return IBV_WR_ATOMIC_CMP_AND_SWP;
	case EVRDMA_OP_FETCH_ADD:
		return IBV_WR_ATOMIC_FETCH_AND_ADD;
	default:
		return imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
	}
}

static bool is_atomic(const struct evrdma_work *work)
{
	return work->op == EVRDMA_OP_COMPARE_SWAP || work->op == EVRDMA_OP_FETCH_ADD;
}

static bool sends_data(const struct evrdma_work *work)
{
	return work->op == EVRDMA_OP_SEND || work->op == EVRDMA_OP_WRITE;
}

static bool is_valid(const struct evrdma_work *work)
{
	if ((unsigned)work->op > EVRDMA_OP_FETCH_ADD ||
		work->flags & ~(EVRDMA_WORK_OPT_IMM | EVRDMA_WORK_OPT_FENCE))
		return false;
	if (!sends_data(work) && (work->inline_data || work->flags & EVRDMA_WORK_OPT_IMM))
		return false;
	if (work->inline_data ? work->seg_count : work->inline_len)
		return false;
	if (work->seg_count && !work->segs)
		return false;
	if (!is_atomic(work))
		return true;
	return work->seg_count == 1 && work->segs->len == ATOMIC_BYTES &&
	       !(work->remote.addr % ATOMIC_BYTES);
}

int evr_work_to_send(const struct evrdma_work *work, struct evr_send *send)
{
	if (!work || !is_valid(work))
		return -EINVAL;
	send->opcode = opcode_of(work);
	send->flags = work->flags & EVRDMA_WORK_OPT_FENCE ? IBV_SEND_FENCE : 0;
	send->imm = work->imm;
	send->wr.rdma.remote_addr = work->remote.addr;
	send->wr.rdma.rkey = work->remote.key;
	send->wr.rdma.compare_add = work->compare_add;
	send->wr.rdma.swap = work->swap;
	return 0;
}
