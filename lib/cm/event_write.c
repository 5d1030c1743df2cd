#include "cm/cm.h"

#include <errno.h>

int rdma_write_cm_event(
	struct rdma_cm_id *id, enum rdma_cm_event_type event, int status, uint64_t arg)
{
	struct evr_cm_id *p = evr_cm_id(id);

	if (!id || event != RDMA_CM_EVENT_USER)
		return evr_cm_result(-EINVAL);
	return evr_cm_result(evr_ucma_write_event(evr_cm_fd(p), p->handle, event, status, arg));
}
