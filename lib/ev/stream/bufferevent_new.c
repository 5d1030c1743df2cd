/* How it is made. */
#include "ev/stream/bufferevent.h"

#include <errno.h>
#include <event2/buffer.h>
#include <unistd.h>

#include "ev/connection/request.h"
#include "ev/core/base.h"
#include "ev/stream/registry.h"
#include "util/options.h"

static const struct evrdma_bev_options default_options = {
	.recv_bytes = 128 * 1024,
	.send_bytes = 128 * 1024,
	.linger_timeout_ms = 60000,
};

void evrdma_bev_options_init_sized(
	struct evrdma_bev_options *options, size_t size)
{
	evr_options_init(options, size, &default_options, sizeof(default_options));
}

int evr_bev_load(struct evr_bev_options *options,
	const struct evrdma_bev_options *users, int bev_options)
{
	struct evrdma_bev_options o = default_options;

	if (evr_options_load(&o, sizeof(o), users) || o.linger_timeout_ms < 1 ||
		o.flags & ~EVRDMA_BUFFEREVENT_OPT_COPY)
		return -EINVAL;
	if (bev_options & BEV_OPT_THREADSAFE)
		o.flags |= EVRDMA_BUFFEREVENT_OPT_COPY;
	options->bev_options = bev_options | BEV_OPT_CLOSE_ON_FREE;
	options->linger_timeout_ms = o.linger_timeout_ms;
	return evr_pipe_load(&options->pipe, &o);
}

/* A byte ahead of what the user writes, and no room for it. */
static int hold_back(struct evr_bev *behind, struct bufferevent *bev)
{
	behind->filled = evr_bell_fill(&behind->bell);
	if (behind->filled < 0)
		return (int)behind->filled;
	behind->awaits = true;
	evr_bev_set_unsent(behind, true);
	if (evbuffer_add(behind->spare, "", 1))
		return -ENOMEM;
	return evbuffer_add(bufferevent_get_output(bev), "", 1) ? -ENOMEM : 0;
}

static int prepare(struct evr_bev *behind, struct bufferevent *bev)
{
	int ret = behind->accept_cb ? 0 : hold_back(behind, bev);

	evbuffer_clear_flags(bufferevent_get_output(bev), EVBUFFER_FLAG_DRAINS_TO_FD);
	bufferevent_set_max_single_read(bev, EVR_BEV_MAX_SINGLE_READ);
	bufferevent_set_max_single_write(bev, EVR_BEV_MAX_SINGLE_WRITE);
	if (!ret && !evr_bev_add_callbacks(behind, bev))
		ret = -ENOMEM;
	return ret ? ret : evr_registry_add(bev, behind);
}

/* 0 or -errno; then there is neither a bufferevent nor a descriptor. */
int evr_bev_make(struct evr_bev *behind)
{
	struct bufferevent *bev;
	int ret = evr_bell_open(&behind->bell);

	if (ret)
		return ret;
	bev = bufferevent_socket_new(
		behind->obj.base->event_base, behind->bell.theirs, behind->bev_options);
	ret = bev ? prepare(behind, bev) : -ENOMEM;
	if (!ret) {
		behind->bev = bev;
		evr_bev_assign_bell(behind);
		return 0;
	}
	if (bev)
		bufferevent_free(bev);
	else
		close(behind->bell.theirs);
	evr_bell_close(&behind->bell);
	return ret;
}

/* --- those that connect --------------------------------------------------------------------- */

/* One that is to connect, with its bufferevent. NULL with errno. */
static struct evr_bev *begin(struct evrdma_base *base, const struct evrdma_bev_options *users,
	int bev_options)
{
	struct evr_bev_options options;
	struct evr_bev *behind;
	int ret = evr_bev_load(&options, users, bev_options);

	behind = ret ? NULL : evr_bev_new(base, &options);
	if (!behind) {
		errno = ret ? -ret : errno;
		return NULL;
	}
	ret = evr_bev_make(behind);
	if (!ret)
		return behind;
	evr_obj_close(&behind->obj);
	errno = -ret;
	return NULL;
}

/* Where it could not begin to connect, what was made goes with it. */
static struct bufferevent *begun(struct evr_bev *behind, int ret)
{
	struct bufferevent *bev = behind->bev;

	if (!ret) {
		evr_bev_look_again(behind);
		return bev;
	}
	evr_obj_close(&behind->obj);
	bufferevent_free(bev);
	errno = -ret;
	return NULL;
}

struct bufferevent *evrdma_bufferevent_connect(struct evrdma_base *base,
	const struct sockaddr *src, const struct sockaddr *dst,
	const struct evrdma_bev_options *options, int bev_options)
{
	struct evr_bev *behind = begin(base, options, bev_options);

	if (!behind)
		return NULL;
	return begun(behind, evrdma_conn_connect(behind->pipe.conn, src, dst));
}

struct bufferevent *evrdma_bufferevent_connect_hostname(struct evrdma_base *base,
	struct evdns_base *evdns, int family, const char *host, uint16_t port,
	const struct evrdma_bev_options *options, int bev_options)
{
	struct evr_bev *behind = begin(base, options, bev_options);

	if (!behind)
		return NULL;
	return begun(behind, evrdma_conn_connect_hostname(
				     behind->pipe.conn, evdns, family, host, port));
}

/* --- those that accept ---------------------------------------------------------------------- */

int evr_bev_accept(struct evrdma_request *request, const struct evr_bev_options *options,
	evrdma_bufferevent_accept_cb cb, void *arg)
{
	struct evr_bev *behind = evr_bev_new(request->obj.base, options);
	int ret;

	if (!behind)
		return -errno;
	ret = evr_pipe_accept(&behind->pipe, request);
	if (ret) {
		evr_obj_close(&behind->obj);
		return ret;
	}
	behind->accept_cb = cb;
	behind->accept_arg = arg;
	return 0;
}

int evrdma_bufferevent_accept(struct evrdma_request *request,
	const struct evrdma_bev_options *options, int bev_options,
	evrdma_bufferevent_accept_cb cb, void *arg)
{
	struct evr_bev_options loaded;
	int ret = cb ? evr_bev_load(&loaded, options, bev_options) : -EINVAL;

	return ret ? ret : evr_bev_accept(request, &loaded, cb, arg);
}
