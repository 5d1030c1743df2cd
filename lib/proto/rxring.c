#include "proto/rxring.h"

#include "util/number.h"

#include <errno.h>

static uint64_t size_of(const struct evr_rxring *ring)
{
	return 2 * (uint64_t)ring->half;
}

void evr_rxring_init(struct evr_rxring *ring, uint32_t half)
{
	*ring = (struct evr_rxring){ .half = half, .given = half };
}

uint32_t evr_rxring_room(const struct evr_rxring *ring)
{
	if (ring->given == ring->written)
		return 0;
	return ring->half - (uint32_t)(ring->written % ring->half);
}

int evr_rxring_write(struct evr_rxring *ring, uint32_t len)
{
	if (!len || len > evr_rxring_room(ring))
		return -EMSGSIZE;
	ring->written += len;
	return 0;
}

bool evr_rxring_is_due(const struct evr_rxring *ring)
{
	return ring->given - ring->released <= ring->half;
}

uint32_t evr_rxring_give(struct evr_rxring *ring)
{
	uint32_t offset = (uint32_t)(ring->given % size_of(ring));

	ring->given += ring->half;
	return offset;
}

uint32_t evr_rxring_readable(const struct evr_rxring *ring)
{
	return (uint32_t)(ring->written - ring->taken);
}

uint32_t evr_rxring_spans(const struct evr_rxring *ring, struct evr_span spans[2])
{
	uint32_t len = evr_rxring_readable(ring);
	uint32_t offset = (uint32_t)(ring->taken % size_of(ring));

	spans[0].offset = offset;
	spans[0].len = evr_smaller(len, (uint32_t)size_of(ring) - offset);
	spans[1].offset = 0;
	spans[1].len = len - spans[0].len;
	return len;
}

/* While something is lent, what was consumed behind it waits. */
static void settle(struct evr_rxring *ring)
{
	if (!ring->lent)
		ring->released = ring->taken;
}

void evr_rxring_consume(struct evr_rxring *ring, uint32_t len)
{
	ring->taken += evr_smaller(len, evr_rxring_readable(ring));
	settle(ring);
}

void evr_rxring_lend(struct evr_rxring *ring, uint32_t len)
{
	len = evr_smaller(len, evr_rxring_readable(ring));
	ring->taken += len;
	ring->lent += len;
}

void evr_rxring_release(struct evr_rxring *ring, uint32_t len)
{
	len = evr_smaller(len, ring->lent);
	ring->lent -= len;
	ring->released += len;
	settle(ring);
}
