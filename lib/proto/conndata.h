/*
 * What two peers tell each other in the private data of a connection request and of its reply, in
 * rsocket protocol version 1 as rdma-core's librdmacm speaks it: 40 bytes, all big-endian.
 */
#ifndef EVR_PROTO_CONNDATA_H
#define EVR_PROTO_CONNDATA_H

#include "proto/sge.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	EVR_CONNDATA_LEN = 40,
	EVR_CONNDATA_IB_PREFIX = 36, /* before it in a request between AF_IB addresses */
	EVR_CONNDATA_TARGETS = 2,    /* entries of a target SGL */
	EVR_IOMAP_SIZE_MAX = 0x7f00,
};

struct evr_conndata {
	bool big_endian;      /* the sender's host: entries in its memory are in this order */
	bool iomap;	      /* the sender has a table for mappings, of iomap_size entries */
	uint16_t credits;     /* messages that it takes before it gives more: its receive queue */
	uint32_t iomap_size;  /* on the wire a number that evr_iomap_scale() has rounded */
	uint64_t target_addr; /* of its two target entries, and of its table behind them */
	uint32_t target_rkey;
	struct evr_sge data; /* the first half of its receive ring */
};

/*
 * Puts prefix zeroes (0, or EVR_CONNDATA_IB_PREFIX in a request between AF_IB addresses) and the
 * data into size bytes. Returns how many were put; -EMSGSIZE: they do not fit.
 */
int evr_conndata_encode(const struct evr_conndata *conn, size_t prefix, void *bytes, size_t size);

/*
 * Reads the data behind prefix bytes; what is behind it is padding. iomap_size is 0 for a sender
 * without table. Returns 0, or:
 * -ENODATA    there is no data at all
 * -EMSGSIZE   it is too short
 * -ENOTSUP    another version of the protocol
 * -ENOBUFS    no credits
 * -EDOM       the target SGL has not two entries
 * -ENOSPC     the data buffer is empty
 * -ERANGE     the data buffer or the target SGL ends above the highest address, or the buffer is
 *             longer than 2 GiB - 1
 */
int evr_conndata_decode(struct evr_conndata *conn, size_t prefix, const void *bytes, size_t len);

/*
 * The eight bits that stand for the size of a table: exact up to 128, 128 up to 255, then the next
 * lower multiple of 256; more than EVR_IOMAP_SIZE_MAX is that.
 */
uint8_t evr_iomap_scale(uint32_t size);
/* The size that eight bits stand for. */
uint32_t evr_iomap_unscale(uint8_t scaled);

#endif
