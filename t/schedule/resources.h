/* What the kernel counts of RDMA objects, everybody's. */
#ifndef EVR_SCHEDULE_RESOURCES_H
#define EVR_SCHEDULE_RESOURCES_H

#include <stdint.h>

enum resource {
	RESOURCE_PD,
	RESOURCE_CQ,
	RESOURCE_QP,
	RESOURCE_CM_ID,
	RESOURCE_MR,
	RESOURCE_CTX,
	RESOURCE_SRQ,
	RESOURCES
};

extern const char *const resource_names[RESOURCES];

/* Of all devices together. 0, or -errno. */
int resources_count(uint64_t counts[RESOURCES]);

#endif
