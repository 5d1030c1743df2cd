/*
 * Put before libevent's own tests of its TLS, when t/conform/libevent_tests.sh compiles them: what
 * they put on a descriptor becomes a filter on a bufferevent over RDMA.
 */
#ifndef EVR_CONFORM_LIBEVENT_SSL_H
#define EVR_CONFORM_LIBEVENT_SSL_H

#include "conform/libevent_shim.h"

#include <event2/bufferevent_ssl.h>

/* Without one below it is on a descriptor that is yet to come. */
struct bufferevent *shim_ssl_new(struct event_base *loop, struct bufferevent *below,
	struct ssl_st *ssl, enum bufferevent_ssl_state state, int options);
/* A filter upon the other, in place of one that has no descriptor yet. */
struct bufferevent *shim_ssl_move(struct bufferevent *bev, struct bufferevent *below);

#ifndef SHIM_ITSELF
#define bufferevent_openssl_socket_new(loop, fd, ssl, state, options)                              \
	shim_ssl_new(loop, shim_socket_new(loop, fd, options), ssl, state, options)
#endif

#endif
