#include "proto/txring.h"

#include "util/number.h"

void evr_txring_init(struct evr_txring *ring, uint32_t size)
{
	*ring = (struct evr_txring){ .size = size };
}

uint32_t evr_txring_free(const struct evr_txring *ring)
{
	return ring->size - ring->used;
}

uint32_t evr_txring_contiguous(const struct evr_txring *ring)
{
	return evr_smaller(evr_txring_free(ring), ring->size - ring->next);
}

uint32_t evr_txring_take(struct evr_txring *ring, uint32_t len)
{
	uint32_t offset = ring->next;

	ring->used += len;
	ring->next += len;
	if (ring->next == ring->size)
		ring->next = 0;
	return offset;
}

void evr_txring_release(struct evr_txring *ring, uint32_t len)
{
	ring->used -= len;
}
