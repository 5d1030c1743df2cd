/* What can be asked of a connection's send queue. */
#ifndef EVRDMA_WORK_H
#define EVRDMA_WORK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct evrdma_buf;

/* A part of a buffer. */
struct evrdma_seg {
	struct evrdma_buf *buf;
	size_t offset; /* bytes from its beginning */
	size_t len;
};

/* Memory of the peer's, as the peer has told it: evrdma_conn_expose(). */
struct evrdma_remote {
	uint64_t addr;
	uint32_t key;
};

/* Of a packed struct evrdma_remote: addr in the first 8, key in the last 4, both big endian. */
#define EVRDMA_REMOTE_PACKED_BYTES 12

/*
 * Makes it bytes of a message, whatever the two machines are, and back. packed has room for
 * EVRDMA_REMOTE_PACKED_BYTES and any alignment. Any bytes unpack to something: it is the peer's
 * device that tells whether the key is one of its own. Any thread. Since 0.1.
 */
void evrdma_remote_pack(const struct evrdma_remote *remote, void *packed);
void evrdma_remote_unpack(struct evrdma_remote *remote, const void *packed);

/* The same memory from offset bytes on; what is outside of it the peer's device refuses. Any
 * thread. Since 0.1. */
struct evrdma_remote evrdma_remote_at(const struct evrdma_remote *remote, uint64_t offset);

enum evrdma_op {
	EVRDMA_OP_SEND,         /* the segments arrive as one message */
	EVRDMA_OP_WRITE,        /* the segments are written to remote, one after the other */
	EVRDMA_OP_READ,         /* remote is read into the segments */
	EVRDMA_OP_COMPARE_SWAP, /* the 8 bytes at remote become swap if they were compare_add */
	EVRDMA_OP_FETCH_ADD     /* compare_add is added to the 8 bytes at remote */
};

/* Flags of work. */
#define EVRDMA_WORK_OPT_IMM 0x1u   /* SEND, WRITE: imm goes along and takes a receive buffer of the
                                      peer's; not on iWARP */
#define EVRDMA_WORK_OPT_FENCE 0x2u /* begins when the reads and atomics before it are over */

/*
 * One piece of work. Zero it, then set what the operation takes. It is read during the call only.
 *
 * The two atomics take one segment of 8 bytes, which gets the value that was there before, in host
 * order, and an address that is a multiple of 8. Other work may have no segments, or empty ones. A
 * SEND or WRITE may have inline_data in place of segments: it is copied, so it is the caller's
 * again at once.
 */
struct evrdma_work {
	enum evrdma_op op;
	unsigned flags; /* EVRDMA_WORK_OPT_* */
	const struct evrdma_seg *segs;
	unsigned seg_count;
	const void *inline_data;
	size_t inline_len;
	uint32_t imm; /* in host order */
	struct evrdma_remote remote;
	uint64_t compare_add;
	uint64_t swap;
};

#ifdef __cplusplus
}
#endif

#endif
