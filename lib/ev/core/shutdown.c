/* The orderly end of a base: those who talk may come to an end, until a deadline. */
#include <errno.h>

#include "ev/core/base.h"
#include "util/clock.h"

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	evrdma_base_close(arg, NULL, NULL);
}

void evr_shutdown_init(struct evrdma_base *base)
{
	evr_timer_assign(&base->shutdown_timer, base, on_deadline, base);
}

static bool is_waited_for(struct evr_obj *obj)
{
	return obj->draining && !obj->ending;
}

void evr_shutdown_look(struct evrdma_base *base)
{
	if (base->shutting_down && !base->closing &&
		!evr_base_any_obj(base, is_waited_for))
		evrdma_base_close(base, NULL, NULL);
}

static bool shut_down(struct evr_obj *obj)
{
	evr_obj_shutdown(obj);
	return false;
}

uint64_t evr_shutdown_left_us(const struct evrdma_base *base)
{
	uint64_t now_us = evr_clock_now_us();

	if (!base->shutting_down)
		return UINT64_MAX;
	return base->shutdown_end_us > now_us ? base->shutdown_end_us - now_us : 0;
}

int evrdma_base_shutdown(struct evrdma_base *base, int timeout_ms, evrdma_base_cb cb, void *arg)
{
	if (timeout_ms < 0)
		return -EINVAL;
	if (evr_base_closing(base))
		return -EALREADY;
	base->shutting_down = true;
	evr_inbox_refuse_objects(base);
	base->shutdown_end_us = evr_clock_now_us() + (uint64_t)timeout_ms * EVR_US_PER_MS;
	base->closed_cb = cb;
	base->closed_arg = arg;
	evr_base_any_obj(base, shut_down);
	evr_timer_start(&base->shutdown_timer, timeout_ms);
	evr_base_kick(base);
	return 0;
}
