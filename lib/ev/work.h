/*
 * Work: what a user asks for, in verbs' terms; and how a completion finds whom it is for: the upper
 * half of its wr_id is the number of the owner.
 */
#ifndef EVR_EV_WORK_H
#define EVR_EV_WORK_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include <evrdma/work.h>

struct evr_send;

/* Set in the index of a receive. */
#define EVR_WR_RECV UINT32_C(0x80000000)

struct evr_work_owner {
	uint32_t number; /* another one for each verbs object, so that nothing late finds its
			    successor */
	void (*complete)(struct evr_work_owner *owner, uint32_t index, const struct ibv_wc *wc);
};

static inline uint64_t evr_wr_id(uint32_t number, uint32_t index)
{
	return (uint64_t)number << 32 | index;
}

/* A read or an atomic: its answer is data. */
bool evr_work_fetches(enum ibv_wr_opcode opcode);

/* 0, or -EINVAL for what the operation does not take. */
int evr_work_to_send(const struct evrdma_work *work, struct evr_send *send);

#endif
