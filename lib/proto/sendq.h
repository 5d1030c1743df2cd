/*
 * The send queue of a stream: which of its places are free, what is on its way, what of it has to
 * be signalled. Four places are kept for control messages, which go without the peer's credit
 * (rsocket protocol version 1, as rdma-core's librdmacm has it). Work completes in the order in
 * which it was posted; a completion stands for all before it.
 */
#ifndef EVR_PROTO_SENDQ_H
#define EVR_PROTO_SENDQ_H

#include <stdbool.h>
#include <stdint.h>

enum { EVR_SENDQ_MIN = 16, EVR_SENDQ_MAX = 0xfffe, EVR_SENDQ_CONTROL = 4 };

/* One piece of work that was handed out. */
struct evr_sendq_work {
	uint32_t bytes; /* of the user's, whatever memory they are in */
	uint32_t ring;	/* of them, those in the send ring */
	uint8_t places;
	bool control;
	bool mapping; /* at most one of these is on its way */
};

struct evr_sendq {
	struct evr_sendq_work *works; /* a ring of size of them, the caller's */
	uint16_t size;
	uint16_t oldest; /* its index */
	uint16_t count;
	uint16_t data_free; /* places */
	uint16_t control_free;
	uint16_t silent;      /* places since the last signal */
	uint32_t silent_ring; /* bytes in the ring since then */
	uint32_t silent_ring_max;
	uint16_t silent_max;
	uint32_t next; /* the number of the next work */
	uint32_t control_count;
	uint64_t handed_bytes;
	uint64_t done_bytes;
	uint32_t done_ring; /* bytes to be freed in the send ring */
	bool mapping;
};

/*
 * The queue has size places, of EVR_SENDQ_MIN to EVR_SENDQ_MAX; works has as many entries. Of data,
 * at most a quarter of the queue and of a send ring of ring bytes goes without a signal, or with
 * all every work has one.
 */
void evr_sendq_init(struct evr_sendq *queue, struct evr_sendq_work *works, uint16_t size,
	uint32_t ring, bool all);

bool evr_sendq_has(const struct evr_sendq *queue, bool control, uint8_t places);

/*
 * A work goes, for which there are places. Returns its number. *signaled says whether it must have
 * a completion; it goes in as true where the caller wants one.
 */
uint32_t evr_sendq_push(struct evr_sendq *queue, const struct evr_sendq_work *work, bool *signaled);

/*
 * This work completed, and all before it. A number that is not on its way is ignored: where all of
 * a queue's work is flushed, later completions may have come first.
 */
void evr_sendq_complete(struct evr_sendq *queue, uint32_t number);

/* How many bytes of the send ring are free since the last call. */
uint32_t evr_sendq_reap_ring(struct evr_sendq *queue);

#endif
