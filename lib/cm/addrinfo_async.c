/*
 * Look-ups whose end is an event of an id. The kernel carries those of services out. Those of names
 * are done before the call returns, since nobody is there to do them later; only that they are is
 * told by an event, which the id sends to itself.
 */
#include "cm/cm.h"

#include <errno.h>

static int start(struct evr_cm_id *id)
{
	int ret = 0;

	pthread_mutex_lock(&id->lock);
	if (id->lookup == EVR_CM_LOOKUP_NONE)
		id->lookup = EVR_CM_LOOKUP_RUNNING;
	else
		ret = -EBUSY;
	pthread_mutex_unlock(&id->lock);
	return ret;
}

/* What was there before is given back. */
static void move_to(struct evr_cm_id *id, enum evr_cm_lookup lookup, struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *before;

	pthread_mutex_lock(&id->lock);
	before = id->addrinfo;
	id->addrinfo = res;
	id->lookup = lookup;
	pthread_mutex_unlock(&id->lock);
	rdma_freeaddrinfo(before);
}

/* The event names the result, so that it can be told from one of somebody else's. */
static int tell(struct evr_cm_id *id, const struct rdma_addrinfo *res)
{
	return evr_ucma_write_event(
		evr_cm_fd(id), id->handle, RDMA_CM_EVENT_INTERNAL, 0, evr_cm_uid(res));
}

/* Before a look-up that may take long: whether its end can be told at all. */
static int can_tell(struct evr_cm_id *id)
{
	int ret = evr_ucma_write_event(
		evr_cm_fd(id), EVR_UCMA_NO_HANDLE, RDMA_CM_EVENT_INTERNAL, 0, 0);

	return ret == -ENOENT ? 0 : ret;
}

static int resolve_name(struct evr_cm_id *id, const char *node, const char *service,
	const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *res;
	int eai = 0;
	int ret = can_tell(id);

	if (!ret)
		ret = evr_cm_look_up(node, service, hints, &res, &eai);
	if (ret)
		return ret;
	move_to(id, EVR_CM_LOOKUP_RUNNING, res);
	return tell(id, res);
}

int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
	const struct rdma_addrinfo *hints)
{
	struct evr_cm_id *p = evr_cm_id(id);
	int asks_sa = id ? evr_cm_asks_sa(node, service, hints) : -EINVAL;
	int ret = asks_sa < 0 ? asks_sa : start(p);

	if (ret)
		return evr_cm_result(ret);
	ret = asks_sa ? evr_cm_service_resolve(p, service) : resolve_name(p, node, service, hints);
	if (!ret)
		return evr_cm_complete(p);
	move_to(p, EVR_CM_LOOKUP_NONE, NULL);
	return evr_cm_result(ret);
}

int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info)
{
	struct evr_cm_id *p = evr_cm_id(id);
	int ret = -ENOENT;

	if (!id || !info)
		return evr_cm_result(-EINVAL);
	pthread_mutex_lock(&p->lock);
	if (p->lookup == EVR_CM_LOOKUP_DONE) {
		*info = p->addrinfo;
		p->addrinfo = NULL;
		p->lookup = EVR_CM_LOOKUP_NONE;
		ret = 0;
	}
	pthread_mutex_unlock(&p->lock);
	return evr_cm_result(ret);
}

int evr_cm_lookup_found(struct evr_cm_id *id)
{
	struct rdma_addrinfo *res = NULL;
	int ret = evr_cm_service_query(id, &res);

	move_to(id, ret ? EVR_CM_LOOKUP_NONE : EVR_CM_LOOKUP_DONE, res);
	return ret;
}

void evr_cm_lookup_failed(struct evr_cm_id *id)
{
	move_to(id, EVR_CM_LOOKUP_NONE, NULL);
}

int evr_cm_lookup_told(struct evr_cm_id *id, uint64_t arg)
{
	int ret = -EBADMSG;

	pthread_mutex_lock(&id->lock);
	if (id->lookup == EVR_CM_LOOKUP_RUNNING && id->addrinfo &&
		arg == evr_cm_uid(id->addrinfo)) {
		id->lookup = EVR_CM_LOOKUP_DONE;
		ret = 0;
	}
	pthread_mutex_unlock(&id->lock);
	return ret;
}
