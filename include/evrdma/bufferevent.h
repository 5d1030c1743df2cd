/*
 * A bufferevent whose bytes travel over RDMA: code that was written for bufferevents serves RDMA
 * peers unchanged. The peer is another such bufferevent, or an rsocket of any librdmacm: the bytes
 * go in the rsocket protocol.
 *
 * It is an ordinary bufferevent on a socket of its own (bufferevent_socket_new()), with all that
 * libevent has for these: watermarks, timeouts, enable and disable, rate limits, deferred
 * callbacks, filters on top. Free it with bufferevent_free(), in any callback. What was written
 * before is still sent then, while the peer takes it, for linger_timeout_ms; evrdma_base_close()
 * ends that at once, and evrdma_base_shutdown() waits for it.
 *
 * The socket only tells when there is something to do; the bytes go past it, by reference where
 * there is room. So bufferevent_getfd() is good for nothing but to look at; a program that reads or
 * writes there itself breaks the stream. shutdown(2) of it for writing ends that direction, as on
 * TCP. Closing it, or bufferevent_setfd(), ends the connection as bufferevent_free() does, and the
 * bufferevent is then what it was set to; unless the descriptor stays open and is set again before
 * anything goes through the other, as libevent's HTTP needs it; what was added to the output buffer
 * meanwhile goes then. evrdma_bufferevent_connect() has connected it already:
 * bufferevent_socket_connect() is not for it. bufferevent_flush() does nothing, as on any socket.
 *
 * The bufferevent belongs to the thread of its base, unless it has BEV_OPT_THREADSAFE: then other
 * threads may use it as libevent allows, and what arrives is copied.
 */
#ifndef EVRDMA_BUFFEREVENT_H
#define EVRDMA_BUFFEREVENT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <evrdma/conn.h>
#include <evrdma/error.h>
#include <evrdma/listener.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bufferevent;
struct evdns_base;
struct evrdma_base;
struct evrdma_conn;
struct evrdma_listener;
struct evrdma_request;

/* Flags of a bufferevent over RDMA. */
#define EVRDMA_BUFFEREVENT_OPT_COPY 0x1u /* what arrives is copied into the input buffer, and never
                                            refers to memory of the connection */

/*
 * How it is made. Fill it with evrdma_bev_options_init(), then change what is to differ. It
 * grows at its end only.
 */
struct evrdma_bev_options {
	size_t size;           /* set by evrdma_bev_options_init() */
	const struct evrdma_conn_options *conn; /* NULL: the defaults. How the connection is made:
	                          the deadline of connecting, keepalive, source and device, domain.
	                          Of its queues send_depth and recv_depth are used, 20 to 65530
	                          each; inline_bytes, 0 for 64, is lowered to 512 and to what the
	                          device has. recv_pool, srq and private_data must not be set */
	uint32_t recv_bytes;   /* 131072: what the peer may send before it is read; 8192 to 1 GiB,
	                          made up to whole pages for each half. While the program holds on
	                          to what it has moved out of the input buffer, up to twice as much
	                          memory; what is beyond is copied */
	uint32_t send_bytes;   /* 131072: what is on its way at once; 8192 to 1 GiB */
	int linger_timeout_ms; /* 60000: after bufferevent_free(), how long the peer has to take
	                          what was written before; at least 1 */
	unsigned flags;        /* 0: EVRDMA_BUFFEREVENT_OPT_* */
};

void evrdma_bev_options_init_sized(struct evrdma_bev_options *options, size_t size);

/* Fills the options with their defaults. Any thread. Since 0.1. */
#define evrdma_bev_options_init(options)                                                   \
	evrdma_bev_options_init_sized((options), sizeof(*(options)))

