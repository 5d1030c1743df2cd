/* Its life, and what its pipe tells. */
#include "ev/stream/bufferevent.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>

#include "ev/core/error.h"
#include "ev/stream/registry.h"

static struct evr_bev *of_pipe(struct evr_pipe *pipe)
{
	return evr_container_of(pipe, struct evr_bev, pipe);
}

static struct evr_bev *of_obj(struct evr_obj *obj)
{
	return evr_container_of(obj, struct evr_bev, obj);
}

/* --- the pipe's events ---------------------------------------------------------------------- */

/* The first error is the one that is told. */
static void set_failed(struct evr_bev *behind, const struct evrdma_error *error)
{
	if (behind->failed)
		return;
	behind->failed = true;
	behind->error = *error;
}

static void accepted(struct evr_bev *behind, const struct evrdma_error *error)
{
	evrdma_bufferevent_accept_cb cb = behind->accept_cb;

	behind->accept_cb = NULL;
	if (error)
		evr_obj_close(&behind->obj);
	cb(behind->bev, error, behind->accept_arg);
}

static void accept_now(struct evr_bev *behind)
{
	struct evrdma_error error;
	int ret = evr_bev_make(behind);

	if (ret)
		evr_error_set(&error, -ret, EVRDMA_STEP_ACCEPT);
	else
		evr_bev_watch(behind);
	accepted(behind, ret ? &error : NULL);
}

/* The pair is writable: libevent writes the byte ahead. */
static void let_go_on(struct evr_bev *behind)
{
	unsigned char byte;

	while (behind->filled-- > 0)
		evr_bell_take(&behind->bell, &byte, 1);
	evr_bev_watch(behind);
}

static void on_connected(struct evr_pipe *pipe)
{
	struct evr_bev *behind = of_pipe(pipe);

	behind->state = EVR_BEV_UP;
	if (behind->accept_cb)
		accept_now(behind);
	else if (behind->bev)
		let_go_on(behind);
}

static void on_changed(struct evr_pipe *pipe)
{
	struct evr_bev *behind = of_pipe(pipe);

	if (behind->obj.ending)
		return;
	if (behind->stuck)
		evr_bev_take(behind);
	evr_bev_go_on_leaving(behind);
	evr_bev_ring_if_due(behind);
}

static void on_down(struct evr_pipe *pipe, const struct evrdma_error *error)
{
	struct evr_bev *behind = of_pipe(pipe);
	bool connecting = behind->state == EVR_BEV_CONNECTING;

	behind->state = EVR_BEV_OVER;
	evr_pipe_close(pipe);
	if (behind->obj.ending)
		return;
	if (error)
		set_failed(behind, error);
	if (behind->accept_cb)
		accepted(behind, error);
	else if (!behind->bev || behind->leaving)
		evr_obj_close(&behind->obj);
	else if (connecting)
		let_go_on(behind);
	else if (behind->stuck)
		evr_bev_take(behind);
	if (!behind->obj.ending)
		evr_bev_ring_if_due(behind);
}

static void on_failed(struct evr_pipe *pipe)
{
	evr_obj_work(&of_pipe(pipe)->obj);
}

static void on_closed(struct evr_pipe *pipe)
{
	evr_obj_continue(&of_pipe(pipe)->obj);
}

static const struct evr_pipe_ops pipe_ops = {
	.connected = on_connected,
	.changed = on_changed,
	.down = on_down,
	.failed = on_failed,
	.closed = on_closed,
};

/* --- life ----------------------------------------------------------------------------------- */

static void fini(struct evr_bev *behind)
{
	if (behind->spare)
		evbuffer_free(behind->spare);
	free(behind);
}

/* The byte that stands for an error is nobody's to take off any more. */
static void abandon(struct evr_bev *behind)
{
	if (evr_bell_is_theirs(&behind->bell)) {
		if (behind->rung && behind->rung_error)
			evr_bell_withdraw(&behind->bell);
		evr_bell_hang_up(&behind->bell);
	}
	evr_bev_forget(behind);
}

static void bev_down(struct evr_obj *obj)
{
	struct evr_bev *behind = of_obj(obj);

	evr_timer_stop(&behind->linger_timer);
	if (behind->bell.ours >= 0)
		abandon(behind);
	evr_pipe_close(&behind->pipe);
}

static int bev_end(struct evr_obj *obj)
{
	return of_obj(obj)->pipe.conn ? -EINPROGRESS : 0;
}

/* What was written goes; then it is an end for who reads, an error for who writes. */
static bool bev_shutdown(struct evr_obj *obj)
{
	struct evr_bev *behind = of_obj(obj);

	if (behind->state != EVR_BEV_UP) {
		evr_obj_close(obj);
		return false;
	}
	evr_bev_leave(behind);
	evr_bev_ring_if_due(behind);
	return !obj->ending;
}

static void bev_closed(struct evr_obj *obj)
{
	struct evr_bev *behind = of_obj(obj);
	struct evrdma_error error;

	if (!behind->accept_cb)
		return;
	evr_error_set(&error, ECANCELED, EVRDMA_STEP_ACCEPT);
	behind->accept_cb(NULL, &error, behind->accept_arg);
}

static void bev_free(struct evr_obj *obj)
{
	evr_pipe_fini(&of_obj(obj)->pipe);
	fini(of_obj(obj));
}

static void bev_work(struct evr_obj *obj)
{
	struct evr_bev *behind = of_obj(obj);

	evr_pipe_judge(&behind->pipe);
	if (obj->ending)
		return;
	evr_bev_go_on_leaving(behind);
	evr_bev_ring_if_due(behind);
}

static const struct evr_obj_class bev_class = {
	.down = bev_down,
	.work = bev_work,
	.end = bev_end,
	.shutdown = bev_shutdown,
	.closed = bev_closed,
	.free = bev_free,
};

static int init(struct evr_bev *behind, struct evrdma_base *base,
	const struct evr_bev_options *options)
{
	int ret;

	behind->spare = evbuffer_new();
	if (!behind->spare)
		return -ENOMEM;
	ret = evr_obj_init(&behind->obj, base, &bev_class);
	if (ret)
		return ret;
	behind->bell.ours = -1;
	behind->bev_options = options->bev_options;
	behind->linger_timeout_ms = options->linger_timeout_ms;
	evr_bev_assign_timers(behind);
	ret = evr_pipe_init(&behind->pipe, base, &options->pipe, &pipe_ops);
	if (ret)
		evr_obj_leave(&behind->obj);
	return ret;
}

struct evr_bev *evr_bev_new(
	struct evrdma_base *base, const struct evr_bev_options *options)
{
	struct evr_bev *behind = calloc(1, sizeof(*behind));
	int ret = behind ? init(behind, base, options) : -ENOMEM;

	if (!ret)
		return behind;
	if (behind)
		fini(behind);
	errno = -ret;
	return NULL;
}

/* --- what is asked of it -------------------------------------------------------------------- */

struct evrdma_conn *evrdma_bufferevent_get_conn(struct bufferevent *bev)
{
	struct evr_bev *behind = evr_bev_find(bev);

	return behind ? behind->pipe.conn : NULL;
}

int evrdma_bufferevent_get_error(struct bufferevent *bev, struct evrdma_error *error)
{
	struct evr_bev *behind = evr_bev_find(bev);

	if (!behind || !behind->failed)
		return -ENOENT;
	*error = behind->error;
	return 0;
}
