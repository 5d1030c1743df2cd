/* How a call begins and ends. */
#include "rs/helper.h"

#include <errno.h>

ssize_t evr_rs_result(ssize_t ret)
{
	if (ret >= 0)
		return ret;
	errno = (int)-ret;
	return -1;
}

struct evr_rs *evr_rs_enter(int fd)
{
	struct evr_rs *rs = evr_rs_get(fd);

	if (!rs) {
		errno = EBADF;
		return NULL;
	}
	pthread_mutex_lock(&rs->lock);
	if (!rs->closed)
		return rs;
	evr_rs_leave(rs, -EBADF);
	return NULL;
}

ssize_t evr_rs_leave(struct evr_rs *rs, ssize_t ret)
{
	if (evr_rs_is_shown(rs) || rs->watched)
		evr_rs_settle(rs);
	pthread_mutex_unlock(&rs->lock);
	evr_rs_put(rs);
	return evr_rs_result(ret);
}
