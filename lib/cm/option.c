#include "cm/cm.h"

#include <errno.h>

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
	struct evr_cm_id *p = evr_cm_id(id);

	if (!id)
		return evr_cm_result(-EINVAL);
	return evr_cm_result(evr_ucma_set_option(
		evr_cm_fd(p), p->handle, (uint32_t)level, (uint32_t)optname, optval, optlen));
}
