/*
 * How a completion finds whom it is for: the upper half of its wr_id is the number of the owner.
 */
#ifndef EVR_EV_OWNER_H
#define EVR_EV_OWNER_H

#include <infiniband/verbs.h>
#include <stdint.h>

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

#endif
