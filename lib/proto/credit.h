/*
 * Credits of rsocket protocol version 1 (rdma-core's librdmacm): how many messages with data or
 * mappings one may send. A limit is an absolute number of 16 bits, counted from 0 at the start:
 * what the other side has received, and the size of its receive queue more. Control messages take
 * no credit.
 */
#ifndef EVR_PROTO_CREDIT_H
#define EVR_PROTO_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

/* The messages that we may send. */
struct evr_credit_out {
	uint16_t size; /* of the peer's receive queue */
	uint16_t sent;
	uint16_t limit;
};

void evr_credit_out_init(struct evr_credit_out *out, uint16_t size);
/* How many may go now. */
uint16_t evr_credit_out_left(const struct evr_credit_out *out);
/* One goes; only when one is left. */
void evr_credit_out_take(struct evr_credit_out *out);
/*
 * The peer tells its limit; librdmacm leaves a carry in the bits above 16, which do not count.
 * Returns 1 when it is a new one, 0 when it is the old one; -ERANGE: it goes back, or is beyond
 * what was sent and fits into the peer's queue.
 */
int evr_credit_out_limit(struct evr_credit_out *out, uint32_t limit);

/* The messages that the peer may send. */
struct evr_credit_in {
	uint16_t size; /* of our receive queue */
	uint16_t received;
	uint16_t limit; /* what the peer was told last */
};

void evr_credit_in_init(struct evr_credit_in *in, uint16_t size);
/* One came. 0; -ENOBUFS: the peer had no credit for it. */
int evr_credit_in_take(struct evr_credit_in *in);
/* Half of the receive queue was used since the peer was told. */
bool evr_credit_in_is_due(const struct evr_credit_in *in);
/* The limit that the peer is told now. */
uint16_t evr_credit_in_give(struct evr_credit_in *in);

#endif
