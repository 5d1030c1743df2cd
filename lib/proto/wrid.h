/* The wr_id of a stream's work: which kind it is, and its number. */
#ifndef EVR_PROTO_WRID_H
#define EVR_PROTO_WRID_H

#include <stdbool.h>
#include <stdint.h>

#define EVR_WRID_RECV (UINT64_C(1) << 63)
#define EVR_WRID_FIRST (UINT64_C(1) << 62)

/* A receive. On iWARP, index says which of the four-byte buffers it has. */
static inline uint64_t evr_wrid_recv(uint32_t index)
{
	return EVR_WRID_RECV | index;
}

/* Work of the send queue, by its number. */
static inline uint64_t evr_wrid_send(uint32_t number)
{
	return number;
}

/* The first of the two work requests that are one work on iWARP. */
static inline uint64_t evr_wrid_first(uint64_t wr_id)
{
	return wr_id | EVR_WRID_FIRST;
}

static inline bool evr_wrid_is_recv(uint64_t wr_id)
{
	return wr_id & EVR_WRID_RECV;
}

static inline bool evr_wrid_is_first(uint64_t wr_id)
{
	return wr_id & EVR_WRID_FIRST;
}

/* The index of a receive, the number of a send. */
static inline uint32_t evr_wrid_number(uint64_t wr_id)
{
	return (uint32_t)wr_id;
}

#endif
