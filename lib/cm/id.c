#include "cm/cm.h"

#include <errno.h>
#include <stdlib.h>

static enum ibv_qp_type qp_type_of(enum rdma_port_space ps)
{
	return ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
}

int evr_cm_id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
	struct evr_cm_id **out)
{
	struct evr_cm_id *id = calloc(1, sizeof(*id));
	int ret;

	if (!id)
		return -ENOMEM;
	ret = evr_cm_map_add_id(id);
	if (ret) {
		free(id);
		return ret;
	}
	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = ps;
	id->id.qp_type = qp_type_of(ps);
	TAILQ_INIT(&id->groups);
	pthread_mutex_init(&id->work_lock, NULL);
	pthread_mutex_init(&id->lock, NULL);
	pthread_cond_init(&id->event_done, NULL);
	*out = id;
	return 0;
}

void evr_cm_id_free(struct evr_cm_id *id)
{
	struct evr_cm_device *dev = id->dev;

	evr_cm_map_remove_id(id);
	evr_cm_mc_free_all(id);
	if (id->sync)
		evr_cm_channel_free(id->id.channel);
	pthread_cond_destroy(&id->event_done);
	pthread_mutex_destroy(&id->lock);
	pthread_mutex_destroy(&id->work_lock);
	free(id->id.route.path_rec);
	rdma_freeaddrinfo(id->addrinfo);
	free(id->connect_data);
	free(id->child_attr);
	free(id);
	evr_cm_device_put(dev);
}

static int need_own_channel(struct evr_cm_id *id)
{
	int ret;

	if (id->id.channel)
		return 0;
	ret = evr_cm_channel_new(&id->id.channel);
	id->sync = !ret;
	return ret;
}

static int create(struct evr_cm_id *id)
{
	int ret = need_own_channel(id);

	if (ret)
		return ret;
	return evr_ucma_create_id(evr_cm_fd(id), evr_cm_uid(id), (uint16_t)id->id.ps,
		(uint8_t)id->id.qp_type, &id->handle);
}

int evr_cm_id_create(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
	enum ibv_qp_type qp_type, struct evr_cm_id **out)
{
	struct evr_cm_id *id;
	int ret = evr_cm_init();

	if (ret)
		return ret;
	evr_cm_device_sweep();
	ret = evr_cm_id_new(channel, context, ps, &id);
	if (ret)
		return ret;
	if (qp_type)
		id->id.qp_type = qp_type;
	ret = create(id);
	if (ret)
		evr_cm_id_free(id);
	else
		*out = id;
	return ret;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
	enum rdma_port_space ps)
{
	struct evr_cm_id *p;
	int ret = id ? evr_cm_id_create(channel, context, ps, 0, &p) : -EINVAL;

	if (!ret)
		*id = &p->id;
	return evr_cm_result(ret);
}

void evr_cm_id_drop(struct evr_cm_id *id)
{
	int saved = errno;
	uint32_t reported;

	evr_cm_release_event(id);
	evr_ucma_destroy_id(evr_cm_fd(id), id->handle, &reported);
	evr_cm_id_free(id);
	errno = saved;
}

static int destroy_in_kernel(struct evr_cm_id *id, uint32_t *reported)
{
	int ret;

	pthread_mutex_lock(&id->work_lock);
	ret = evr_ucma_destroy_id(evr_cm_fd(id), id->handle, reported);
	id->gone = !ret;
	pthread_mutex_unlock(&id->work_lock);
	return ret;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct evr_cm_id *p = evr_cm_id(id);
	uint32_t reported;
	int ret;

	if (!id)
		return evr_cm_result(-EINVAL);
	ret = destroy_in_kernel(p, &reported);
	if (ret)
		return evr_cm_result(ret);
	evr_cm_release_event(p);
	evr_cm_wait_events(p, reported);
	evr_cm_id_free(p);
	return 0;
}

static int migrate_in_kernel(
	struct evr_cm_id *id, struct rdma_event_channel *to, bool sync, uint32_t *reported)
{
	int ret;

	pthread_mutex_lock(&id->work_lock);
	ret = evr_ucma_migrate_id(to->fd, id->handle, evr_cm_fd(id), reported);
	if (!ret) {
		id->id.channel = to;
		id->sync = sync;
	}
	pthread_mutex_unlock(&id->work_lock);
	return ret;
}

/* Takes the id over to a channel, its own where none is given, and closes the own one it leaves. */
int evr_cm_migrate(struct evr_cm_id *id, struct rdma_event_channel *channel)
{
	struct rdma_event_channel *from = id->id.channel;
	bool was_sync = id->sync;
	bool sync = !channel;
	uint32_t reported;
	int ret = sync ? evr_cm_channel_new(&channel) : 0;

	if (ret)
		return ret;
	ret = migrate_in_kernel(id, channel, sync, &reported);
	if (ret) {
		if (sync)
			evr_cm_channel_free(channel);
		return ret;
	}
	if (was_sync)
		evr_cm_release_event(id);
	evr_cm_wait_events(id, reported);
	if (was_sync)
		evr_cm_channel_free(from);
	return 0;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	if (!id || (!channel && evr_cm_id(id)->sync))
		return evr_cm_result(-EINVAL);
	return evr_cm_result(evr_cm_migrate(evr_cm_id(id), channel));
}
