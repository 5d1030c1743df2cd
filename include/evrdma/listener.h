/*
 * evrdma_listener: waits for connection requests, as an evconnlistener does.
 * evrdma_request: one such request, to be accepted or rejected now or later.
 */
#ifndef EVRDMA_LISTENER_H
#define EVRDMA_LISTENER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <evrdma/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rdma_cm_id;
struct evrdma_base;
struct evrdma_domain;
struct evrdma_listener;
struct evrdma_request;
struct evrdma_srq;

/* How a listener is made. Fill it with evrdma_listener_options_init(); it grows at its end only. */
struct evrdma_listener_options {
	size_t size;     /* set by evrdma_listener_options_init() */
	int backlog;     /* 0: the system's limit (net.rdma_ucm.max_backlog) */
	int port_space;  /* RDMA_PS_TCP (0x0106), RDMA_PS_IB (0x013f), or for datagrams RDMA_PS_UDP
	                    (0x0111): its requests are for evrdma_dgram_accept() */
	int v6_only;     /* 0; 1: an IPv6 wildcard takes no IPv4; nothing else is taken */
	int ack_timeout; /* -1: not set; 0 to 31, for the connections that come of it */
	unsigned max_connections;        /* 0: no limit; connections at once that come of it, with
	                                    the requests that nobody has answered; one that was
	                                    closed counts on while its peer has not answered, for
	                                    its drain_timeout_ms at most */
	unsigned max_pending;            /* 8192; 0: no limit; requests at once that nobody has
	                                    answered, handed out or waiting */
	unsigned max_pending_per_source; /* 0: no limit; those of one peer's address */
	int request_timeout_ms;          /* 120000; 0: off. Otherwise a request that is not
	                                    answered for so long is rejected */
	struct evrdma_domain *domain;    /* NULL; otherwise for connections that are made of its
	                                    requests on its base and have no domain */
	struct evrdma_srq *srq;          /* NULL; the same for those that have neither srq nor
	                                    recv_pool, and no buffer posted */
	int relisten_ms;                 /* 0: off. Otherwise, once the device of its address was
	                                    removed, it is tried so often to listen there again */
};

void evrdma_listener_options_init_sized(struct evrdma_listener_options *options, size_t size);

/* Fills the options with their defaults. Any thread. Since 0.1. */
#define evrdma_listener_options_init(options)                                                      \
	evrdma_listener_options_init_sized((options), sizeof(*(options)))

/*
 * A request came. It is the callback's, until it is accepted with evrdma_conn_accept(), rejected,
 * or moved to another base; that can be done later. What is still pending when its base is closed
 * is rejected. One that has ended has been rejected, but stays the callback's: accept and move give
 * why, evrdma_request_reject() frees it. It ends when it is late, by request_timeout_ms
 * (-ETIMEDOUT), when its base learns that its device is removed (-ENODEV), and when the event
 * channel of its base cannot be read any more (the channel's error).
 */
typedef void (*evrdma_listener_request_cb)(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg);

enum evrdma_listener_event {
	/* It cannot go on: the device of its address was removed (ENODEV). Close it, unless it has
	   relisten_ms: then wait for LISTENING. Or the base's event channel cannot be read any more
	   (EVRDMA_STEP_CHANNEL), of which one that waits for its device is told when it would have
	   tried again. Requests that wait are rejected. */
	EVRDMA_LISTENER_ERROR,
	/* A request was refused, because one of the limits is reached; evrdma_listener_get_stats()
	   has which, and how often. Comes again only after a request was let in. */
	EVRDMA_LISTENER_LIMITED,
	/* The last callback, after evrdma_listener_close(): freed when it returns. */
	EVRDMA_LISTENER_CLOSED,
	/* With relisten_ms, after ERROR: it listens again, at the same address and port. */
	EVRDMA_LISTENER_LISTENING
};

/* error is NULL but for EVRDMA_LISTENER_ERROR, and lives until the callback returns. */
typedef void (*evrdma_listener_event_cb)(struct evrdma_listener *listener,
	enum evrdma_listener_event event, const struct evrdma_error *error, void *arg);

