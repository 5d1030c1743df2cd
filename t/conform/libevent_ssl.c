/* libevent's TLS on bufferevents over RDMA, for its own tests. */
#define SHIM_ITSELF
#include "conform/libevent_ssl.h"

#include <openssl/ssl.h>

/* A socket is closed with it, whatever was said: the tests close their own. */
struct bufferevent *shim_ssl_new(struct event_base *loop, struct bufferevent *below,
	struct ssl_st *ssl, enum bufferevent_ssl_state state, int options)
{
	if (!below)
		return bufferevent_openssl_socket_new(loop, -1, ssl, state, options);
	return bufferevent_openssl_filter_new(
		loop, below, ssl, state, options | BEV_OPT_CLOSE_ON_FREE);
}

struct bufferevent *shim_ssl_move(struct bufferevent *bev, struct bufferevent *below)
{
	SSL *ssl = bufferevent_openssl_get_ssl(bev);
	int may_be_dirty = bufferevent_openssl_get_allow_dirty_shutdown(bev);

	SSL_up_ref(ssl);
	bufferevent_free(bev);
	bev = shim_ssl_new(bufferevent_get_base(below), below, ssl, BUFFEREVENT_SSL_CONNECTING,
		BEV_OPT_DEFER_CALLBACKS);
	bufferevent_openssl_set_allow_dirty_shutdown(bev, may_be_dirty);
	return bev;
}
