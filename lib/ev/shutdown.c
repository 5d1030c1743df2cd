/* The orderly end of a base: those who talk may come to an end, until a deadline. */
#include <errno.h>

#include "ev/base.h"

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	evrdma_base_close(arg, NULL, NULL);
}

void evr_shutdown_init(struct evrdma_base *base)
{
	evr_base_assign_timer(base, &base->shutdown_timer, on_deadline, base);
}

static bool is_waited_for(const struct evr_obj *obj)
{
	return obj->draining && !obj->ending;
}

/* The connections of other bases whose events were moved here are waited for as well. */
static bool is_waiting(const struct evrdma_base *base)
{
	const struct evr_cmid *cmid;
	const struct evr_obj *obj;

	TAILQ_FOREACH (obj, &base->objs, link)
		if (is_waited_for(obj))
			return true;
	TAILQ_FOREACH (cmid, &base->cmids, link)
		if (is_waited_for(cmid->owner))
			return true;
	return false;
}

void evr_shutdown_look(struct evrdma_base *base)
{
	if (base->shutting_down && !base->closing && !is_waiting(base))
		evrdma_base_close(base, NULL, NULL);
}

int evrdma_base_shutdown(struct evrdma_base *base, int timeout_ms, evrdma_base_cb cb, void *arg)
{
	struct evr_cmid *cmid;
	struct evr_obj *obj;

	if (timeout_ms < 0)
		return -EINVAL;
	if (evr_base_closing(base))
		return -EALREADY;
	base->shutting_down = true;
	base->closed_cb = cb;
	base->closed_arg = arg;
	TAILQ_FOREACH (obj, &base->objs, link)
		evr_obj_shutdown(obj);
	TAILQ_FOREACH (cmid, &base->cmids, link)
		evr_obj_shutdown(cmid->owner);
	evr_base_add_timer(&base->shutdown_timer, timeout_ms);
	evr_base_kick(base);
	return 0;
}
