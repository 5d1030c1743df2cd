/*
 * Put before libevent's own tests of its HTTP, when t/conform/libevent_tests.sh compiles them:
 * their servers and clients get bufferevents over RDMA, in the way that evrdma_bufferevent(3) has
 * it.
 */
#ifndef EVR_CONFORM_LIBEVENT_HTTP_H
#define EVR_CONFORM_LIBEVENT_HTTP_H

#include "conform/libevent_shim.h"
#include "conform/libevent_ssl.h"

#include <event2/http.h>

struct evdns_base;

struct evhttp *shim_http_new(struct event_base *loop);
struct evhttp_bound_socket *shim_http_bind(struct evhttp *http, const char *host, uint16_t port);
void shim_http_free(struct evhttp *http);

struct evhttp_connection *shim_http_connection_new(struct event_base *loop, struct evdns_base *dns,
	struct bufferevent *bev, const char *host, uint16_t port);
int shim_http_request(struct evhttp_connection *http, struct evhttp_request *request,
	enum evhttp_cmd_type type, const char *uri);

int shim_connect(evutil_socket_t fd, const struct sockaddr *addr, socklen_t len);
int shim_shutdown(evutil_socket_t fd, int how);
struct bufferevent *shim_http_socket_new(struct event_base *loop, evutil_socket_t fd, int options);
/* What TLS is put on: of a server that accepts it is what came over RDMA, if something did. */
struct bufferevent *shim_http_below(
	struct event_base *loop, evutil_socket_t fd, enum bufferevent_ssl_state state, int options);
int shim_http_dispatch(struct event_base *loop);

#ifndef SHIM_ITSELF
#undef bufferevent_socket_new
#undef bufferevent_openssl_socket_new
#undef event_base_dispatch
#define bufferevent_socket_new shim_http_socket_new
#define bufferevent_openssl_socket_new(loop, fd, ssl, state, options)                              \
	shim_ssl_new(loop, shim_http_below(loop, fd, state, options), ssl, state, options)
#define connect shim_connect
#define shutdown shim_shutdown
#define event_base_dispatch shim_http_dispatch
#define evhttp_new shim_http_new
#define evhttp_bind_socket_with_handle shim_http_bind
#define evhttp_free shim_http_free
#define evhttp_connection_base_bufferevent_new shim_http_connection_new
#define evhttp_connection_base_new(loop, dns, host, port)                                          \
	shim_http_connection_new(loop, dns, NULL, host, port)
#define evhttp_make_request shim_http_request
/* Of what is dialled, which it is not that is used. */
#define evhttp_connection_set_local_address(http, host) ((void)(http))
#endif

#endif
