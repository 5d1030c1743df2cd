/*
 * The receive ring of a stream of rsocket protocol version 1 (rdma-core's librdmacm): two halves,
 * given to the peer in turns, which the peer writes from the beginning to the end. A half is given
 * again when all that was written into it has been given back by the user.
 */
#ifndef EVR_PROTO_RXRING_H
#define EVR_PROTO_RXRING_H

#include <stdbool.h>
#include <stdint.h>

/* Totals since the start: given >= written >= taken >= released. */
struct evr_rxring {
	uint32_t half;	   /* bytes */
	uint64_t given;	   /* to the peer: whole halves */
	uint64_t written;  /* by the peer */
	uint64_t taken;	   /* by the user */
	uint64_t released; /* by the user */
	uint32_t lent;	   /* what the user still has */
};

/* A piece of a ring, from its beginning on. */
struct evr_span {
	uint32_t offset;
	uint32_t len;
};

/* Both halves together have 2 * half bytes; the first is given by the connection data. */
void evr_rxring_init(struct evr_rxring *ring, uint32_t half);

/* What the peer may still write in one message: to the end of a half. */
uint32_t evr_rxring_room(const struct evr_rxring *ring);
/* The peer has written. 0; -EMSGSIZE: nothing, or more than it had room for. */
int evr_rxring_write(struct evr_rxring *ring, uint32_t len);

/* A half is free that the peer has not. */
bool evr_rxring_is_due(const struct evr_rxring *ring);
/* The peer gets it. Returns its offset. */
uint32_t evr_rxring_give(struct evr_rxring *ring);

/* Bytes that are there to be read. */
uint32_t evr_rxring_readable(const struct evr_rxring *ring);
/* Where they are: up to the end of the ring, and from its beginning on. Returns how many. */
uint32_t evr_rxring_spans(const struct evr_rxring *ring, struct evr_span spans[2]);
/* The user takes the next bytes, at most what is readable, and is done with them. */
void evr_rxring_consume(struct evr_rxring *ring, uint32_t len);
/* The user takes the next bytes, and gives back the oldest it has. */
void evr_rxring_lend(struct evr_rxring *ring, uint32_t len);
void evr_rxring_release(struct evr_rxring *ring, uint32_t len);

#endif
