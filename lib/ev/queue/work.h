/* Work: what a user asks for, in verbs' terms. */
#ifndef EVR_EV_WORK_H
#define EVR_EV_WORK_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include <evrdma/work.h>

struct evr_send;

/* A read or an atomic: its answer is data. */
static inline bool evr_work_fetches(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return true;
	default:
		return false;
	}
}

/* 0, or -EINVAL for what the operation does not take. */
int evr_work_to_send(const struct evrdma_work *work, struct evr_send *send);

#endif
