/*
 * Two streams joined by a wire in memory: each side has a queue pair, which does its work late, and
 * a completion queue. It looks after what real ones forgive or do not tell: that no queue runs
 * over, that what is read was not given back, that what is written was granted.
 */
#ifndef UNIT_PROTO_WIRE_H
#define UNIT_PROTO_WIRE_H

#include "proto/stream.h"
#include "unit/must.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define holds(condition) MUST(condition, "does not hold: %s", #condition)

enum {
	WIRE_RING_MAX = 1 << 16,
	WIRE_QUEUE_MAX = 64,
	WIRE_RECEIVES_MAX = WIRE_QUEUE_MAX + EVR_SENDQ_CONTROL,
	WIRE_MAPPINGS = 4,
	WIRE_CQES = 4 * WIRE_QUEUE_MAX + 16,
	WIRE_MAP_LEN = 700,
};

struct wire_wr {
	struct evr_stream_work work;
	const uint8_t *from;
	uint8_t inlined[EVR_STREAM_CONTROL_LEN + 64];
	uint64_t wr_id;
	bool write;   /* to the peer's memory */
	bool message; /* takes a receive */
	bool signaled;
};

struct wire_cqe {
	uint64_t wr_id;
	uint32_t imm;
	uint32_t written;
	uint32_t places; /* of the send queue that are free again */
	bool ok;
};

struct wire_side {
	struct evr_stream stream;
	struct evr_stream_config config;
	struct wire_side *peer;
	/* Registered memory. */
	uint8_t rx[WIRE_RING_MAX];
	uint8_t tx[WIRE_RING_MAX];
	uint8_t control[EVR_STREAM_CONTROL_BYTES];
	struct {
		struct evr_sge entries[EVR_TARGET_ENTRIES];
		struct evr_iomap_entry table[WIRE_MAPPINGS];
	} target;
	uint8_t mapped[WIRE_MAP_LEN];
	/* The stream's. */
	struct evr_sendq_work works[WIRE_QUEUE_MAX];
	struct evr_iomap_entry copies[WIRE_MAPPINGS];
	struct evr_iomap_slot slots[WIRE_MAPPINGS];
	/* The queue pair. */
	struct wire_wr sq[WIRE_QUEUE_MAX];
	uint32_t sq_head, sq_tail; /* not yet done */
	uint32_t sq_used;	   /* places, until a completion was taken */
	uint32_t silent;
	uint32_t receives;
	bool broken;
	bool failed;
	/* The completion queue. */
	struct wire_cqe cq[WIRE_CQES];
	uint32_t cq_head, cq_tail;
	/* What the peer wrote into the ring, and the first byte that the user still has. */
	uint64_t written, held;
	bool discards; /* the user has nothing, nor wants any more */
};

/* Random numbers from a seed. */
void wire_seed(uint64_t seed);
uint32_t wire_random(uint32_t below);

/* The byte at a place of what a side sends. */
uint8_t wire_pattern(const struct wire_side *side, uint64_t at);

/* Both are connected, and have said nothing. tells: the device says how long a write was. */
void wire_connect(struct wire_side *a, struct wire_side *b, const struct evr_stream_config *of_a,
	const struct evr_stream_config *of_b);
/* Posts what was handed out; bytes are those the user wanted to send. */
void wire_post(struct wire_side *side, const struct evr_stream_work *work, const uint8_t *bytes);
/* Posts what is due. */
void wire_pump(struct wire_side *side);
/* The queue pair does its next work, if there is one and the peer has a receive. */
bool wire_execute(struct wire_side *side);
/* Takes one completion in; whether there was one. */
bool wire_poll(struct wire_side *side);
/* The side's queue pair goes into error: all that is sent to it fails. */
void wire_break(struct wire_side *side);

#endif
