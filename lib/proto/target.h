/*
 * Where a peer wants our bytes: its target in rsocket protocol version 1 (rdma-core's librdmacm).
 * It has two entries, used in turns. They stand in our memory, and the peer writes them there by
 * RDMA, in our byte order, each when the one before of that place is used up; the first comes with
 * the connection data, the next goes to entry 1. What was announced is copied and checked before it
 * is used: what the peer writes later changes nothing.
 */
#ifndef EVR_PROTO_TARGET_H
#define EVR_PROTO_TARGET_H

#include "proto/sge.h"

#include <stdbool.h>
#include <stdint.h>

enum { EVR_TARGET_ENTRIES = 2 };

struct evr_target {
	volatile struct evr_sge *memory;	  /* EVR_TARGET_ENTRIES, which the peer writes */
	struct evr_sge entry[EVR_TARGET_ENTRIES]; /* what is left of them */
	uint32_t rkey, len;			  /* of the first one of all */
	uint8_t current;			  /* the entry that is written to */
	uint8_t expected;			  /* the entry that comes next */
};

/* How many bytes came with an announcement, when the device does not tell. */
#define EVR_WRITTEN_UNKNOWN UINT32_MAX

/* The memory is cleared, before the peer knows of it; it stays the caller's. */
void evr_target_init(struct evr_target *target, volatile struct evr_sge *memory);
/* The entry that came with the connection data, which has been checked. */
void evr_target_start(struct evr_target *target, const struct evr_sge *first);

/*
 * The peer says that it gave credits, and, when written is EVR_SGE_LEN, an entry with them. Where
 * it is not known whether it did (iWARP), the entry is looked at: all its fields are set when it
 * was written. Of the length, the last of them, some bytes may be there alone; they are known by
 * the first entry's, for rsockets show halves of one size. Returns 1 with a new entry, 0 without;
 * -EBADMSG: it is empty, runs over the end of all addresses, is longer than 2 GiB - 1, comes before
 * the one of its place is used up, or its length is not an entry's.
 */
int evr_target_announce(struct evr_target *target, uint32_t written);

/* What is left of the current entry: no message may be longer; and of both. */
uint32_t evr_target_left(const struct evr_target *target);
uint64_t evr_target_window(const struct evr_target *target);
/* Where the next len bytes go, at most what is left. The entry is advanced. */
struct evr_sge evr_target_take(struct evr_target *target, uint32_t len);

#endif
