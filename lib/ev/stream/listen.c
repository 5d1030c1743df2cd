/*
 * A listener that accepts by itself. What it does so with is held by it and by each connection that
 * is not there yet; of one that was closed meanwhile nobody gets a bufferevent.
 */
#include <errno.h>
#include <event2/bufferevent.h>
#include <stdlib.h>

#include "ev/connection/listener.h"
#include "ev/core/error.h"
#include "ev/core/log.h"
#include "ev/stream/bufferevent.h"

#include <evrdma/bufferevent.h>

struct acceptor {
	unsigned refs;
	struct evrdma_listener *listener; /* NULL: it is gone */
	evrdma_bufferevent_listener_cb cb;
	struct evr_bev_options options;
};

static void put(struct acceptor *acceptor)
{
	if (!--acceptor->refs)
		free(acceptor);
}

static void on_accepted(struct bufferevent *bev, const struct evrdma_error *error, void *arg)
{
	struct acceptor *acceptor = arg;
	struct evrdma_listener *listener = acceptor->listener;

	if (!bev && error->err != ECANCELED)
		evr_log_failure("accepting a bufferevent's connection", error->err);
	else if (bev && (!listener || listener->obj.closing))
		bufferevent_free(bev);
	else if (bev)
		acceptor->cb(listener, bev,
			evrdma_conn_get_peer_addr(evrdma_bufferevent_get_conn(bev)),
			listener->arg);
	put(acceptor);
}

static void on_request(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct acceptor *acceptor = listener->acceptor;
	int ret = evr_bev_accept(request, &acceptor->options, on_accepted, acceptor);

	if (!ret) {
		acceptor->refs++;
		return;
	}
	if (ret != -EPROTO)
		evr_log_failure("accepting a bufferevent's connection", -ret);
	evrdma_request_reject(request, NULL, 0);
}

static void on_listener_gone(struct evrdma_listener *listener)
{
	struct acceptor *acceptor = listener->acceptor;

	acceptor->listener = NULL;
	put(acceptor);
}

static int load(struct acceptor *acceptor, const struct evrdma_bev_options *options,
	int bev_options, evrdma_bufferevent_listener_cb cb)
{
	acceptor->refs = 1;
	acceptor->cb = cb;
	return cb ? evr_bev_load(&acceptor->options, options, bev_options) : -EINVAL;
}

struct evrdma_listener *evrdma_bufferevent_listen(struct evrdma_base *base,
	const struct sockaddr *addr, const struct evrdma_listener_options *listener_options,
	const struct evrdma_bev_options *options, int bev_options,
	evrdma_bufferevent_listener_cb cb, void *arg)
{
	struct acceptor *acceptor = calloc(1, sizeof(*acceptor));
	struct evrdma_listener *listener = NULL;
	int ret = acceptor ? load(acceptor, options, bev_options, cb) : -ENOMEM;

	if (!ret) {
		listener = evrdma_listener_new(base, addr, listener_options, on_request, arg);
		ret = listener ? 0 : -errno;
	}
	if (ret) {
		free(acceptor);
		errno = -ret;
		return NULL;
	}
	acceptor->listener = listener;
	listener->acceptor = acceptor;
	listener->gone = on_listener_gone;
	return listener;
}
