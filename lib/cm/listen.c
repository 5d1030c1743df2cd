#include "cm/cm.h"

#include <errno.h>

/* Asks what the kernel chose only where it had to choose. */
static int learn_port(struct evr_cm_id *id)
{
	int ret = 0;

	pthread_mutex_lock(&id->work_lock);
	if (!rdma_get_src_port(&id->id))
		ret = evr_cm_addr_query(id);
	pthread_mutex_unlock(&id->work_lock);
	return ret;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	struct evr_cm_id *p = evr_cm_id(id);
	int ret;

	if (!id)
		return evr_cm_result(-EINVAL);
	ret = evr_ucma_listen(evr_cm_fd(p), p->handle, backlog);
	return evr_cm_result(ret ? ret : learn_port(p));
}
