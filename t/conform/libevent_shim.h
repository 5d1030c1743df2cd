/*
 * Put before libevent's own tests of bufferevents, when t/conform/libevent_tests.sh compiles them:
 * where they make a bufferevent on a socket or a pair, they get one over RDMA. What libevent keeps
 * to itself is as it is.
 */
#ifndef EVR_CONFORM_LIBEVENT_SHIM_H
#define EVR_CONFORM_LIBEVENT_SHIM_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <event2/bufferevent.h>
#include <event2/bufferevent_compat.h>
#include <event2/bufferevent_struct.h>
#include <event2/event.h>
#include <event2/event_compat.h>
#include <event2/listener.h>

/* The one that event_init() made. */
extern struct event_base *global_base;

struct bufferevent *shim_socket_new(struct event_base *loop, evutil_socket_t fd, int options);
struct bufferevent *shim_new(evutil_socket_t fd, bufferevent_data_cb read_cb,
	bufferevent_data_cb write_cb, bufferevent_event_cb event_cb, void *arg);
int shim_pair_new(struct event_base *loop, int options, struct bufferevent *pair[2]);
int shim_socket_connect(struct bufferevent *bev, const struct sockaddr *addr, int len);
struct bufferevent *shim_get_partner(struct bufferevent *bev);
int shim_flush(struct bufferevent *bev, short what, enum bufferevent_flush_mode mode);
void shim_free(struct bufferevent *bev);
evutil_socket_t shim_getfd(struct bufferevent *bev);

struct evconnlistener *shim_listener_new(struct event_base *loop, evconnlistener_cb cb, void *arg,
	unsigned flags, int backlog, const struct sockaddr *addr, int len);
int shim_listener_addr(struct evconnlistener *listener, struct sockaddr *addr, socklen_t *len);
evutil_socket_t shim_listener_fd(struct evconnlistener *listener);
struct event_base *shim_listener_loop(struct evconnlistener *listener);
int shim_listener_enable(struct evconnlistener *listener);
void shim_listener_free(struct evconnlistener *listener);

int shim_add(struct event *event, const struct timeval *timeout);
int shim_loopexit(struct event_base *loop, const struct timeval *after);
int shim_loopbreak(struct event_base *loop);
int shim_loop(struct event_base *loop, int flags);
int shim_dispatch(struct event_base *loop);
int shim_dispatch_current(void);
void shim_base_free(struct event_base *loop);

/* For what else stands in. */
void shim_die(const char *what);
struct evrdma_base *shim_base(struct event_base *loop); /* the one that there is, or a new one */
void shim_turn(void);
struct sockaddr_in shim_address(const char *ip, uint16_t port);
struct bufferevent *shim_dial(const char *ip, uint16_t port, int options);
struct bufferevent *shim_stand_in(struct bufferevent *bev, evutil_socket_t fd); /* bev */
struct bufferevent *shim_of_fd(evutil_socket_t fd);

#ifndef SHIM_ITSELF
#define bufferevent_socket_new shim_socket_new
#define bufferevent_new shim_new
#define bufferevent_pair_new shim_pair_new
#define bufferevent_socket_connect shim_socket_connect
#define bufferevent_pair_get_partner shim_get_partner
#define bufferevent_flush shim_flush
#define bufferevent_free shim_free
#define bufferevent_getfd shim_getfd
#define evconnlistener_new_bind shim_listener_new
#define evconnlistener_get_fd shim_listener_fd
#define evconnlistener_get_base shim_listener_loop
#define evconnlistener_enable shim_listener_enable
#define evconnlistener_disable shim_listener_enable
#define evconnlistener_free shim_listener_free
#define regress_get_listener_addr shim_listener_addr
#define event_add shim_add
#define event_base_loopexit shim_loopexit
#define event_base_loopbreak shim_loopbreak
#define event_base_loop shim_loop
#define event_base_dispatch shim_dispatch
#define event_dispatch shim_dispatch_current
#define event_base_free shim_base_free
#endif

#endif
