/* A ring of bytes that wait to be sent, or are on their way: they go in the order they came. */
#ifndef EVR_PROTO_TXRING_H
#define EVR_PROTO_TXRING_H

#include <stdint.h>

struct evr_txring {
	uint32_t size; /* bytes */
	uint32_t next; /* the offset that is filled next */
	uint32_t used;
};

void evr_txring_init(struct evr_txring *ring, uint32_t size);
uint32_t evr_txring_free(const struct evr_txring *ring);
/* How many bytes are free from the next offset on, up to the end of the ring. */
uint32_t evr_txring_contiguous(const struct evr_txring *ring);
/* Uses the next bytes, at most what is contiguous. Returns the offset of the first. */
uint32_t evr_txring_take(struct evr_txring *ring, uint32_t len);
/* The oldest bytes are free again. */
void evr_txring_release(struct evr_txring *ring, uint32_t len);

#endif
