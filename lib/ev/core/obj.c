#include "ev/core/obj.h"

#include <errno.h>

#include "ev/core/base.h"

static void finish(struct evr_obj *obj)
{
	evr_obj_leave(obj);
	obj->cls->closed(obj);
	obj->cls->free(obj);
}

static bool still_tells(struct evr_obj *obj)
{
	return obj->cls->tells && obj->cls->tells(obj);
}

static void run(struct evr_task *task)
{
	struct evr_obj *obj = evr_container_of(task, struct evr_obj, task);

	if (!obj->ending) {
		obj->cls->work(obj);
		return;
	}
	if (!obj->ended) {
		int ret = obj->cls->end(obj);

		if (ret == -EAGAIN)
			evr_obj_continue(obj);
		obj->ended = !ret;
	}
	if (obj->ended && obj->closing && !still_tells(obj))
		finish(obj);
}

int evr_obj_init(struct evr_obj *obj, struct evrdma_base *base, const struct evr_obj_class *cls)
{
	if (evr_base_closing(base))
		return -EPIPE;
	obj->base = base;
	obj->cls = cls;
	obj->task.run = run;
	TAILQ_INSERT_TAIL(&base->objs, obj, link);
	return 0;
}

void evr_obj_leave(struct evr_obj *obj)
{
	evr_base_cancel(obj->base, &obj->task);
	TAILQ_REMOVE(&obj->base->objs, obj, link);
	evr_base_kick_if_closing(obj->base);
}

void evr_obj_set_kind(struct evr_obj *obj, enum evr_task_kind kind)
{
	bool queued = obj->task.queued;

	evr_base_cancel(obj->base, &obj->task);
	obj->task.kind = kind;
	if (queued)
		evr_base_queue(obj->base, &obj->task);
}

void evr_obj_work(struct evr_obj *obj)
{
	evr_base_queue(obj->base, &obj->task);
}

void evr_obj_continue(struct evr_obj *obj)
{
	if (obj->ending)
		evr_base_queue(obj->base, &obj->task);
}

void evr_obj_end(struct evr_obj *obj)
{
	if (!obj->ending)
		evr_obj_set_kind(obj, EVR_TASK_LEAVE);
	if (!obj->ending && obj->cls->down)
		obj->cls->down(obj);
	obj->ending = true;
	evr_base_queue(obj->base, &obj->task);
}

void evr_obj_shutdown(struct evr_obj *obj)
{
	if (!obj->ending && !obj->draining && obj->cls->shutdown)
		obj->draining = obj->cls->shutdown(obj);
}

void evr_obj_close(struct evr_obj *obj)
{
	if (obj->closing)
		return;
	obj->closing = true;
	evr_obj_end(obj);
}
