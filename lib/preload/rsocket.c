#include "config.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdlib.h>

#include "preload/preload.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int sq_size, rq_size, inline_size;

/* What is no number, or none of the machine's, is as if it were not there. */
static int number(const char *name)
{
	const char *value = getenv(name);
	long long number;
	char *end = NULL;

	errno = 0;
	number = value ? strtoll(value, &end, 10) : 0;
	if (errno || number < 0 || (end && *end))
		return 0;
	return number > INT_MAX ? INT_MAX : (int)number;
}

static void read_env(void)
{
	int saved = errno;

	sq_size = number("RS_SQ_SIZE");
	rq_size = number("RS_RQ_SIZE");
	inline_size = number("RS_INLINE");
	errno = saved;
}

static void set_size(int rs, int name, int size)
{
	if (size > 0)
		rsetsockopt(rs, SOL_RDMA, name, &size, sizeof(size));
}

/* What the program says comes after the environment. */
int evr_pre_open(struct evr_pre *pre, int domain, int type)
{
	int rs = rsocket(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (rs < 0)
		return -1;
	pthread_once(&once, read_env);
	set_size(rs, RDMA_SQSIZE, sq_size);
	set_size(rs, RDMA_RQSIZE, rq_size);
	set_size(rs, RDMA_INLINE, inline_size);
	evr_pre_apply_options(pre, rs);
	return rs;
}