/*
 * Listens on addr: an address of a device, or a wildcard for all devices that are there and will
 * come. Costs a few system calls, and the opening of the device for an address not yet used.
 * options may be NULL. Requests come to request_cb from the loop.
 * A port of 0 is chosen; where TCP has that one, on iWARP, another is, up to ten of them.
 * Returns NULL and sets errno: EADDRINUSE, EADDRNOTAVAIL, ENODEV (the address is on no RDMA
 * device), EACCES (a port below 1024, or the device may not be opened; EPERM where a container
 * forbids that), EAFNOSUPPORT, EINVAL, ENOMEM, EPIPE (the base is being closed). Since 0.1.
 */
struct evrdma_listener *evrdma_listener_new(struct evrdma_base *base, const struct sockaddr *addr,
	const struct evrdma_listener_options *options, evrdma_listener_request_cb request_cb,
	void *arg);

/* Sets the callback for what else happens to the listener. It gets the arg of new. Since 0.1. */
void evrdma_listener_set_event_cb(struct evrdma_listener *listener, evrdma_listener_event_cb cb);

/*
 * While disabled, requests wait (their peers' own deadlines run on) and come when it is enabled
 * again, from the loop, but for those that have ended by then. A new listener is enabled.
 * Since 0.1.
 */
void evrdma_listener_enable(struct evrdma_listener *listener);
void evrdma_listener_disable(struct evrdma_listener *listener);

/* The port it listens on, in host order. Since 0.1. */
uint16_t evrdma_listener_get_port(const struct evrdma_listener *listener);

/* The id underneath, NULL after the end, and between ERROR and LISTENING. It stays the library's.
 * Since 0.1. */
struct rdma_cm_id *evrdma_listener_get_cm_id(const struct evrdma_listener *listener);

/*
 * Closes: no request comes any more; those that were handed out stay as they are, the others are
 * rejected. On iWARP the kernel drops those that it has not passed on yet: their peers wait for as
 * long as they are willing to. The CLOSED event comes later, last. Legal in every callback; a
 * second call changes nothing. NULL is fine. Since 0.1.
 */
void evrdma_listener_close(struct evrdma_listener *listener);

/*
 * What the peer sent along, NULL and 0 for nothing. It may be padded with zeroes, off iWARP to 56
 * bytes, for datagrams to 180. len may be NULL. Lives as long as the request. Since 0.1.
 */
const void *evrdma_request_get_private_data(const struct evrdma_request *request, size_t *len);

/* The id of the request, NULL once it has ended; it stays the library's. Since 0.1. */
struct rdma_cm_id *evrdma_request_get_cm_id(const struct evrdma_request *request);

/* The peer's address. Lives as long as the request. Since 0.1. */
const struct sockaddr *evrdma_request_get_peer_addr(const struct evrdma_request *request);

/* The base that the request is on. Since 0.1. */
struct evrdma_base *evrdma_request_get_base(const struct evrdma_request *request);

/*
 * Rejects, with up to 148 bytes of private data, 136 where the request is for datagrams, and frees
 * the request. A peer that has gone meanwhile is no error. Returns 0, or -EINVAL (then it is still
 * pending) for too much data, or a length without data. Since 0.1.
 */
int evrdma_request_reject(struct evrdma_request *request, const void *data, size_t len);

typedef void (*evrdma_request_cb)(struct evrdma_request *request, void *arg);

/*
 * Hands the request to another base, which may be run by another thread. When 0 is returned it no
 * longer belongs to the caller's thread, and cb runs on the other base's thread as the request's
 * new owner. If that base is closed or shut down after the call and before the request came there,
 * or cannot read its event channel any more, it is rejected and cb does not run; the caller makes
 * sure that the base is not freed during the call. Costs one system call. request_timeout_ms goes
 * on, from its arrival at the listener, and is over for a request that has been late on its way;
 * max_connections goes on to count it, the pending limits and the listener's domain and srq are no
 * longer for it. The base that it is on already may be the other one.
 * Returns 0, -EINVAL (no cb), -EPIPE (the other base is being shut down or closed), why it has
 * ended, -ENOMEM, or the kernel's error; then the request is where it was. Since 0.1.
 */
int evrdma_request_move(struct evrdma_request *request, struct evrdma_base *base,
	evrdma_request_cb cb, void *arg);

#ifdef __cplusplus
}
#endif

#endif
