/* evrdma_peer: somebody whom a datagram endpoint sends to. */
#ifndef EVRDMA_PEER_H
#define EVRDMA_PEER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <evrdma/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct evrdma_dgram;
struct evrdma_peer;
struct evrdma_recv;

/* How a service is found. Fill it with evrdma_peer_options_init(); it grows at its end only. */
struct evrdma_peer_options {
	size_t size;              /* set by evrdma_peer_options_init() */
	int timeout_ms;           /* 5000: from the call to READY */
	const void *private_data; /* NULL: what goes to the service with the question; copied */
	size_t private_data_len;  /* 0: at most 180 bytes; the service sees it padded */
};

void evrdma_peer_options_init_sized(struct evrdma_peer_options *options, size_t size);

/* Fills the options with their defaults. Any thread. Since 0.1. */
#define evrdma_peer_options_init(options)                                                          \
	evrdma_peer_options_init_sized((options), sizeof(*(options)))

enum evrdma_peer_event {
	/* Found: evrdma_dgram_send_to() takes it. */
	EVRDMA_PEER_READY,
	/* Not found; the error says why. Comes once at most. */
	EVRDMA_PEER_ERROR,
	/* The last callback, after evrdma_peer_close() or after the endpoint was closed or broke:
	   the peer is freed when it returns. */
	EVRDMA_PEER_CLOSED
};

/* error is NULL but for EVRDMA_PEER_ERROR, and lives until the callback returns. */
typedef void (*evrdma_peer_event_cb)(struct evrdma_peer *peer, enum evrdma_peer_event event,
	const struct evrdma_error *error, void *arg);

/*
 * Finds the service that listens at addr, an evrdma_listener with port_space RDMA_PS_UDP for one
 * (the CM's service ID resolution, SIDR). The endpoint is READY. addr and the options, which may be
 * NULL, are copied. Ends in READY, or in ERROR: ECONNREFUSED (the service said no), ETIMEDOUT,
 * EXDEV (the address is reached through another device than the endpoint's), what the CM reports.
 * Returns NULL and sets errno: ENOTCONN (the endpoint is not READY), EOPNOTSUPP (an endpoint in
 * RDMA_PS_IPOIB), EAFNOSUPPORT, EINVAL (a value is out of range), ENOMEM. Since 0.1.
 */
struct evrdma_peer *evrdma_peer_new(struct evrdma_dgram *dgram, const struct sockaddr *addr,
	const struct evrdma_peer_options *options, evrdma_peer_event_cb cb, void *arg);

/*
 * Makes a peer of whoever sent a datagram, to send to him after the callback. READY comes when his
 * hardware address is known, in a coming turn of the loop or after the kernel has asked the network
 * for it; else ERROR, with step EVRDMA_STEP_ADDR. Returns NULL and sets errno: EINVAL (no
 * datagram), ENOTCONN, ENOMEM, EPIPE; ETIMEDOUT, EHOSTUNREACH, ENETUNREACH (he was asked for in
 * vain not long ago); what verbs report. Since 0.1.
 */
struct evrdma_peer *evrdma_peer_new_sender(struct evrdma_dgram *dgram,
	const struct evrdma_recv *recv, evrdma_peer_event_cb cb, void *arg);

/*
 * Closes; sends under way are not waited for. The CLOSED event comes later, last. Legal in every
 * callback; a second call changes nothing. NULL is fine. Since 0.1.
 */
void evrdma_peer_close(struct evrdma_peer *peer);

/* The QP number and the key of the peer, 0 before READY. Since 0.1. */
uint32_t evrdma_peer_get_qp_num(const struct evrdma_peer *peer);
uint32_t evrdma_peer_get_qkey(const struct evrdma_peer *peer);

/*
 * What the service sent along, with its yes or its no: NULL and 0 for nothing. It may be padded
 * with zeroes. len may be NULL. Lives as long as the peer. Since 0.1.
 */
const void *evrdma_peer_get_private_data(const struct evrdma_peer *peer, size_t *len);

#ifdef __cplusplus
}
#endif

#endif