/*
 * Makes a bufferevent that connects to dst, from src when that is not NULL. Both are copied.
 * options may be NULL; it and its conn are not kept. bev_options are libevent's BEV_OPT_*;
 * BEV_OPT_CLOSE_ON_FREE is always set.
 *
 * EV_WRITE is enabled, as with bufferevent_socket_connect(), and must be for what follows:
 * BEV_EVENT_CONNECTED comes when the connection is there, or BEV_EVENT_ERROR, with the cause in
 * errno, within the connect_timeout_ms of the connection. Until then the output buffer has one byte
 * more than was written to it. The write callback follows CONNECTED also when nothing was written.
 *
 * Returns NULL and sets errno: EINVAL (an option is out of range, or dst is missing), EAFNOSUPPORT,
 * ENOMEM, EMFILE and ENFILE (it takes two descriptors), EPIPE (the base is being closed).
 * Since 0.1.
 */
struct bufferevent *evrdma_bufferevent_connect(struct evrdma_base *base,
	const struct sockaddr *src, const struct sockaddr *dst,
	const struct evrdma_bev_options *options, int bev_options);

/*
 * The same by name, as evrdma_conn_connect_hostname() does it: its addresses are tried in turn
 * under the one deadline. evdns must live until CONNECTED or ERROR; of a bufferevent that is freed
 * before, until its base is closed. Since 0.1.
 */
struct bufferevent *evrdma_bufferevent_connect_hostname(struct evrdma_base *base,
	struct evdns_base *evdns, int family, const char *host, uint16_t port,
	const struct evrdma_bev_options *options, int bev_options);

/*
 * A request was accepted: bev is connected, and the callback's; EV_WRITE is enabled. Or it could
 * not be: bev is NULL and error says why. error lives until the callback returns.
 */
typedef void (*evrdma_bufferevent_accept_cb)(
	struct bufferevent *bev, const struct evrdma_error *error, void *arg);

/*
 * Accepts a request of a listener, on whatever base it is: cb comes once, from the loop, also when
 * the base is closed first (ECANCELED). The request is gone when 0 is returned.
 * Returns 0; -EPROTO (what the peer sent along is not the rsocket protocol; the request is still
 * the caller's, to be rejected); -EINVAL (no cb, or an option is out of range), -ENOMEM, -EPIPE,
 * and as evrdma_conn_accept(). Since 0.1.
 */
int evrdma_bufferevent_accept(struct evrdma_request *request,
	const struct evrdma_bev_options *options, int bev_options,
	evrdma_bufferevent_accept_cb cb, void *arg);

/*
 * A connection came: bev is connected, and the callback's; EV_WRITE is enabled. peer is its
 * address, and lives until the callback returns.
 */
typedef void (*evrdma_bufferevent_listener_cb)(struct evrdma_listener *listener,
	struct bufferevent *bev, const struct sockaddr *peer, void *arg);

/*
 * Listens on addr, as evrdma_listener_new() with listener_options, and accepts what comes: each
 * connection arrives as a bufferevent. Peers that do not speak the protocol are rejected, and what
 * cannot be accepted goes to the log. evrdma_listener_set_event_cb() has the same arg.
 * Returns NULL and sets errno: as evrdma_listener_new(), and EINVAL (no cb, or an option is out of
 * range). Since 0.1.
 */
struct evrdma_listener *evrdma_bufferevent_listen(struct evrdma_base *base,
	const struct sockaddr *addr, const struct evrdma_listener_options *listener_options,
	const struct evrdma_bev_options *options, int bev_options,
	evrdma_bufferevent_listener_cb cb, void *arg);

/*
 * The connection below, to be asked for its addresses, its statistics, its id; nothing is to be
 * sent on it. On the thread of the base. NULL when there is none any more, or bev is not over RDMA.
 * Since 0.1.
 */
struct evrdma_conn *evrdma_bufferevent_get_conn(struct bufferevent *bev);

/*
 * Why it ended, for more than errno says. On the thread of the base. Returns 0, or -ENOENT: there
 * was none but that it wrote after the peer or the base had closed, or bev is not over RDMA.
 * Since 0.1.
 */
int evrdma_bufferevent_get_error(struct bufferevent *bev, struct evrdma_error *error);

#ifdef __cplusplus
}
#endif

#endif
